"""The columns of a MarginForm as one problem: for penalties that couple them, and to take them all at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mdlearn._solvers import apg
from mdlearn.data.features import LinearFeatures
from mdlearn.data.rows import Rows, Selection, steps
from mdlearn.forms.certificate import value_at_zero
from mdlearn.forms.composite import Look
from mdlearn.forms.losses import Term
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.forms.scores import EVERY, Bend, Scores

PIECE = 1 << 17
"""Decision values that one call of the kernel takes: a few milliseconds."""
ROUNDING = 1e-12
"""What sums over many rows may lose, in units of the moments' diagonal."""


class MarginComposite(Scores):
    """Columns of a MarginForm with squared and logistic terms as one problem, with its penalty.

    Parameters
    ----------
    form : MarginForm
        With explicit rows.
    columns : sequence of Column
        Some or all of its columns.
    """

    separate = True

    def __init__(self, form: MarginForm, columns: Sequence[Column]) -> None:
        assert isinstance(form.features, LinearFeatures)
        counts = [c.counts for c in columns]
        same = all(c is counts[0] for c in counts)
        most = counts[0] if same else np.max(counts, axis=0)
        super().__init__(form.features, form.bias, most, len(columns), form.ridge, form.penalty)
        self.form, self.columns, self.unit = form, tuple(columns), form.unit * columns[0].unit
        self.signs = np.ascontiguousarray(np.array([c.y for c in columns], dtype=np.int8).T)
        self.each = np.broadcast_to(most[:, None], self.signs.shape) if same else np.array(counts).T.copy()
        self.kappa = np.array([c.kappa for c in columns])
        self.pull = np.array([c.mean / c.total for c in columns])
        self.totals = np.array([c.total for c in columns])
        n_terms = max(len(c.terms) for c in columns)
        self.terms = np.zeros((n_terms, len(columns), 5))
        for j, column in enumerate(columns):
            for t, term in enumerate(column.terms):
                self.terms[t, j] = _numbers(term)
        self.nonnegative = not self.pull.any()
        self.reach = max((_reach(t) for c in columns for t in c.terms), default=1.0)
        self.steepest = max(_bend_bound(c) for c in columns)
        self.at_zero = sum(value_at_zero(c) for c in columns)

    @cached_property
    def means(self) -> np.ndarray:
        """Mean signed row of every column, (p, k): its product with coefficients is the mean margin."""
        return self.adjoint(self.signs * self.each) / self.totals

    def _rest(self, W: np.ndarray) -> np.ndarray:
        mean = (self.means * W).sum(axis=0) if self.kappa.any() else np.zeros(self.shape[1])
        return np.array([self.kappa, self.pull, mean])

    def slopes(self, W: np.ndarray, F: np.ndarray, chosen: Selection = EVERY) -> float:
        """Return h at decision values F of coefficients W, and put its derivatives in their place; or of some rows."""
        rest, signs, each, value = self._rest(W), self.signs[chosen], self.each[chosen], 0.0
        for part in steps(F.shape[0], PIECE // self.shape[1]):
            value += apg.slopes(F[part], signs[part], each[part], self.terms, rest)
        return value

    def partial(self, W: np.ndarray, F: np.ndarray, chosen: np.ndarray, part: Rows) -> np.ndarray:
        """Share of some rows, with decision values F, in the gradient of h; the mean margin is that of all rows."""
        signs, each = self.signs[chosen], self.each[chosen]
        pull = self.kappa * (each * (signs * F - (self.means * W).sum(axis=0))).sum(axis=0)
        return super().partial(W, F, chosen, part) - pull * self.means

    def bend(self, W: np.ndarray, F: np.ndarray) -> tuple[Bend, np.ndarray]:
        """Second derivatives of the terms, and those of the variance about the mean."""
        D = F.copy()
        for part in steps(F.shape[0], PIECE // self.shape[1]):
            apg.bends(D[part], self.signs[part], self.each[part], self.terms)

        def apply(V: np.ndarray, U: np.ndarray) -> np.ndarray:
            B = D * U
            if self.kappa.any():
                mean = (self.means * V).sum(axis=0)
                B += self.kappa * self.each * (U - self.signs * mean)
            return B

        return apply, D.sum(axis=0) / self.totals

    def approximation(self, look: Look, rows: np.ndarray, column: int) -> np.ndarray:
        """The moments times the mean second derivative, those of the variance about the mean."""
        A = super().approximation(look, rows, column)
        kappa = self.kappa[column]
        if kappa == 0:
            return A
        mean = np.sqrt(self.totals[column]) * self.means[rows, column]
        if self.moments is None:
            return A + kappa * np.maximum(self.squares[rows] - mean**2, 0.0)
        return A + kappa * (self.moments[np.ix_(rows, rows)] - np.multiply.outer(mean, mean))

    @cached_property
    def _floor(self) -> list[Any] | None:
        """Factors of the second derivative that every W has, by column: that of the variance and the ridge."""
        from scipy.linalg import LinAlgError, cho_factor

        assert self.moments is not None
        factors = []
        for j in range(self.shape[1]):
            mean = np.sqrt(self.totals[j]) * self.means[:, j]
            A = self.kappa[j] * (self.moments - np.multiply.outer(mean, mean))
            A[np.diag_indices_from(A)] += self.ridge - ROUNDING * self.kappa[j] * np.diagonal(self.moments)
            try:
                factors.append(cho_factor(A, lower=True, overwrite_a=True, check_finite=False))
            except LinAlgError:
                return None
        return factors

    @property
    def _bent(self) -> bool:
        """Whether the variance is known to bend the objective in every direction."""
        return self.moments is not None and bool((self.kappa > 0).all()) and self._floor is not None

    @property
    def needs_anchor(self) -> bool:
        """Whether the variance leaves directions without curvature."""
        return super().needs_anchor and not self._bent

    def bound(self, look: Look, anchor: Look | None) -> tuple[float, str]:
        """Or F - 1/2 R' H^-1 R, R a subgradient, if larger: variance and ridge bend the objective by H at least."""
        from scipy.linalg import cho_solve

        tangents = super().bound(look, anchor)
        if not self._bent or self._floor is None:
            return tangents
        R = self.subgradient(look)
        drop = sum(r @ cho_solve(factor, r, check_finite=False) for factor, r in zip(self._floor, R.T))
        lower = self.objective(look) - 0.5 * float(drop)
        return (lower, "residual") if lower > tangents[0] else tangents

    def examine(self, point: Any) -> None:
        """Raise ValueError when, without variance and ridge, a point shows a direction that falls without end.

        Far out, a term falls or rises with its cap, and the objective with `sum caps max(0, -z) - a mean(z)` and the
        penalty.
        """
        if self.nonnegative or self.kappa.any() or self.ridge.any() or not point.W.any():
            return
        if any(t.kind != "logistic" for c in self.columns for t in c.terms):
            return
        Z = self.signs * self.scores(point.W)
        caps = np.array([sum(t.weight for t in c.terms) for c in self.columns])
        rise = float((self.each * caps * np.maximum(-Z, 0.0)).sum()) + self.penalty(point.W)
        gain = float((self.each * self.pull * Z).sum())
        if gain > rise * (1.0 + 1e-9):
            raise ValueError(
                "the objective is unbounded below on these training rows: the margin mean outweighs loss and penalty; "
                "lower its weight, or give variance or squared norm a positive one"
            )

    def multipliers(self, look: Look) -> np.ndarray:
        """Multipliers of the terms, (k, T, m)."""
        assert look.scores is not None
        Z = (self.signs * look.scores).T
        return np.array([[t.slopes(z, c.counts) for t in c.terms] for z, c in zip(Z, self.columns)])


class ColumnComposite(MarginComposite):
    """One column without penalty: an engine hands in what the certificate of a column takes."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        super().__init__(form, (column,))

    def point(self, W: np.ndarray, anchor: np.ndarray | None, look: Look) -> Point:
        """Return multipliers and coefficients."""
        assert look.scores is not None
        (column,) = self.columns
        z, d = column.y * look.scores[:, 0], self.rows.shape[1]
        b = float(W[d, 0]) if self.bias != "none" else 0.0
        beta = np.array([t.slopes(z, column.counts) for t in column.terms]).reshape(-1, z.shape[0])
        return Point(beta, column.spread(z), np.ascontiguousarray(W[:d, 0]), b)


def _reach(term: Term) -> float:
    """Largest margin, on either side, at which a term's slope still changes."""
    return abs(term.threshold) + 40.0 / getattr(term, "alpha", 40.0)


def _numbers(term: Term) -> tuple[float, float, float, float, float]:
    """A term as the kernel knows it."""
    logistic = term.kind == "logistic"
    return float(logistic), term.weight, float(term.side), term.threshold, getattr(term, "alpha", 1.0)


def _bend_bound(column: Column) -> float:
    """Largest second derivative at any margin, per unit of count."""
    logistic = sum(t.steepest for t in column.terms if t.kind == "logistic")
    squared = [t for t in column.terms if t.kind == "squared"]
    # Piecewise constant: largest next to some threshold.
    places = [t.threshold - t.side * 1e-9 * (1.0 + abs(t.threshold)) for t in squared]
    most = max((sum(t.steepest for t in squared if t.side * (t.threshold - z) > 0) for z in places), default=0.0)
    return logistic + most + column.kappa
