"""Extrapolation of dual sweeps: the best point of the space that the last moves span, at no pass over the rows.

With e = (w, Y for a regularized bias, s / sqrt(kappa c), sqrt(delta) beta) the dual value is L(beta) - |e|^2 / 2, L
linear: inner products of moves of e are all that its maximum over their span needs. Each sweep is then what a
preconditioner is to conjugate gradients. Where the span leaves the box, multipliers are cut back, at a pass over their
rows, and a point counts only if the dual value rises.
"""

from __future__ import annotations

import numpy as np

from mdlearn.data.rows import COPY_BYTES, Rows
from mdlearn.forms.margin import Column, MarginForm

MOVES = 4
"""Earlier moves that are taken up again, at most. Orders are random, so one would not do as in conjugate gradients."""
NOTHING = 1e-12
"""Length of a move, in units of e, that is rounding: w and multipliers belong together only up to that."""


class Extrapolation:
    """The dual of one column with a variance term, in e and beta, and the last moves of both.

    A bias is settled first: s moves along c (y - mean y), which changes Y alone, to the best Y; 0 for a free bias.
    """

    def __init__(self, form: MarginForm, column: Column, rows: Rows, v: np.ndarray) -> None:
        self.column, self.rows, self.bias = column, rows, form.bias
        self.m, self.d = rows.shape
        self.roots = np.sqrt(np.divide(1.0, column.kappa * column.counts, out=np.ones(self.m), where=column.counts > 0))
        self.curved = np.flatnonzero(column.softness)
        self.soft = np.sqrt(column.softness.ravel()[self.curved])
        self.gain = np.repeat(column.sides * column.thresholds, self.m)
        tilt = column.counts * (column.y - column.label_mean)
        self.reach = float(tilt @ column.y)
        mean = rows.adjoint(column.counts) / column.total
        self.common = float(mean @ mean)  # mean inner product of two rows
        w = column.total * (mean - column.label_mean * v)
        self.tilt = self.element(w, self.reach, tilt, np.zeros(column.caps.shape))
        self.stiffness = float(self.tilt @ self.tilt)
        size, n = self.tilt.shape[0], self.gain.shape[0]
        self.most = max(1, min(MOVES, int(COPY_BYTES / (8 * (size + n)))))
        self.moves, self.steps = np.zeros((self.most, size)), np.zeros((self.most, n))
        self.gram, self.rest = np.zeros((self.most, self.most)), np.zeros(self.most)
        self.forget()

    def forget(self) -> None:
        """Begin anew: sweeps in between went another way."""
        self.count, self.stuck = 0, False  # stuck: whether the last sweep was no way up
        self.last: tuple[np.ndarray, np.ndarray] | None = None

    def element(self, w: np.ndarray, total: float, s: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return e; s has the sum 0."""
        total = total if self.bias == "regularized" else 0.0
        return np.concatenate([w, [total], s * self.roots, beta.ravel()[self.curved] * self.soft])

    def parts(self, e: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return w, Y and s."""
        w, s = e[: self.d], e[self.d + 1 : self.d + 1 + self.m] / self.roots
        return w, float(e[self.d]), s

    def offset(self, e: np.ndarray) -> float:
        """The bias at which s has no wish to move along c (y - mean y)."""
        if self.bias == "none":
            return 0.0
        return (float(e[self.d] * self.tilt[self.d]) - float(e @ self.tilt)) / self.reach

    def value(self, e: np.ndarray, beta: np.ndarray) -> float:
        """The dual value."""
        return float(self.gain @ beta) - 0.5 * float(e @ e)

    def advance(self, w: np.ndarray, total: float, s: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the point that a sweep has left; return the best (e, beta) of the span."""
        e, beta = self._settled(self.element(w, total, s, beta), total), beta.ravel().copy()
        if self.last is not None:
            move = e - self.last[0]
            if float(move @ move) > NOTHING**2 * float(e @ e):
                e, beta = self._best(move, beta, *self.last)
        self.last = e, beta
        return e, beta.reshape(self.column.caps.shape)

    def _settled(self, e: np.ndarray, total: float) -> np.ndarray:
        """Take s along c (y - mean y), in place."""
        if self.bias != "none":
            e -= (total / self.reach if self.bias == "free" else float(e @ self.tilt) / self.stiffness) * self.tilt
        return e

    def _best(
        self, move: np.ndarray, beta: np.ndarray, start: np.ndarray, start_beta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Maximise over the span of a move and earlier ones, within the box; keep the step taken for next time.

        `rest` are the slopes of the dual value at the start along earlier moves: 0, unless the box or rounding stopped
        the step before. They and the inner products follow a step without a look at the moves themselves.
        """
        k, j = min(self.count, self.most), self.count % self.most
        step = beta - start_beta
        gram = np.empty((k + 1, k + 1))
        gram[:k, :k], gram[k, k] = self.gram[:k, :k], move @ move
        gram[:k, k] = gram[k, :k] = self.moves[:k] @ move
        slope = np.append(self.rest[:k], float(self.gain @ step) - float(start @ move))
        # A sweep holds the bias, so it can lower the dual value; part of the way is then still a way up.
        part = min(max(float(slope[k]) / max(float(gram[k, k]), 1e-300), 0.0), 1.0)
        self.stuck = part == 0.0
        straight = np.append(np.zeros(k), part)
        t = max(straight, _solved(gram, slope), key=lambda t: float(t @ slope - 0.5 * (t @ gram @ t)))
        move_t, step_t = t[:k] @ self.moves[:k], t[:k] @ self.steps[:k]
        move_t += t[k] * move
        step_t += t[k] * step
        target = start + move_t
        e, beta = self._within(target, start_beta + step_t)
        self.count += 1
        if e is target:
            flow = gram @ t
            self.moves[j], self.steps[j] = move_t, step_t
            self.gram[:k, j] = self.gram[j, :k] = flow[:k]
            self.rest[:k] = (slope - flow)[:k]
            self.gram[j, j], self.rest[j] = t @ flow, t @ (slope - flow)
            return e, beta
        shorter = start + part * move, start_beta + part * step
        if self.value(e, beta) < self.value(*shorter):
            e, beta = shorter
        k = min(self.count, self.most)
        self.moves[j], self.steps[j] = e - start, beta - start_beta
        self.gram[j, :k] = self.gram[:k, j] = self.moves[:k] @ self.moves[j]
        self.rest[:k] = self.steps[:k] @ self.gain - self.moves[:k] @ e
        return e, beta

    def _within(self, e: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cut multipliers back to their box; what they weigh in e goes with them."""
        column = self.column
        inside = np.clip(beta, 0.0, column.caps.ravel())
        cut = inside - beta
        if not cut.any():
            return e, inside
        cuts = cut.reshape(column.caps.shape)
        at = np.flatnonzero(cuts.any(axis=0))
        weights = column.y[at] * (column.sides @ cuts[:, at])
        change = self.element(self.rows.take(at).adjoint(weights), float(weights.sum()), np.zeros(self.m), cuts)
        return self._settled(e + change, float(weights.sum())), inside


def _solved(gram: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Maximiser of slope.t - t'gram t / 2, however small some moves are beside others."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    solution: np.ndarray = np.linalg.lstsq(gram * np.multiply.outer(scale, scale), scale * slope, rcond=1e-12)[0]
    return scale * solution
