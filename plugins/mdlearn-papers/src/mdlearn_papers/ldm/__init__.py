"""Tables and figures of: Large margin distribution machine (Zhang and Zhou, KDD 2014)."""

from __future__ import annotations

from functools import partial

from mdlearn_papers.ldm import large, large_report, pictures, small_report, small_study
from mdlearn_papers.studies import Experiment

PAPER = "Large margin distribution machine (Zhang and Zhou, KDD 2014)"
TABLE2 = f"{PAPER}, table 2: small sets, linear kernel"
TABLE3 = f"{PAPER}, table 3: small sets, RBF kernel"
TABLE4 = f"{PAPER}, table 4: large sets, linear kernel, ASGD"
FIGURE1 = f"{PAPER}, figure 1: cumulative margins"
FIGURE2 = f"{PAPER}, figure 2: CPU time on large sets"
FIGURE3 = f"{PAPER}, figure 3: influence of the parameters"

EXPERIMENTS: tuple[Experiment, ...] = (
    Experiment("ldm-table2", TABLE2, small_study.LINEAR, partial(small_report.report, "linear", TABLE2)),
    Experiment("ldm-table3", TABLE3, small_study.RBF, partial(small_report.report, "rbf", TABLE3)),
    Experiment("ldm-table4", TABLE4, large.LARGE, partial(large_report.table4, TABLE4)),
    Experiment("ldm-fig1", FIGURE1, pictures.MARGINS, partial(pictures.figure1, FIGURE1)),
    Experiment("ldm-fig2", FIGURE2, large.TIMES, partial(large_report.figure2, FIGURE2)),
    Experiment("ldm-fig3", FIGURE3, pictures.SENSITIVITY, partial(pictures.figure3, FIGURE3)),
)
