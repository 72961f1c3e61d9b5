"""Where working sets begin: which Hessian a kernel problem needs, and the first multipliers."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.common.warm_start import warm_start_multipliers
from mdlearn.solvers.dual_hessian.cholesky_ordered import FactoredGram
from mdlearn.solvers.dual_hessian.free_bias import BorderedGram
from mdlearn.solvers.dual_hessian.hessian import ColumnGram, DeflatedGram, ExactHessian, GramMajorant, KnownGram
from mdlearn.solvers.dual_hessian.variance_reduced import Shared, reduce_gram
from mdlearn.solvers.working_set.block_ascent import FIRST_VIOLATION, SignedDual, WorkingSets, suits
from mdlearn.solvers.working_set.path_newton import start_near

WHOLE_GRAM_ROWS = 1000
"""Rows up to which the whole Gram matrix costs next to nothing."""
MUCH = 0.45
"""Share of the rows in the support beyond which the whole matrix is cheaper: half of it is the other half mirrored."""
BAND = 0.1
"""Distance from the kink, in units of margins, up to which a first look may be wrong."""
FIRST_ERROR = 1e-3
"""Violation, in units of margins, at which the first steps on a supposed support end."""
PLAIN = 500
"""Rows up to which the Hessian of all of them is cheaper than a choice."""
SAMPLING_STRIDE, LEAST_SAMPLE_ROWS, MOST_SAMPLE_ROWS = 4, 200, 800
"""One row in SAMPLING_STRIDE, but no fewer than LEAST_SAMPLE_ROWS and no more than MOST_SAMPLE_ROWS."""
Start = Generator[None, None, WorkingSets]


def lazy(form: MarginForm) -> bool:
    """Whether the rows of the support may be all of the Gram matrix that is needed."""
    features, (column, *others) = form.features, form.columns
    if others or not isinstance(features, KernelFeatures) or features.ready:
        return False
    sparse = column.kappa == 0 and not column.pull.any() and suits(form, column)
    return sparse and features.kernel.plain and features.n_rows > WHOLE_GRAM_ROWS


def from_sample(form: MarginForm, column: Column, constant: float, rng: np.random.Generator) -> Start:
    """Begin at the support that a sample of the rows shows."""
    features = form.features
    assert isinstance(features, KernelFeatures)
    if column.start is not None:
        work = WorkingSets(form, column, KnownGram(features, constant))
        if from_start(work):
            return work
    gradient = yield from from_subsample(form, column, constant, rng)
    work = WorkingSets(form, column, KnownGram(features, constant))
    band = BAND * work.scale
    reach = np.where(work.signs > 0, gradient, -gradient)
    if np.count_nonzero(reach > band) > MUCH * features.n_rows:
        G = yield from features.gram()
        return (yield from from_all(form, column, GramMajorant(G, constant, column)))
    guess(work, np.where(reach > band, gradient, 0.0), features.squares() + constant)
    rows = np.flatnonzero(reach >= band)
    e = work.target[rows] - constant * float(work.u.sum())
    H = yield from work.hessian.block(rows)
    e -= (H - constant) @ work.u[rows] + work.soft[rows] * work.u[rows]
    yield from work.climb(H, rows, e, FIRST_ERROR * work.scale, np.zeros(rows.shape[0]), 0.0)
    return work


def part_of(column: Column, rows: np.ndarray) -> Column:
    """A column of some rows with the weight of all."""
    counts = column.counts[rows]
    counts = counts * (column.total / float(counts.sum()))
    offset = None if column.offset is None else column.offset[rows]
    return replace(column, y=column.y[rows], counts=counts, offset=offset, start=None)


def from_subsample(
    form: MarginForm, column: Column, constant: float, rng: np.random.Generator
) -> Generator[None, None, np.ndarray]:
    """Solve on some of the rows, with the weight of all, and tell what that says about the others.

    Returned is target minus decision value of every row, its own share of the decision value left out. Only the rows of
    the kernel matrix that the solution needs are computed.
    """
    features, m = form.features, column.y.shape[0]
    assert isinstance(features, KernelFeatures)
    n = min(m, max(LEAST_SAMPLE_ROWS, min(MOST_SAMPLE_ROWS, m // SAMPLING_STRIDE)))
    rows = np.sort(rng.choice(m, n, replace=False))
    part = part_of(column, rows)
    quadratic = SignedDual(form, part)
    K = yield from features.corner(rows)
    hessian: ExactHessian | BorderedGram | None = None
    H, border, omega = K, np.ones(rows.shape[0]), constant
    if part.kappa > 0:
        R = yield from reduce_gram(K, constant, part.kappa, part.counts, 0.0)
        if R is not None:
            hessian = exact = ExactHessian(K, R, constant, part)
            H, border, omega = exact.R, exact.border, exact.omega
            if form.bias == "free":
                hessian = free = yield from BorderedGram(exact, part).hold()
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
    if not features.ready:
        yield from features.gram_rows(np.flatnonzero(alpha))
    own = alpha * features.squares()
    f = features.decision(alpha) + b
    gradient: np.ndarray = column.y * np.broadcast_to(column.kinks, (1, own.shape[0]))[0] - (f - own)
    return gradient


def guess(work: WorkingSets, gradient: np.ndarray, length: np.ndarray) -> None:
    """Multipliers that each row would choose by itself; their sum is 0 where it has to be."""
    length = length + work.soft
    step = np.divide(gradient, length, out=np.zeros_like(gradient), where=length > 0)
    work.u = np.clip(step, work.low, work.high)
    work.balance()


def from_start(work: WorkingSets) -> bool:
    """Take the multipliers of the column's own start, if it has one that is better than zeros; say whether it has."""
    found = warm_start_multipliers(work.form, work.column)
    if found is None:
        return False
    work.u = work.signs * found[0][0]
    work.balance()
    return True


