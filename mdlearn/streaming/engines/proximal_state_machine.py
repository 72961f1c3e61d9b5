"""State machine of proximal Newton steps over row blocks, for smooth losses under an L1 or L2,1 penalty.

A pass gives value, gradient and Hessian of every column. The next step is the minimiser of the quadratic model with
the penalty itself, found in memory; it is halved until the objective falls as the model lets it. The variance, the
ridge and the tangent of the losses make another model, which lies below the objective everywhere: its minimum is the
bound.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary, SummarySums
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.composite import Composite, Product
from mdlearn.forms.joint.composite_point import CompositeEvaluation, CompositePoint, row_lengths
from mdlearn.solvers.proximal_gradient.fista import Fista
from mdlearn.streaming.engines.block_engine import BlockEngineState, BlockStepEngine
from mdlearn.streaming.sums.certificate import Candidate, objective_of_sums
from mdlearn.streaming.sums.pass_sums import PointPass, column_pass_sums
from mdlearn.streaming.sums.streamed_form import StreamedForm

ROUNDING_OF_VALUES = 1e-14
"""Relative difference of two objectives that is rounding."""
LIGHTER = 0.9
"""Share of the penalty whose minimiser has a tangent less steep than the whole of it."""
MOST_STEPS = 10_000
"""Steps and heartbeats of one minimisation."""
ARMIJO, SHORTEST_STEP = 1e-4, 1e-10
STALL_STEPS = 4
"""Steps without progress after which rounding is taken to be reached."""
UNBOUNDED_VALUE = 1e6
"""Value in units of that at w = 0, below which an objective that nothing bounds has no optimum."""


class PenalisedQuadratic(Composite):
    """Penalised quadratic sum_j [g_j . d_j + 1/2 d_j' H_j d_j] + sum_i beta_i |V_i| of V = W + d, shape (n, k).

    `H` of shape (k, n, n); `G`, `W` of shape (n, k); `beta` of shape (n,); `sizes`: what the terms of G added up to
    without their signs.
    """

    convex = True

    def __init__(
        self, H: np.ndarray, G: np.ndarray, W: np.ndarray, beta: np.ndarray, sizes: np.ndarray | float = 0.0
    ) -> None:
        super().__init__(None, "none", G.shape[1], np.zeros_like(beta), beta)  # type: ignore[arg-type]  # no rows here
        self.H, self.G, self.W, self.first, self.sizes = H, G, W, W, sizes
        self.at_zero = self.objective(self.at(np.zeros_like(W)))

    @property
    def needs_anchor(self) -> bool:
        """Nobody asks for bounds of steps."""
        return False

    def bound(self, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, str]:
        """None: see `penalised_quadratic_bound`."""
        return -math.inf, "none"

    def at(self, W: np.ndarray) -> CompositeEvaluation:
        """The quadratic and its gradient."""
        D = W - self.W
        HD = self._times(D)
        sizes = row_lengths(self.G) + row_lengths(HD)
        return CompositeEvaluation(W, float((self.G * D).sum()) + 0.5 * float((D * HD).sum()), self.G + HD, sizes)

    def measured(self, W: np.ndarray) -> CompositeEvaluation:
        """The look at W with all that its slopes are made of: products are no part of the sizes at a step."""
        terms = np.column_stack([np.abs(H) @ d for H, d in zip(self.H, np.abs(W - self.W).T, strict=True)])
        return replace(self.at(W), sizes=self.sizes + row_lengths(self.G) + row_lengths(terms))

    def settle(self, W: np.ndarray) -> CompositeEvaluation:
        """Return the look at W after rows without a penalty, a free bias, have moved to where their slope vanishes."""
        look, free = self.at(W), np.flatnonzero(self.beta == 0)
        for i in free:
            bend = self.H[:, i, i]
            W = np.array(W)
            W[i] -= np.divide(look.gradient[i], bend, out=np.zeros_like(bend), where=bend > 0)
            look = self.at(W)
        return look

    def lipschitz(self) -> float:
        """The largest eigenvalue."""
        return max(float(np.linalg.eigvalsh(H)[-1]) for H in self.H)

    def lighter(self, share: float) -> PenalisedQuadratic:
        return PenalisedQuadratic(self.H, self.G, self.W, share * self.beta, self.sizes)

    def product(self, look: CompositeEvaluation) -> Product | None:
        """Times H."""
        return self._times

    def approximation(self, look: CompositeEvaluation, rows: np.ndarray, column: int) -> np.ndarray:
        """A part of H itself."""
        return self.H[column][np.ix_(rows, rows)]

    def scale(self) -> np.ndarray:
        """Factors of the rows of V that make the diagonals of H about 1, shape (n,): steps are then of one length."""
        diagonal = np.mean([np.diagonal(H) for H in self.H], axis=0)
        return np.where(diagonal > 0, 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)), 1.0)

    def scaled(self, by: np.ndarray) -> PenalisedQuadratic:
        """Return the model in the variable V / by; beta_i becomes by_i beta_i, so that the penalty stays the same."""
        H = self.H * np.multiply.outer(by, by)
        return PenalisedQuadratic(H, by[:, None] * self.G, self.W / by[:, None], by * self.beta)

    def _times(self, V: np.ndarray) -> np.ndarray:
        return np.column_stack([H @ v for H, v in zip(self.H, V.T, strict=True)])


def minimise_penalised_quadratic(model: PenalisedQuadratic) -> Generator[None, None, np.ndarray]:
    """Minimise a penalised quadratic, as far as rounding allows.

    Yields None, and returns V of shape (n, k).
    """
    by = model.scale()
    scaled = model.scaled(by)
    best, found = scaled.objective(scaled.at(scaled.W)), scaled.W
    for report in islice(Fista(scaled).steps(), MOST_STEPS):
        # Later points are the better ones as long as rounding cannot tell their objectives apart.
        if report is not None and report.objective <= best + ROUNDING_OF_VALUES * abs(best):
            assert isinstance(report.point, CompositePoint)
            best, found = min(best, report.objective), report.point.W
        yield None
    return by[:, None] * found


def penalised_quadratic_bound(model: PenalisedQuadratic) -> Generator[None, None, float]:
    """Lower bound of all values of a penalised quadratic.

    At its minimiser V with gradient g, T_i = -g_i shortened to beta_i, and r = g + T::

        model >= h(V) - <g, V> + <r, V> - 1/2 sum_j r_j' H_j^-1 r_j

    since sum_i beta_i |V'_i| >= <T, V'>. Where some H_j is singular, the tangent at V is mixed, as little as possible,
    with one at the minimiser for a lighter penalty, so that no row is steeper than its beta_i; -inf where that fails.
    """
    V = yield from minimise_penalised_quadratic(model)
    look = model.at(V)
    r = model.prox(look.gradient, 1.0)
    value = look.value - float((look.gradient * V).sum())
    spent = 0.0
    for H, own in zip(model.H, r.T, strict=True):
        if own.any():
            values, U = np.linalg.eigh(H)
            if not values[0] > own.shape[0] * np.finfo(float).eps * values[-1]:
                anchor = yield from minimise_penalised_quadratic(model.lighter(LIGHTER))
                return Composite.bound(model, model.measured(V), model.measured(anchor))[0]
            spent += 0.5 * float(((U.T @ own) ** 2 / values).sum())
        yield
    return value + float((r * V).sum()) - spent


@dataclass(eq=False)
class ProximalState(BlockEngineState):
    """State in the proximal state machine, from pass to pass."""

    square: np.ndarray  # shape (n, n): sum_i c_i x'_i x'_i'; NaN before it is known
    fall: np.ndarray  # shape (q,): what the model says of the whole step; NaN before the first one
    done: np.ndarray  # shape (q,), int

    @classmethod
    def first(cls, form: StreamedForm, q: int) -> ProximalState:
        """At w = 0."""
        square, done = np.full((form.size, form.size), math.nan), np.zeros(q, dtype=np.int64)
        return cls(**cls.at_zero(form, q), square=square, fall=np.full(q, math.nan), done=done)


class BlockProximal(BlockStepEngine):
    """State machine of proximal Newton steps between passes over row blocks.

    `groups`: columns of every problem: those whose coefficients of a feature are punished together.
    """

    state: ProximalState  # where to begin; it is written to

    def __init__(self, form: StreamedForm, groups: Sequence[tuple[int, ...]], tol: float, state: ProximalState) -> None:
        super().__init__(form, groups, tol, state)
        self.beta = form.beta

    def work(self) -> PointPass | None:
        """Evaluate all problems that are not done; the first pass finds the variance's matrix as well."""
        state, todo = self.state, [t for t in range(len(self.groups)) if not self.state.done[t]]
        if not todo:
            return None
        places = tuple(j for t in todo for j in self.groups[t])
        each = np.concatenate([np.full(len(self.groups[t]), state.length[t]) for t in todo])
        W = state.W[list(places)] + each[:, None] * state.P[list(places)]
        return PointPass(self.form, places, W, np.ones(len(places)), squared=bool(np.isnan(state.square[0, 0])))

    def take(self, work: PointPass, sums: SummarySums) -> Generator[None, None, None]:
        self.state.square = sums.pop("square", self.state.square)
        for t, group in enumerate(self.groups):
            if set(group) <= set(work.places):
                at = [work.places.index(j) for j in group]
                yield from self._arrive(t, work.W[at], [column_pass_sums(sums, i) for i in at])

    def _arrive(self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]]) -> Generator[None, None, None]:
        """Judge the point that a step has led to, and plan the next."""
        state, group = self.state, list(self.groups[t])
        value, smooth, G = self._at(t, W, sums)
        most = state.value[t] + ARMIJO * state.length[t] * state.fall[t] + ROUNDING_OF_VALUES * abs(state.value[t])
        if not (np.isnan(most) or value <= most):
            state.length[t] *= 0.5
            state.done[t] = state.length[t] < SHORTEST_STEP
            return
        better = value < state.best[t] * (1.0 - 1e-12 * math.copysign(1.0, state.best[t]))
        if value < state.best[t]:
            state.best[t], state.best_W[group] = value, W
        bound = yield from self._bound(t, W, G, state.square)
        state.lower[t] = max(float(state.lower[t]), smooth + bound)
        if value < -UNBOUNDED_VALUE * abs(self.zero(t)[0]) and math.isinf(state.lower[t]):
            raise ValueError(
                "there is no optimum on these row blocks: the loss falls by more than the penalty grows; give the "
                "penalty a larger weight"
            )
        state.done[t] = self.ended(t, onward=better)
        if state.done[t]:
            return
        H = np.array([self._hessian(j, state.square, one["hessian"]) for j, one in zip(group, sums)])
        V = yield from minimise_penalised_quadratic(PenalisedQuadratic(H, G, W.T, self.beta))
        state.W[group], state.P[group] = W, V.T - W
        fall = float((G * (V - W.T)).sum()) + float(self.beta @ row_lengths(V)) - float(self.beta @ row_lengths(W.T))
        state.length[t], state.value[t], state.fall[t] = 1.0, value, min(fall, 0.0)

    def resume(self, t: int, lower: float) -> None:
        """Begin anew at the best point."""
        state, group = self.state, list(self.groups[t])
        state.done[t], state.lower[t] = 0, lower
        state.length[t], state.value[t], state.fall[t] = 0.0, math.nan, math.nan
        state.W[group] = state.best_W[group]

    def patience(self, t: int) -> int:
        """Passes without progress after which rounding is taken to be reached; the same number for every problem."""
        return STALL_STEPS

    def certified(
        self, blocks: RowBlocks, summary: Summary, late: bool
    ) -> Generator[None, None, list[list[Candidate]]]:
        """The best points, with the bounds of models there, or with better ones of earlier passes."""
        W, found = to_type(self.state.best_W, summary.dtype).astype(np.float64), []
        places = tuple(range(W.shape[0]))
        sums = yield from blocks.fold(PointPass(self.form, places, W, np.ones(len(places)), squared=True), summary)
        square = sums.pop("square")
        for t, group in enumerate(map(list, self.groups)):
            value, smooth, G = self._at(t, W[group], [column_pass_sums(sums, j) for j in group])
            bound = yield from self._bound(t, W[group], G, square)
            found.append([(value, max(float(self.state.lower[t]), smooth + bound), W[group])])
        return found

    def _at(self, t: int, W: np.ndarray, sums: Sequence[Mapping[str, np.ndarray]]) -> tuple[float, float, np.ndarray]:
        """Objective, what it is without the penalty, and the gradient of that, of shape (n, k), from sums at W."""
        smooth, G = 0.0, np.empty(W.T.shape)
        for i, (j, mine) in enumerate(zip(self.groups[t], sums)):
            one = self.form.columns[j]
            smooth += objective_of_sums(self.form, j, W[i], mine)
            G[:, i] = self.form.punished * W[i] - mine["element"] - one.column.kappa * mine["first"] * one.centre
        return smooth + float(self.beta @ row_lengths(W.T)), smooth, G

    def _bound(self, t: int, W: np.ndarray, G: np.ndarray, square: np.ndarray) -> Generator[None, None, float]:
        """Lower bound of the objective, less its smooth part at W."""
        Q = np.array([self._hessian(j, square) for j in self.groups[t]])
        return penalised_quadratic_bound(PenalisedQuadratic(Q, G, W.T, self.beta, self._slope_sizes(t, square)))

    def _hessian(self, j: int, square: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
        """Hessian of variance and ridge of a column, and of its losses where `whole` has them."""
        one = self.form.columns[j]
        kappa, total = one.column.kappa, one.column.total
        H = np.array(kappa * square if whole is None else whole)
        H -= (kappa * total) * np.multiply.outer(one.centre, one.centre)
        H[np.diag_indices_from(H)] += self.form.punished
        return H

    def _slope_sizes(self, t: int, square: np.ndarray) -> np.ndarray:
        """Rough sizes of slopes, shape (n,): sums of their absolute terms, those of the variance left out."""
        columns, total = [self.form.columns[j] for j in self.groups[t]], self.form.columns[0].column.total
        mass = 0.0
        for one in columns:
            each = zip(one.column.terms, one.term_masses)
            mass += one.column.mean + sum(float(own.sum()) * min(term.weight, term.steepest) for term, own in each)
        return np.asarray(mass * np.sqrt(np.diagonal(square) / total))
