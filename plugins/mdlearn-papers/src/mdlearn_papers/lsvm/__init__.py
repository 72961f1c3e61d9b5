"""Tables and figures of: Lagrangian support vector machines (Mangasarian and Musicant, 2000)."""

from __future__ import annotations

from mdlearn_papers.lsvm import checkerboard, ndc, nonlinear, uci
from mdlearn_papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    uci.EXPERIMENT,
    ndc.EXPERIMENT,
    nonlinear.EXPERIMENT,
    checkerboard.EXPERIMENT,
)