def from_all(form: MarginForm, column: Column, hessian: ColumnGram) -> Start:
    """Begin with steps over all rows, or at the column's start."""
    if form.bias == "free" and column.kappa > 0:
        return (yield from bordered(form, column, hessian))
    work = WorkingSets(form, column, hessian)
    if not (from_start(work) if isinstance(hessian, DeflatedGram) else (yield from start_near(work, hessian))):
        yield from work.over_all(hessian.R, hessian.border, hessian.omega)
    return work


def bordered(form: MarginForm, column: Column, inner: ColumnGram) -> Start:
    """Begin a problem whose variance holds a free bias."""
    hessian = yield from BorderedGram(inner, column).hold()
    work = WorkingSets(form, column, hessian)
    if not from_start(work):
        yield from work.over_all((yield from hessian.matrix()), hessian.border, hessian.omega)
    return work


def with_variance(form: MarginForm, column: Column, G: np.ndarray, constant: float, rng: np.random.Generator) -> Start:
    """Begin a problem with a variance term that shares nothing with others."""
    if G.shape[0] <= PLAIN:
        R = yield from reduce_gram(G, constant, column.kappa, column.counts, 0.0)
        if R is not None:
            return (yield from from_all(form, column, ExactHessian(G, R, constant, column)))
    deflated = DeflatedGram(G, constant, column)
    if (yield from deflated.lead()):
        return (yield from from_all(form, column, deflated))
    features = form.features
    assert isinstance(features, KernelFeatures)
    gradient = yield from from_subsample(form, column, constant, rng)
    factored = FactoredGram(G, constant, column)
    work = WorkingSets(form, column, factored)
    band = BAND * work.scale
    guess(work, gradient, features.squares() + constant)
    rows = np.flatnonzero((gradient > work.low - band) & (gradient < work.high + band))
    yield from factored.factor(rows)
    if form.bias == "free":
        work.hessian = yield from BorderedGram(factored, column).hold()
    _, f = yield from work.hessian.answer(work.u + work.pull)
    yield from work.improve(work.target - f - work.soft * work.u, factored.place >= 0)
    return work


def by_working_sets(form: MarginForm, column: Column) -> bool:
    """Whether working sets take a column: those of kernels with one hinge term do."""
    return isinstance(form.features, KernelFeatures) and suits(form, column)


def starting_sets(
    form: MarginForm, column: Column, shared: Shared, rng: np.random.Generator
) -> Generator[None, None, WorkingSets | None]:
    """Working sets with their first multipliers; None where values are so large that a variance's 1 is lost."""
    constant = shared.constant
    if shared.G is None:
        return (yield from from_sample(form, column, constant, rng))
    if column.kappa == 0:
        return (yield from from_all(form, column, GramMajorant(shared.G, constant, column)))
    try:
        if len(form.columns) == 1 and shared.R is None:
            return (yield from with_variance(form, column, shared.G, constant, rng))
        R = yield from shared.reduced(column)
        if R is not None:
            return (yield from from_all(form, column, ExactHessian(shared.G, R, constant, column, shared.edge)))
        deflated = DeflatedGram(shared.G, constant, column)
        yield from deflated.lead()
        return (yield from from_all(form, column, deflated))
    except NotPositiveDefinite:
        return None
