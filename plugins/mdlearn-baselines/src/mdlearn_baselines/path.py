"""An engine for hinge losses of latent scores: Newton steps on the problem with ever less rounded corners."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import Report, memory
from mdlearn_baselines.latent import LatentProblem, Smoothed

WIDEST, LESS = 0.3, 0.25
"""First width of rounded corners, and the factor from one to the next."""
PATIENCE = 3
"""Widths in a row without a smaller residual after which rounding is held to allow no better."""
ENOUGH, SHORT = 1e-3, 3e-2
"""What a Newton step, and what |gradient|^2 / (2 lam) may promise, in widths, when the next width begins."""
STEPS = 300
"""Newton steps at one width."""
DENSE_WIDTH, DENSE_WORK = 1500, 1e9
"""Coefficients, and multiplications, up to which second derivatives are written out."""
CG_STEPS = 300


class Latent(mdlearn.Solver):
    """Newton steps on smoothed problems (``solver="latent"``): W and the beta_i of the own class move together.

    Where the second derivatives are not positive, those of the convex problem that lies above take their place. They
    are written out while that is cheap; else conjugate gradients solve for the step.
    """

    name = "latent"
    purpose = "hinge losses of latent scores: Newton steps on ever less rounded corners"
    options: ClassVar = {}

    def refusal(self, form):
        """Only its own kind of problem."""
        return None if isinstance(form, LatentProblem) else "it needs the hinge loss of latent scores"

    def check_memory(self, form, at_once=1):
        """Ask for some arrays of latent values."""
        m, n = form.codes.shape[0], form.place.k * form.place.r
        memory.require(100.0 * m * n, f"values of {n} latent functions of {m} rows", "lower n_latent", at_once)

    def prepare(self, form, options):
        """Nothing is shared."""
        return None
        yield  # what makes this a generator

    def iterate(self, form, problem, shared, options, rng):
        """Yield a report per width, until corners are as sharp as rounding allows."""
        look, best, worse, last = Smoothed.at(problem, problem.start().W, WIDEST), np.inf, 0, None
        while worse < PATIENCE:
            look = yield from _settled(look)
            ends = [(*problem.judged(point), point) for point in _ends(look, last)]
            objective, residual, point = min(ends, key=lambda end: end[1])
            worse = 0 if residual < best else worse + 1
            if not worse:
                best = residual
                yield Report(objective, -np.inf, point, residual)
            last, look = look.W, _sharper(look, last)


def _ends(look, last):
    """Points that a look stands for: its own, and where W goes as the width goes to 0, with the same multipliers."""
    yield look.point()
    if last is not None:
        yield replace(look.point(), W=look.W + LESS / (1.0 - LESS) * (look.W - last))


def _sharper(look, last):
    """Look with a smaller width: where W leads that moved in proportion to the width, if that is better."""
    problem, tau = look.problem, LESS * look.tau
    same = Smoothed.at(problem, look.W, tau)
    if last is None:
        return same
    ahead = Smoothed.at(problem, look.W + LESS * (look.W - last), tau)
    return min(same, ahead, key=lambda one: np.linalg.norm(one.gradient()))


def _settled(look):
    """Descend at one width as far as is of use."""
    lam, tau = look.problem.lam, look.tau
    for _ in range(STEPS):
        yield None
        G = look.gradient()
        step = yield from _step(look, G)
        promised, length = -float(np.vdot(G, step)), float(np.vdot(G, G)) / (2.0 * lam)
        if promised <= ENOUGH * tau and length <= SHORT * tau:
            break
        ahead = _along(look, step, promised)
        if ahead is None:
            # Values no longer tell better from worse; gradients do for some more steps.
            ahead = Smoothed.at(look.problem, look.W + step, tau)
            if not np.linalg.norm(ahead.gradient()) < 0.5 * np.linalg.norm(G):
                break
        look = ahead
    return look


def _step(look, G):
    """Newton's step."""
    m, n, D = look.Z.shape[0], look.W[0].size, look.W.shape[0]
    if n * D > DENSE_WIDTH or float(m) * (n * D) ** 2 > DENSE_WORK:
        return (yield from _conjugate(look, G))
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    for whole in (True, False):
        H = yield from _matrix(look, whole)
        try:
            return -cho_solve(cho_factor(H, lower=True), G.ravel()).reshape(G.shape)
        except LinAlgError:
            continue
    # By rounding alone, with a tiny lam.
    return (yield from _conjugate(look, G))


def _matrix(look, whole):
    """Second derivatives by W (D, k, r), written out."""
    problem, bend = look.problem, look.bend(whole)
    X = problem.features.rows.block(slice(None))
    if problem.place.offset:
        X = np.column_stack([X, np.full(X.shape[0], problem.place.offset)])
    m, D = X.shape
    n = look.W[0].size
    H = np.empty((D, n, D, n))
    P = np.zeros((m, n))
    for a in range(n):
        P[:, a] = 1.0
        Q = bend(P.reshape(look.Z.shape)).reshape(m, n)
        P[:, a] = 0.0
        # H[:, b, :, a] = X' diag(Q_b) X
        H[:, :, :, a] = (X.T @ (Q[:, :, None] * X[:, None, :]).reshape(m, n * D)).reshape(D, n, D)
        yield None
    H = H.reshape(D * n, D * n)
    H[np.diag_indices(D * n)] += problem.lam
    return H


def _conjugate(look, G):
    """Newton's step by conjugate gradients, cut short where it is not worth more or bends the wrong way."""
    problem, bend = look.problem, look.bend(True)
    p, r = np.zeros_like(G), -G
    d, rr = r.copy(), float(np.vdot(G, G))
    enough = rr * 1e-4
    for k in range(CG_STEPS):
        if rr <= enough:
            break
        H = problem.adjoint(bend(problem.values_of(d))) + problem.lam * d
        bent = float(np.vdot(d, H))
        if bent <= 0:
            p = d / problem.lam if k == 0 else p
            break
        p = p + rr / bent * d
        r = r - rr / bent * H
        last, rr = rr, float(np.vdot(r, r))
        d = r + rr / last * d
        yield None
    return p


def _along(look, step, promised):
    """The first look at W + t step, t = 1, 1/2, ..., that lowers the value enough; None: there is none."""
    if not promised > 0:
        return None
    problem, t = look.problem, 1.0
    S = problem.values_of(step)
    while t > 1e-8:
        ahead = Smoothed.at(problem, look.W + t * step, look.tau, look.Z + t * S)
        if ahead.value < look.value - 1e-4 * t * promised:
            return ahead
        t *= 0.5
    return None
