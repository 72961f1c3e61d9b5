"""Decomposition for a hinge or squared hinge a row, or a band of two, with a kernel whose matrix is never there."""

from __future__ import annotations

import math
from collections.abc import Generator
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.gram import DIFFERENCES_LENGTH, SINGLE_ROW_LENGTH
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.validation import check_number
from mdlearn.forms.certificates.dual import dual_multipliers_with_sums
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.numerics.pivoted_cholesky import pivoted_cholesky_columns, pivoted_cholesky_of_kernel
from mdlearn.solvers.base import Claim, Offer, Report, Solver, Steps
from mdlearn.solvers.decomposition.growth import grow_to_all_rows
from mdlearn.solvers.decomposition.rounds import (
    DecompositionKernel,
    DecompositionRounds,
    decomposition_set_bytes,
    most_rows_of_whole_rounds,
)
from mdlearn.solvers.decomposition.variance import VarianceRounds
from mdlearn.solvers.systems.operations import (
    GENTLE_LOSS,
    MATRIX_ROWS,
    STEPS_OF_A_FIT,
    STIFF_BOX,
    columns_of_kernel_operations,
    kernel_stiffness,
)
from mdlearn.solvers.working_set.block_ascent import suits_block_ascent

MOST_DECOMPOSITION_ROUNDS, STALLED_ROUNDS, LEAST_RISE = 10000, 50, 1e-3
"""Rounds of a fit; rounds without a rise of the bound after which rounding is reached, and the least such rise, in
units of the gap."""

SQUARED_ROWS = 500
"""Rows up to which Newton steps, which factor the matrix, are cheaper for one gentle squared hinge: 0.07 to 0.8 of
their time on 12 real sets of 768 to 5,000 rows at a gap of 1e-6 (asv_bench/kernels.py --alone lsvm). For a band of two
0.1 to 1.6 of it, 0.45 in the mean, on 8 real sets of 500 to 2,000 rows."""
BAND_ROWS = 25
"""Rows, as `MATRIX_ROWS`, for a band of two hinges, where sweeps crawl from one kink of a row to the other: of 85, 400
and 1,500 drawn rows, bands of half-width 0, 0.001 and 0.1 and C = 1, 10 and 100, working sets took 0.02 to 1 of their
time where both reached a gap of 1e-6; three of the sweeps did not, in nine times as long or more."""
PATH_ROWS = 0.5625 * MATRIX_ROWS
"""Rows, as `MATRIX_ROWS`, for the points of a path, which know rows of the matrix from each other: five values of C on
8,000 rows of ijcnn1 and a9a take 0.2 to 0.4 of the time of working sets alone."""
WIDE_ROWS, LEAST_WIDE_ROWS = 2000.0, 1500.0
"""Half of the rows up to which sweeps are cheaper for hinges over a Gaussian kernel of more columns than differences
are made of, at C k(x, x) = 1, and at least. From there to 8,000 rows, gaps of 1e-4 in fresh processes, decomposition
took 0.34 to 0.73 of their time on a9a, 0.39 to 0.95 on usps and 0.33 to 0.96 on mushroom at C = 0.1 and 1."""
SINGLY_MADE_ROWS, LEAST_SINGLY_MADE_ROWS = 3000.0, 2000.0
"""The same where rows of the matrix are made one at a time. With 4,200 and 5,600 rows, gaps of 1e-3, decomposition took
2.8 and 2 times as long as sweeps on mushroom at C = 1, 1.7 and 1.3 at C = 0.1; on a9a 1.25 and 0.86, 0.95 and 0.5."""
LIGHT_VARIANCE, LIGHT_VARIANCE_ROWS, LIGHT_WIDE_ROWS = 20.0, 800.0, 1500.0
"""Weight kappa m of a variance over a Gaussian kernel up to which some directions are nearly all of it, and half of the
rows from which decomposition beats what sweeps begin with, some products, over few columns and over more.

Gaps of 1e-4, kappa m = 1 and 20, C = 0.1 to 100: over few columns 1,500 rows of four sets took 0.37 to 1.2 of the time
of sweeps, 2,000 rows 0.34 to 0.83 but for one of 1.33, three to six classes of 1,800 to 3,000 rows 0.14 to 0.32; over
more, 3,000 rows of a9a and usps 0.5 to 0.94, ten classes of usps 0.48 and 0.66, 2,500 rows of mnist 0.86 to 1.33."""
HEAVY_VARIANCE_ROWS, STEEP_VARIANCE = 1000.0, 40.0
"""The same beyond that weight, where sweeps begin with a factorisation of the whole matrix, if C k(x, x) is at most 1.

From there to 6,000 rows, gaps of 1e-5 on nine real sets, C = 0.1, 1 and 10, it took 0.2 to 1.3 of their time, on usps
at C = 10 up to twice as long. From 1.5 times the last on, rows become more in proportion to C k(x, x): of 2,310 to
3,500 rows it took 0.4 to 0.7 of their time at C = 30 on six sets, at C = 100 on eight 0.5 to 4, and did not end within
seven times as long on two of these. Six classes of satimage, gap 1e-4, C = 0.1 to 10, 2,200 to 4,435 rows: 0.18 to 0.5;
ten of usps, 2,500 and 4,000 rows: 0.7."""
NARROW_VARIANCE_ROWS = 750.0
"""Half of the rows beside a heavy variance over few columns, C k(x, x) up to the last number above.

Of 1,600 rows of six real sets, gaps of 1e-3 to 1e-5, decomposition took 0.46 to 1.03 of the time of sweeps at C = 0.1
and 1, 0.18 to 0.79 at C = 10, 0.23 to 1.25 at C = 30; of 1,100 rows of three 1.25 to 1.8 at C = 0.1. Three classes of
waveform and six of satimage, 1,600 rows, C = 0.1 to 10: 0.27 to 0.83."""
LEAST_WEIGHT_OF_BIAS = 1e-2
"""Weight kappa 1'S 1 with which a variance holds a free bias: with less, blocks in single precision are all bias."""
FACTOR_COLUMNS, FACTOR_WEIGHT = 100, 40.0
"""Columns of the factor beside a variance whose weight kappa m is up to the second; more with the root of that weight.

On 49,990 rows of ijcnn1, kappa m = 781: 7.6 s with these 441 columns, as with 265, 8.5 s with 177. Of 10,000 rows of
a9a, kappa m = 4,000, C = 10, 1,000 columns left a gap of 0.13 at the first product, where it seemed to be 5e-4."""

