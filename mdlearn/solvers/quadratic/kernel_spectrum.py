"""One eigendecomposition of a Gram matrix for quadratic problems of all weights.

With T = s P, s = kappa + D, the dual coefficients of a problem with signs y and p = counts * y are

    alpha = tau (1 + T K)^-1 p - b (1 + T K)^-1 T 1,      tau = a/m + D threshold + kappa mean(z)

where b is a free intercept, held by sum alpha = 0. In the basis of P^1/2 K P^1/2 both inverses are diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.dual_hessian.eigen import Decomposed
from mdlearn.solvers.quadratic.columns import along_margins


@dataclass(frozen=True, eq=False)
class KernelSpectrum:
    """The decomposition of one piece of data, for columns with its counts and any signs.

    Attributes
    ----------
    known : Decomposed
    """

    known: Decomposed

    def serves(self, form: MarginForm, column: Column) -> bool:
        """Whether a column has the counts of the decomposition, and margins that something holds."""
        s = column.kappa + along_margins(column)[0]
        return column.offset is None and s > 0 and np.array_equal(column.counts, self.known.counts)

    def point(self, form: MarginForm, column: Column) -> Point:
        """Return the optimum with its multipliers, for the certificate: O(m^2)."""
        y, m, kappa = column.y, column.total, column.kappa
        D, pull = along_margins(column)
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
