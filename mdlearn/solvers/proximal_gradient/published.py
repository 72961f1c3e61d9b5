"""Algorithm 1 of the MDLM paper as printed, with its misprints corrected and its line search kept from exploding."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.composite import Composite
from mdlearn.solvers.base import Steps
from mdlearn.solvers.proximal_gradient.fista import Accelerated

ROUNDING_OF_VALUES = 1e-10
"""Difference of two values, in units of the larger one and that at W = 0, that counts as rounding."""


def paper(problem: Composite, l0: float, sigma: float) -> Steps:
    """Yield a report per iteration.

    Near the optimum the test of the line search is below rounding, and l would grow without end: from the Lipschitz
    constant on, where the test holds in exact arithmetic, it is taken to hold but for rounding. A given loss can bend
    more than that far out; then l grows on.
    """
    bounds = Accelerated(problem)
    yield from bounds.begin()
    cap = problem.lipschitz()
    W = before = np.zeros(problem.shape)
    mu, l, i = 1.0, l0, 0
    while True:
        i += 1
        mu, last = 2.0 / (i + 3.0), mu
        look = problem.at(W + (1.0 - last) * mu / last * (W - before))
        gradient, value = problem.slope(look), problem.smooth(look)
        yield None
        while True:
            found = problem.at(problem.prox(look.W - gradient / l, 1.0 / l))
            yield None
            step = found.W - look.W
            model = value + float((step * gradient).sum()) + 0.5 * l * float((step * step).sum())
            miss = problem.smooth(found) - model
            if miss <= (ROUNDING_OF_VALUES * (abs(value) + abs(problem.at_zero)) if l >= cap else 0.0):
                break
            l = min(sigma * l, cap) if l < cap else sigma * l
        W, before = found.W, W
        yield bounds.report(found)
