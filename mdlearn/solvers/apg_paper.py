"""Algorithm 1 of the MDLM paper as printed, with its misprints corrected and its line search kept from exploding."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.composite import Composite
from mdlearn.solvers.apg_fista import Accelerated
from mdlearn.solvers.base import Steps


def paper(problem: Composite, l0: float, sigma: float) -> Steps:
    """Yield a report per iteration.

    Near the optimum the test of the line search is below rounding, and l would grow without end: it stops at the
    Lipschitz constant, where the test holds in exact arithmetic.
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
            if l >= cap or problem.smooth(found) <= model:
                break
            l = min(sigma * l, cap)
        W, before = found.W, W
        yield bounds.report(found)
