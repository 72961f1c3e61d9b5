"""Rows in an order: a function that is larger for the better row of each pair."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Column, DenseRows, HingeTerm, MarginForm, Model, Parameter, Setting, Task, row_values


def numbers(name, value):
    """Return numbers of rows as an array, or None."""
    return None if value is None else np.asarray(value)


def ordered_pairs(y, query):
    """Return the positions of the better and of the worse row of each pair with different y, within queries."""
    return np.nonzero((y[:, None] > y) & (query[:, None] == query))


class RankModel(Model):
    """Model of an order of rows: `predict` returns f, which only compares rows."""

    task: ClassVar[str] = "ranking"
    measure: ClassVar[str] = "share of pairs in order"

    def predictions(self, f):
        """Return f itself."""
        return f

    def score(self, X, y, sample_weight=None, query=None):
        """Return the (weighted) share of pairs with different y that f puts in order, ties half; 1 without pairs.

        Rows of different queries, numbers, are not compared; None: all rows are.
        """
        f, y = self.decision_function(X), np.asarray(y, float)
        counts = np.ones(len(f)) if sample_weight is None else np.asarray(sample_weight, float)
        high, low = ordered_pairs(y, np.zeros(len(f)) if query is None else np.asarray(query))
        each = counts[high] * counts[low]
        right = 0.5 * ((f[high] > f[low]).astype(float) + (f[high] >= f[low]))
        return float(each @ right / each.sum()) if each.any() else 1.0

    def margins(self, X, y, normalized=False, per_class=False):
        """Raise TypeError: margins belong to pairs of rows."""
        raise TypeError("a ranking has margins of pairs, f of the better row minus f of the other; use predict(X)")


RANKING = Task("numbers", RankModel)
"""Task of numbers of which only the order counts."""


@dataclass(frozen=True, eq=False)
class PairRows(DenseRows):
    """Differences of the better and the worse row of pairs, whose positions are `high` and `low` among `n`."""

    high: np.ndarray | None = None
    low: np.ndarray | None = None
    n: int = 0

    def by_row(self, values, sign):
        """Return the sum of the pairs' values in each row: of better ones, plus `sign` times that of worse ones."""
        return np.bincount(self.high, values, self.n) + sign * np.bincount(self.low, values, self.n)


class RankSVM(mdlearn.Objective):
    """Ranking SVM: the better row of each pair is to be ahead by a margin of 1.

    ``1/2 |w|^2 + C sum_{y_i > y_j} max(0, 1 - (f(x_i) - f(x_j)))``

    y are numbers of which only the order counts, within the rows of a query.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0. A pair counts as often as the product of its rows' weights says.
    query : array-like of shape (n,), optional
        A number for each row of X: rows of different numbers are not compared. None: all are.

    Raises
    ------
    ValueError
        At fit without a pair to compare, and with a bias, which no difference has.

    Notes
    -----
    Certain: the problem with all pairs. The differences are written out: m^2 / 2 rows at most. A model has coefficients
    over the rows of X; multipliers of a row are the sum of those of its pairs. Paths and selection score all pairs of
    held-out rows, whatever their query. A fit with a warm start begins at 0.

    References
    ----------
    T. Joachims, "Optimizing search engines using clickthrough data", KDD 2002.
    """

    name = "rank_svm"
    summary = "ranking SVM: the better row of each pair is ahead by a margin"
    formula = "1/2 |w|^2 + C sum over y_i > y_j of max(0, 1 - (f_i - f_j))"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "query": Setting(
            None,
            "a number for each row of X; rows of different ones are not compared",
            numbers,
            lambda n: np.arange(n) % 3,
        ),
    }
    default_bias = "none"
    kernels = False
    needs_rows = True
    task = RANKING

    def form(self, data, features, bias, params):
        """Write the problem of one class over differences of rows."""
        if bias != "none":
            raise ValueError(f"differences of rows have no bias; got bias={bias!r}, give bias='none'")
        y, given = data.targets, params["query"]
        high, low = ordered_pairs(y, np.zeros(len(y)) if given is None else row_values(data, given, "query"))
        if not len(high):
            raise ValueError("no two rows of a query have different y; a ranking needs at least one pair to compare")
        X = features.rows.block(slice(None))
        rows = PairRows((X[high] - X[low]).astype(features.rows.dtype), high=high, low=low, n=len(y))
        counts = data.counts[high] * data.counts[low]
        column = Column(np.ones(len(high)), counts, 0.0, 0.0, (HingeTerm(params["C"]),))
        return MarginForm(replace(features, rows=rows), (column,), bias)

    def starts_of(self, starts, form):
        """Return no starts: those of other fits lack the multipliers of pairs."""
        return []

    def arranged(self, solution, form):
        """Return the solution by row of X."""
        rows = form.features.rows
        beta = rows.by_row(solution.beta[0], 1.0)[None]
        return replace(solution, alpha=rows.by_row(solution.alpha, -1.0), beta=beta)
