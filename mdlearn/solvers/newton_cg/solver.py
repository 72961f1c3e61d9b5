"""Solver "newton-cg": Newton's method over a kernel without its matrix, every step by conjugate gradients.

A step takes products in single precision. Near the optimum its margins come from one in double precision: what
rounding left, or conjugate gradients, is in the next step's gradient. After a full step the coefficients are those of
multipliers, so that objective and bound cost no further product.
"""

from __future__ import annotations

from collections.abc import Generator
from itertools import permutations
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.basis import BasisFeatures
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_tiles import SquaredTiles
from mdlearn.data.validation import check_number
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.numerics.pivoted_cholesky import pivoted_cholesky_columns
from mdlearn.solvers.base import Claim, Offer, Report, Solver, Steps
from mdlearn.solvers.common.smooth_losses import SmoothLosses, SquaredTerms
from mdlearn.solvers.newton_cg.basis_system import BasisSystem
from mdlearn.solvers.newton_cg.newton_system import NewtonSystem, NewtonSystemKernel
from mdlearn.solvers.newton_cg.stored_tiles import (
    ROUNDED_CURVATURE,
    ROUNDED_UNITS,
    StoredTiles,
    stored_tile_bytes,
    storing_pays,
)
from mdlearn.solvers.systems.operations import (
    GENTLE_LOSS,
    MATRIX_ROWS,
    columns_of_kernel_operations,
    kernel_stiffness,
    second_order_operations,
)

ROUGH_STEP, EXACT_STEP, CLOSEST_STEP = 1e-3, 0.1, 1e-6
"""Share of a residual that a step may leave: at first, where margins are exact, and where more leads nowhere."""
SAME_COEFFICIENTS = 1e-10
"""Difference of coefficients, relative to the largest, up to which those of multipliers are taken in their place."""
SINGLE_GAP = 1e-3
"""Gap down to which margins are made of products in single precision."""
UNBALANCED_SHARE = 1e-9
"""Share of its terms from which the sum of coefficients, which a free bias needs to be 0, is no rounding."""
ROUNDED_FALL = 0.5
"""Share of a gap that a step over rounded values may leave where margins are exact; beyond, they mislead."""
PRODUCTS_OF_ROOT = 4.0
"""Products of a solution per root of the condition that the partial factor leaves, whose trace is taken to be spread
over as many directions again: 80 of 32,561 rows of a9a at C = 100, and 7 at C = 1."""
STALLED_STEPS, LEAST_FALL = 5, 1e-10
"""Steps without progress after which rounding is taken to be reached; relative fall of the objective that is some."""

BASIS_ROWS = 9000
"""The same number for a basis of all rows: beyond 3,000 of them a path has no decomposition of their matrix either.

3,000 rows of ijcnn1, C = 1e-4: 1.05 CPU s, `direct` 2.2."""
CACHE_OF_PRODUCTS = 1.4e9
"""Bytes that are kept, by default: 1,000 columns of a partial factor and half of a rounded matrix of 33,000 rows."""
FACTOR_ENTRY_BYTES = 16.0
"""Bytes of the cache for an entry of the partial factor, which has half of them: it takes half of the cache at most."""


