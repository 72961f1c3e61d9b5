"""Quadratic models of a penalised objective over row blocks, in memory: their minimum, and what is below all of them.

A model is T + <G, w - v> + 1/2 (w - v)'H (w - v) + P(K w), with terms P of any kind: norms, limits, and hinges of a few
rows. It is minimised by the proximal method of multipliers: every term is replaced by its envelope around the
multipliers so far, Newton steps minimise that, and the next envelopes are closer. Multipliers s of the terms are
tangents, so that with q = G + K's

    T + <s, K v> - P*(s) - 1/2 q'H^-1 q

is below the model everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np

from mdlearn.data.features.kernel_rounding import ROUNDINGS_HERE, UNIT
from mdlearn.forms.penalised.blocks import BARE_SLOPE_ROUNDING, CoefficientBlocks
from mdlearn.numerics.cholesky import cholesky_shifted, cholesky_solve
from mdlearn.numerics.line_search import line_minimum
from mdlearn.streaming.sums.pass_sums import GatherPassRows
from mdlearn.streaming.sums.streamed_form import StreamedColumn

MOST_ENVELOPES, MOST_NEWTON_STEPS = 40, 50
"""Envelopes of one minimisation, and Newton steps for each of them."""
MODEL_FIRST_WIDTH, MODEL_WIDTH_SHRINKAGE, MODEL_LEAST_WIDTH = 0.1, 0.2, 1e-8
"""Width of envelopes in units of what the quadratic allows: the first, how much closer the next are, the least."""
MODEL_FIRST_HOLD, MODEL_HOLD_SHRINKAGE, MODEL_LEAST_HOLD = 1e-3, 0.1, 1e-12
"""Share of the second derivatives by which coefficients are held near where they are, likewise."""
MODEL_SLOPE_ROUNDING, MODEL_TERMS_ROUNDING = 1e-14, 1e-15
"""Slope, relative to the sizes of its terms, and gap of the terms, relative to the value, that are rounding."""
MODEL_HOLD_ROUNDING = 1e-13
"""Slope of what holds the coefficients, relative to the others, that is rounding."""
MODEL_STALLED_ENVELOPES = 3
"""Envelopes as close as they get, without progress, after which rounding is taken to be reached."""
MODEL_FALL_ROUNDING, MODEL_LAST_STEPS = 1e-14, 3
"""Promised fall, relative to the value, that no line search can see, and whole steps that are taken then."""
MODEL_LINE_SHARE = 0.1
"""Share of the first derivative that may be left along a step."""


@dataclass(frozen=True, eq=False)
class PenalisedModel:
    """Quadratic model of a penalised objective about coefficients v, which are one vector, feature by feature."""

    blocks: CoefficientBlocks
    value: float  # T
    G: np.ndarray  # shape (n k,)
    H: np.ndarray  # shape (n k, n k)
    v: np.ndarray  # shape (n k,)
    scale: np.ndarray  # shape (n k,): usual second derivatives of coefficients without a ridge, which are held by them

    def at(self, w: np.ndarray) -> float:
        """Value of the model, but for limits."""
        d = w - self.v
        return self.value + float(self.G @ d) + 0.5 * float(d @ (self.H @ d)) + self.blocks.value(self.blocks.dot(w))


class HingeBlocks:
    """Hinge blocks of a penalised model, of rows: lines of slopes `low` and `high` on either side of a kink of v."""

    typical = 0.0

    def __init__(self, low: np.ndarray, high: np.ndarray, kinks: np.ndarray) -> None:
        self.low, self.high, self.kinks, self.labels = low, high, kinks, np.arange(kinks.shape[0])

    def value(self, v: np.ndarray) -> float:
        """Sum of the hinges."""
        away = v - self.kinks
        return float(np.maximum(self.low * away, self.high * away).sum())

    def multipliers(self, a: np.ndarray, width: np.ndarray) -> np.ndarray:
        """Multipliers of the envelope of this width, where a = multipliers so far + v / width."""
        return np.clip(a - self.kinks / width, self.low, self.high)

    def feasible(self, s: np.ndarray) -> np.ndarray:
        """Multipliers within the slopes."""
        return np.clip(s, self.low, self.high)

    def conjugate(self, s: np.ndarray) -> float:
        """P*(s)."""
        return float(self.kinks @ s)

    def excess(self, s: np.ndarray) -> float:
        """Factor by which multipliers are beyond the slopes; infinite where one has the wrong sign."""
        most = np.where(s > 0, self.high, -self.low)
        if (most[s != 0] == 0).any():
            return np.inf
        return float(np.max(np.abs(s) / np.where(most > 0, most, 1.0), initial=0.0))

    def free(self, s: np.ndarray) -> np.ndarray:
        """Multipliers between the slopes: those of rows on the kink."""
        return (s > self.low) & (s < self.high)

    def bends(self, a: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivative of the multipliers by a: a diagonal."""
        ahead = a - self.kinks / width
        return ((ahead > self.low) & (ahead < self.high)).astype(float), np.zeros(a.shape)


