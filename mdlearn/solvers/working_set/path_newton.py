"""Newton steps along a path: from a neighbouring problem's solution, on the free rows of the whole dual.

A neighbour tells all but a few of the rows at their bounds, so one or two systems of the free rows are all it takes.
Every step ends where the dual is highest along it, within the boxes; so none of them loses anything.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import lapack

import mdlearn._solvers.bounded_quadratic as kernels
from mdlearn.forms.proof import Start
from mdlearn.solvers.common.warm_start import margins_of_start, start_multipliers
from mdlearn.solvers.dual_hessian.hessian import BRIEF, ColumnHessian, SupportGram
from mdlearn.solvers.working_set.block_ascent import WorkingSetAscent

MOST_NEWTON_STEPS = 8
"""Newton steps after which working sets take over."""
LEAST_LEAVING_ROWS, LEAVING_SHARE = 20, 0.5
"""Rows, and share of the free ones, that may leave their bounds in one step."""
PATH_VIOLATION = 1e-6
"""Violation, in units of margins, at which a point of a path is found, and up to which rows are on their kinks."""
FREED = 2.0
"""Free rows, in units of those that margins tell, beyond which a start is not taken between two guesses."""
DIAGONAL_SHIFT = 1e-13
"""What is added to the diagonal, relative to its largest entry."""


def path_newton_start(work: WorkingSetAscent, hessian: ColumnHessian | SupportGram) -> Generator[None, None, bool]:
    """Take Newton steps from a neighbour's solution on a path, if better than zeros; return whether it was."""
    start = work.column.start
    if start is None:
        return False
    u = _neighbour_multipliers(work, hessian, start)
    e = work.gradient(hessian.hessian(u + work.pull), u)
    first = work.target - hessian.pulled(work.pull)
    # The dual value less that of zeros, twice.
    if not float(u @ (e + first)) > 0:
        return False
    if u.shape[0] > BRIEF:
        yield
    work.u = u
    if work.paired or isinstance(hessian, SupportGram):
        work.balance()
        e = work.gradient(hessian.hessian(work.u + work.pull), work.u)
        yield from work.improve(e - work.shift(e))
        return True
    e = yield from _path_newton(work, hessian, e)
    if float(work.violation(e).max()) > PATH_VIOLATION * work.scale:
        yield from work.improve(e)
    else:
        work.known = e
    return True


def _neighbour_multipliers(work: WorkingSetAscent, hessian: ColumnHessian | SupportGram, start: Start) -> np.ndarray:
    """Signed multipliers of a path's Newton start: as they are if the boxes are the same, else the best of two guesses.

    Not where that frees many more rows than margins tell: in larger boxes, all those that were at their caps. Such a
    working set is far from the solution's, and of smooth kernels close to singular.
    """
    column = work.column
    beta = start.beta
    if beta.shape == column.caps.shape and (beta == column.caps).any() and (beta <= column.caps).all():
        return np.asarray(work.signs * beta[0])
    low, high = start_multipliers(column, start, margins_of_start(work.form, column, start))
    first, told = work.signs * low[0], np.asarray(work.signs * high[0])
    move = told - first
    if not move.any():
        return first
    bend = float(move @ (hessian.hessian(move) + work.soft * move))
    slope = float(work.gradient(hessian.hessian(first + work.pull), first) @ move)
    length = float(np.clip(slope / bend, 0.0, 1.0)) if bend > 0 else 0.0
    between = np.clip(first + length * move, work.low, work.high)
    return between if work.free(between) <= FREED * work.free(told) else told


def _path_newton(work: WorkingSetAscent, hessian: ColumnHessian, e: np.ndarray) -> Generator[None, None, np.ndarray]:
    """Take Newton steps on the free rows of a path's problem from the gradient e; return the gradient at the end."""
    m, fine = e.shape[0], PATH_VIOLATION * work.scale
    box, border, omega = (work.soft, work.low, work.high), hessian.border, hessian.omega
    e, work.u = e.copy(), work.u.copy()
    face = kernels.Face(hessian.R, border, omega, *box, work.u, e, np.empty(m, dtype=np.int64), np.empty((2, m)))
    for _ in range(MOST_NEWTON_STEPS):
        n = kernels.rows(face)
        if face.worst <= fine:
            break
        if face.entering > max(LEAST_LEAVING_ROWS, LEAVING_SHARE * face.free):
            break  # most of them will turn round once the worst are settled
        A, sides = np.empty((n, n)), np.empty((2, n))
        kernels.system(face, A, sides, DIAGONAL_SHIFT)
        if m > BRIEF:
            yield
        L, info = lapack.dpotrf(A.T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            break
        solved = lapack.dpotrs(L, sides.T, lower=0, overwrite_b=1)[0].T
        if not kernels.step(face, solved):
            break
        if m > BRIEF:
            yield
    return e