class NewtonCG(Solver):
    """Newton steps by preconditioned conjugate gradients over products with a kernel (``solver="newton-cg"``)."""

    name: ClassVar[str] = "newton-cg"
    purpose: ClassVar[str] = (
        "squared, logistic and given losses, variance or mean alone, kernel 'rbf' or 'poly': no matrix of all rows"
    )
    default_max_iter: ClassVar[int] = 200
    draws: ClassVar[bool] = False
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"}) | CURVED
    claims_only: ClassVar[str] = "other features"
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    merges_equal_rows: ClassVar[bool] = True
    options: ClassVar[dict[str, Any]] = {"cache": CACHE_OF_PRODUCTS}

    def refusal(self, form: Any) -> str | None:
        """Refuse all but kernels made of inner products; return why, or None."""
        general = super().refusal(form)
        if general is None and not form.features.by_products:
            return "it needs kernel 'rbf' or 'poly', and a basis of all rows"
        return general

    def claims(self, form: Any) -> Claim | None:
        """Products with a kernel instead of factors of its matrix; none for losses that take many of them."""
        if self.refusal(form) is not None or kernel_stiffness(form) > GENTLE_LOSS:
            return None
        told = "kernel with many rows, loss without kinks: conjugate gradients, no matrix"
        rows = BASIS_ROWS if isinstance(form.features, BasisFeatures) else MATRIX_ROWS
        return Claim(second_order_operations(form) * columns_of_kernel_operations(form, rows), told)

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """Return all options; `cache` is the number of bytes that partial factor and kernel values may take."""
        options = super().check_options(given)
        options["cache"] = check_number(options["cache"], "solver option cache", low=memory.LEAST_CACHE_BYTES)
        return options

    def require_memory(self, form: MarginForm, options: dict[str, Any], at_once: int) -> None:
        """Ask for the rows in single precision, what is kept, and as much as the making of the factor may take."""
        m, d = form.features.rows.shape
        r = pivoted_cholesky_columns(m, options["cache"] / FACTOR_ENTRY_BYTES)
        held = min(options["cache"] - 8.0 * m * r, stored_tile_bytes(m, _rounds(form)))
        size = memory.NEGLIGIBLE_BYTES + 4.0 * m * (d + 2) + 8.0 * m * r + max(8.0 * m * r, held)
        size += at_once * (16.0 * r * r + 4.0 * m * (d + 2) + 400.0 * m)
        memory.require(size, f"solver {self.name!r} on {m} rows", memory.SMALLER_CACHE, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the matrix as products, with a partial factor of it; what values the cache has room for are kept."""
        features, constant = _newton_cg_features(form), float(form.bias == "regularized")
        rank = pivoted_cholesky_columns(features.n_rows, options["cache"] / FACTOR_ENTRY_BYTES)
        L = yield from features.partial_factor(rank, constant)
        tiles, diagonal, rounded = features.columns(single=True), features.squares_at_most(), _rounds(form)
        own = tiles.tiles if isinstance(tiles, SquaredTiles) else tiles
        rest = float(diagonal.sum()) + constant * features.n_rows - float(np.einsum("ij,ij->", L, L))
        products = PRODUCTS_OF_ROOT * np.sqrt(1.0 + _newton_cg_steepest(form) * max(rest, 0.0) / L.shape[1])
        if not (own.bounded and storing_pays(own.length, products)):
            return NewtonSystemKernel(tiles, diagonal, L, constant)
        held = StoredTiles(own, options["cache"] - 8.0 * L.size, rounded)
        yield from held.fill()
        kept = SquaredTiles(held, tiles.weights) if isinstance(tiles, SquaredTiles) else held
        return NewtonSystemKernel(kept, diagonal, L, constant, tiles if rounded else None)

    def iterate(
        self,
        form: MarginForm,
        column: Column,
        shared: NewtonSystemKernel,
        options: dict[str, Any],
        rng: np.random.Generator,
    ) -> Steps:
        """Offer an iterate per step."""
        squared = all(t.squared for t in column.terms)
        loss: SquaredTerms | SmoothLosses = SquaredTerms(column) if squared else SmoothLosses(column)
        current = NewtonCGIterate(form, column, loss, shared)
        yield from current.begin()
        kernel, system, model, share = shared, None, np.empty(0), ROUGH_STEP
        best, lowest, stalled, single = np.inf, np.inf, 0, True
        while True:
            yield Offer(current.report, current.gap, current.seconds_of_report)
            yield None
            if single and not current.single:  # what products in single precision told is no measure any more
                best, lowest, share, single = np.inf, np.inf, EXACT_STEP, False
            fallen = current.objective < lowest - LEAST_FALL * abs(lowest) or not np.isfinite(lowest)
            stalled = 0 if fallen or current.gap < 0.9 * best else stalled + 1
            if current.gap > 0.1 * best:
                share = max(CLOSEST_STEP, 0.1 * share)
            lost = stalled > STALLED_STEPS or (not single and current.gap > ROUNDED_FALL * best)
            best, lowest = min(best, current.gap), min(lowest, current.objective)
            if lost and kernel.unrounded is not None:
                kernel, system, share, stalled = kernel.without_rounding(), None, EXACT_STEP, 0
                yield from current.sharpened()
            if stalled > STALLED_STEPS:
                break
            D = current.curvatures.sum(axis=0)
            if system is None or not np.array_equal(D, model):
                system, model = _newton_cg_system(column, kernel, form.bias == "free", D), D
                yield from system.prepare()
            while True:
                step, b = yield from system.solve(current.gradient, current.balance, share)
                moved = yield from current.move(step, b)
                if moved or share <= CLOSEST_STEP:
                    break
                share = max(CLOSEST_STEP, 0.01 * share)
            if not moved and not (yield from current.sharpened()):
                if kernel.unrounded is None:
                    break
                kernel, system = kernel.without_rounding(), None
        yield from current.take_multipliers()
        yield current.report()


def _newton_cg_system(
    column: Column, kernel: NewtonSystemKernel, free: bool, D: np.ndarray
) -> NewtonSystem | BasisSystem:
    """Return the linear system of solver "newton-cg" for second derivatives D of the loss."""
    squared = isinstance(kernel.tiles, SquaredTiles) and np.allclose(kernel.tiles.weights, column.counts, rtol=1e-12)
    if squared and column.kappa > 0 and not D.any():
        return BasisSystem(column, kernel, free)
    return NewtonSystem(column, kernel, free, D)


def _newton_cg_steepest(form: MarginForm) -> float:
    """Largest curvature that a row's loss and variance can have, but for terms that bend more than squared ones."""
    columns = form.columns
    return max((c.kappa + sum(2.0 * t.weight for t in c.terms)) * float(c.counts.max()) for c in columns)


def _rounds(form: MarginForm) -> bool:
    """Whether values rounded to 16 bits lead the steps on a form: their errors are small beside 1 / curvature."""
    # The largest eigenvalue of a symmetric matrix of errors drawn evenly from half a unit on either side.
    return _newton_cg_steepest(form) * np.sqrt(form.features.n_rows / 3.0) <= ROUNDED_CURVATURE * ROUNDED_UNITS


def _newton_cg_features(form: MarginForm) -> BasisFeatures | KernelFeatures:
    """Features of a form that solver "newton-cg" takes."""
    assert isinstance(form.features, BasisFeatures | KernelFeatures)
    return form.features


class NewtonCGIterate:
    """Iterate of solver "newton-cg": representer coefficients with their margins.

    Attributes
    ----------
    x, f : ndarray of shape (m,)
        Coefficients and what they make of every row; with the share of a regularized bias.
    b : float
        A free intercept.
    z : ndarray of shape (m,)
        y (f + b).
    slopes, curvatures : ndarray of shape (T, m)
        Of the loss at these margins.
    gradient : ndarray of shape (m,)
        That of the objective, as representer coefficients.
    balance : float
        What the coefficients of a free bias lack to the sum 0.
    objective, gap : float
        Value, and the relative gap that it is thought to have.
    """

    def __init__(
        self, form: MarginForm, column: Column, loss: SquaredTerms | SmoothLosses, kernel: NewtonSystemKernel
    ) -> None:
        self.form, self.column, self.loss, self.constant = form, column, loss, kernel.constant
        self.free, self.kernel, self.tiles, self.single = form.bias == "free", kernel, kernel.tiles, True
        pairs = permutations(enumerate(column.terms), 2)
        self.opposite = [
            (i, j)
            for (i, s), (j, t) in pairs
            if s.squared and t.squared and (s.side, s.threshold) == (-t.side, t.threshold)
        ]

    def _product(self, v: np.ndarray) -> Generator[None, None, np.ndarray]:
        out, own = np.zeros_like(v), np.flatnonzero(v)
        yield from self.tiles.add(out, own, v[own])
        return out + self.constant * float(v.sum())

    def begin(self) -> Generator[None, None, None]:
        """Begin at the column's start, at what the mean term adds, or at w = 0, where that is worth more."""
        column, start = self.column, self.column.start
        # Bounds take kernel values once some are known: one row's say as much as all.
        self.form.features.decision(np.eye(1, column.y.shape[0])[0])
        self.x, self.b = column.y * column.pull, 0.0
        if start is not None and start.alpha is not None:
            own = start.alpha.astype(np.float64)
            f = yield from self._product(own)
            b = start.intercept if self.free else 0.0
            if primal_objective(column, column.y * (f + b), float(own @ f))[0] <= column.at_zero:
                self.x, self.f, self.b = own, f, b
                self._settle()
                return
        self.f = yield from self._product(self.x)
        self._settle()
        if self.objective > column.at_zero:  # rounding of a far start would be in the first steps
            self.x, self.f = np.zeros_like(self.x), np.zeros_like(self.f)
            self._settle()

    def _settle(self) -> None:
        column = self.column
        self.z = column.y * (self.f + self.b)
        self.slopes, self.curvatures = self.loss.slopes(self.z), self.loss.model(self.z)
        spread = column.spread(self.z)
        own = column.alpha(self.slopes, spread)
        self.gradient, self.balance = self.x - own, -float(self.x.sum())
        self.pulls = float(own.sum())
        self.objective = primal_objective(column, self.z, float(self.x @ self.f), estimated=True)[0]
        self.beta, self.sigma, missing = self._multipliers(spread)
        norm = float(self.x @ self.f)
        if missing.any():  # what clipped multipliers leave out has this length at most
            length = float(np.abs(missing) @ np.sqrt(np.maximum(self.kernel.diagonal, 0.0) + self.constant))
            norm += length * length - 2.0 * float(missing @ self.f)
        lower = column.bound(self.beta, self.sigma, estimated=True) - 0.5 * norm
        if self.free and abs(self.balance) > UNBALANCED_SHARE * float(np.abs(self.x).sum()):
            lower = -np.inf
        self.gap = column.relative_gap(self.objective, lower)

    def _multipliers(self, spread: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Multipliers that stand for x itself, where their boxes allow it, and the coefficients that they miss."""
        column = self.column
        D, variance = self.curvatures, column.kappa * column.counts
        T = D.sum(axis=0) + variance
        extra = column.y * self.x - column.sides @ self.slopes - spread - column.pull
        share = np.divide(extra, T, out=np.zeros_like(extra), where=T > 0)
        sigma = spread + variance * share
        if column.kappa > 0:
            sigma -= column.counts * (float(sigma.sum()) / column.total)
        beta = self.slopes + column.sides[:, None] * D * share
        for s, t in self.opposite:  # beyond its kink a row is on the other term's side
            beta[t] -= np.minimum(beta[s], 0.0)
        beta = np.clip(beta, 0.0, column.caps)
        return beta, sigma, self.x - column.alpha(beta, sigma)

    def move(self, step: np.ndarray, b: float) -> Generator[None, None, bool]:
        """Go along a step to the least objective; False where there is no way down."""
        column = self.column
        df = yield from self._product(step)
        dz = column.y * (df + b)
        square = float(step @ df)
        bend = square - float(dz @ column.spread(dz))
        slope = float(self.gradient @ df) - b * self.pulls
        if not slope < 0.0:
            return False
        length = self.loss.length(self.z, dz, slope, bend)
        if not np.isfinite(length):
            return False
        self.x, self.f, self.b = self.x + length * step, self.f + length * df, self.b + length * b
        self._settle()
        if self.gap <= SINGLE_GAP:
            yield from self.sharpened()
        return True

    def take_multipliers(self) -> Generator[None, None, None]:
        """Go to the coefficients of the multipliers at these margins, where they prove more.

        Coefficients of rows that cancel, as equal rows of opposite labels do, make no margins: no step moves them.
        """
        x, f, gap = self.x, self.f, self.gap
        self.x = self.x - self.gradient
        self.f = yield from self._product(self.x)
        self._settle()
        if not self.gap < gap:
            self.x, self.f = x, f
            self._settle()

    def sharpened(self) -> Generator[None, None, bool]:
        """Go over to products in double precision; False where they are that already."""
        if not self.single:
            return False
        self.tiles, self.single = _newton_cg_features(self.form).columns(single=False), False
        self.f = yield from self._product(self.x)
        self._settle()
        return True

    def report(self) -> Report:
        """The report of the multipliers: their coefficients, with the bound that they prove."""
        form, column = self.form, self.column
        found = feasible_dual(form, column, self.beta, self.sigma)
        near = np.abs(found.alpha - self.x).max() <= SAME_COEFFICIENTS * np.abs(self.x).max()
        alpha = found.alpha if near else self.x  # one product fewer for the certificate
        b = self.b if self.free else self.constant * float(alpha.sum())
        point = Point(self.beta, self.sigma, form.features.expand(alpha), b, alpha)
        return Report.estimated(self.objective, found.lower, point)

    def seconds_of_report(self) -> float:
        """Wall seconds of a report; none where w = 0, for which no time need be left, is better."""
        features = _newton_cg_features(self.form)
        return 0.0 if self.objective >= self.column.at_zero else features.seconds_of_decision(features.n_rows)
