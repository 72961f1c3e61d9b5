"""Initialise working sets: which Hessian a kernel problem needs, and the first multipliers.

Along a path, these are Newton steps from a neighbouring problem's solution, on the free rows of the whole dual. A
neighbour tells all but a few of the rows at their bounds, so one or two systems of the free rows are all it takes.
Every step ends where the dual is highest along it, within the boxes; so none of them loses anything.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import lapack

import mdlearn._solvers.bounded_quadratic as kernels
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import Start
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.common.warm_start import margins_of_start, start_multipliers, warm_start_multipliers
from mdlearn.solvers.dual_hessian.cholesky_ordered import CholeskyOrderedHessian
from mdlearn.solvers.dual_hessian.free_bias import FreeBiasHessian
from mdlearn.solvers.dual_hessian.hessian import (
    BRIEF,
    ColumnHessian,
    DeflatedHessian,
    ExactHessian,
    GramMajorantHessian,
    SupportHessian,
)
from mdlearn.solvers.dual_hessian.variance_reduced import VarianceReducedGram, variance_reduced_gram
from mdlearn.solvers.working_set.block_ascent import BlockAscentDual, suits_block_ascent
from mdlearn.solvers.working_set.working_set_ascent import FIRST_VIOLATION, WorkingSetAscent

WHOLE_GRAM_ROWS = 1024
"""Rows up to which the whole Gram matrix, one block, costs next to nothing."""
BAND = 0.1
"""Distance from the kink, in units of margins, up to which a first look may be wrong."""
PLAIN = 500
"""Rows up to which the Hessian of all of them is cheaper than a choice."""
SAMPLING_STRIDE, LEAST_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 4, 200, 800
"""One row in SAMPLING_STRIDE, but no fewer than LEAST_SAMPLE_ROWS and no more than MOST_SAMPLE_ROWS."""
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
Initialised = Generator[None, None, WorkingSetAscent]


def can_initialise_without_gram(form: MarginForm) -> bool:
    """Whether to initialise working sets without the whole Gram matrix: rows of the support may do.

    They are known to all columns of a form and to all points of a path. Where they are half of all or more, those that
    are still missing cost no more than the matrix would.
    """
    features, m = form.features, form.features.n_rows
    if not isinstance(features, KernelFeatures) or not features.kernel.plain or m <= WHOLE_GRAM_ROWS:
        return False
    if features.whole or (features.concurrent and len(form.columns) > 1):
        return False
    return all(one.kappa == 0 and not one.pull.any() and suits_block_ascent(form, one) for one in form.columns)


def initialise_on_support(form: MarginForm, column: Column, constant: float) -> Initialised:
    """Initialise working sets with steps that compute the rows of the Gram matrix which they need, from a start."""
    assert isinstance(form.features, KernelFeatures)
    gram = SupportHessian(form.features, constant)
    work = WorkingSetAscent(form, column, gram)
    e = work.target.copy()
    if not gram.cached.compiled:  # steps that ask for rows in numbers begin best at 0, or close to the solution
        if not (yield from initialise_from_path(work, gram)):
            yield from work.over_rows(gram, e)
        return work
    if column.start is not None and column.start.beta.shape == column.caps.shape:
        work.u = work.signs * np.minimum(column.start.beta[0], column.caps[0])
        work.balance()
        near = work.gradient(gram.hessian(work.u), work.u)
        # Twice the dual value, less that of zeros.
        if float(work.u @ (near + e)) > 0:
            e = near
        else:
            work.u = np.zeros_like(work.u)
    yield from work.over_rows(gram, e)
    return work


def initial_column_on_rows(column: Column, rows: np.ndarray) -> Column:
    """Column of some rows with the weight of all, whose solution initialises working sets."""
    return column.take(rows, column.total / float(column.counts[rows].sum()))


def initial_gradient_from_sample(
    form: MarginForm, column: Column, constant: float, rng: np.random.Generator
) -> Generator[None, None, np.ndarray]:
    """Initial gradient of working sets, from the solution of a sample that has the weight of all rows.

    Returned is target minus decision value of every row, its own share of the decision value left out. Only the rows of
    the kernel matrix that the solution needs are computed.
    """
    features, m = form.features, column.y.shape[0]
    assert isinstance(features, KernelFeatures)
    n = min(m, max(LEAST_SAMPLE_ROWS, min(MOST_SAMPLE_ROWS, m // SAMPLING_STRIDE)))
    rows = np.sort(rng.choice(m, n, replace=False))
    part = initial_column_on_rows(column, rows)
    quadratic = BlockAscentDual(form, part)
    K = yield from features.corner(rows)
    hessian: ExactHessian | FreeBiasHessian | None = None
    H, border, omega = K, np.ones(rows.shape[0]), constant
    if part.kappa > 0:
        R = yield from variance_reduced_gram(K, constant, part.kappa, part.counts, 0.0)
        if R is not None:
            hessian = exact = ExactHessian(K, R, constant, part)
            H, border, omega = exact.R, exact.border, exact.omega
            if form.bias == "free":
                hessian = free = yield from FreeBiasHessian(exact, part).hold()
                H, border, omega = (yield from free.matrix()), free.border, free.omega
    e = quadratic.target - (H @ quadratic.pull + border * (omega * float(border @ quadratic.pull)))
    yield from quadratic.climb(H, slice(None), e, 0.3 * FIRST_VIOLATION * quadratic.scale, border, omega)
    q = quadratic.u + quadratic.pull
    b = quadratic.shift(e) + constant * float(q.sum())
    alpha = np.zeros(column.y.shape[0])
    alpha[rows] = q
    if hessian is not None:
        alpha[rows], _ = yield from hessian.answer(q)
        b = hessian.intercept(alpha)
    own = alpha * features.squares()
    f = features.decision(alpha) + b
    gradient: np.ndarray = column.y * np.broadcast_to(column.kinks, (1, own.shape[0]))[0] - (f - own)
    return gradient


def initialise_row_by_row(work: WorkingSetAscent, gradient: np.ndarray, length: np.ndarray) -> None:
    """Initialise multipliers of working sets row by row, as if each were alone; their sum is 0 where needed."""
    length = length + work.soft
    step = np.divide(gradient, length, out=np.zeros_like(gradient), where=length > 0)
    work.u = np.clip(step, work.low, work.high)
    work.balance()


def initialise_from_start(work: WorkingSetAscent) -> bool:
    """Initialise working sets by the column's own start, if it has one better than zeros; return whether it has."""
    found = warm_start_multipliers(work.form, work.column)
    if found is None:
        return False
    work.u = work.signs * found[0][0]
    work.balance()
    return True


