"""Tables and figures of: Lagrangian support vector machines (Mangasarian and Musicant, 2000)."""

from __future__ import annotations

from mdlearn.experiments.papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
