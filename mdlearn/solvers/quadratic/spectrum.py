"""Spectrum for a whole grid of quadratic problems: one decomposition for the same rows, signs and counts.

With C = sum_i c_i (r_i - v)(r_i - v)' over the signed rows r_i and their mean v, a problem without a loss or with a
squared loss of second derivative D per unit of count is, up to a constant,

    1/2 |w|^2 + s/2 w'Cw + D m/2 (v.w)^2 - rho v.w,      s = kappa + D,   rho = a + D m threshold

so w is a multiple of t = (I + s C)^-1 v: with C = V diag(lambda) V', a product with V per problem. A free intercept is
taken out of C first: C becomes its Schur complement, v what is left of it.

Squaring the rows loses small eigenvalues where s C is huge; then the singular values of the rows themselves are taken.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
from scipy.linalg import qr, svd

from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen
from mdlearn.solvers.common.orthogonal import STACK_ENTRIES, STIFF_STACK
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.scatter import Scatters
from mdlearn.solvers.systems.system_choice import prefers_row_system


def spectrum_steepness(column: Column) -> np.ndarray:
    """Second derivatives of squared losses for a spectrum, (T, m); terms of side -1 come with those of side +1."""
    weights = np.array([2.0 * t.weight if t.side > 0 else 0.0 for t in column.terms])
    return np.multiply.outer(weights, column.counts).reshape(-1, column.counts.shape[0])


def largest_spectrum_steepness(column: Column) -> float:
    """Sum of kappa and the second derivative of the loss, per unit of count, by which a spectrum loses digits."""
    return column.kappa + float(spectrum_steepness(column).sum(axis=0).max(initial=0.0) / column.counts.max())


def spectrum_loss_coefficients(column: Column) -> tuple[float, float]:
    """Coefficients (D, pull) for a spectrum, per count: a column's loss is D/2 z^2 - pull z and a constant."""
    falling = [t for t in column.terms if t.side > 0]
    return sum(2.0 * t.weight for t in falling), sum(2.0 * t.weight * t.threshold for t in falling)


@dataclass(frozen=True)
class SpectrumIntercept:
    """Intercept of a spectrum that nothing else holds: its row of C and entry of v."""

    own: float  # its entry of C
    towards: np.ndarray  # shape (d,): its row of C over that entry: b = free part - towards . w.
    mean: float  # its entry of v


@dataclass(frozen=True)
class Spectrum:
    """Spectrum of the matrix C of one column: for all problems of the same rows, signs, counts and bias."""

    values: np.ndarray  # shape (n,): eigenvalues of C, in units of the ridge
    vectors: np.ndarray  # shape (n, n)
    mean: np.ndarray  # shape (n,): v in the basis of the vectors
    scale: np.ndarray  # shape (n,): ridge^(-1/2)
    intercept: SpectrumIntercept | None  # None: there is none, or it is the last column
    total: float  # m, the sum of the counts
    regularized: bool  # whether the last column is the intercept
    # shape (m, r), or None: left singular vectors of the weighted, centred rows, where those were decomposed
    left: np.ndarray | None = None

    def _solved(self, column: Column) -> tuple[np.ndarray, float]:
        """w in the basis of the vectors, and the free part of the intercept."""
        D, pull = spectrum_loss_coefficients(column)
        s, rho = column.kappa + D, column.mean + self.total * pull
        t = self.mean / (1.0 + s * self.values)
        held = float(t @ self.mean)
        free = 0.0
        if self.intercept is not None and s > 0:
            free = self.intercept.mean / (s * self.intercept.own)
            held += self.intercept.mean * free
        length = rho / (1.0 + D * self.total * held)
        return length * t, length * free

    def _placed(self, inner: np.ndarray, free: float) -> tuple[np.ndarray, float]:
        w = self.scale * (self.vectors @ inner)
        if self.intercept is not None:
            return w, free - float(self.intercept.towards @ w)
        return (w[:-1], float(w[-1])) if self.regularized else (w, 0.0)

    def point(self, form: MarginForm, column: Column) -> Point:
        """Return the optimum of a problem with its multipliers, for the certificate: one pass over the rows."""
        inner, free = self._solved(column)
        coef, intercept = self._placed(inner, free)
        z = column.y * (form.features.decision(coef) + intercept)
        sigma = column.spread(z)
        if self.left is not None and not column.terms:
            # Long coefficients leave few digits of margins that are nearly equal; the vectors have them all.
            r, root = self.left.shape[1], np.sqrt(column.counts)
            apart = self.left @ (np.sqrt(self.values[:r]) * inner[:r])
            apart += root * (column.y - column.label_mean) * free
            sigma = -column.kappa * root * apart
        return Point(column.slopes(z), sigma, coef, intercept)


