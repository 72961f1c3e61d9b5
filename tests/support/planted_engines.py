"""A small engine that is right, engines with one mistake each that authors make, and the SVM that they are to solve."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import LinearFeatures, Point, Report, report_of


class Sweeps(mdlearn.Solver):
    """Coordinate ascent on the dual of an SVM over explicit rows (Hsieh et al., 2008)."""

    name = "sweeps"
    purpose = "dual coordinate ascent for one hinge term over explicit rows"
    kinds = frozenset({"hinge"})
    default_max_iter = 20000
    bias_share = 1.0  # of the steps that the bias takes part in
    last_row = None

    def refusal(self, form):
        told = super().refusal(form)
        if told is None and not isinstance(form.features, LinearFeatures):
            told = "it needs explicit rows"
        if told is None and form.bias == "free":
            told = "it knows no free bias"
        if told is None and any(len(c.terms) != 1 or c.terms[0].side < 0 or c.variance or c.mean for c in form.columns):
            told = "it knows one hinge term and nothing else"
        return told

    def caps(self, column):
        return column.caps[0].copy()

    def order(self, m, rng):
        return rng.permutation(m)

    def clipped(self, value, cap):
        return min(max(value, 0.0), cap)

    def begin(self, caps, column):
        return np.zeros(caps.shape[0])

    def report(self, form, column, beta, w, b):
        point = Point(beta[None].copy(), np.zeros(column.y.shape[0]), w.copy(), b)
        return report_of(form, column, point, column.y * (form.features.decision(w) + b))

    def iterate(self, form, column, shared, options, rng):
        X, y, t = form.features.rows.block(slice(None)), column.y, column.terms[0].threshold
        caps, biased = self.caps(column), self.bias_share * (form.bias == "regularized")
        beta = self.begin(caps, column)
        w, b = X.T @ (y * beta), biased * float(y @ beta)
        squares, still = (X**2).sum(axis=1) + biased, 0
        for sweep in range(700):
            largest = 0.0
            for i in self.order(y.shape[0], rng)[: self.last_row]:
                if squares[i] == 0.0:
                    continue
                value = self.clipped(beta[i] + (t - y[i] * (X[i] @ w + b)) / squares[i], caps[i])
                step, beta[i] = value - beta[i], value
                w, b = w + step * y[i] * X[i], b + biased * step * y[i]
                largest = max(largest, abs(step))
            yield self.report(form, column, beta, w, b) if sweep % 20 == 0 else None
            still = still + 1 if largest <= 1e-15 * np.abs(beta).max() else 0
            if still > 3:
                yield self.report(form, column, beta, w, b)
                return


class StalePoint(Sweeps):
    """The objective of a report is that of the one before."""

    name = "stale-point"

    def iterate(self, *given):
        before = None
        for report in super().iterate(*given):
            if report is not None:
                yield Report((before or report).objective, report.lower_bound, report.point)
                before = report
            else:
                yield None


class WritesIntoTheForm(Sweeps):
    """It scales the counts where they are."""

    name = "writes-into-form"

    def begin(self, caps, column):
        column.counts[:] /= column.counts.sum()
        return super().begin(caps, column)


class NoBias(Sweeps):
    """It leaves the bias where it was."""

    name = "no-bias"
    bias_share = 0.0


class NoWeights(Sweeps):
    """Boxes of all rows are those of a row that counts once."""

    name = "no-weights"

    def caps(self, column):
        return np.full(column.y.shape[0], column.terms[0].weight)


class NeverEnds(Sweeps):
    """It waits for steps to be exactly 0 and reports only then."""

    name = "never-ends"

    def iterate(self, *given):
        for report in super().iterate(*given):
            if report is None:
                yield None
        while True:
            yield None


class GlobalGenerator(Sweeps):
    """Its order is drawn from NumPy's global generator."""

    name = "global-generator"

    def order(self, m, rng):
        return np.random.permutation(m)  # noqa: NPY002


class OutsideTheBox(Sweeps):
    """It forgets the upper end of the boxes, and its bound is the dual's value all the same."""

    name = "outside-box"

    def clipped(self, value, cap):
        return max(value, 0.0)

    def report(self, form, column, beta, w, b):
        true = super().report(form, column, beta, w, b)
        return Report(true.objective, float(beta.sum() - 0.5 * (w @ w + b * b)), true.point)


class LastRowLeftOut(Sweeps):
    """Its sweeps end one row too early, in the order of the rows."""

    name = "last-row-left-out"
    last_row = -1

    def order(self, m, rng):
        return np.arange(m)


class KeepsTheLastAnswer(Sweeps):
    """It begins where the last fit ended, also another problem's, and stops after a few sweeps."""

    name = "keeps-last-answer"
    exact = False
    kept: ClassVar = {}

    def begin(self, caps, column):
        return np.minimum(self.kept.get(caps.shape[0], np.zeros(caps.shape[0])), caps)

    def iterate(self, form, column, *given):
        for _, report in zip(range(21), super().iterate(form, column, *given), strict=False):
            if report is not None:
                self.kept[column.y.shape[0]] = report.point.beta[0]
            yield report


class TakesEveryLoss(Sweeps):
    """It says that it takes squared hinges, and solves plain ones."""

    name = "takes-every-loss"
    kinds = frozenset({"hinge", "squared"})


PLANTED_ENGINES = (
    (StalePoint, "solver_reports_its_points does not hold: .* but at its point it is", "right"),
    (WritesIntoTheForm, "solver_comes_to_an_end does not hold: ValueError: .*read-only", "refused"),
    (NoBias, "solver_reaches_the_optimum does not hold: svm, 8 rows, regularized bias: it ends at", "open"),
    (NoWeights, "solver_reaches_the_optimum does not hold: svm, 8 rows, no bias, weights 0 to 3: it ends at", "open"),
    (NeverEnds, "solver_comes_to_an_end does not hold: .* heartbeats without a report", "open"),
    (GlobalGenerator, "solver_repeats_itself does not hold: .* it draws from a global generator", "right"),
    (OutsideTheBox, "solver_reports_its_points does not hold: .* above the optimum", "open"),
    (LastRowLeftOut, "solver_reaches_the_optimum does not hold: svm, 8 rows, no bias: it ends at", "right"),
    (KeepsTheLastAnswer, "solver_repeats_itself does not hold: .* other bits", "open"),
    (TakesEveryLoss, "solver_reaches_the_optimum does not hold: lsvm, 8 rows", "open"),
)
"""Faulty engines, and words of the sentence in which `check_solver` tells the fault; what a fit comes to."""
