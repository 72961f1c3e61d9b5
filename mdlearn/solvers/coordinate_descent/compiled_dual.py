"""Dual of a column that compiled sweeps ascend, on a Gram matrix or on explicit rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from mdlearn.solvers.dual_hessian.hessian import ColumnHessian
from mdlearn.solvers.systems.row_and_gram import RowSystem

ENTRIES_PER_CALL = 1 << 24
"""Entries that one call of a kernel touches: about 10 ms."""
VISIT = 256
"""What a visit costs beside its products, in entries: rows in random order are seldom in the cache."""
FINISH_WIDTH = 2000
"""Columns up to which the active-set finish, a matrix of that size per round, is worth trying."""
FINISH_BELOW, FINISH_AGAIN = 1e-4, 0.1
STEP_HALVINGS = 40
FIRST_REACH = 0.5
"""Longest first move of a free bias, in units of margins."""


class CompiledDual(ABC):
    """State of coordinate descent: multipliers beta, a kept vector that sweeps bring up to date, S = border' q.

    `rows`: what sweeps read, with the kept vector; `visit`: entries that count for a visit of a row.
    """

    rows: kernels.GramRows | kernels.DenseRows
    visit: int

    def __init__(
        self, form: MarginForm, column: Column, diagonal: np.ndarray, border: np.ndarray, omega: float, width: int
    ) -> None:
        self.form, self.column = form, column
        self.beta, self.S, self.kept = np.zeros(column.caps.shape), np.zeros(1), np.zeros(width)
        kinks = np.ascontiguousarray(np.broadcast_to(column.kinks, column.caps.shape))
        caps, softness = np.ascontiguousarray(column.caps), np.ascontiguousarray(column.softness)
        self.problem = kernels.Problem(
            column.y, column.sides, kinks, caps, softness, diagonal, border, omega, self.beta, self.S
        )

    def sweep(self, order: np.ndarray) -> Generator[None, None, None]:
        """Visit the coordinates in `order`, in pieces of some milliseconds."""
        step = max(16, ENTRIES_PER_CALL // self.visit)
        for k in range(0, order.shape[0], step):
            kernels.sweep(self.rows, self.problem, order[k : k + step])
            yield

    def weights(self) -> np.ndarray:
        """Signed weights of the linear part."""
        return self.column.y * (self.column.sides @ self.beta + self.column.pull)

    @abstractmethod
    def margins(self) -> np.ndarray:
        """Margins y f of the kept vector."""

    def gradient(self) -> np.ndarray:
        """Gradient of the dual value at the present margins, shape (T, m)."""
        column = self.column
        return column.sides[:, None] * (column.kinks - self.margins()) - column.softness * self.beta

    def movable(self) -> np.ndarray:
        """Coordinates inside their box, or at a bound and drawn inside."""
        low, high = self.beta <= 0, self.beta >= self.column.caps
        g = self.gradient()
        drawn = (g != 0) & ~(((g <= 0) & low) | ((g >= 0) & high))
        return np.flatnonzero(~(low | high) | drawn)

    @abstractmethod
    def newton(self, steps: int) -> Generator[None, None, None]:
        """Solve on the free coordinates in at most so many steps, never lowering the dual value."""

    @abstractmethod
    def report(self) -> Report:
        """Recompute margins exactly and evaluate; the kept vector restarts from them."""


class RowDual(CompiledDual):
    """State of coordinate descent on explicit rows, with the kept vector w = sum q_i x_i (whitened) and S = sum q_i.

    With a variance term the rows are whitened first: Q = L L', rows x L^{-T}. That is a change of variables, after
    which the problem is an SVM with a linear term. Without one they are used as they are, and a regularized bias is a
    border of ones; only rows whose entries lie apart (ordered by columns, say) are copied, where the copy is small.
    """

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


class GramDual(CompiledDual):
    """State of coordinate descent on a Gram matrix, with the kept vector f = R q.

    A free bias b stands still during a sweep. Newton steps move it, to where the free multipliers would take sum alpha
    to 0: the step of a bordered system, within a reach that shrinks when sum alpha changes sign. With a variance term
    margins feel b twice: z = y (f + b), and alpha gives way by `tilt` for every unit of b.
    """

    def __init__(self, form: MarginForm, column: Column, reduced: ColumnHessian) -> None:
        self.visit = column.y.shape[0]
        super().__init__(form, column, reduced.diagonal(), reduced.border, reduced.omega, self.visit)
        self.reduced, self.rows = reduced, kernels.GramRows(reduced.R, self.kept)
        self.bias: GramDualBias | None = GramDualBias(self) if form.bias == "free" else None
        q = self.weights()
        self._keep(reduced.representer(q)[1], q)

    def begin(self, beta: np.ndarray, b: float) -> None:
        """Start at given multipliers and a given free bias."""
        self.beta[:], self.problem.offset = beta, b if self.bias is not None else 0.0
        q = self.weights()
        self._keep(self.reduced.representer(q)[1], q)

    def weights(self) -> np.ndarray:
        """Signed weights of the linear part, less what a bias takes."""
        q = super().weights()
        return q if self.bias is None else q - self.problem.offset * self.bias.tilt

    def decision(self) -> np.ndarray:
        """f on the training rows, without the bias."""
        return self.kept + self.reduced.border * (self.reduced.omega * self.S[0])

    def _keep(self, f: np.ndarray, q: np.ndarray) -> None:
        self.S[0] = self.reduced.border @ q
        self.kept[:] = f - self.reduced.border * (self.reduced.omega * self.S[0])

    def margins(self) -> np.ndarray:
        return self.column.y * (self.decision() + self.problem.offset)

    def newton(self, steps: int) -> Generator[None, None, None]:
        """Newton steps on the free coordinates along the path projected on the box, halved until the dual gains."""
        for step in range(steps):
            t, i = np.nonzero((self.beta > 0) & (self.beta < self.column.caps))
            if t.shape[0] == 0:
                if self.bias is not None and step == 0:
                    self.bias.move(0.0, 0.0)
                return
            s = self.column.sides[t] * self.column.y[i]
            H = yield from self._face(i, s, self.column.softness[t, i])
            diagonal = np.diagonal(H).copy()
            g = self.gradient()[t, i]
            try:
                L = yield from cholesky.cholesky_shifted(H)
            except cholesky.NotPositiveDefinite:
                return
            # Multipliers have to answer a move of the bias before the next one.
            if self.bias is not None and step == 0:
                rise = s * self.bias.rise[i]
                v = cholesky.cholesky_solve(L, rise)
                self.bias.move(float(v @ g), float(v @ rise))
                g = self.gradient()[t, i]
            p = cholesky.cholesky_solve(L, g)
            if not np.isfinite(p).all():
                return
            beta, caps = self.beta[t, i], self.column.caps[t, i]
            for halving in range(STEP_HALVINGS):
                move = np.clip(beta + 0.5**halving * p, 0.0, caps) - beta
                # The strict upper triangle still holds H beside its factor.
                product = blas.dsymv(1.0, L.T, move, lower=1) + (diagonal - np.diagonal(L)) * move
                if g @ move - 0.5 * (move @ product) > 0:
                    break
            else:
                return
            del H, L, product  # before the next one is made
            self.beta[t, i] = np.clip(beta + 0.5**halving * p, 0.0, caps)
            change = yield from self._product(i, s * move)
            along = float(self.reduced.border[i] @ (s * move))
            self.kept += change - self.reduced.border * (self.reduced.omega * along)
            self.S[0] += along
            if halving == 0 and np.all(move == p):
                return

    def _face(self, i: np.ndarray, s: np.ndarray, soft: np.ndarray) -> Generator[None, None, np.ndarray]:
        """Dual Hessian of the free coordinates, with a trace of ridge because rows may repeat."""
        n = i.shape[0]
        H = np.empty((n, n))
        border = self.reduced.border[i]
        step = max(32, (1 << 21) // n)
        for a in range(0, n, step):
            b = slice(a, a + step)
            H[b] = self.reduced.R[np.ix_(i[b], i)]
            H[b] += np.multiply.outer(self.reduced.omega * border[b], border)
            H[b] *= s[b, None]
            H[b] *= s
            yield
        diagonal = np.diag_indices(n)
        H[diagonal] += soft + 1e-13 * float(H[diagonal].max())
        return H

    def _product(self, i: np.ndarray, v: np.ndarray) -> Generator[None, None, np.ndarray]:
        """H v for a vector that is zero off the rows i."""
        out = self.reduced.border * (self.reduced.omega * float(self.reduced.border[i] @ v))
        step = max(32, ENTRIES_PER_CALL // self.visit)
        for a in range(0, i.shape[0], step):
            out += v[a : a + step] @ self.reduced.R[i[a : a + step]]
            yield
        return out

    def report(self) -> Report:
        """Exact margins, from the true Gram matrix."""
        column = self.column
        q, b = self.weights(), self.problem.offset
        alpha, f = self.reduced.representer(q)
        self._keep(f, q)
        intercept = self.reduced.constant * float(alpha.sum()) + b
        coef = self.form.features.expand(alpha)
        sigma = column.y * alpha - (column.sides @ self.beta + column.pull)
        # Through a Gram matrix, margins of explicit rows lack digits that their coefficients have.
        explicit = isinstance(self.form.features, LinearFeatures)
        z = column.y * ((self.form.features.decision(coef) + intercept) if explicit else f + b)
        return report_of(self.form, column, Point(self.beta.copy(), sigma, coef, intercept), z)


class GramDualBias:
    """Free bias of a `GramDual`, which moves towards sum alpha = 0.

    `tilt` (shape (m,)): what alpha loses for a unit of bias through the variance term, kappa c (1 - y mean y); `rise`
    (shape (m,)): what decision values gain for it.
    """

    def __init__(self, dual: GramDual) -> None:
        self.dual, column, reduced = dual, dual.column, dual.reduced
        self.tilt = column.kappa * column.counts * (1.0 - column.y * column.label_mean)
        self.plain, self.along = reduced.R @ self.tilt, float(reduced.border @ self.tilt)
        self.rise = 1.0 - reduced.hessian(self.tilt)
        self.held = float(self.tilt @ self.rise)
        self.reach, self.last, self.held_back = FIRST_REACH, 0.0, False

    def move(self, answer: float, response: float) -> None:
        """Go where sum alpha would be 0, if free multipliers give `answer` by themselves and -`response` per unit."""
        dual, response = self.dual, response + self.held
        total = float(dual.weights().sum() - self.tilt @ dual.decision())
        if total * self.last < 0:
            self.reach *= 0.5
        elif self.held_back:
            self.reach *= 2.0
        self.last = total
        wanted = (total + answer) / response if response > 0 else float(np.copysign(np.inf, total))
        step = float(np.clip(wanted, -self.reach, self.reach)) if total or answer else 0.0
        self.held_back = step != wanted
        dual.problem.offset += step
        dual.kept -= step * self.plain
        dual.S[0] -= step * self.along
