"""Tables and figures of: L3-SVMs (Zantedeschi, Emonet and Sebban, 2017)."""

from __future__ import annotations

from mdlearn_papers.l3 import complexity, directions, planar, small, tables
from mdlearn_papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = (
    *complexity.TABLES,
    *tables.TABLES,
    *planar.FIGURES,
    *small.FIGURES,
    *directions.FIGURES,
)
