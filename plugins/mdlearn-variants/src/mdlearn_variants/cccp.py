"""Engine of problems that convex ones touch: the concave-convex procedure over problems that any engine solves."""

import math
from typing import ClassVar

import mdlearn
from mdlearn.extend import Report, solve_inner

from .touched import TouchedForm, TouchedPoint

FIRST_INNER_TOL = 1e-10
"""Relative gap of the first convex problem: where the way goes must not hang on it. Later ones follow the residual."""
LAST_INNER_TOL = 1e-14
"""Smallest relative gap that is asked of a convex problem."""
INNER_SHARE = 0.05
"""Share of the last residual that a convex problem may leave open."""


class CCCP(mdlearn.Solver):
    """Concave-convex procedure (``solver="cccp"``): convex problems in turn, each solved by any engine.

    Each of them touches the objective at the solution of the last one and lies above it elsewhere, so the
    objective falls, but for what the inner gaps leave open. These gaps follow the residual.
    """

    name = "cccp"
    purpose = "ramp losses and unknown labels, by convex problems in turn"
    options: ClassVar = {"inner": "auto"}

    def refusal(self, form):
        """Take only the problems of this package that convex ones touch."""
        return None if isinstance(form, TouchedForm) else "it takes ramp losses and unknown labels alone"

    def iterate(self, form, problem, shared, options, rng):
        """Yield a report for the solution of every convex problem, judged by the next one."""
        z, last, tol = problem.margins_at_start(), None, FIRST_INNER_TOL
        smallest = False
        while True:
            inner, lacking = problem.convexified(z, math.sqrt(tol))  # coefficients are as far off as that
            found = yield from solve_inner(inner, tol=tol, solver=options["inner"], start=last)
            if last is not None:
                objective, _ = problem.look(last)
                residual = max(objective - (found.certificate.lower_bound + lacking), 0.0)
                yield Report(objective, -math.inf, TouchedPoint(last, objective, residual), residual)
                if smallest and problem.look(found)[0] >= objective:
                    return
                scale = max(abs(found.certificate.objective), problem.at_zero)
                tol = min(tol, max(LAST_INNER_TOL, INNER_SHARE * residual / scale)) if scale > 0 else LAST_INNER_TOL
                smallest = tol == LAST_INNER_TOL
            last, (_, z) = found, problem.look(found)
