"""Tables and figures of: Lagrangian support vector machines (Mangasarian and Musicant, 2000)."""

from __future__ import annotations

from mdlearn.experiments.papers.lsvm import checkerboard, ndc, nonlinear, uci
from mdlearn.experiments.papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    uci.EXPERIMENT,
    ndc.EXPERIMENT,
    nonlinear.EXPERIMENT,
    checkerboard.EXPERIMENT,
)
