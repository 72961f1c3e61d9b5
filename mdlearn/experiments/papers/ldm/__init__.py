"""Tables and figures of: Large margin distribution machine (Zhang and Zhou, KDD 2014)."""

from __future__ import annotations

from functools import partial

from mdlearn.experiments.papers.ldm import small_report, small_study
from mdlearn.experiments.papers.studies import Experiment

PAPER = "Large margin distribution machine (Zhang and Zhou, KDD 2014)"
TABLE2 = f"{PAPER}, table 2: small sets, linear kernel"
TABLE3 = f"{PAPER}, table 3: small sets, RBF kernel"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("ldm-table2", TABLE2, small_study.LINEAR, partial(small_report.report, "linear", TABLE2)),
    Experiment("ldm-table3", TABLE3, small_study.RBF, partial(small_report.report, "rbf", TABLE3)),
)
