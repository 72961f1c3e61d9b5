"""Coordinate descent on explicit rows: sweeps, finishing steps and reports.

With a variance term the rows are whitened first: Q = L L', rows x L^{-T}. That is a change of variables, after which
the problem is an SVM with a linear term. Without one they are used as they are, and a regularized bias is a border of
ones; only rows whose entries lie apart (ordered by columns, say) are copied, where the copy is small.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import blas

import mdlearn._solvers.cd as kernels
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import BLOCK_ENTRIES, COPY_BYTES, DenseRows, steps
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import cholesky
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.active_set import ActiveSet
from mdlearn.solvers.common.primal_dual import PrimalDual, report_of
from mdlearn.solvers.coordinate_descent.compiled_dual import CompiledDual
from mdlearn.solvers.systems.row_and_gram import RowSystem

VISIT = 256
"""What a visit costs beside its products, in entries: rows in random order are seldom in the cache."""
FINISH_WIDTH = 2000
"""Columns up to which the active-set finish, a matrix of that size per round, is worth trying."""
FINISH_BELOW, FINISH_AGAIN = 1e-4, 0.1


class RowDual(CompiledDual):
    """State of coordinate descent on explicit rows, with the kept vector w = sum q_i x_i (whitened) and S = sum q_i."""

    def __init__(self, form: MarginForm, column: Column, system: RowSystem, L: np.ndarray | None, X: DenseRows) -> None:
        # Whitened rows carry the bias as a column; plain rows have it as a border of ones.
        self.border = 1.0 if L is None and form.bias == "regularized" else 0.0
        super().__init__(form, column, X.squares() + self.border, np.ones(X.shape[0]), self.border, X.shape[1])
        self.system, self.L, self.X = system, L, X
        self.rows, self.visit = kernels.DenseRows(X.X, self.kept), X.shape[1] + VISIT
        self.finish = ActiveSet(PrimalDual(form, column, system))
        self.gap, self.next_finish = np.inf, FINISH_BELOW
        self._restart()

    @classmethod
    def start(cls, form: MarginForm, column: Column) -> Generator[None, None, RowDual]:
        """Whiten where there is a variance term, in interruptible pieces."""
        features = form.features
        assert isinstance(features, LinearFeatures)
        system = RowSystem(form, column)
        if column.kappa == 0:
            if features.width <= FINISH_WIDTH:
                yield from system.setup()
            rows = features.rows
            X = rows.X if isinstance(rows, DenseRows) else rows.block(slice(None))
            if features.ridge is not None:
                X = X / np.sqrt(features.ridge)
            elif X.strides[1] != X.itemsize and X.size * X.itemsize <= COPY_BYTES:
                X = np.ascontiguousarray(X)
            return cls(form, column, system, None, DenseRows(X))
        yield from system.setup()
        L = yield from cholesky.cholesky(system.Q.copy())
        X = np.empty((features.n_rows, L.shape[0]))
        for span in steps(features.n_rows, BLOCK_ENTRIES // L.shape[0]):
            X[span] = blas.dtrsm(1.0, L.T, system.rows(span).T, side=0, lower=0, trans_a=1).T
            yield
        return cls(form, column, system, L, DenseRows(X))

    def _restart(self) -> np.ndarray:
        """Recompute the kept vector from the multipliers and return the margins."""
        q = self.weights()
        self.kept[:] = self.X.adjoint(q)
        self.S[0] = q.sum()
        return self.margins()

    def margins(self) -> np.ndarray:
        return self.column.y * (self.X.dot(self.kept) + self.border * self.S[0])

    def _element(self) -> np.ndarray:
        """The kept vector in the coordinates of the original rows, intercept last."""
        if self.L is not None:
            element: np.ndarray = blas.dtrsv(self.L.T, self.kept, lower=0, trans=0)
            return element
        ridge = self.system.features.ridge
        w = self.kept.copy() if ridge is None else self.kept / np.sqrt(ridge)
        return np.append(w, self.S[0]) if self.border else w

    def newton(self, steps: int) -> Generator[None, None, None]:
        """Try the active-set finish when the gap has fallen enough; keep its multipliers if they are better."""
        if not steps or self.gap > self.next_finish or self.system.features.width > FINISH_WIDTH:
            return
        self.next_finish = FINISH_AGAIN * self.gap
        free = (self.beta > 0) & (self.beta < self.column.caps)
        self.finish.best = self.gap
        for report in self.finish.attempt(self._element(), self.beta, free):
            if report is None:
                yield
            else:
                self.beta[:] = np.clip(report.point.beta, 0.0, self.column.caps)

    def report(self) -> Report:
        z = self._restart()
        coef, intercept = self.system.split(self._element())
        report = report_of(self.form, self.column, Point(self.beta.copy(), self.column.spread(z), coef, intercept), z)
        self.gap = self.column.relative_gap(report.objective, report.lower_bound)
        return report
