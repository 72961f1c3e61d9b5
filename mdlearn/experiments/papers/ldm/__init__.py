"""Tables and figures of: Large margin distribution machine (Zhang and Zhou, KDD 2014)."""

from __future__ import annotations

from mdlearn.experiments.papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
