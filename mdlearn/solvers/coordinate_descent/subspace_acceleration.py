"""Acceleration of dual sweeps in a subspace: the best point of the space that the last moves span, without a pass.

With e = (w, Y for a regularized bias, s / sqrt(kappa c), sqrt(delta) beta) the dual value is L(beta) - |e|^2 / 2, L
linear: inner products of moves of e are all that its maximum over their span needs. Each sweep is then what a
preconditioner is to conjugate gradients. Where the span leaves the box, multipliers are cut back, at a pass over their
rows, and a point counts only if the dual value rises.

A sweep holds the bias, so Y is where single coordinates get least far. One direction more takes it along: the free
multipliers' common answer to a move of the bias.
"""

from __future__ import annotations

import numpy as np

from mdlearn.data.rows.rows import COPY_BYTES, Rows
from mdlearn.forms.margin import Column, MarginForm

MOVES = 2
"""Earlier moves that are taken up again, at most. Orders are random, so one would not do as in conjugate gradients."""
ROUNDING_OF_MOVES = 1e-12
"""Length of a move, in units of e, that is rounding: w and multipliers belong together only up to that."""
FEW_CHANGED_SHARE = 0.1
"""Share of the rows whose change is cheaper to add than all are to sum anew."""


class SubspaceExtrapolation:
    """Acceleration of dual sweeps in the subspace that their last moves span, in e and beta.

    With a variance term a bias is settled first: s moves along c (y - mean y), which changes Y alone, to the best Y; 0
    for a free bias.
    """

    def __init__(self, form: MarginForm, column: Column, rows: Rows, v: np.ndarray) -> None:
        self.column, self.rows, self.bias = column, rows, form.bias
        self.m, self.d = rows.shape
        self.varies = column.kappa > 0
        self.common = 0.0  # mean inner product of two rows
        if self.varies:
            self.roots = np.sqrt(
                np.divide(1.0, column.kappa * column.counts, out=np.ones(self.m), where=column.counts > 0)
            )
        self.curved = np.flatnonzero(column.softness)
        self.soft = np.sqrt(column.softness.ravel()[self.curved])
        self.gain = np.broadcast_to(column.sides[:, None] * column.kinks, column.caps.shape).ravel()
        if self.varies:
            self._make_tilt(v)
        size, n = self.d + 1 + (self.m if self.varies else 0) + self.soft.shape[0], self.gain.shape[0]
        self.most = max(1, min(MOVES, int(COPY_BYTES / (8 * (size + n)))))
        # The last place is that of the common answer.
        self.moves, self.steps = np.zeros((self.most + 1, size)), np.zeros((self.most + 1, n))
        self.gram, self.rest = np.zeros((self.most + 1, self.most + 1)), np.zeros(self.most + 1)
        self.common_answer: tuple[np.ndarray, np.ndarray] | None = None
        self.forget()

    def _make_tilt(self, v: np.ndarray) -> None:
        column = self.column
        tilt = column.counts * (column.y - column.label_mean)
        self.reach = float(tilt @ column.y)
        mean = self.rows.adjoint(column.counts) / column.total
        self.common = float(mean @ mean)
        w = column.total * (mean - column.label_mean * v)
        self.tilt = self.element(w, self.reach, tilt, np.zeros(column.caps.shape))
        self.stiffness = float(self.tilt @ self.tilt)

    def forget(self) -> None:
        """Begin anew: sweeps in between went another way."""
        self.count, self.answering = 0, False
        self.stuck = False  # whether the last sweep was no way up
        self.last: tuple[np.ndarray, np.ndarray] | None = None

    def answer(self, free: np.ndarray, squares: np.ndarray) -> None:
        """Let `free` multipliers (T, m) be those that answer a move of the bias, each by 1 / (|x|^2 + delta)."""
        if self.bias == "none" or self.last is None:
            return
        column = self.column
        stiffness = np.where(free, squares + column.softness, 0.0)
        each = np.divide(1.0, stiffness, out=np.zeros_like(stiffness), where=stiffness > 0)
        weights = each.sum(axis=0)
        if self.common_answer is not None:
            known, w = self.common_answer
            at = np.flatnonzero(weights != known)
            if at.shape[0] == 0 and self.answering:
                return
        if self.common_answer is None or at.shape[0] > FEW_CHANGED_SHARE * self.m:
            w = self.rows.adjoint(weights)
        else:
            w = w + self.rows.take(at).adjoint(weights[at] - known[at])
        self.common_answer, self.answering = (weights, w), True
        beta, total = column.sides[:, None] * column.y * each, float(weights.sum())
        move = self._settled(self.element(w, total, np.zeros(self.m), beta), total)
        self.moves[-1], self.steps[-1] = move, beta.ravel()
        k = min(self.count, self.most)
        self.gram[-1, :k] = self.gram[:k, -1] = self.moves[:k] @ move
        self.gram[-1, -1] = move @ move
        self.rest[-1] = self.gain @ self.steps[-1] - move @ self.last[0]

    def element(self, w: np.ndarray, total: float, s: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Return e; s has the sum 0."""
        total = total if self.bias == "regularized" else 0.0
        parts = [w, np.array([total])]
        if self.varies:
            parts.append(s * self.roots)
        if self.soft.shape[0]:
            parts.append(beta.ravel()[self.curved] * self.soft)
        return np.concatenate(parts)

    def parts(self, e: np.ndarray) -> tuple[np.ndarray, float, np.ndarray | float]:
        """Return w, Y and s."""
        s = e[self.d + 1 : self.d + 1 + self.m] / self.roots if self.varies else 0.0
        return e[: self.d], float(e[self.d]), s

    def offset(self, e: np.ndarray) -> float:
        """The bias that goes with e: with a variance term, where s has no wish to move along c (y - mean y)."""
        if self.bias == "none":
            return 0.0
        if not self.varies:
            return float(e[self.d])
        return (float(e[self.d] * self.tilt[self.d]) - float(e @ self.tilt)) / self.reach

    def advance(self, w: np.ndarray, total: float, s: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Take the point that a sweep has left; return the best (e, beta) of the span."""
        e, beta = self._settled(self.element(w, total, s, beta), total), beta.ravel().copy()
        if self.last is not None:
            move = e - self.last[0]
            if float(move @ move) > ROUNDING_OF_MOVES**2 * float(e @ e):
                e, beta = self._best(move, beta, *self.last)
        self.last = e, beta
        return e, beta.reshape(self.column.caps.shape)

    def _settled(self, e: np.ndarray, total: float) -> np.ndarray:
        """Take s along c (y - mean y), in place."""
        if self.bias != "none" and self.varies:
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
        at = [*range(k), self.most] if self.answering else list(range(k))
        n, step = len(at), beta - start_beta
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n], gram[n, n] = self.gram[np.ix_(at, at)], move @ move
        gram[:n, n] = gram[n, :n] = (self.moves @ move)[at]
        slope = np.append(self.rest[at], float(self.gain @ step) - float(start @ move))
        # A sweep holds the bias, so it can lower the dual value; part of the way is then still a way up.
        part = min(max(float(slope[n]) / max(float(gram[n, n]), 1e-300), 0.0), 1.0)
        self.stuck = part == 0.0
        straight = np.append(np.zeros(n), part)
        t = max(straight, _subspace_maximiser(gram, slope), key=lambda t: float(t @ slope - 0.5 * (t @ gram @ t)))
        share = np.zeros(self.most + 1)
        share[at] = t[:n]
        move_t, step_t = share @ self.moves, share @ self.steps
        move_t += t[n] * move
        step_t += t[n] * step
        target = start + move_t
        e, beta = self._within(target, start_beta + step_t)
        self.count += 1
        if e is target:
            flow = gram @ t
            self.moves[j], self.steps[j] = move_t, step_t
            self.rest[at] = (slope - flow)[:n]
            self.gram[at, j] = self.gram[j, at] = flow[:n]
            self.gram[j, j], self.rest[j] = t @ flow, t @ (slope - flow)
            return e, beta
        shorter = start + part * move, start_beta + part * step
        # The difference of two values would be rounding.
        if self.gain @ (beta - shorter[1]) < 0.5 * ((e - shorter[0]) @ (e + shorter[0])):
            e, beta = shorter
        self.moves[j], self.steps[j] = e - start, beta - start_beta
        self.gram[j] = self.gram[:, j] = self.moves @ self.moves[j]
        self.rest = self.steps @ self.gain - self.moves @ e
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


def _subspace_maximiser(gram: np.ndarray, slope: np.ndarray) -> np.ndarray:
    """Maximiser t of slope.t - t'gram t / 2 over a subspace of moves, however small some are beside others."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(gram), 1e-300))
    solution: np.ndarray = np.linalg.lstsq(gram * np.multiply.outer(scale, scale), scale * slope, rcond=1e-12)[0]
    return scale * solution
