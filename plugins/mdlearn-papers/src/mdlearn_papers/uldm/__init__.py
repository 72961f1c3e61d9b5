"""Tables and figures of: Unconstrained large margin distribution machines (Abe, Pattern Recognition Letters 2017)."""

from __future__ import annotations

from mdlearn_papers.studies import Experiment
from mdlearn_papers.uldm import iris, multiclass_tables, tables, versus

EXPERIMENTS: tuple[Experiment, ...] = (
    *tables.EXPERIMENTS,
    *multiclass_tables.EXPERIMENTS,
    *versus.EXPERIMENTS,
    *iris.EXPERIMENTS,
)