def stacked_columns(each: Sequence[np.ndarray]) -> np.ndarray:
    """Matrix over all coefficients, feature by feature, that has one matrix for each column, (n k, n k)."""
    k, n = len(each), each[0].shape[0]
    if k == 1:
        return each[0]
    whole = np.zeros((n * k, n * k))
    for j, one in enumerate(each):
        whole[j::k, j::k] = one
    return whole


def blocks_of_rows(
    blocks: CoefficientBlocks, one: StreamedColumn, rows: GatherPassRows, w: np.ndarray, h: float, i: int, k: int
) -> tuple[CoefficientBlocks, np.ndarray]:
    """Add the hinges of gathered rows of column i of k to terms of the coefficients, with multipliers to begin with.

    These are the slopes at coefficients w of the column, with kinks rounded on a half width h.
    """
    X = rows.X if one.level is not None else rows.y[:, None] * rows.X
    terms, (n, size) = one.column.terms, X.shape
    weight, shift = rows.by_row if rows.by_row is not None else (np.ones((len(terms), n)), np.zeros((len(terms), n)))
    caps = weight * rows.counts * np.array([[term.weight] for term in terms])
    kinks = shift + np.array([[term.threshold] for term in terms]) + (rows.labels if one.level is not None else 0.0)
    sides = one.column.sides[:, None]
    low, high = np.where(sides > 0, -caps, 0.0), np.where(sides > 0, 0.0, caps)
    K = np.zeros((len(terms) * n, size * k))
    K[:, i::k] = np.tile(X, (len(terms), 1))
    first = low + caps * np.clip((X @ w - kinks + h) * (0.5 / h), 0.0, 1.0)
    return blocks.extended(K, HingeBlocks(low.ravel(), high.ravel(), kinks.ravel())), first.ravel()


