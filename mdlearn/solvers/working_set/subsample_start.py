"""A first look at a kernel problem: the solution on some of its rows, with the weight of all."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from mdlearn.data.features.spaces import KernelFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.dual_hessian.free_bias import BorderedGram
from mdlearn.solvers.dual_hessian.hessian import ExactHessian
from mdlearn.solvers.dual_hessian.variance_reduced import reduce_gram
from mdlearn.solvers.working_set.block_ascent import FIRST_VIOLATION, SignedDual

SAMPLING_STRIDE, LEAST_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 4, 200, 800
"""One row in SAMPLING_STRIDE, but no fewer than LEAST_SAMPLE_ROWS and no more than MOST_SAMPLE_ROWS."""


class SubsampleStart:
    """Some rows of a column, and what their solution says about the others.

    Attributes
    ----------
    gradient : ndarray of shape (m,)
        Target minus decision value of every row, its own share of the decision value left out.
    """

    def __init__(self, form: MarginForm, column: Column, rng: np.random.Generator) -> None:
        m = column.y.shape[0]
        self.form, self.column = form, column
        self.rows = np.sort(
            rng.choice(m, min(m, max(LEAST_SAMPLE_ROWS, min(MOST_SAMPLE_ROWS, m // SAMPLING_STRIDE))), replace=False)
        )

    def solve(self, features: KernelFeatures, constant: float) -> Generator[None, None, np.ndarray]:
        """Return the gradient; only the rows of the kernel matrix that the solution needs are computed."""
        rows, column = self.rows, self.column
        counts = column.counts[rows]
        counts = counts * (column.total / float(counts.sum()))
        offset = None if column.offset is None else column.offset[rows]
        part = replace(column, y=column.y[rows], counts=counts, offset=offset)
        quadratic = SignedDual(self.form, part)
        K = yield from features.corner(rows)
        hessian: ExactHessian | BorderedGram | None = None
        H, border, omega = K, np.ones(rows.shape[0]), constant
        if part.kappa > 0:
            R = yield from reduce_gram(K, constant, part.kappa, part.counts, 0.0)
            if R is not None:
                hessian = exact = ExactHessian(K, R, constant, part)
                H, border, omega = exact.R, exact.border, exact.omega
                if self.form.bias == "free":
                    hessian = free = yield from BorderedGram(exact, part).hold()
                    H, border, omega = (yield from free.matrix()), free.border, free.omega
        e = quadratic.target - (H @ quadratic.pull + border * (omega * float(border @ quadratic.pull)))
        yield from quadratic.climb(H, slice(None), e, 0.3 * FIRST_VIOLATION * quadratic.scale, border, omega)
        q = quadratic.u + quadratic.pull
        b = quadratic.shift(e) + constant * float(q.sum())
        alpha = np.zeros(column.y.shape[0])
        alpha[rows] = q
        if hessian is not None:
            alpha[rows], _ = yield from hessian.answer(q)
            b = hessian.intercept(alpha)
        if not features.ready:
            yield from features.gram_rows(np.flatnonzero(alpha))
        own = alpha * features.squares()
        f = features.decision(alpha) + b
        gradient: np.ndarray = column.y * np.broadcast_to(column.kinks, (1, own.shape[0]))[0] - (f - own)
        return gradient
