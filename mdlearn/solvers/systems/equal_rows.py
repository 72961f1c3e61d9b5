"""Groups of equal rows as the rows of a problem: its column, and what a point of it is over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.rows.distinct import EqualRows, sample_repeats
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.forms.proof import Start
from mdlearn.solvers.base import Solver, Steps
from mdlearn.solvers.report import Offer, Report

MOST_MERGED_ENTRIES = 1 << 22
"""Entries of rows up to which a search for equal ones takes no time that Ctrl-C could be late by."""


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


@dataclass(frozen=True, eq=False)
class KernelOnEqualRows:
    """Kernel problem over groups of equal rows, which an engine is given in the place of that over all rows.

    Attributes
    ----------
    equal : EqualRows
        Rows that are equal, labels of all columns included.
    form : MarginForm
        The problem over one row of each group, as heavy as all of it.
    shared : object
        What the engine has prepared for it.
    """

    equal: EqualRows
    form: MarginForm
    shared: Any

    def iterate(self, solver: Solver, column: Column, *given: Any) -> Steps:
        """Yield the reports of an engine on the groups of a column as those of all rows; `given`: options and so on."""
        groups = column_of_equal_rows(column, self.equal)
        if groups.start is not None:
            groups = groups.with_start(replace(groups.start, coef=self.equal.sums(groups.start.coef)))
        steps = solver.iterate(self.form, groups, self.shared, *given)
        while True:
            try:
                step = next(steps)
            except StopIteration as done:
                return done.value
            if isinstance(step, Offer):
                step = Offer(partial(self._report, column, step.make), step.gap, step.seconds)
            elif step is not None:
                step = self._report(column, partial(replace, step))
            yield step

    def _report(self, column: Column, make: Callable[[], Report]) -> Report:
        """Make a report, with the multipliers of groups among their rows."""
        report = make()
        return replace(report, point=self._point(column, report.point))

    def _point(self, column: Column, point: Point) -> Point:
        """Return a point of groups as one of all rows: hinges of one after the other, all else by weight."""
        equal, group = self.equal, self.equal.group
        weights = equal.sums(column.counts)[group]
        share = np.divide(column.counts, weights, out=np.zeros_like(weights), where=weights > 0)
        beta = np.empty(column.caps.shape)
        for own, whole, caps, term in zip(beta, point.beta, column.caps, column.terms):
            by_turns = term.kind == "hinge" and not np.isinf(caps).any()
            own[:] = equal.filled(whole, caps) if by_turns else np.minimum(whole[group] * share, caps)
        losses = column.y * (column.sides @ beta)
        of_groups = column.y[equal.where] * (column.sides @ point.beta)

        def coefficients(v: np.ndarray | None) -> np.ndarray | None:
            return None if v is None else (v - of_groups)[group] * share + losses

        return Point(
            beta, point.sigma[group] * share, coefficients(point.coef), point.intercept, coefficients(point.alpha)
        )


def groups_of_equal_rows(form: MarginForm) -> tuple[EqualRows, MarginForm] | None:
    """Return groups of equal rows of a kernel problem, and the problem over a row of each; None where they are few."""
    features = form.features
    if not isinstance(features, KernelFeatures) or features.rows.n_entries > MOST_MERGED_ENTRIES:
        return None
    if form.by_row or form.offsets or features.whole or features.pair is not None or not features.kernel.plain:
        return None
    if not sample_repeats(features.rows):  # before labels are made for every column
        return None
    merged = features.merged([one.y for one in form.columns])
    if merged is None:
        return None
    equal, some = merged
    columns = tuple(column_of_equal_rows(one, equal) for one in form.columns)
    return equal, MarginForm(some, columns, form.bias, form.ridge, form.unit)


def require_memory_of_groups(solver: Solver, form: MarginForm, options: dict[str, Any], at_once: int) -> None:
    """Raise an error where arrays of an engine would not fit, nor those over groups of equal rows."""
    try:
        solver.require_memory(form, options, at_once)
    except (ValueError, MemoryError):
        groups = groups_of_equal_rows(form)
        if groups is None:
            raise
        solver.require_memory(groups[1], options, at_once)
