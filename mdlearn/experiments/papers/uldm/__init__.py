"""Tables and figures of: Unconstrained large margin distribution machines (Abe, Pattern Recognition Letters 2017)."""

from __future__ import annotations

from mdlearn.experiments.papers.studies import Experiment
from mdlearn.experiments.papers.uldm import multiclass_tables, tables

EXPERIMENTS: tuple[Experiment, ...] = (*tables.EXPERIMENTS, *multiclass_tables.EXPERIMENTS)
