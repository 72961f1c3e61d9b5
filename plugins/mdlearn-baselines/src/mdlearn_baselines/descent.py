"""An engine for sums of costs over the unit sphere: descent by truncated Newton steps."""

import math
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Report
from mdlearn_baselines.sphere import SphereForm, SpherePoint

WIDTHS = 10.0 ** -np.arange(1.0, 14.0)
"""Half the widths over which a convex kink is rounded while descending."""
SETTLED = 0.01
"""Length of the gradient, in units of width and objective, that is small enough for a width."""
CG_STEPS = 200
MOST_PINNED = 500
"""Rows on the kink up to which they are held there."""
PINNED_STEPS = 30


class Sphere(mdlearn.Solver):
    """Descent on the unit sphere by truncated Newton steps (``solver="sphere"``).

    Conjugate gradients solve for the step within the tangent plane and stop at negative curvature; the step is then cut
    until the cost falls enough. A convex kink is rounded, ever less; from every width, rows that lie on it are held
    there and the others go on, which is exact as soon as these rows are the right ones.
    """

    name = "sphere"
    purpose = "exponential costs of margins over the unit sphere: descent by truncated Newton steps"
    options: ClassVar = {}

    def refusal(self, form):
        """Only its own kind of form."""
        return None if isinstance(form, SphereForm) else "it needs a sum of costs over the unit sphere"

    def prepare(self, form, options):
        """Nothing is shared."""
        return None
        yield  # what makes this a generator

    def iterate(self, form, problem, shared, options, rng):
        """Yield a report per step, until no step lowers the cost and none shortens the gradient."""
        v = problem.start().v
        if problem.cost.a >= problem.cost.b:
            yield from _descend(problem, v, 0.0)
            return
        for width in WIDTHS:
            v = yield from _descend(problem, v, width)
            yield from _pinned(problem, v, width)


def _report(problem, point):
    view = problem.view(point)
    lower, residual = problem.left_open(point.v, view)
    return Report(view.objective, lower, point, residual)


def _descend(problem, v, width):
    """Descend as far as it goes, or with a width as far as is of use; return the direction."""
    polishing = False
    while True:
        t = problem.scores(v)
        s = problem.cost.slope(t, width)
        yield _report(problem, SpherePoint(v, s if width else None))
        G = problem.adjoint(problem.counts * s)
        value, here = problem.value(t, width), _tangent(G, v)
        if here <= SETTLED * width * value:
            return v
        bend = problem.counts * problem.cost.curvature(t, width)
        p = yield from _step(problem, v, G, bend, value)
        ahead = None if polishing else _along(problem, v, t, p, float(G @ p), width)
        if ahead is None:
            if width:
                return v
            # Values no longer tell better from worse; gradients do for some more steps.
            polishing, ahead = True, _unit(v + p)
            s = problem.cost.slope(problem.scores(ahead))
            if not _tangent(problem.adjoint(problem.counts * s), ahead) < 0.5 * here:
                return v
        v = ahead


def _pinned(problem, v, width):
    """Hold the rows near the kink on it, and take Newton steps without them; report where that leads."""
    t = problem.scores(v)
    held = np.flatnonzero(np.abs(t) <= width)
    if held.shape[0] > min(v.shape[0] - 1, MOST_PINNED):
        return
    N = problem.signed(held)
    U, sizes, _ = np.linalg.svd(N.T, full_matrices=False)
    basis = U[:, sizes > 1e-12 * sizes.max(initial=0.0)]
    counts = problem.counts.copy()
    counts[held] = 0.0
    last = math.inf
    for _ in range(PINNED_STEPS):
        v = _unit(v - basis @ (basis.T @ v))
        t = problem.scores(v)
        s = problem.cost.slope(t)
        G = problem.adjoint(counts * s)
        rest = G - (G @ v) * v
        here = float(np.linalg.norm(rest - basis @ (basis.T @ rest)))
        if held.size:
            s[held] = _multipliers(N, -rest, problem.cost, problem.counts[held])
        yield _report(problem, SpherePoint(v, s))
        if not here < 0.9 * last:
            return
        p = yield from _step(problem, v, G, counts * problem.cost.curvature(t), problem.at_zero, basis)
        v, last = _unit(v + p), here


def _multipliers(N, target, cost, counts):
    """Slopes in [-b, -a] of held rows whose part of the gradient comes nearest to `target`."""
    from scipy.optimize import lsq_linear

    scaled = N.T * counts
    s = np.linalg.lstsq(scaled, target, rcond=None)[0]
    if (s < -cost.b).any() or (s > -cost.a).any():
        s = lsq_linear(scaled, target, bounds=(-cost.b, -cost.a), method="bvls").x
    return np.clip(s, -cost.b, -cost.a)


def _unit(v):
    return v / np.linalg.norm(v)


def _tangent(G, v):
    """Length of a gradient along the sphere."""
    return float(np.linalg.norm(G - (G @ v) * v))


def _step(problem, v, G, bend, value, basis=None):
    """Solve Hessian p = -gradient in the tangent plane (orthogonal to `basis`) by conjugate gradients, truncated."""

    def within(u):
        u = u - (u @ v) * v
        return u if basis is None else u - basis @ (basis.T @ u)

    radial, r = float(G @ v), within(-G)
    p, d, rr = np.zeros_like(r), r.copy(), float(r @ r)
    enough = rr * min(0.01, math.sqrt(rr) / (value + abs(radial)))
    for k in range(min(CG_STEPS, 2 * r.shape[0])):
        if rr <= enough:
            break
        H = within(problem.adjoint(bend * problem.scores(d)) - radial * d)
        bent = float(d @ H)
        if bent <= 0:
            p = d if k == 0 else p
            break
        p = p + rr / bent * d
        r = r - rr / bent * H
        last, rr = rr, float(r @ r)
        d = r + rr / last * d
        yield None
    return p / max(1.0, float(np.linalg.norm(p)))


def _along(problem, v, t, p, slope, width):
    """The first of (v + h p) / |v + h p|, h = 1, 1/2, ..., that lowers the cost enough; None: there is none."""
    if not slope < 0:
        return None
    S, square, start, h = problem.scores(p), float(p @ p), problem.value(t, width), 1.0
    while h > 1e-10:
        ahead = (t + h * S) / math.sqrt(1.0 + h * h * square)
        if problem.value(ahead, width) < start + 1e-4 * h * slope:
            return _unit(v + h * p)
        h *= 0.5
    return None
