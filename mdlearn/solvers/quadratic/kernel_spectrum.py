"""Kernel spectrum: one eigendecomposition of a kernel matrix for quadratic problems of all weights.

Decomposed is P^1/2 G P^1/2 = U diag(v) U' for the counts P: `KernelSpectrum` takes G for inner products of rows,
`KernelBasisSpectrum` for the rows themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.dual_hessian.eigen import EigenGram
from mdlearn.solvers.quadratic.spectrum import spectrum_loss_coefficients


@dataclass(frozen=True, eq=False)
class KernelSpectrum:
    """Spectrum of a kernel's Gram matrix, for columns with its counts and any signs.

    With T = s P, s = kappa + D, the dual coefficients of a problem with signs y and p = counts * y are

        alpha = tau (1 + T K)^-1 p - b (1 + T K)^-1 T 1,      tau = a/m + D threshold + kappa mean(z)

    where b is a free intercept, held by sum alpha = 0. In the basis of P^1/2 K P^1/2 both inverses are diagonal.
    """

    known: EigenGram

    def serves(self, form: MarginForm, column: Column) -> bool:
        """Whether a column has the counts of the decomposition, and margins that something holds."""
        s = column.kappa + spectrum_loss_coefficients(column)[0]
        return column.offset is None and s > 0 and np.array_equal(column.counts, self.known.counts)

    def point(self, form: MarginForm, column: Column) -> Point:
        """Return the optimum with its multipliers, for the certificate: O(m^2)."""
        y, m, kappa = column.y, column.total, column.kappa
        D, pull = spectrum_loss_coefficients(column)
        s, rho = kappa + D, column.mean / m + pull
        first = self._inverse(column.counts * y, s)
        shares, border = float(y @ first) / (s * m), 0.0
        alpha = first
        if form.bias == "free":
            second = self._inverse(s * column.counts, s)
            border = float(first.sum()) / float(second.sum())
            alpha = first - border * second
            shares = float(y @ alpha) / (s * m)
        # mean(z) = (tau m - y.alpha) / (s m) for this tau.
        tau = rho / (1.0 - kappa / s + kappa * shares)
        alpha = tau * alpha
        free = tau * border
        coef = form.features.expand(alpha)
        intercept = free if form.bias == "free" else float(alpha.sum()) if form.bias == "regularized" else 0.0
        z = y * (form.features.decision(coef) + intercept)
        return Point(column.slopes(z), column.spread(z), coef, intercept)

    def _inverse(self, v: np.ndarray, s: float) -> np.ndarray:
        """(1 + s P K)^-1 v = P^1/2 (1 + s P^1/2 K P^1/2)^-1 P^-1/2 v."""
        known = self.known
        # The vectors are P^-1/2 U: U' P^-1/2 v, and P^1/2 U = P (P^-1/2 U).
        inside = (known.vectors.T @ v) / (1.0 + s * known.values)
        return np.asarray(known.counts * (known.vectors @ inside))


@dataclass(frozen=True, eq=False)
class KernelBasisSpectrum:
    """Spectrum of a kernel matrix for problems without a loss in the coefficients of all its columns.

    With every training row in the basis, rows are those of the kernel matrix G and the ridge is one over the counts P,
    so that inner products of rows are H = G P G (+ 1 with a regularized bias), and

        P^1/2 H P^1/2 = U (diag(v^2) + u u') U',      u = U' P^1/2 1

    so that the dual coefficients of a problem of variance kappa and mean a with signs y,

        alpha = length (1 + kappa P H)^-1 P y,      y.alpha = a,

    need no more than the decomposition of G itself. Its small eigenvalues are not squared yet: nothing is lost where
    the ridge is tiny beside the variance.
    """

    known: EigenGram

    def serves(self, form: MarginForm, column: Column) -> bool:
        """Whether a column is the variance and the mean alone, with the counts of the decomposition."""
        plain = column.offset is None and not column.terms and column.kappa > 0
        return plain and form.bias != "free" and np.array_equal(column.counts, self.known.counts)

    def point(self, form: MarginForm, column: Column) -> Point:
        """Return the optimum with its multipliers, for the certificate: O(m^2)."""
        y, U, v, counts = column.y, self.known.vectors, self.known.values, self.known.counts
        # The vectors are P^-1/2 times those of A.
        signs = U.T @ (counts * y)
        shrink = 1.0 + column.kappa * np.square(v)
        inner, bias = signs / shrink, 0.0
        if form.bias == "regularized":
            ones = U.T @ counts
            flat = ones / shrink
            bias = float(ones @ inner) / (1.0 + column.kappa * float(ones @ flat))
            inner = inner - column.kappa * bias * flat
        # Multipliers are those of the mean and the variance, and the latter sum to 0.
        length = column.mean / float(signs @ inner)
        inner, bias = length * inner, length * bias
        # Long coefficients leave few digits of margins that are nearly equal; the vectors have them all.
        sigma = y * counts * (U @ inner) - column.pull
        return Point(column.slopes(y), sigma, counts * (U @ (v * inner)), bias)
