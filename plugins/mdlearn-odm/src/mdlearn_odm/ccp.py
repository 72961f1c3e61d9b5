"""The convex-concave procedure: a sequence of convex problems, each touching the objective at the last point.

Where margins beyond the band have a price, the objective is the smallest, over all choices of one other class per row,
of convex functions that take those margins against the chosen classes. The choice of the runners-up at a point touches
the objective there. Its minimum is no higher, and so on. Steps solve such a problem until at least half of what it
could save is saved; so the sum of all that the problems could still save is finite, and tends to 0.

Each is solved by the method of multipliers on the lags f_l - f_y: its functions are smooth, made of quadratic pieces,
and minimised by Newton steps.
"""

from dataclasses import replace

import numpy as np

from mdlearn.extend import Report, Solver, memory

from .coordinates import MATRIX, NARROW, Coordinates, by_rows
from .joint import JointMargins, JointPoint
from .ties import Newton, Ties

LOOSE = 0.01
"""Gap, relative to the objective, to which the problem without a price beyond the band is solved first."""
HALF = 0.5
"""Largest share of what a step saved that its problem may still leave open."""
LEVEL = 1e-14
"""Relative difference of two objective values that rounding makes."""
NOTHING = 1e-17
"""Gap, relative to the objective, that no step makes better."""
PATIENCE = 4
"""Steps that leave the gap as it is, after which rounding is taken to be reached."""
FINE = 0.01
"""Share of the gap to which one step of the method of multipliers is exact."""
MOST_LOOSE = 30
"""Most steps on that first problem."""
TURNS = 3
"""Changes of runners-up, one after the other, that save nothing."""
FIRST, GROWTH, MOST = 1.0, 3.0, 1e8
"""Stiffness of the ties between classes: at first, its growth after easy steps that saved little, and at most."""
EASY, SLOW = 4, 0.1
"""Newton steps of an easy step, and the share of the gap that is left when it saved little."""


class CCP(Solver):
    """Convex-concave procedure for mcODM (``solver="ccp"``)."""

    name = "ccp"
    purpose = "mcODM of three or more classes: a sequence of convex problems"
    default_max_iter = 2000

    def refusal(self, form):
        """It knows one form."""
        return None if isinstance(form, JointMargins) else "it knows the joint problem of objective 'mcodm' only"

    def check_memory(self, form, at_once=1):
        """Ask for arrays of decision values, and for the matrices of linear systems."""
        m, k, rows = form.features.n_rows, form.k, by_rows(form.features)
        p = (form.features.width if rows else m) + 1
        matrices = 3 * (k * p) ** 2 if k * p <= MATRIX else 3 * min(p, NARROW) ** 2
        size = 8.0 * (20 * m * k + matrices + (0 if rows else 3 * m * m))
        memory.require(size, f"solver {self.name!r} on {m} rows and {k} classes", "use fewer rows or columns")

    def prepare(self, form, options):
        """Make the rows that Newton steps work on."""
        return (yield from Coordinates.made(form))

    def iterate(self, form, part, shared, options, rng):
        """Yield a report per step of the method of multipliers."""
        return Descent(form, shared).steps()


class Descent:
    """Where the procedure is: coefficients V (p, k), decision values F (m, k), multipliers."""

    def __init__(self, form, space):
        self.form, self.losses, self.space = form, form.losses, space
        self.V = np.zeros((space.ridge.shape[0], form.k))
        self.F = np.zeros((form.features.n_rows, form.k))
        self.multipliers, self.stiffness, self.growing = self.losses.natural(self.F), FIRST, False

    def steps(self):
        """Yield reports; end when rounding allows no better point."""
        yield self.report()
        if not self.losses.a.any():
            return
        if not self.losses.convex:
            yield from self._loosely()
        value = self.objective()
        runner, best, since, turns = self.losses.runners(self.F), np.inf, 0, 0
        while True:
            gap = yield from self._improve(Ties(self.losses, runner, self.losses.b))
            yield self.report()
            now = self.objective()
            better = gap < 0.5 * best and best > NOTHING * now
            since, best = (0, gap) if better or self.growing else (since + 1, best)
            saved = now < value - LEVEL * abs(value) and gap <= HALF * (value - now)
            if not saved and since < PATIENCE:
                continue
            # A point that leaves its own problem nothing to save may have other runners-up, as good or better.
            turns = 0 if saved else turns + 1
            if not saved and (turns > TURNS or not self._turned(runner)):
                return
            value, runner, best, since = now, self.losses.runners(self.F), np.inf, 0

    def _turned(self, runner):
        """Whether a margin that has a price beyond the band has another runner-up than this."""
        own = self.losses.runners(self.F)
        beyond = (self.losses.b > 0) & (self.losses.lead(self.F, own) > self.losses.high)
        return bool((beyond & (own != runner)).any())

    def _loosely(self):
        """Solve the convex problem without a price beyond the band, roughly: a good place to begin."""
        free = np.zeros_like(self.losses.b)
        for _ in range(MOST_LOOSE):
            gap = yield from self._improve(Ties(self.losses, self.losses.runners(self.F), free))
            yield self.report()
            if gap <= LOOSE * self.objective():
                return

    def _improve(self, ties):
        """Take one step of the method of multipliers; return the gap of its convex problem."""
        self.multipliers = replace(self.multipliers, runner=ties.runner, beyond=ties.beyond(self.F))
        before = self.open(self.multipliers, ties.price)
        newton = Newton(self.space, ties, self.multipliers.short, self.stiffness)
        self.V, self.F, self.multipliers = yield from newton.minimise(self.V, self.F, FINE * before)
        gap = self.open(replace(self.multipliers, beyond=ties.beyond(self.F)), ties.price)
        self.growing = newton.taken <= EASY and gap > max(SLOW * before, NOTHING * self.objective())
        self.growing = self.growing and self.stiffness < MOST
        if self.growing:
            self.stiffness *= GROWTH
        return gap

    def objective(self):
        """The full objective."""
        return 0.5 * float((self.space.ridge @ np.square(self.V)).sum()) + self.losses.value(self.F)

    def open(self, multipliers, price):
        """Gap, at the current point, of the convex problem that multipliers belong to."""
        if self.form.bias == "free":
            multipliers = self.losses.balanced(multipliers)
        ridge = self.space.ridge[:, None]
        # Free intercepts have balanced multipliers: what is left of their slope is rounding.
        G = ridge * (self.V - self.space.adjoint(self.losses.alpha(multipliers)))
        return 0.5 * float(np.square(G).sum()) + self.losses.missed(self.F, multipliers, price)

    def report(self):
        """Objective, bound or residual, and point."""
        multipliers = self.losses.against_runners(self.F, self.multipliers)
        objective = self.objective()
        lower, residual = self.form.proof(self.open(multipliers, self.losses.b), objective)
        W, b = self.space.held(self.V)
        return Report(objective, lower, JointPoint(W, b, multipliers), residual)