def initialise_on_all_rows(form: MarginForm, column: Column, hessian: ColumnHessian, tol: float = 0.0) -> Initialised:
    """Initialise working sets with steps over all rows, of few up to gap `tol`, or at the column's start."""
    if form.bias == "free" and column.kappa > 0:
        return (yield from initialise_with_free_bias(form, column, hessian))
    work = WorkingSetAscent(form, column, hessian)
    deflated = isinstance(hessian, DeflatedHessian)
    if not (initialise_from_start(work) if deflated else (yield from initialise_from_path(work, hessian))):
        yield from work.over_all(hessian.R, hessian.border, hessian.omega, tol)
    return work


def initialise_with_free_bias(form: MarginForm, column: Column, inner: ColumnHessian) -> Initialised:
    """Initialise working sets of a problem whose variance holds a free bias."""
    hessian = yield from FreeBiasHessian(inner, column).hold()
    work = WorkingSetAscent(form, column, hessian)
    if not initialise_from_start(work):
        yield from work.over_all((yield from hessian.matrix()), hessian.border, hessian.omega)
    return work


def initialise_with_variance(
    form: MarginForm, column: Column, G: np.ndarray, constant: float, rng: np.random.Generator
) -> Initialised:
    """Initialise working sets of a problem with a variance term that shares nothing with others."""
    if G.shape[0] <= PLAIN:
        R = yield from variance_reduced_gram(G, constant, column.kappa, column.counts, 0.0)
        if R is not None:
            return (yield from initialise_on_all_rows(form, column, ExactHessian(G, R, constant, column)))
    deflated = DeflatedHessian(G, constant, column)
    if (yield from deflated.lead()):
        return (yield from initialise_on_all_rows(form, column, deflated))
    features = form.features
    assert isinstance(features, KernelFeatures)
    gradient = yield from initial_gradient_from_sample(form, column, constant, rng)
    factored = CholeskyOrderedHessian(G, constant, column)
    work = WorkingSetAscent(form, column, factored)
    band = BAND * work.scale
    initialise_row_by_row(work, gradient, features.squares() + constant)
    rows = np.flatnonzero((gradient > work.low - band) & (gradient < work.high + band))
    yield from factored.factor(rows)
    if form.bias == "free":
        work.hessian = yield from FreeBiasHessian(factored, column).hold()
    _, f = yield from work.hessian.answer(work.u + work.pull)
    yield from work.improve(work.target - f - work.soft * work.u, factored.place >= 0)
    return work


