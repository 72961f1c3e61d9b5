"""The fixed point of the Lagrangian support vector machine, as published.

With H the signed rows (and the constant feature of a regularized bias), Q = I/nu + H H' and u the multipliers, the
optimum is the fixed point of u <- Q^-1 (e + ((Q u - e) - alpha u)_+), and 0 < alpha < 2/nu makes the map a contraction.
(Mangasarian and Musicant, "Lagrangian support vector machines", JMLR 2001: Algorithm 1 and the Sherman-Morrison-
Woodbury identity, from which the engine has its name.)

What is iterated on is z = Q u. By that identity w = (I + nu H'H)^-1 nu H' z is the primal point H'u of u itself, and
u = nu (z - H w) follows row by row, and so does the next z. An iteration therefore costs one small solve and one pass
over the rows, and nothing of the size of Q is made.

A count c is a number of copies: D = nu c takes the place of nu, and what is said of z and u holds for every copy. Terms
of either side and of other thresholds stack: H is s_t H, e is s_t threshold_t, nu is nu_t, the largest of which bounds
alpha.
"""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers import smw as compiled
from mdlearn.data.rows.rows import steps
from mdlearn.data.validation import check_number
from mdlearn.errors import did_you_mean
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.base import Report, Solver, Steps
from mdlearn.solvers.common.primal_dual import PrimalDual
from mdlearn.solvers.common.warm_start import warm_start_margins
from mdlearn.solvers.systems.row_and_gram import GramSystem, RowSystem
from mdlearn.solvers.systems.system_choice import choose_system, prefers_row_system

PUBLISHED_STEP = 1e-5
"""Published end: |u - u_old| at which iterations stop ..."""
PUBLISHED_ITERATIONS = 100
"""... or this many iterations."""
DEFAULT_ALPHA = 1.9
"""Default of alpha, in units of 1/nu."""
SPARING = 10
"""Most iterations between two lower bounds: a bound costs half as much as an iteration."""
STALL_STEPS = 20
"""Iterations without a shorter step after which rounding is taken to be reached: a contraction's steps only shrink."""
ROWS_PER_CALL = 1 << 20
"""Rows of one call of a kernel: about 10 ms."""
LARGEST_FLOAT = float(np.finfo(float).max)


