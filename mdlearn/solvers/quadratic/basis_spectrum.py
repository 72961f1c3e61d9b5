"""One eigendecomposition of a kernel matrix for problems without a loss in the coefficients of all its columns.

With every training row in the basis, rows are those of the kernel matrix G and the ridge is one over the counts P, so
that inner products of rows are H = G P G (+ 1 with a regularized bias). With A = P^1/2 G P^1/2 = U diag(v) U',

    P^1/2 H P^1/2 = U (diag(v^2) + u u') U',      u = U' P^1/2 1

so that the dual coefficients of a problem of variance kappa and mean a with signs y,

    alpha = length (1 + kappa P H)^-1 P y,      y.alpha = a,

need no more than the decomposition of G itself. Its small eigenvalues are not squared yet: nothing is lost where the
ridge is tiny beside the variance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.dual_hessian.eigen import Decomposed


@dataclass(frozen=True, eq=False)
class BasisSpectrum:
    """The decomposition of one kernel matrix, for columns with its counts and any signs.

    Attributes
    ----------
    known : Decomposed
    """

    known: Decomposed

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
