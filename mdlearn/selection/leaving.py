"""Leave-one-out in closed form, for every objective whose declared form is a quadratic.

Per column the form is ``1/2 theta' R theta + v Var(z) - a mean(z) + D/2 sum_i c_i (z_i - t)^2`` over margins
``z_i = theta.r_i``: uldm, lssvm and lsldm are such, and objectives of plugins may be. Let M' be the total weight
without one repetition of row i, and g = 2v/M' + D, the same for every i. Up to a rank-one term the problem without it
is ridge regression of the margins to 1, with the loss weighted by g,

    H = R + g sum_j c_j r_j r_j' - g r_i r_i' - (2v/M'^2) s's',        s' = sum_j c_j r_j - r_i,

so two rank-one formulas give theta = rho H^-1 s', rho = a/M' + D t, from what ridge regression on all rows leaves over:
with e_i its residuals, l_i = g r_i'(R + g sum c r r')^-1 r_i, E = sum_j c_j e_j and G_i = e_i / (1 - l_i),

    z_i = (a + D t M') / (2v + D M') * (1 - G_i) / (1 - phi + phi (E - G_i e_i) / M'),     phi = 2v / (2v + D M').

phi = 1 is ULDM (Abe, ICPRAM 2017, eq. 34-35), phi = 0 the LS-SVM, for which it is the known formula. One decomposition
of the rows gives e and l for every point of a grid and for every class; everything that tends to 0 with R is a sum of
terms of one sign. A free bias is taken out by centring.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import eigh, svd

from mdlearn.data import memory
from mdlearn.data.features import Features, LinearFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.direct import quadratic, steepness

WIDE = 2
"""Columns per row up to which the rows themselves are decomposed, not their Gram matrix: small values stay exact."""


def closed(form: Any) -> bool:
    """Whether leaving a row out has a closed form: a quadratic objective of margins, with a squared norm."""
    if not isinstance(form, MarginForm) or form.joint or form.ridge != 1 or form.penalty > 0:
        return False
    return all(
        quadratic(column) and column.offset is None and column.kappa + float(steepness(column).sum()) > 0
        for column in form.columns
    )


@dataclass(frozen=True, eq=False)
class Decomposition:
    """Rows of a problem, times the roots of their counts, in units of the ridge, centred for a free bias: U S V'.

    Attributes
    ----------
    counts : ndarray of shape (m,)
    vectors : ndarray of shape (m, r)
        U.
    values : ndarray of shape (r,)
        S^2.
    free : bool
        Whether there is an intercept outside of the ridge.
    """

    counts: np.ndarray
    vectors: np.ndarray
    values: np.ndarray
    free: bool

    def margins(self, column: Column) -> np.ndarray:
        """Margin of every row under the problem without one repetition of it, shape (m,).

        `column` has the weights of variance, mean and loss, and as its total that of the counts less 1.
        """
        c, U, root, total = self.counts, self.vectors, np.sqrt(self.counts), column.total
        D = sum(2.0 * t.weight for t in column.terms if t.side > 0)
        pull = sum(2.0 * t.weight * t.threshold for t in column.terms if t.side > 0)
        left = 1.0 / (1.0 + (column.kappa + D) * self.values)
        target = root * column.y
        if self.free:
            target = target - root * (float(root @ target) / float(c.sum()))
        along = U.T @ target
        beyond, outside = np.zeros_like(root), np.zeros_like(root)
        if U.shape[1] < root.shape[0] - self.free:  # else nothing is outside the span of the rows, not even rounding
            beyond = target - U @ along
            outside = np.maximum(1.0 - np.square(U).sum(axis=1) - (c / c.sum() if self.free else 0.0), 0.0)
        residual = column.y * (beyond + U @ (left * along)) / root
        slack = (c - 1.0 + outside + np.square(U) @ left) / c
        whole = float(beyond @ beyond + along @ (left * along))
        G, twice = residual / slack, 2.0 * column.variance
        phi = twice / (twice + D * total)
        scale = (column.mean + pull * total) / (twice + D * total)
        margins: np.ndarray = scale * (1.0 - G) / (1.0 - phi + phi * (whole - G * residual) / total)
        return margins


def decomposed(features: Features, counts: np.ndarray, bias: str) -> Generator[None, None, Decomposition]:
    """Decompose the rows of a problem: O(m n min(m, n)) for m rows of n columns, O(m^3) for a Gram matrix.

    Raises
    ------
    InsufficientMemory
        Where that would not fit.
    """
    m, root = counts.shape[0], np.sqrt(counts)
    mean = root / np.sqrt(counts.sum())  # a unit vector
    explicit = isinstance(features, LinearFeatures) and features.width <= WIDE * m
    width = features.width if explicit else m
    memory.require(24.0 * m * width, f"leave-one-out of {m} x {width} numbers", "use cv=5")
    if explicit:
        assert isinstance(features, LinearFeatures)
        A = np.empty((m, width + (bias != "none")))
        for span in features.rows.spans():
            A[span, :width] = features.rows.block(span)
            yield
        if features.ridge is not None:
            A[:, :width] /= np.sqrt(features.ridge)
        A *= root[:, None]
        if bias == "regularized":
            A[:, -1] = root
        elif bias == "free":
            A[:, :-1] -= np.multiply.outer(mean, mean @ A[:, :-1])
            # In a direction of its own, the largest: the others are orthogonal to it, also those of value 0.
            A[:, -1] = 2.0 * (float(np.linalg.norm(A[:, :-1])) or 1.0) * mean
        yield
        U, S, _ = svd(A, full_matrices=False, overwrite_a=True, check_finite=False)
        return (
            Decomposition(counts, U[:, 1:], np.square(S[1:]), True)
            if bias == "free"
            else Decomposition(counts, U, np.square(S), False)
        )
    G = yield from features.gram()
    K = np.array(G, dtype=np.float64)
    if bias == "regularized":
        K += 1.0
    K *= np.multiply.outer(root, root)
    if bias == "free":
        along = K @ mean
        along -= 0.5 * float(along @ mean) * mean
        K -= np.multiply.outer(mean, along) + np.multiply.outer(along, mean)
        K += np.multiply.outer(mean, 2.0 * (float(np.trace(K)) or 1.0) * mean)
    yield
    values, U = eigh(K, overwrite_a=True, check_finite=False, driver="evd")
    values = np.maximum(values, 0.0)
    return (
        Decomposition(counts, U[:, :-1], values[:-1], True)
        if bias == "free"
        else Decomposition(counts, U, values, False)
    )
