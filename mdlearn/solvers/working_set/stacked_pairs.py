"""Greedy steps on a stack of pairs of classes: each from 0 to its gap, many of them in one compiled call."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn._solvers import class_pairs
from mdlearn.forms.joint.pair_stack import PairPoint, PairStack
from mdlearn.solvers.base import Report
from mdlearn.solvers.working_set.block_ascent import ENTRIES_PER_CALL
from mdlearn.solvers.working_set.working_set_ascent import GREEDY_ROWS

STACKED_TOL, STACKED_STIFFNESS = 1e-10, 100.0
"""Gap from which, and largest bound of a multiplier times k(x, x) up to which, greedy steps alone solve pairs: beyond,
rounding may show in their values, or steps crawl. At gaps of 1e-3 and 1e-6 pairs of vehicle took 0.7 and 1 of the time
with a bound of 100, 1.5 and 2.2 with 300."""
PAIR_VIOLATION_SHARES = tuple(2.0**-k for k in range(-4, 7))
"""Violations at which a pair's gap is asked for, in units of the gap that is to be met."""


def suits_stacked_pairs(stack: PairStack, tol: float) -> bool:
    """Whether greedy steps alone lead all pairs of a stack to a gap."""
    return tol >= STACKED_TOL and stack.longest <= GREEDY_ROWS and stack.stiffness <= STACKED_STIFFNESS


def ascend_stacked_pairs(stack: PairStack, tol: float) -> Generator[Report | None, None, None]:
    """Yield a report of the pairs that every call has solved."""
    levels, u = np.array(PAIR_VIOLATION_SHARES) * (tol * stack.scale), np.zeros(stack.starts[-1])
    first = 0
    while first < len(stack):
        stop = class_pairs.ascend(stack.pairs, u, levels, tol, first, ENTRIES_PER_CALL)
        point = PairPoint(first, stop, u[stack.starts[first] : stack.starts[stop]])
        yield Report(np.inf, -np.inf, point)  # values are a matter of the certificate of each pair
        first = stop