def can_initialise_working_sets(form: MarginForm, column: Column) -> bool:
    """Whether to initialise working sets for a column: those of kernels with one hinge term suit."""
    return isinstance(form.features, KernelFeatures) and suits_block_ascent(form, column)


def initialise_working_sets(
    form: MarginForm, column: Column, shared: VarianceReducedGram, rng: np.random.Generator, tol: float = 0.0
) -> Generator[None, None, WorkingSetAscent | None]:
    """Initialise working sets with first multipliers; None where kernel values are too large for a factorisation."""
    constant = shared.constant
    if shared.G is None:
        return (yield from initialise_on_support(form, column, constant))
    if column.kappa == 0:
        return (yield from initialise_on_all_rows(form, column, GramMajorantHessian(shared.G, constant, column), tol))
    try:
        if len(form.columns) == 1 and shared.R is None:
            return (yield from initialise_with_variance(form, column, shared.G, constant, rng))
        R = yield from shared.reduced(column)
        if R is not None:
            exact = ExactHessian(shared.G, R, constant, column, shared.edge)
            return (yield from initialise_on_all_rows(form, column, exact))
        deflated = DeflatedHessian(shared.G, constant, column)
        yield from deflated.lead()
        return (yield from initialise_on_all_rows(form, column, deflated))
    except NotPositiveDefinite:
        return None


def initialise_from_path(
    work: WorkingSetAscent, hessian: ColumnHessian | SupportHessian
) -> Generator[None, None, bool]:
    """Take Newton steps from a neighbour's solution on a path, if better than zeros; return whether it was."""
    start = work.column.start
    if start is None:
        return False
    u = _initial_path_multipliers(work, hessian, start)
    e = work.gradient(hessian.hessian(u + work.pull), u)
    first = work.target - hessian.pulled(work.pull)
    # The dual value less that of zeros, twice.
    if not float(u @ (e + first)) > 0:
        return False
    if u.shape[0] > BRIEF:
        yield
    work.u = u
    if work.paired or isinstance(hessian, SupportHessian):
        work.balance()
        e = work.gradient(hessian.hessian(work.u + work.pull), work.u)
        yield from work.improve(e - work.shift(e))
        return True
    e = yield from _initial_path_newton(work, hessian, e)
    if float(work.violation(e).max()) > PATH_VIOLATION * work.scale:
        yield from work.improve(e)
    else:
        work.known = e
    return True


def _initial_path_multipliers(
    work: WorkingSetAscent, hessian: ColumnHessian | SupportHessian, start: Start
) -> np.ndarray:
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


def _initial_path_newton(
    work: WorkingSetAscent, hessian: ColumnHessian, e: np.ndarray
) -> Generator[None, None, np.ndarray]:
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
