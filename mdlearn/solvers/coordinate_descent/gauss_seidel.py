"""Gauss-Seidel sweeps over the coefficients of a quadratic: coordinate descent of the ULDM paper.

The optimum solves A w = g with A the ridge plus the variance of the signed columns. A step on coefficient j is
r_j / A_jj, after which r loses the step times column j; a sweep visits all of them in a random order. (Abe, ULDM,
Pattern Recognition Letters 98, 2017, after eq. (32).) It is slow where the ridge is small beside A: the error falls by
about a share of ridge / largest eigenvalue per sweep.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import solve_triangular

from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.base import Steps
from mdlearn.solvers.common.primal_dual import PrimalDual, primal_dual_report
from mdlearn.solvers.common.warm_start import warm_start_element
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.system_choice import prefers_row_system

BLOCK_COEFFICIENTS = 256
"""Coefficients visited by one triangular solve, which is what consecutive steps are."""
SWEEPS_PER_REPORT = 50
"""Most sweeps between two reports: a report costs a pass over the rows."""
ROUNDING_OF_SLOPES = 1e-16


def suits_gauss_seidel(form: MarginForm) -> bool:
    """Whether Gauss-Seidel sweeps take a form: it has no loss, and explicit columns of which a matrix can be made."""
    return not any(one.terms for one in form.columns) and form.ridge > 0 and prefers_row_system(form)


def gauss_seidel_descent(form: MarginForm, column: Column, rng: np.random.Generator) -> Steps:
    """Yield a report after 1, 1, 2, ... sweeps, at most SWEEPS_PER_REPORT at once; end when nothing moves any more."""
    system = RowSystem(form, column)
    yield from system.setup()
    state = PrimalDual(form, column, system)
    nothing = np.zeros((0, column.y.shape[0]))
    A, g = system.Q, system.adjoint(state.multipliers(nothing))
    w = warm_start_element(state)
    done = 0
    while True:
        r, before = g - A @ w, w.copy()  # afresh, against drift
        for _ in range(min(max(done, 1), SWEEPS_PER_REPORT)):
            yield from _gauss_seidel_sweep(A, w, r, rng.permutation(w.shape[0]))
            done += 1
        yield primal_dual_report(state, w.copy(), nothing, state.margins(w))
        if np.abs(w - before).max() <= ROUNDING_OF_SLOPES * np.abs(w).max():
            return


def _gauss_seidel_sweep(A: np.ndarray, w: np.ndarray, r: np.ndarray, order: np.ndarray) -> Generator[None, None, None]:
    """Visit every coefficient of a quadratic once; steps of a piece solve with its lower triangle."""
    for k in range(0, order.shape[0], BLOCK_COEFFICIENTS):
        piece = order[k : k + BLOCK_COEFFICIENTS]
        rows = A[piece]
        step = solve_triangular(rows[:, piece], r[piece], lower=True, check_finite=False)
        w[piece] += step
        r -= step @ rows
        yield
