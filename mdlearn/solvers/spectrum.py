"""One decomposition for a whole grid of quadratic problems: same rows, signs and counts, other weights.

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
from scipy.linalg import eigh, qr, svd

from mdlearn.data import memory
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.direct import quadratic, steepness
from mdlearn.solvers.orthogonal import LARGEST, STIFF
from mdlearn.solvers.outer import add_outer, mirror
from mdlearn.solvers.system_choice import by_rows
from mdlearn.solvers.systems import RowSystem


@dataclass(frozen=True)
class Intercept:
    """What an intercept that nothing else holds is made of.

    Attributes
    ----------
    own : float
        Its entry of C.
    towards : ndarray of shape (d,)
        Its row of C over that entry: b = free part - towards . w.
    mean : float
        Its entry of v.
    """

    own: float
    towards: np.ndarray
    mean: float


@dataclass(frozen=True)
class Spectrum:
    """C of one column, decomposed: for all problems of the same rows, signs, counts and bias.

    Attributes
    ----------
    values : ndarray of shape (n,)
        Eigenvalues of C, in units of the ridge.
    vectors : ndarray of shape (n, n)
    mean : ndarray of shape (n,)
        v in the basis of the vectors.
    scale : ndarray of shape (n,)
        Ridge^(-1/2).
    intercept : Intercept or None
        None: there is none, or it is the last column.
    total : float
        m, the sum of the counts.
    regularized : bool
        Whether the last column is the intercept.
    """

    values: np.ndarray
    vectors: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    intercept: Intercept | None
    total: float
    regularized: bool

    def coefficients(self, column: Column) -> tuple[np.ndarray, float]:
        """Return w and b of a problem: O(n^2)."""
        D = sum(2.0 * t.weight for t in column.terms if t.side > 0)
        pull = sum(2.0 * t.weight * t.threshold for t in column.terms if t.side > 0)
        s, rho = column.kappa + D, column.mean + self.total * pull
        t = self.mean / (1.0 + s * self.values)
        held = float(t @ self.mean)
        free = 0.0
        if self.intercept is not None and s > 0:
            free = self.intercept.mean / (s * self.intercept.own)
            held += self.intercept.mean * free
        length = rho / (1.0 + D * self.total * held)
        w = self.scale * (self.vectors @ (length * t))
        if self.intercept is not None:
            return w, length * free - float(self.intercept.towards @ w)
        return (w[:-1], float(w[-1])) if self.regularized else (w, 0.0)

    def point(self, form: MarginForm, column: Column) -> Point:
        """Return the optimum of a problem with its multipliers, for the certificate: one pass over the rows."""
        coef, intercept = self.coefficients(column)
        z = column.y * (form.features.decision(coef) + intercept)
        return Point(column.slopes(z), column.spread(z), coef, intercept)


def unsuited(form: MarginForm, column: Column) -> str | None:
    """Why a problem cannot be solved by a spectrum, or None."""
    if form.ridge == 0 or column.offset is not None or not by_rows(form) or not quadratic(column):
        return "it takes explicit rows, signs, a squared norm, and a squared loss or none"
    if form.bias == "free" and column.kappa + float(steepness(column).sum()) == 0:
        return "nothing holds the intercept"
    return None


def spectrum_of(form: MarginForm, columns: list[Column]) -> Generator[None, None, Spectrum]:
    """Decompose once for several columns that differ in variance, mean and loss alone.

    Raises
    ------
    ValueError
        For columns that a spectrum does not serve.
    """
    first = columns[0]
    for column in columns:
        reason = unsuited(form, column)
        if reason is None and not (np.array_equal(column.y, first.y) and np.array_equal(column.counts, first.counts)):
            reason = "its columns need the same signs and counts"
        if reason is not None:
            raise ValueError(f"one decomposition cannot serve these problems: {reason}")
    system = RowSystem(form, first)
    C = np.zeros((system.size, system.size))
    shift = np.append(first.y, system.centre)
    yield from add_outer(form.features.rows, system.bias, first.counts, C, shift)
    mirror(C)
    intercept, mean, scale = None, system.centre, 1.0 / np.sqrt(system.metric)
    if form.bias == "free":
        towards = C[-1, :-1] / C[-1, -1]
        intercept = Intercept(float(C[-1, -1]), towards, float(mean[-1]))
        C = C[:-1, :-1] - np.multiply.outer(towards, C[-1, :-1])
        mean, scale = mean[:-1] - intercept.mean * towards, scale[:-1]
    C *= np.multiply.outer(scale, scale)
    yield
    steepest = max(column.kappa + float(steepness(column).sum(axis=0).max() / first.counts.max()) for column in columns)
    m = form.features.n_rows
    if steepest * float(np.trace(C)) > STIFF and (m + system.size) * system.size <= LARGEST:
        values, vectors = yield from _by_rows(system, intercept, scale)
    else:
        values, vectors = eigh(C, overwrite_a=True, check_finite=False, driver="evd")
    yield
    mean = vectors.T @ (scale * mean)
    return Spectrum(np.maximum(values, 0.0), vectors, mean, scale, intercept, first.total, form.bias == "regularized")


def _by_rows(
    system: RowSystem, intercept: Intercept | None, scale: np.ndarray
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Eigenvalues and vectors of C from the singular values of its rows."""
    column, m, n = system.column, system.features.n_rows, scale.shape[0]
    memory.require(24.0 * m * n, f"a decomposition of {m} x {n} numbers", "raise C or use a smaller basis")
    B = np.empty((m, n))
    for span in system.features.rows.spans():
        rows = column.y[span, None] * system.rows(span) - system.centre
        if intercept is not None:
            rows = rows[:, :-1] - np.multiply.outer(rows[:, -1], intercept.towards)
        B[span] = rows * np.sqrt(column.counts[span])[:, None] * scale
        yield
    R = qr(B, mode="r", overwrite_a=True, check_finite=False)[0][: min(m, n)]
    yield
    _, sizes, rows = svd(R, full_matrices=True, overwrite_a=True, check_finite=False)
    values = np.zeros(n)
    values[: sizes.shape[0]] = np.square(sizes)
    return values, rows.T
