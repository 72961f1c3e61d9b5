"""Crossover, the end of a linear program: the simplex method on what a central path leaves undecided."""

from __future__ import annotations

from functools import partial

import numpy as np

from mdlearn.solvers.base import Steps
from mdlearn.solvers.common.highs_thread import SMALLEST_COLUMN, STATUS_SOLVED, highs, run_highs_in_thread
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report
from mdlearn.solvers.systems.row_and_gram import RowSystem

UNDECIDED_PER_COLUMN, UNDECIDED_LEAST = 2.5, 50
"""Multipliers of the first program, of margins nearest to a kink: so many for each column, and some more."""
MOST_PROGRAMS = 8
"""Programs until the others are decided, or never will be."""
ON_A_KINK = 1e-9
"""Distance of a margin from a kink that is rounding."""


def crossover(state: PrimalDual, z: np.ndarray) -> Steps:
    """Yield reports of a crossover, one per program: multipliers far from a kink stay, those past their bound join.

    Where a path comes to its end some thousandths above the optimum, it knows nearly all rows. All of them together
    would be several times the price.
    """
    column, system = state.column, state.system
    assert isinstance(system, RowSystem)
    # Rows less their median, where a bias makes up for it: far from the origin they would cost digits.
    centre = np.zeros(system.size)
    if system.bias:
        centre[:-1] = np.median(state.form.features.rows.matrix(), axis=0)
    caps, sides, used = column.caps, column.sides, column.caps > 0
    kinks, unit = np.broadcast_to(column.kinks, caps.shape), float(caps.max())
    slopes = state.slopes(z)
    away = np.where(used, np.abs(slopes), np.inf).ravel()
    few = min(int(UNDECIDED_PER_COLUMN * system.size) + UNDECIDED_LEAST, int(used.sum()) - 1)
    undecided = used & (np.abs(slopes) <= np.partition(away, few)[few])
    beta = np.where(used & (slopes < 0), caps, 0.0)
    for _ in range(MOST_PROGRAMS):
        t, i = np.nonzero(undecided)
        beta[undecided] = 0.0
        rows = (sides[t] * column.y[i])[:, None] * (system.rows(i) - centre)
        sizes = np.abs(rows).max(axis=0)
        sizes[sizes < SMALLEST_COLUMN] = 1.0
        held = system.adjoint(column.y * (sides @ beta))
        rhs = -(held - centre * held[-1]) / (sizes * unit)
        bounds = np.column_stack([np.zeros(t.shape[0]), caps[t, i] / unit])
        if not (np.isfinite(rhs).all() and np.isfinite(rows).all()):
            return
        program = -sides[t] * kinks[t, i], (rows / sizes).T, rhs, bounds
        found = yield from run_highs_in_thread(partial(highs, "highs-ds", *program))
        if found.status != STATUS_SOLVED:
            return
        beta[t, i] = np.clip(unit * found.x, 0.0, caps[t, i])
        element = -found.eqlin.marginals / sizes
        element[-1] -= float(centre @ element)
        z = state.margins(element)
        yield primal_dual_report(state, element, beta, z)
        slopes = state.slopes(z)
        wrong = used & ~undecided & np.where(beta > 0, slopes > ON_A_KINK, slopes < -ON_A_KINK)
        if not wrong.any():
            return
        undecided |= wrong
