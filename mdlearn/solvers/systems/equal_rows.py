"""Groups of equal rows as the rows of a problem: its column, and what a point of it is over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mdlearn.data.rows.distinct import EqualRows
from mdlearn.forms.margin import Column
from mdlearn.forms.proof import Start
from mdlearn.solvers.report import Report


def column_of_equal_rows(column: Column, equal: EqualRows) -> Column:
    """Return a column of groups of equal rows, each as heavy as all of it."""
    start = column.start
    if start is not None:
        beta = np.array([equal.sums(one) for one in start.beta])
        start = Start(start.coef, start.intercept, beta, None if start.alpha is None else equal.sums(start.alpha))
    y, counts = column.y[equal.where], equal.sums(column.counts)
    return Column(y, counts, column.variance, column.mean, column.terms, column.unit, start=start)


def report_of_all_rows(column: Column, equal: EqualRows, make: Callable[[], Report]) -> Report:
    """Make a report and share the multipliers of groups of equal rows among these, by their weights."""
    report = make()
    point, group, weights = report.point, equal.group, equal.sums(column.counts)[equal.group]
    share = np.divide(column.counts, weights, out=np.zeros_like(weights), where=weights > 0)
    beta = np.minimum(point.beta[:, group] * share, column.caps)
    alpha = None if point.alpha is None else point.alpha[group] * share
    return replace(report, point=replace(point, beta=beta, sigma=point.sigma[group] * share, alpha=alpha))
