"""Decompositions that the quadratic problems of a path share: of the rows per column, or one of a kernel matrix.

Of the latter, P^1/2 G P^1/2 = U diag(v) U' for the counts P: `KernelSpectrum` takes G for inner products of rows,
`KernelBasisSpectrum` for the rows themselves.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.primal import primal
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.orthogonal import STIFF_STACK
from mdlearn.solvers.dual_hessian.eigen import EigenGram, eigendecompose_gram
from mdlearn.solvers.quadratic.spectrum import (
    Spectrum,
    largest_spectrum_steepness,
    spectrum_loss_coefficients,
    spectrum_of,
    suits_spectrum,
)
from mdlearn.solvers.systems.scatter import Scatters
from mdlearn.solvers.systems.system_choice import Shared

DECOMPOSED_ROWS = 3000
"""Rows of a Gram matrix, or columns, beyond which a decomposition takes too long."""


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


@dataclass(frozen=True, eq=False)
class Decompositions:
    """Decompositions that a path of quadratics hands on, extended by what the next form needs; never written to."""

    shared: Shared = None  # what `Direct.prepare` returned: the Gram matrix, or what columns of rows have in common
    # decompositions of rows, with the column that each was made for and the weight that it serves up to
    rows: tuple[tuple[Column, float, Spectrum], ...] = ()
    # of the Gram matrix, or of a kernel matrix that is the rows
    kernel: KernelSpectrum | KernelBasisSpectrum | None = None
    fails: bool = False  # whether that matrix has none

    def extended(self, form: MarginForm, shared: Shared) -> Generator[None, None, Decompositions]:
        """Decompose what the columns of a form need and is not there yet."""
        found, gram = replace(self, shared=shared), shared if isinstance(shared, np.ndarray) else None
        if gram is None and form.features.width > DECOMPOSED_ROWS:
            return found
        found = yield from found._of_kernel(form, gram)
        if gram is not None:
            return found
        if found.kernel is not None and all(found.kernel.serves(form, column) for column in form.columns):
            return found
        for column in form.columns:
            if suits_spectrum(form, column) and found._spectrum(column) is None:
                others = tuple(one for one in found.rows if not _share_decomposition(one[0], column))
                spectrum = yield from spectrum_of(form, [column], shared if isinstance(shared, Scatters) else None)
                # By squares up to some weight, beyond it by the rows themselves.
                stiff = largest_spectrum_steepness(column) * float(spectrum.values.sum()) > STIFF_STACK
                most = np.inf if stiff else STIFF_STACK / max(float(spectrum.values.sum()), 1e-300)
                found = replace(found, rows=(*others, (column, most, spectrum)))
        return found

    def _of_kernel(self, form: MarginForm, gram: np.ndarray | None) -> Generator[None, None, Decompositions]:
        """Decompose the Gram matrix; without one, rows that are a kernel matrix as such."""
        counts = form.columns[0].counts
        known = self.kernel is not None and np.array_equal(self.kernel.known.counts, counts)
        if known or self.fails or form.ridge == 0:
            return self
        kind: type[KernelSpectrum | KernelBasisSpectrum] = KernelSpectrum
        constant, G = float(form.bias == "regularized"), gram
        if gram is None:
            assert isinstance(form.features, LinearFeatures)
            kind, constant = KernelBasisSpectrum, 0.0
            G = None if form.bias == "free" or form.kinds else form.features.square(counts)
        elif form.offsets or gram.shape[0] > DECOMPOSED_ROWS:
            return self
        if G is None:
            return self
        decomposed = yield from eigendecompose_gram(G, constant, counts)
        return replace(self, fails=True) if decomposed is None else replace(self, kernel=kind(decomposed))

    def report(self, form: MarginForm, column: Column) -> Report | None:
        """The answer to one problem, with its value and bound; None where there is no decomposition for it."""
        known: KernelSpectrum | KernelBasisSpectrum | Spectrum | None = None
        if self.kernel is not None and self.kernel.serves(form, column):
            known = self.kernel
        elif not isinstance(self.shared, np.ndarray) and suits_spectrum(form, column):
            known = self._spectrum(column)
        if known is None:
            return None
        point = known.point(form, column)
        assert point.coef is not None
        value = primal(form, column, point.coef, point.intercept)[0]
        return Report.estimated(value, feasible_dual(form, column, point.beta, point.sigma).lower, point)

    def _spectrum(self, column: Column) -> Spectrum | None:
        for other, most, spectrum in self.rows:
            if _share_decomposition(other, column) and largest_spectrum_steepness(column) <= most:
                return spectrum
        return None


def _share_decomposition(a: Column, b: Column) -> bool:
    """Whether two columns have the same signs and counts, so that one decomposition serves both."""
    return np.array_equal(a.y, b.y) and np.array_equal(a.counts, b.counts)