FACTOR_SHARE = 0.75
"""Share of the cache that the factor may take."""
LEAST_FACTOR_SHARE = 1.0 / 3.0
"""Share of the columns that it has by default, below which a smaller cache does not serve: 15,000 rows on a
checkerboard, C = 10, wanted 612 columns; 139 led to a gap of 1e-3, 100 to none."""


class KernelDecomposition(Solver):
    """Working sets of a kernel problem, with columns computed as multipliers change (``solver="decomposition"``)."""

    name: ClassVar[str] = "decomposition"
    purpose: ClassVar[str] = (
        "one hinge or squared hinge a row, or a band of two, a variance beside one hinge, kernel 'rbf' or 'poly': "
        "no matrix of all rows"
    )

    claims_only: ClassVar[str] = "other features"
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    merges_equal_rows: ClassVar[bool] = True
    takes_tol: ClassVar[bool] = True
    options: ClassVar[dict[str, Any]] = {"cache": memory.CACHE_BYTES}

    def refusal(self, form: Any) -> str | None:
        """Refuse all but kernels made of inner products, with one term a row; return why, or None."""
        general = super().refusal(form)
        if general is not None:
            return general
        features = form.features
        if not isinstance(features, KernelFeatures) or not features.kernel.plain:
            return "it needs kernel 'rbf' or 'poly'"
        if not all(suits_block_ascent(form, one) or _is_decomposition_band(one) for one in form.columns):
            return "it needs one hinge or squared hinge a row, or two of opposite sides around a band"
        varied = [one for one in form.columns if _decomposition_is_varied(one)]
        if any(len(one.terms) > 1 or one.terms[0].kind != "hinge" or form.offsets for one in varied):
            return "it takes a variance or a mean beside one hinge a row alone"
        if form.bias == "free" and any(_decomposition_bias_weight(one) < LEAST_WEIGHT_OF_BIAS for one in varied):
            return "with bias='free' it needs a variance that is heavy enough to hold the bias"
        return None

    def claims(self, form: Any) -> Claim | None:
        """Columns of a kernel as multipliers change: the fewer the gentler the loss, unless a path has the matrix."""
        if self.refusal(form) is not None:
            return None
        stiffness = kernel_stiffness(form)
        rows, told = float(MATRIX_ROWS), "kernel with many rows: working sets, no matrix of all rows"
        if form.kinds == {"squared"} and stiffness <= GENTLE_LOSS and not form.features.reused:
            rows, told = SQUARED_ROWS, "squared hinge over a kernel: working sets, no factors"
        elif "hinge" in form.kinds and stiffness <= STIFF_BOX:
            # Beside sweeps, which take half as long as Newton steps, but many where a row has two kinks.
            rows = PATH_ROWS if form.features.reused else _rows_decomposition_pays(form, stiffness)
        return Claim(STEPS_OF_A_FIT * columns_of_kernel_operations(form, rows), told)

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return all options; `cache` is the number of bytes that blocks and factors of a problem may take."""
        options = super().check_options(given)
        options["cache"] = check_number(options["cache"], "solver option cache", low=memory.LEAST_CACHE_BYTES)
        return options

    def require_memory(self, form: MarginForm, options: dict[str, Any], at_once: int) -> None:
        """Ask for the rows in single precision, a working set's block, and some numbers a row."""
        m, d = form.features.rows.shape
        size = memory.NEGLIGIBLE_BYTES + 4.0 * m * (d + 2)
        cache, value_bytes = _decomposition_cache_bytes(form, options), _decomposition_value_bytes(form)
        size += at_once * (decomposition_set_bytes(m, cache, value_bytes) + 400.0 * m)
        if any(map(_decomposition_is_varied, form.columns)):
            r, wanted = _decomposition_factor_columns(form, options), _decomposition_factor_columns(form, self.options)
            least = math.ceil(LEAST_FACTOR_SHARE * wanted)
            if r < least:
                raise ValueError(
                    f"solver option cache={options['cache']:g} is too small for a variance over {m} rows; it needs "
                    f"{math.ceil(least * m * _decomposition_entry_bytes(form) / FACTOR_SHARE)} bytes"
                )
            size += 8.0 * m * r + max(8.0 * m * r, at_once * (value_bytes * m * r + 40.0 * r * r))
        memory.require(size, f"solver {self.name!r} on {m} rows", memory.SMALLER_CACHE, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the rows as kernel values are made of them; beside a variance, a partial factor of the matrix."""
        features = form.features
        assert isinstance(features, KernelFeatures)
        tiles, constant, factor = features.columns(single=True), float(form.bias == "regularized"), None
        yield
        if any(map(_decomposition_is_varied, form.columns)):
            rank = _decomposition_factor_columns(form, options)
            # In double precision: the last pivots would be made of rounding, and the factor above the kernel.
            across = features.columns(single=False).across
            factor = yield from pivoted_cholesky_of_kernel(across, features.squares(), rank, constant)
        cache = _decomposition_cache_bytes(form, options)
        whole = most_rows_of_whole_rounds(cache, float(np.dtype(tiles.dtype).itemsize), factor is not None)
        return DecompositionKernel(tiles, constant, factor, cache, whole)

    def iterate(
        self,
        form: MarginForm,
        column: Column,
        shared: Any,
        options: dict[str, Any],
        rng: np.random.Generator,
        tol: float = 0.0,
    ) -> Steps:
        """Offer a place per round; its report takes the drift from the decision values."""
        make = partial(_rounds, form, shared, rng)
        rounds = yield from grow_to_all_rows(form, column, make, rng, form.features.n_rows <= shared.whole_rows)
        assert isinstance(form.features, KernelFeatures)
        place = DecompositionReporter(form, form.features, rounds)
        least, highest, stalled = np.inf, -np.inf, 0
        for _ in range(MOST_DECOMPOSITION_ROUNDS):
            if (yield from rounds.measure(tol)):
                highest = -np.inf
                yield place.offer()
            yield None
            if (yield from rounds.correct()):
                least, highest = np.inf, -np.inf
                yield place.offer()
            # Rounding lets bounds rise and fall for ever.
            highest = max(highest, rounds.lower_bound)
            moved = yield from rounds.climb_once()
            least = min(least, rounds.objective)
            stalled = 0 if rounds.lower_bound - highest > LEAST_RISE * (least - rounds.lower_bound) else stalled + 1
            if not moved or stalled >= STALLED_ROUNDS:
                known = place.gap
                yield place.report()
                least, stalled = rounds.objective, 0
                if not place.gap < 0.5 * known and not (yield from rounds.grow()):
                    # Of squared hinges, free rows can be more than a working set has.
                    return rounds.free(rounds.u) > rounds.most


def _rows_decomposition_pays(form: MarginForm, stiffness: float) -> float:
    """Half of the rows from which decomposition takes less time than sweeps do in a single fit."""
    column, features = form.columns[0], form.features
    if len(column.terms) > 1:
        return BAND_ROWS if form.kinds == {"hinge"} else SQUARED_ROWS
    alone = len(form.columns) == 1 or column.kappa > 0  # else columns share rows of the matrix that sweeps make
    if alone and isinstance(features, KernelFeatures) and features.kernel.name == "rbf":
        wide = features.rows.shape[1] > DIFFERENCES_LENGTH
        if column.kappa * column.total > LIGHT_VARIANCE:
            if stiffness <= STEEP_VARIANCE and not (wide and len(form.columns) > 1):
                return HEAVY_VARIANCE_ROWS if wide else NARROW_VARIANCE_ROWS
            growth = max(1.0, stiffness**0.1, stiffness / STEEP_VARIANCE)
            return min(0.5 * MATRIX_ROWS, HEAVY_VARIANCE_ROWS * growth)
        if column.kappa > 0:
            return LIGHT_WIDE_ROWS if wide else LIGHT_VARIANCE_ROWS
        if wide:
            rows, least = WIDE_ROWS, LEAST_WIDE_ROWS
            if features.rows.shape[1] <= SINGLE_ROW_LENGTH and not features.rows.sparse:
                rows, least = SINGLY_MADE_ROWS, LEAST_SINGLY_MADE_ROWS
            return min(0.5 * MATRIX_ROWS, max(least, rows * stiffness**0.25))
    return 0.5 * MATRIX_ROWS


def _is_decomposition_band(column: Column) -> bool:
    """Whether a decomposition's column has two terms of finite weight and opposite sides that punish no margin both.

    Squared losses are no such band: conjugate gradients solve their one system.
    """
    sides = column.sides
    if sides.shape[0] != 2 or sides.sum() != 0 or column.hard or not column.whole or column.quadratic:
        return False
    return bool((sides @ column.kinks <= 0).all())


def _decomposition_is_varied(column: Column) -> bool:
    """Whether a column of a decomposition has a variance or a mean, of which its dual coefficients are made as well."""
    return column.kappa > 0 or column.pulled


def _decomposition_bias_weight(column: Column) -> float:
    """kappa 1'S 1: what the variance of a decomposition's column has to hold a free bias with."""
    return column.kappa * column.total * (1.0 - column.label_mean**2)


def _decomposition_value_bytes(form: MarginForm) -> float:
    """Bytes of a kernel value in a block of a decomposition."""
    features = form.features
    assert isinstance(features, KernelFeatures)
    return 4.0 if features.kernel.name == "rbf" else 8.0


def _decomposition_entry_bytes(form: MarginForm) -> float:
    """Bytes of an entry of a decomposition's factor: in double precision, and as blocks have it."""
    return 8.0 + _decomposition_value_bytes(form)


def _decomposition_cache_bytes(form: MarginForm, options: dict[str, Any]) -> float:
    """Bytes of the cache for a decomposition's working sets, which have what a factor leaves."""
    left: float = options["cache"]
    if any(map(_decomposition_is_varied, form.columns)):
        left -= _decomposition_entry_bytes(form) * form.features.n_rows * _decomposition_factor_columns(form, options)
    return left


def _decomposition_factor_columns(form: MarginForm, options: dict[str, Any]) -> int:
    """Number of columns of the partial factor that a decomposition takes beside a variance."""
    weight = max(one.kappa * one.total for one in form.columns)
    wanted = FACTOR_COLUMNS * math.sqrt(max(1.0, weight / FACTOR_WEIGHT))
    entries = FACTOR_SHARE * options["cache"] / _decomposition_entry_bytes(form)
    return int(min(wanted, pivoted_cholesky_columns(form.features.n_rows, entries)))


def _rounds(
    form: MarginForm, kernel: DecompositionKernel, rng: np.random.Generator, column: Column, rows: np.ndarray | None
) -> DecompositionRounds:
    """Make the rounds of a column over all rows, or over some."""
    kind = DecompositionRounds if kernel.factor is None else VarianceRounds
    return kind(form, column, kernel if rows is None else kernel.take(rows), rng)


class DecompositionReporter:
    """Reporter of the point of the rounds, with decision values in double precision, which they go on from."""

    def __init__(self, form: MarginForm, features: KernelFeatures, rounds: DecompositionRounds) -> None:
        self.form, self.features, self.rounds, self.gap = form, features, rounds, np.inf

    def offer(self) -> Offer:
        """The offer of such a report; a time limit waits for its decision values unless w = 0 seems to be better."""
        return Offer(self.report, self.rounds.gap, self._seconds)

    def _seconds(self) -> float:
        rounds = self.rounds
        if rounds.objective >= rounds.objective_at_zero:
            return 0.0
        return self.features.seconds_of_decision(int(np.count_nonzero(rounds.coefficients())))

    def report(self) -> Report:
        """The report of the present multipliers."""
        rounds = self.rounds
        beta, column = rounds.beta(), rounds.column
        sigma = rounds.variance_multipliers()
        # The certificate's own coefficients, to the bit: it asks for the same product.
        alpha = column.alpha(*(dual_multipliers_with_sums(self.form, column, beta, sigma) or (beta, sigma)))
        rounds.refine(alpha, self.features.decision(alpha))
        self.gap = rounds.gap
        point = Point(beta, sigma, alpha, rounds.b)
        return Report.estimated(rounds.objective, rounds.lower_bound, point)
