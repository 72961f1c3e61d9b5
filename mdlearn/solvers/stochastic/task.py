"""Task of stochastic engines: a column in units of m C, its steps, the stream of rows, the first step size."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial

import numpy as np

from mdlearn._solvers.sgd import Problem, Walk, walk_csr, walk_dense
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows
from mdlearn.forms.given import GivenTerm
from mdlearn.forms.losses import loss_term_table
from mdlearn.forms.margin import Column, MarginForm

STEP_SIZE_ROWS = 1000
"""Rows on which the first step size is chosen."""
DOUBLINGS = 60
"""Most halvings or doublings of the first step size."""
ENTRIES_PER_CALL = 1 << 21
"""Entries of rows that one call of the kernel reads: about 20 ms."""


@dataclass(frozen=True, eq=False)
class StochasticTaskTrack:
    """Iterates of a stochastic task: a compiled walk with its vectors.

    `u`, `total` (shape (d + 1 + m,)): what the walk writes: columns, intercept, rows.
    """

    walk: Walk
    u: np.ndarray
    total: np.ndarray

    def current(self) -> np.ndarray:
        """The average since step t0, before that the iterate."""
        steps = self.walk.t - self.walk.t0
        if steps <= 0:
            return self.walk.scale * self.u
        return (self.total + self.walk.carried * self.u) / steps


class StochasticTask:
    """Task of stochastic engines: a column divided by m C, with the rows that the kernel runs over."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        assert isinstance(form.features, LinearFeatures)
        self.column, self.rows = column, form.features.rows
        self.constant = 1.0 if form.bias == "regularized" else 0.0
        C = max((t.weight for t in column.terms), default=0.0)
        self.scale = column.total * C if C > 0 else 1.0
        per_row = column.total / self.scale
        self.terms = loss_term_table(column.terms)
        self.terms[:, 2:5] *= per_row
        self.bend = per_row * sum(t.steepest for t in column.terms if t.kind == "native")
        compiled = [(t, t.loss.native) for t in column.terms if isinstance(t, GivenTerm)]
        natives = [(f.callback, per_row * t.weight, t.side) for t, f in compiled if f is not None]
        self.spread = 2.0 * column.variance / self.scale
        offset = np.zeros_like(column.y) if column.offset is None else column.offset
        factors = self.spread, column.mean / self.scale, 1.0 / self.scale, self.constant
        terms = np.ascontiguousarray(self.terms.T)
        self.problem = Problem(column.y, offset, terms, *factors, natives, *_task_weights_by_row(column))
        # Compiled steps read the arrays themselves.
        if isinstance(self.rows, CsrRows):
            A = self.rows.X
            self._walk, entries = partial(walk_csr, A.data, A.indices, A.indptr), A.nnz / A.shape[0]
        else:
            assert isinstance(self.rows, DenseRows)
            self._walk, entries = partial(walk_dense, self.rows.X), self.rows.shape[1]
        self.piece = max(1, int(ENTRIES_PER_CALL / (2.0 * entries + 16.0)))

    def start(self, eta0: float, t0: int) -> StochasticTaskTrack:
        """Return a track at w = 0."""
        size = self.rows.shape[1] + 1 + self.rows.shape[0]
        u, total = np.zeros(size), np.zeros(size)
        return StochasticTaskTrack(Walk(eta0, t0, u, total), u, total)

    def run(self, track: StochasticTaskTrack, i: np.ndarray, j: np.ndarray) -> None:
        """Take one step per pair of rows."""
        self._walk(self.problem, track.walk, i, j)

    def split(self, entries: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return w, intercept, and w's coefficients as a combination of rows."""
        d = self.rows.shape[1]
        return entries[:d], float(entries[d]), entries[d + 1 :]

    def margins(self, w: np.ndarray, b: float) -> np.ndarray:
        """y f on all rows."""
        return self.column.y * (self.rows.dot(w) + b)

    def sampled(self, w: np.ndarray, b: float, rows: np.ndarray) -> float:
        """Estimate g / (m C) from some rows, drawn with the counts as probabilities."""
        z = np.empty(rows.shape[0])
        step = max(1, BLOCK_ENTRIES // self.rows.shape[1])
        for k in range(0, rows.shape[0], step):
            some = rows[k : k + step]
            z[k : k + step] = self.column.y[some] * (self.rows.take(some).dot(w) + b)
        value = self.column.drawn(rows).distribution_value(z, estimated=True)
        return (0.5 * (float(w @ w) + b * b) + value) / self.scale

    def safe_step(self) -> float:
        """A first step size that no row can make diverge: one over the largest curvature (or jump) of one step."""
        largest = float(self.rows.squares().max()) + self.constant
        bend = self.bend + float(self.terms[:, 2:4].sum()) + 0.25 * float(self.terms[:, 4] @ self.terms[:, 5])
        steepest = largest * (bend + 2.0 * self.spread) + 1.0 / self.scale
        return 1.0 / steepest if steepest > 0 else 1.0


def _task_weights_by_row(column: Column) -> tuple[np.ndarray, np.ndarray] | tuple[()]:
    """Weights and shifts by row as the compiled steps of stochastic engines read them; nothing where there are none.

    Declared terms come first, then those with functions of their own.
    """
    if column.by_row is None:
        return ()
    order = sorted(range(len(column.terms)), key=lambda t: isinstance(column.terms[t], GivenTerm))
    shape = column.caps.shape
    weights = np.ones(shape) if column.by_row.weights is None else column.by_row.weights[order]
    shifts = np.zeros(shape) if column.by_row.shifts is None else column.by_row.shifts[order]
    return np.ascontiguousarray(weights), np.ascontiguousarray(shifts)


class TaskRowPairs:
    """Pairs of rows for a stochastic task, drawn independently with replacement, the counts as probabilities.

    Rows are places on a line of length sum(counts): integer counts draw the very rows that repetition would.
    """

    def __init__(self, counts: np.ndarray, rng: np.random.Generator) -> None:
        self.rng = rng
        self.last = int(np.flatnonzero(counts)[-1])
        equal = bool((counts == counts[0]).all())
        self.ends = None if equal else np.cumsum(counts)

    def __call__(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The next n pairs; how a stream is cut into calls does not matter."""
        places = self.rng.random((n, 2)).T
        if self.ends is None:
            rows = (places * (self.last + 1)).astype(np.int64)
        else:
            rows = np.searchsorted(self.ends, places * self.ends[-1], side="right").astype(np.int64)
        i, j = np.minimum(rows, self.last)  # rounding can reach the end of the line
        return np.ascontiguousarray(i), np.ascontiguousarray(j)


def calibrate_task_step(task: StochasticTask, draw: TaskRowPairs, n: int, steps: int) -> Generator[None, None, float]:
    """Choose a stochastic task's step eta0 by factors of 2 from 1: best objective on a sample, after a short pass.

    The objective is taken at the average of the pass's second half, since that of the last iterate is mostly noise.
    Such an average prefers longer steps than a run that averages longer, so the choice shrinks by the fourth root of
    the ratio of the lengths.
    """
    i, j = draw(min(STEP_SIZE_ROWS, n))
    length = i.shape[0]

    def cost(eta0: float) -> Generator[None, None, float]:
        track = task.start(eta0, length // 2)
        for start in range(0, length, task.piece):
            part = slice(start, start + task.piece)
            task.run(track, i[part], j[part])
            yield
        with np.errstate(over="ignore", invalid="ignore"):
            w, b, _ = task.split(track.current())
            value = task.sampled(w, b, i)
        yield
        return value if np.isfinite(value) else np.inf

    eta0 = 1.0
    value = yield from cost(eta0)
    for factor in (2.0, 0.5):
        before = eta0
        for _ in range(DOUBLINGS):
            trial = yield from cost(eta0 * factor)
            if not trial < value and (np.isfinite(value) or factor > 1.0):
                break
            eta0, value = eta0 * factor, trial
        if eta0 != before:
            break
    return eta0 * float(length / steps) ** 0.25 if np.isfinite(value) else task.safe_step()