class SMW(Solver):
    """Fixed point of the LSVM (``solver="smw"``)."""

    name: ClassVar[str] = "smw"
    purpose: ClassVar[str] = "squared hinge terms alone: the LSVM fixed point as published; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"alpha": None, "stop": "gap"}
    default_max_iter: ClassVar[int] = 10_000
    exact: ClassVar[bool] = False
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"})
    draws: ClassVar[bool] = False

    def refusal(self, form: MarginForm) -> str | None:
        """Return what the form has that the fixed point has not."""
        general = super().refusal(form)
        if general is not None:
            return general
        if form.bias == "free":
            return "its fixed point has a regularized bias or none"
        if any(column.kappa > 0 or column.mean > 0 for column in form.columns):
            return "its fixed point knows no weight of margin variance or mean"
        lossless = any(all(t.weight == 0 for t in column.terms) for column in form.columns)
        return "its fixed point needs a loss" if lossless else None

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Step `alpha` > 0 (None: 1.9 / nu) and `stop`, "gap" (like any engine) or "step" (the published end)."""
        options = super().check_options(given)
        if options["alpha"] is not None:
            options["alpha"] = check_number(
                options["alpha"], "solver option alpha", low=0.0, high=LARGEST_FLOAT, strict=True
            )
        if options["stop"] not in ("gap", "step"):
            hint = did_you_mean(options["stop"], ("gap", "step"))
            raise ValueError(f"solver option stop needs to be 'gap' or 'step'; got {options['stop']!r}{hint}")
        return options

    def ends_itself(self, options: dict[str, Any]) -> bool:
        """The published end: a step of at most 1e-5, or 100 iterations."""
        return bool(options["stop"] == "step")

    def gives_last(self, options: dict[str, Any]) -> bool:
        """The published end is one of a step, whatever the objective is there."""
        return self.ends_itself(options)

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for three matrices of size d (rows) or two of size m (Gram)."""
        m, d = form.features.n_rows, form.features.width + 1
        if prefers_row_system(form):
            terms = max(len(column.terms) for column in form.columns)
            size = at_once * (24.0 * d * d + (64.0 + 64.0 * terms) * m)
            memory.require(size, f"a system of {d} columns", "use solver='cd'", at_once)
        else:
            size, instead = 8.0 * (1 + at_once) * m * m, memory.FEWER
            memory.require(size, f"a kernel problem with {m} rows", instead, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Hold alpha against the form; return the Gram matrix when the problem is solved through it."""
        limit = 2.0 / max(map(largest_fixed_point_nu, form.columns))
        if options["alpha"] is not None and not options["alpha"] < limit:
            raise ValueError(
                f"solver option alpha needs to be below 2/nu = {limit:.6g}, where nu is twice the largest weight of a "
                f"squared hinge; got {options['alpha']!r}; leave it out for 1.9/nu"
            )
        if prefers_row_system(form):
            return None
        return (yield from form.features.gram())

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per iteration; a new lower bound only every few, since it costs a pass."""
        published = self.ends_itself(options)
        alpha = options["alpha"] or DEFAULT_ALPHA / largest_fixed_point_nu(column)
        walk = FixedPoint(form, column, shared, alpha)
        state = PrimalDual(form, column, walk.system)
        nothing = np.zeros(column.y.shape[0])  # sigma: there is no variance
        k, turn, shortest, stalled, over = 0, 1, math.inf, 0, False
        try:
            yield from walk.start(None if published else warm_start_margins(form, column))
            while not over:
                yield from walk.advance()
                k += 1
                stalled = 0 if walk.shift < shortest else stalled + 1
                shortest = min(shortest, walk.shift)
                over = walk.step <= PUBLISHED_STEP or k == PUBLISHED_ITERATIONS if published else stalled >= STALL_STEPS
                bounded = over or k == turn
                if bounded or published:  # a published end has a point per iteration
                    beta, signed = np.empty_like(walk.u), np.empty_like(column.y)
                    yield from walk.multipliers(beta, signed)
                if bounded:
                    lower = feasible_dual(form, column, beta, nothing)[0]
                    if not published:
                        lower, beta = scale_fixed_point_to_bound(column, beta, lower)
                    turn = 4 * k if published else k + min(1 + k // 4, SPARING)
                coef, intercept = state.coefficients(walk.element)
                point = Point(beta, nothing, coef, intercept, signed if published else None)
                yield Report.estimated(walk.objective, lower, point)
        except NotPositiveDefinite:
            return


def largest_fixed_point_nu(column: Column) -> float:
    """Largest nu of the LSVM's terms, which limits the fixed point's alpha: twice the largest weight."""
    return max(2.0 * t.weight for t in column.terms)


def scale_fixed_point_to_bound(column: Column, beta: np.ndarray, bound: float) -> tuple[float, np.ndarray]:
    """Scale multipliers of the fixed-point iteration to their best lower bound.

    With L linear and B quadratic, L - B/2 becomes L^2 / (2 B), with the factor L / B, 1 at the optimum. Far from it u
    is far too long, and its own bound says nothing.
    """
    linear = max(float((column.sides * column.thresholds) @ beta.sum(axis=1)), 0.0)
    square = 2.0 * (linear - bound)
    if not square > 0:
        return bound, beta
    return 0.5 * linear * (linear / square), (linear / square) * beta


class FixedPoint:
    """Fixed-point iteration u <- Q^-1 (e + (Q u - e - alpha u)_+) on one column, in terms of z = Q u.

    `system`: its factor is that of I + H'DH (rows), or of the same turned round (Gram matrix); `element`: primal point
    A'D u of the present u; `objective`: the primal one there; `step`, `shift`: lengths of the last changes of u and z,
    over all copies of all rows.
    """

    def __init__(self, form: MarginForm, column: Column, G: np.ndarray | None, alpha: float) -> None:
        self.form, self.column, self.alpha = form, column, alpha
        nu = 2.0 * np.array([t.weight for t in column.terms])
        self.terms = np.vstack([column.sides * column.thresholds, column.sides, nu])
        self.curvature = float(nu.sum()) * column.counts
        self.system: RowSystem | GramSystem = choose_system(form, column, G, float(self.curvature.max()))
        self.z = np.empty((nu.shape[0], column.y.shape[0]))
        self.u = np.zeros_like(self.z)

    def start(self, begun: np.ndarray | None) -> Generator[None, None, None]:
        """Factor, and begin at z = e, u = Q^-1 e; or at the z that optimal coefficients with margins `begun` have."""
        yield from self.system.setup()
        yield from self.system.factor(self.curvature)
        q, s, nu = self.terms
        self.z[:] = q[:, None]
        if begun is not None:
            np.maximum(self.z, np.multiply.outer(s, begun), out=self.z)
        self.flow = self.system.adjoint(self.column.y * self.column.counts * ((s * nu) @ self.z))
        yield from self.advance()

    def advance(self) -> Generator[None, None, None]:
        """Go to u = Q^-1 z, with the primal point that belongs to it, and make the next z: one pass over the rows."""
        self.element = self.system.solve(self.flow)
        yield
        sums, y, counts = np.zeros(3), self.column.y, self.column.counts

        squares = 0.0

        def change(rows: slice, f: np.ndarray) -> np.ndarray:
            nonlocal sums, squares
            if isinstance(self.system, GramSystem):
                squares += float(self.element[rows] @ f)
            z, u = self.z[:, rows], self.u[:, rows]
            sums += compiled.advance(y[rows], counts[rows], self.terms, self.alpha, z, u, f)
            return f

        self.flow = yield from self.system.through(self.element, change)
        if isinstance(self.system, RowSystem):
            squares = self.form.norm(*self.system.split(self.element))
        self.objective = 0.5 * squares + float(sums[0])
        self.step, self.shift = math.sqrt(sums[1]), math.sqrt(sums[2])

    def multipliers(self, beta: np.ndarray, signed: np.ndarray) -> Generator[None, None, None]:
        """Write multipliers of all copies of a row, cut off at 0, and the signed ones as they are, times y."""
        for rows in steps(signed.shape[0], ROWS_PER_CALL // len(self.column.terms)):
            y, counts = self.column.y[rows], self.column.counts[rows]
            compiled.multipliers(y, counts, self.terms, self.u[:, rows], beta[:, rows], signed[rows])
            yield