def suits_spectrum(form: MarginForm, column: Column) -> bool:
    """Whether a spectrum solves a problem: explicit rows, signs, a squared norm, and a squared loss or none.

    Something has to hold a free intercept.
    """
    if form.ridge == 0 or column.offset is not None or not prefers_row_system(form) or not column.quadratic:
        return False
    return form.bias != "free" or column.kappa + float(spectrum_steepness(column).sum()) > 0


def spectrum_of(
    form: MarginForm, columns: list[Column], scatters: Scatters | None = None
) -> Generator[None, None, Spectrum]:
    """Find the spectrum of columns that suit it and differ in variance, mean and loss alone.

    `scatters`: sums kept before.
    """
    first = columns[0]
    system = RowSystem(form, first)
    C = yield from (Scatters(system.affine) if scatters is None else scatters).centred(first)
    intercept, mean, scale = None, system.centre, 1.0 / np.sqrt(system.metric)
    if form.bias == "free":
        towards = C[-1, :-1] / C[-1, -1]
        intercept = SpectrumIntercept(float(C[-1, -1]), towards, float(mean[-1]))
        C = C[:-1, :-1] - np.multiply.outer(towards, C[-1, :-1])
        mean, scale = mean[:-1] - intercept.mean * towards, scale[:-1]
    C *= np.multiply.outer(scale, scale)
    yield
    steepest = max(map(largest_spectrum_steepness, columns))
    m = form.features.n_rows
    left = None
    if steepest * float(np.trace(C)) > STIFF_STACK and (m + system.size) * system.size <= STACK_ENTRIES:
        values, vectors, left = yield from _spectrum_by_rows(system, intercept, scale)
    else:
        values, vectors = symmetric_eigen(C)
    yield
    mean = vectors.T @ (scale * mean)
    regularized = form.bias == "regularized"
    return Spectrum(np.maximum(values, 0.0), vectors, mean, scale, intercept, first.total, regularized, left)


def _spectrum_by_rows(
    system: RowSystem, intercept: SpectrumIntercept | None, scale: np.ndarray
) -> Generator[None, None, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Spectrum of C by its rows: eigenvalues and vectors from their singular values, with left vectors."""
    column, m, n = system.column, system.features.n_rows, scale.shape[0]
    memory.require(32.0 * m * n, f"a decomposition of {m} x {n} numbers", "raise C or use a smaller basis")
    B = np.empty((m, n))
    for span in system.features.rows.spans():
        rows = column.y[span, None] * system.rows(span) - system.centre
        if intercept is not None:
            rows = rows[:, :-1] - np.multiply.outer(rows[:, -1], intercept.towards)
        B[span] = rows * np.sqrt(column.counts[span])[:, None] * scale
        yield
    Q, R = qr(B, mode="economic", overwrite_a=True, check_finite=False)
    yield
    inner, sizes, rows = svd(R, full_matrices=True, overwrite_a=True, check_finite=False)
    yield
    values = np.zeros(n)
    values[: sizes.shape[0]] = np.square(sizes)
    return values, rows.T, Q @ inner[:, : sizes.shape[0]]
