"""Dual Hessian with a free bias, of a kernel problem with a variance term: the one without a bias, and a border.

The variance holds the bias: with t = kappa (P - p p'/m) 1 in signed coordinates, margins at signed weights q are those
of q - b t without a bias, plus b. The sum of alpha is 0 at b = r'q / s with r = 1 - H t and s = the sum of alpha that t
has; so multipliers need to meet no equality, and their Hessian is H + r r'/s.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.rows.arrays import copied_by_rows
from mdlearn.forms.margin import Column
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.dual_hessian.hessian import Answer, Block, ColumnHessian, add_dual_hessian_border

LEAST_VARIANCE_HOLD = 1e-10
"""Least part of the variance's hold on the bias that may be left of it once coefficients answer."""


class FreeBiasHessian:
    """Dual Hessian with a free bias beside it: a `mdlearn.solvers.working_set.block_ascent.BlockAscentHessian`."""

    def __init__(self, inner: ColumnHessian, column: Column) -> None:
        self.inner, self.settles, self.dear, self.b = inner, inner.settles, inner.dear, 0.0
        self.tilt = inner.variance(np.ones_like(column.y))

    @property
    def cheap(self) -> np.ndarray:
        """Rows whose part of a block costs little more than a copy."""
        return self.inner.cheap

    def hold(self) -> Generator[None, None, FreeBiasHessian]:
        """Find out how coefficients answer the bias; raise NotPositiveDefinite where nothing would hold it."""
        yield from self.inner.answer(self.tilt)
        self.lean, f = yield from self.inner.answer(self.tilt)  # the first answer is a rough one
        self.border, s = 1.0 - f, float(self.lean.sum())
        if not s > LEAST_VARIANCE_HOLD * float(self.tilt.sum()):
            raise NotPositiveDefinite("a variance of margins that do not feel the bias")
        self.omega, self.tilted = 1.0 / s, f
        return self

    def matrix(self) -> Generator[None, None, np.ndarray]:
        """Matrix beside `border` and `omega`: a copy where the Hessian without a bias has a border of its own."""
        if not self.inner.omega:
            return self.inner.R
        H = copied_by_rows(self.inner.R)
        yield
        add_dual_hessian_border(H, self.inner.border, self.inner.omega)
        return H

    def block(self, index: np.ndarray) -> Block:
        """The Hessian (or an upper bound) between some rows."""
        H = yield from self.inner.block(index)
        add_dual_hessian_border(H, self.border[index], self.omega)
        return H

    def answer(self, q: np.ndarray, Hq: np.ndarray | None = None) -> Answer:
        """(alpha, f) of the signed weights q; f with the bias."""
        b = self.omega * float(self.border @ q)
        alpha, f = yield from self.inner.answer(q - b * self.tilt)
        rest = self.omega * float(alpha.sum())
        self.b = b + rest
        return alpha - rest * self.lean, f - rest * self.tilted + self.b

    def intercept(self, alpha: np.ndarray) -> float:
        """The bias of the last answer."""
        return self.b