def minimise_penalised_model(
    model: PenalisedModel, s: np.ndarray
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Minimise a penalised model, as far as rounding allows.

    Yields None; returns coefficients that keep all limits, and multipliers. Raises `NotPositiveDefinite` where numbers
    are beyond float64.
    """
    blocks, w = model.blocks, model.v
    bends = np.diagonal(model.H) + model.scale
    bends = np.where(bends > 0, bends, bends.max(initial=0.0) or 1.0)
    spans = blocks.spans(1.0 / bends)
    width, hold, best, found, stalled = MODEL_FIRST_WIDTH, MODEL_FIRST_HOLD, math.inf, (w, s), 0
    for _ in range(MOST_ENVELOPES):
        last = w
        w, s = yield from _minimise_envelopes(model, w, s, width * spans, hold * bends)
        v = blocks.settled(w, s)
        Kv, value = blocks.dot(v), model.at(v)
        # Of the terms and their multipliers, and of what has held the coefficients.
        left = (blocks.value(Kv) + blocks.conjugate(s) - float(s @ Kv)) / (abs(value) or 1.0)
        slopes = np.abs(model.G) + np.abs(model.H @ (w - model.v)) + blocks.sizes.T @ np.abs(s)
        pulled = float(np.max(hold * bends * np.abs(w - last) / np.maximum(slopes, 1e-300)))
        rest = max(left / MODEL_TERMS_ROUNDING, pulled / MODEL_HOLD_ROUNDING)
        if rest <= best:
            found = v, s
        if rest <= 1.0 or not blocks.K.shape[0]:
            break
        # Of wide envelopes it is slow where multipliers are far larger than what the quadratic allows.
        stalled = 0 if rest < 0.5 * best or width > MODEL_LEAST_WIDTH else stalled + 1
        best = min(best, rest)
        if stalled >= MODEL_STALLED_ENVELOPES:
            break
        width, hold = (
            max(MODEL_WIDTH_SHRINKAGE * width, MODEL_LEAST_WIDTH),
            max(MODEL_HOLD_SHRINKAGE * hold, MODEL_LEAST_HOLD),
        )
    return found


def _minimise_envelopes(
    model: PenalisedModel, w: np.ndarray, s: np.ndarray, width: np.ndarray, hold: np.ndarray
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Newton steps on the envelopes about multipliers; return coefficients, and the multipliers there."""
    blocks, anchor, H = model.blocks, w, model.H
    least, last = MODEL_FALL_ROUNDING * abs(model.value), MODEL_LAST_STEPS
    for _ in range(MOST_NEWTON_STEPS):
        a = s + blocks.dot(w) / width
        m = blocks.multipliers(a, width)
        parts = model.G, H @ (w - model.v), hold * (w - anchor), blocks.adjoint(m)
        slope = parts[0] + parts[1] + parts[2] + parts[3]
        sizes = sum(map(np.abs, parts[:3])) + blocks.sizes.T @ np.abs(m)
        if (np.abs(slope) <= MODEL_SLOPE_ROUNDING * sizes).all():
            break
        M = H + blocks.second(a, width)
        M[np.diag_indices_from(M)] += hold
        L = yield from cholesky_shifted(M)
        step = -cholesky_solve(L, slope)
        start, V = float(slope @ step), blocks.dot(step) / width
        square = float(step @ (H @ step)) + float(hold @ np.square(step))

        def along(t: float, a=a, m=m, V=V, square=square) -> tuple[float, float]:  # type: ignore[no-untyped-def]
            there = blocks.multipliers(a + t * V, width)
            return t * square + float((there - m) @ (width * V)), square + blocks.bend(a + t * V, width, V)

        length = 1.0 if -start <= least else line_minimum(start, along, MODEL_LINE_SHARE)
        moved = w + length * step
        if not math.isfinite(length) or np.array_equal(moved, w):
            break
        w = moved
        last -= -start <= least
        if not last:
            break
        yield
    return w, blocks.multipliers(s + blocks.dot(w) / width, width)


class QuadraticSpectrum:
    """Eigenvalues of variance and ridge of every column, which bound what lies below a penalised objective.

    `Q` (one for each column): their second derivatives; `sizes` (shape (n k,)): what slopes add up to without signs;
    `free`: whether nothing holds the last coefficient but a condition of the multipliers.
    """

    def __init__(self, Q: Sequence[np.ndarray], sizes: np.ndarray, free: bool) -> None:
        self.k, self.n, self.sizes = len(Q), Q[0].shape[0], sizes
        self.each: list[tuple[np.ndarray, np.ndarray]] = []
        for one in Q:
            if free:
                one = one.copy()
                one[-1], one[:, -1] = 0.0, 0.0
            self.each.append(np.linalg.eigh(one))
        least = max(float(values[-1]) for values, _ in self.each) * self.n * np.finfo(float).eps
        self.curved = [values > least for values, _ in self.each]
        # Directions that neither of them holds, other than a free bias that the multipliers hold.
        self.bare = np.zeros((self.n * self.k, 0))
        for j, ((_, U), curved) in enumerate(zip(self.each, self.curved)):
            own = U[:, ~curved]
            if free:
                own = own[:, np.abs(own[-1]) < 0.5]
            wide = np.zeros((self.n * self.k, own.shape[1]))
            wide[j :: self.k] = own
            self.bare = np.hstack([self.bare, wide])

    def bound(
        self,
        blocks: CoefficientBlocks,
        value: float,
        G: np.ndarray,
        v: np.ndarray,
        s: np.ndarray,
        floor: float,
    ) -> tuple[float, np.ndarray]:
        """Lower bound of a penalised objective that is above a quadratic model about v but for its coefficient terms.

        `value`, `G`: the model there, and its slope; `s`: multipliers of the terms; `floor`: losses are nowhere below.
        Where coefficients have neither ridge nor variance, s is moved to where the model has no slope, and shortened to
        what is allowed, which mixes it with the floor; such multipliers are returned as well.
        """
        share = 1.0
        s = blocks.feasible(s)
        if self.bare.shape[1]:
            K = np.asarray(blocks.K @ self.bare)
            # Those between their bounds first: it may be that they alone will do.
            for own in (np.flatnonzero(blocks.free(s)), np.arange(s.shape[0])):
                moved, missing = s.copy(), -(self.bare.T @ (G + blocks.adjoint(s)))
                moved[own] += np.linalg.lstsq(K[own].T, missing, rcond=None)[0]
                excess = blocks.excess(moved)
                if excess <= 1.0 or (own.shape[0] == s.shape[0] and math.isfinite(excess) and math.isfinite(floor)):
                    s, share = moved, 1.0 / max(excess, 1.0)
        q = G + blocks.adjoint(s)
        spent, left = 0.0, 0.0
        for j, ((values, U), curved) in enumerate(zip(self.each, self.curved)):
            own = U.T @ q[j :: self.k]
            spent += 0.5 * float((own[curved] ** 2 / values[curved]).sum())
            loose = np.abs(U.T[~curved])
            if (np.abs(own[~curved]) > BARE_SLOPE_ROUNDING * (loose @ self.sizes[j :: self.k])).any():
                return -math.inf, s
            # What rounding left of slopes that are to be 0 counts as often as coefficients differ from 0.
            left += 2.0 * float(np.abs(own[~curved]) @ np.abs(U.T[~curved] @ v[j :: self.k]))
        Kv, conjugate = blocks.dot(v), blocks.conjugate(s)
        sizes = abs(value) + abs(conjugate) + spent + float(np.abs(s) @ np.abs(Kv)) + float(np.abs(q) @ np.abs(v))
        whole = value + float(s @ Kv) - conjugate - spent - left
        lower = share * whole + ((1.0 - share) * floor if share < 1.0 else 0.0) - ROUNDINGS_HERE * UNIT * sizes
        return lower, blocks.feasible(s)
