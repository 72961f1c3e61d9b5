"""Descent of the hybrid solver in the metric of a variance term: passes over few whitened rows.

With A = L L' the dual's quadratic is 1/2 |L^-1 (R'u + e)|^2: that of a loss without a variance, on rows L^-1 r. Only
rows that have a part of the gap are written so; a survey of all rows as they are says which. Sweeps take the sum over
the multipliers of the variance instead, and need ten times as many visits: on a9a at C = 0.1 and a gap of 1e-6, 28 of
every row, in the metric 3.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import blas

from mdlearn._solvers import dual_descent as kernels
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import COPY_BYTES
from mdlearn.solvers.hybrid.loss_column import OPERATION_ON_MATRIX, VISIT_OPERATIONS, LossColumn
from mdlearn.solvers.systems.whitening import LossColumnQuadratic

METRIC_COLUMNS, MOST_OF_METRIC = 600, 1e9
"""Columns, and rows times their squares, up to which a variance term has a metric: some 50 ms to whiten all rows."""
METRIC_OVERHEAD, SPARSE_OUTER, DENSE_OUTER, WHITENING_OPERATION = 3e5, 0.5, 0.04, 0.12
"""Price of a metric beside its matrix; of an operation on this, over CSR rows and dense ones; and of one on a whitened
row, with its choice: in operations on entries of rows."""
METRIC_PASSES, METRIC_SHARE, METRIC_VISITS = 30, 0.01, 30
"""Passes over the free ones of the whitened rows, the share of their part of the gap, and visits per row of them."""
METRIC_ENTRIES = 1 << 23
"""Entries that such passes visit at most: some milliseconds."""
METRIC_SEED = 0xD1B54A32D192ED03
"""Of the order of visits of whitened rows."""
LAZY_SHARE = 0.1
"""Share of the mean gap of a row below which the multiplier of its variance stays."""


def has_metric(problem: LossColumn) -> bool:
    """Whether the hybrid solver's descent may go on in the metric of a variance term."""
    return problem.column.kappa > 0 and metric_fits(problem.n_rows, problem.width)


def metric_fits(m: int, n: int) -> bool:
    """Whether so many rows of so many columns may be whitened, one after the other."""
    return n <= METRIC_COLUMNS and float(m) * n * n <= MOST_OF_METRIC and 8.0 * m * n <= COPY_BYTES


def price_of_metric(problem: LossColumn) -> float:
    """Price of the matrix of a variance term and its factor, in operations on entries."""
    rows, m, n = problem.stored, problem.n_rows, float(problem.width)
    entries = rows.n_entries / m
    outer = SPARSE_OUTER * entries * min(entries, n) if isinstance(rows, CsrRows) else DENSE_OUTER * n * n
    return METRIC_OVERHEAD + m * outer + OPERATION_ON_MATRIX * n**3 / 3.0


def price_of_whitened_metric(problem: LossColumn) -> float:
    """Price of a whitened row, in operations on entries."""
    return WHITENING_OPERATION * float(problem.width) ** 2


class MetricPasses:
    """Passes of the hybrid solver over few whitened rows.

    Parameters
    ----------
    problem : LossColumn
    quadratic : LossColumnQuadratic
    records : ndarray of shape (m, 8)
        Those of the descent, whose multipliers passes change.

    Attributes
    ----------
    x : ndarray of shape (n,)
        L' w, w the coefficients that the multipliers stand for.
    """

    def __init__(self, problem: LossColumn, quadratic: LossColumnQuadratic, records: np.ndarray) -> None:
        assert quadratic.L is not None
        m, n = problem.n_rows, problem.width
        self.problem, self.records, self.L = problem, records, quadratic.L
        self.places = np.full(m, -1, dtype=np.int64)
        # Room for all rows, of which the system gives what is written to; blocks that grow go back to it in every fit.
        self.chosen, self._room, self._own = np.empty(0, dtype=np.int64), np.empty((m, n)), np.empty((m, 8))
        pushed = problem.adjoint(records[:, 4])
        if problem.pulled is not None:
            pushed += problem.pulled
        self._w = np.append(blas.dtrsv(self.L, pushed, lower=1), 0.0)
        self.x = self._w[:n]

    @property
    def whitened(self) -> np.ndarray:
        """The rows that are whitened so far."""
        return self._room[: self.chosen.shape[0]]

    def coefficients(self) -> np.ndarray:
        """w = L^-T x."""
        return np.asarray(blas.dtrsv(self.L.T, self.x, lower=0))

    def over(self, free: np.ndarray) -> float:
        """Pass over these rows, and those before; return the operations that new ones and visits took."""
        new = self._whiten(free)
        k = self.chosen.shape[0]
        whitened, own = self.whitened, self._own[:k]
        own[:, 4] = self.records[self.chosen, 4]
        places = np.arange(k), np.empty(k, dtype=np.int64)
        ascent = kernels.Ascent(own, self._w, *places, self.problem.kink, 0.0, METRIC_SEED)
        kernels.dense(whitened, ascent, True, 0, k)
        if ascent.n_free:
            visits = min(METRIC_VISITS * k, METRIC_ENTRIES // self.x.shape[0])
            kernels.dense_passes(whitened, ascent, METRIC_PASSES, METRIC_SHARE, visits)
        self.records[self.chosen, 4] = own[:, 4]
        return new * price_of_whitened_metric(self.problem) + ascent.visits * (self.problem.width + VISIT_OPERATIONS)

    def sums_of_survey(self, ascent: kernels.Ascent, w: np.ndarray) -> tuple[float, float]:
        """Objective and bound by a survey of the rows as they are, at such coefficients."""
        squares, pulled = float(self.x @ self.x), self.problem.pulled
        pull = 0.0 if pulled is None else float(w @ pulled)
        objective, lower_bound = 0.5 * squares - pull + ascent.loss, ascent.gain - 0.5 * squares
        ascent.lazy = LAZY_SHARE * abs(objective - lower_bound) / self.problem.n_rows
        return objective, lower_bound

    def rows_of(self, face: np.ndarray) -> np.ndarray:
        """Return whitened rows."""
        self._whiten(face)
        return self._room[self.places[face]]

    def _whiten(self, rows: np.ndarray) -> int:
        """Append whitened rows where there are none yet; return how many."""
        new = rows[self.places[rows] < 0]
        if not new.shape[0]:
            return 0
        problem, d, n = self.problem, self.problem.stored.shape[1], self.chosen.shape[0]
        room = slice(n, n + new.shape[0])
        block, own = self._room[room], self._own[room]
        problem.stored.write(new, block[:, :d])
        block[:, d:] = 1.0
        # Columns of the transpose are what BLAS sees of rows without a copy.
        blas.dtrsm(1.0, self.L.T, block.T, trans_a=1, overwrite_b=1)
        self.places[new] = np.arange(room.start, room.stop)
        self.chosen = np.concatenate((self.chosen, new))
        own[:, :5], own[:, 5:] = self.records[new, :5], 0.0
        own[:, 1] = np.einsum("ij,ij->i", block, block) + own[:, 3]
        return new.shape[0]
