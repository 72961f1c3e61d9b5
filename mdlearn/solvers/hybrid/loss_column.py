"""Loss column of the hybrid solver: a loss per row, and a quadratic part with an explicit matrix or none.

In the coefficients w of rows (x, 1), with R the signed rows and e what the mean term pulls with::

    P(w) = 1/2 w'Aw - e'w + sum_i loss_i((R w)_i)        D(u) = sum_i bound_i(u_i) - 1/2 (R'u + e)' A^-1 (R'u + e)

A = I + kappa sum_i c_i (r_i - v)(r_i - v)', v the mean signed row. With g = A w - e - R'u, the slope at multipliers u,
R'u + e is A w - g: the dual value takes no pass over the rows beyond that of the slope.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.arrays import copied_by_rows
from mdlearn.data.rows.csr_rows import STORED_SHARE, CsrRows, csr_copy_of_dense_rows, share_worth_csr, worth_csr_copy
from mdlearn.data.rows.distinct import EqualRows
from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.forms.margin import Column, Point
from mdlearn.numerics import cholesky
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Report
from mdlearn.solvers.systems.narrow_rows import NarrowRows
from mdlearn.solvers.systems.scatter import MeansOfColumns, Scatters, SignedMeans
from mdlearn.solvers.systems.whitening import LossColumnQuadratic, LossColumnWhitening

DSYRK, DPOSV = cython_blas.__pyx_capi__["dsyrk"], cython_lapack.__pyx_capi__["dposv"]
WHOLE_BLOCK_ENTRIES = 1 << 17
"""Entries up to which steps in compiled code go over all rows as one dense block."""
FEW_ROWS_SHARE = 0.2
"""Share of dense rows up to which a product with these is worth their copy."""
VISIT_OPERATIONS = 24.0
"""What a visit of a row by coordinate ascent costs beside its entries, in operations on entries."""
OPERATION_ON_MATRIX = 0.25
"""Time of an operation on dense matrices, in that of one on entries of rows."""
NARROW_COLUMNS, NARROW_ENTRIES = 65, 1 << 19
"""Columns, the constant one included, and entries of dense rows up to which they are kept column by column."""
SMOOTH_NARROW_COLUMNS = 300
"""Columns of one dense block of rows up to which they are so for smooth losses: of 85 to 288 columns, ten sets and
parts of them, C from 0.01 to 100, fits take 0.6 to 0.9 of the time of steps by BLAS (promoters: 0.9 to 1.1)."""
STEEPNESS, FLAT_STEEPNESS, FLAT = 2.0, 8.0, 2.0
"""Steepness of the first envelopes, per cap: around half the caps, and where caps times |x|^2 are below the last."""
REACHED_STEEPNESS, STEEPEST_AT_ZERO = 1.6, 64.0
"""The same, times caps times |x|^2, where these are small: envelopes are then as wide as multipliers move margins. And
the largest. On seven narrow sets, C from 0.001 to 0.03, gaps of 1e-2 to 1e-6, ldm takes 0.93 of the time of
FLAT_STEEPNESS, and 0.75 on ann_thyroid."""


class LossColumnFactor(NamedTuple):
    """Cholesky factor of smooth second derivatives, L L' = diag(ridge) + R' diag(bends) R, and these bends of rows."""

    L: np.ndarray  # along a free bias there may be more
    bends: np.ndarray


SharedFactors = dict[int, LossColumnFactor]
"""Factors of second derivatives at w = 0, by the number of rows that they are of."""


def suits_narrow_loss_column(rows: AffineRows, smooth: bool = False) -> bool:
    """Whether rows are few enough columns, small enough, and not mostly zeros in CSR, to be kept column by column."""
    one, (m, d), width = rows.rows, rows.rows.shape, rows.width
    dense = isinstance(one, DenseRows)
    if dense and smooth and width <= SMOOTH_NARROW_COLUMNS and m * width <= WHOLE_BLOCK_ENTRIES:
        return True
    few = width <= NARROW_COLUMNS and m * width <= NARROW_ENTRIES
    return few and (dense or (isinstance(one, CsrRows) and one.n_entries >= STORED_SHARE * m * d))


class LossColumnWeights:
    """Weights of the rows in a loss column, which do not depend on signs: classes against the rest have them in common.

    `records` are what sweeps read of the rows but for their signs, (m, 8), once they are made.
    """

    def __init__(self, column: Column, squares: np.ndarray) -> None:
        self.column, self.squares, self.caps, self.softness = column, squares, column.caps[0], column.softness[0]
        self.records: np.ndarray | None = None

    @kept
    def cap(self) -> float:
        """Largest upper bound."""
        return float(self.caps[self.caps.argmax()])  # `max` takes twice as long over few rows

    @kept
    def mean_square(self) -> float:
        """Mean squared length of a row."""
        return float(self.squares.dot(self.column.counts)) / self.column.total


class LossColumnParts:
    """Parts that all loss columns of the hybrid solver share: squared row lengths, and scatters about the mean."""

    def __init__(
        self, rows: AffineRows, squares: np.ndarray, bias: str, sweeps: bool, columns: Sequence[Column] = ()
    ) -> None:
        self.columns, self.rows, self.squares, self.bias, self.sweeps = columns, rows, squares, bias, sweeps
        self.equal: EqualRows | None = None  # groups that the rows stand for
        self.factors: SharedFactors = {}
        self.weights: LossColumnWeights | None = None  # of the last column
        self.whitening: LossColumnWhitening | None = None  # of the last columns with a variance term
        # Sums over single rows skip the zeros of dense ones, where these are many: a small block is not worth a copy.
        self.stored = rows.rows
        if isinstance(rows.rows, DenseRows):
            X = rows.rows.X
            if X.shape[0] * rows.width > WHOLE_BLOCK_ENTRIES and worth_csr_copy(rows.rows):
                self.stored = csr_copy_of_dense_rows(rows.rows)
            elif sweeps and X.strides[1] != X.itemsize:
                self.stored = DenseRows(copied_by_rows(X))

    @kept
    def scatters(self) -> Scatters:
        """Sums of squares of the rows about means, kept for the columns that follow."""
        return Scatters(self.rows, self.stored)

    @kept
    def means(self) -> MeansOfColumns | None:
        """Mean signed rows of the columns of the form; None where these are not known."""
        return MeansOfColumns(AffineRows(self.stored, self.rows.constant), self.columns) if self.columns else None

    @kept
    def narrow(self) -> NarrowRows:
        """The rows column by column."""
        return NarrowRows(self.rows, len(self.columns) > 1)

    def quadratic(self, column: Column) -> Generator[None, None, LossColumnQuadratic]:
        """The quadratic part of a column."""
        if column.kappa == 0:
            return LossColumnQuadratic(None, None, self.bias == "free")
        A = yield from self.scatters.centred(column)
        A *= column.kappa
        A.flat[:: A.shape[0] + 1] += 1.0
        return LossColumnQuadratic(A, (yield from cholesky.cholesky(A.copy())), False)


class LossColumn:
    """Loss column of the hybrid solver: one hinge or logistic term over explicit rows, all or a sample.

    Attributes
    ----------
    column : Column
    declared : Column
        The column that the form has: `column`, but where that is written in other coordinates.
    rows : AffineRows
    quadratic : LossColumnQuadratic
        What Newton steps need, and sweeps do not; set by whoever takes such steps.
    caps, softness : ndarray of shape (m,)
    squares : ndarray of shape (m,)
        Squared length of every row, without its constant.
    stored : Rows
        The rows without the zeros of dense ones, where these are many.
    kink : float
    n_rows, width : int
        Number of rows, and of coefficients.
    soft : bool
        Whether the hinges are squared.
    factors : dict
        Factors at w = 0, which columns share.
    parts : LossColumnParts or None
        What the columns of a form have in common, for their mean signed rows.
    """

    quadratic: LossColumnQuadratic

    def __init__(
        self,
        column: Column,
        rows: AffineRows,
        squares: np.ndarray,
        stored: Rows,
        factors: SharedFactors | None = None,
        parts: LossColumnParts | None = None,
    ) -> None:
        self.parts = parts
        self.column, self.rows, self.squares, self.stored = column, rows, squares, stored
        self.factors, self.declared, self.y = {} if factors is None else factors, column, column.y
        weights = None if parts is None else parts.weights
        if weights is None or weights.column.caps is not column.caps:  # else they differ in signs alone
            weights = LossColumnWeights(column, squares)
        self.weights = weights
        if parts is not None:
            parts.weights = weights
        self.caps, self.softness, self.kink = weights.caps, weights.softness, column.terms[0].threshold
        self.n_rows, self.width, self.soft = self.caps.shape[0], rows.width, column.terms[0].kind == "squared"

    @kept
    def affine_stored(self) -> AffineRows:
        """The rows as passes over all of them go: without zeros where these are many."""
        return AffineRows(self.stored, self.rows.constant)

    @kept
    def pulled(self) -> np.ndarray | None:
        """e, what the mean term pulls with; None where there is none."""
        column = self.column
        return column.mean * self.mean_row if column.mean > 0 else None

    @kept
    def mean_row(self) -> np.ndarray:
        """v, the mean signed row."""
        found, place = self.signed_means
        return found.means[place]

    @kept
    def signed_means(self) -> tuple[SignedMeans, int]:
        """Mean signed rows of columns with this one among them, and its place."""
        means = None if self.parts is None else self.parts.means
        return (means or MeansOfColumns(self.affine_stored, (self.column,))).of(self.column)

    @kept
    def mean_pull(self) -> float:
        """Pull of the mean term on a free bias."""
        return float(self.column.y @ self.column.pull) if self.column.mean > 0 else 0.0

    def own_quadratic(self) -> Generator[None, None, LossColumnQuadratic]:
        """The quadratic part, set before."""
        return self.quadratic
        yield  # what makes this a generator

    def coefficients(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of the rows as they were given, and their intercept."""
        return (w[:-1], float(w[-1])) if self.rows.constant else (w, 0.0)

    def report(
        self,
        objective: float,
        lower_bound: float,
        beta: np.ndarray,
        z: np.ndarray,
        w: np.ndarray,
        alpha: np.ndarray | None,
    ) -> Report:
        """Report coefficients w with margins z, made of the numbers alpha where these are known, and multipliers."""
        column = self.declared
        sigma = column.spread(z)
        duals = None if alpha is None else column.y * (alpha + sigma + column.pull)
        point = Point(beta.copy()[None], sigma, *self.coefficients(w), alpha=duals)
        return Report.estimated(objective, lower_bound, point)

    def margins(self, w: np.ndarray) -> np.ndarray:
        """R w."""
        return np.asarray(self.y * self.affine_stored.dot(w)) if w.any() else np.zeros(self.n_rows)

    def adjoint(self, u: np.ndarray) -> np.ndarray:
        """R'u."""
        return self.affine_stored.adjoint(self.y * u)

    def adjoint_of_few(self, u: np.ndarray) -> np.ndarray:
        """R'u where much of u may be 0: passes over CSR rows skip these, and few of the others are taken first."""
        chosen = np.flatnonzero(u)
        if self.stored.sparse or chosen.shape[0] > FEW_ROWS_SHARE * self.n_rows:
            return self.adjoint(u)
        return AffineRows(self.stored.take(chosen), self.rows.constant).adjoint(self.y[chosen] * u[chosen])

    def block(self) -> np.ndarray:
        """Signed rows as one dense array."""
        rows, y, signed = self.rows.rows, self.y, np.empty((self.n_rows, self.width))
        plain = signed[:, : rows.shape[1]]
        if rows.sparse:  # a dense copy beside this one would be memory that goes back to the system
            rows.write(np.arange(self.n_rows), plain)
            plain *= y[:, None]
        else:
            np.multiply(rows.block(slice(None)), y[:, None], out=plain)
        signed[:, rows.shape[1] :] = y[:, None]
        return signed

    def loss(self, z: np.ndarray) -> float:
        """Sum of the loss at margins z."""
        term, share = self.column.shares[0]
        return term.value(z, share)

    def gain(self, u: np.ndarray) -> float:
        """Sum of bound_i(u_i), the part of the dual value that comes from the loss."""
        term, share = self.column.shares[0]
        return term.bound(u, share)

    def largest_bound_along(self, beta: np.ndarray, reached: np.ndarray) -> tuple[float, float]:
        """Dual value of squared hinges at the best multiple of beta >= 0, which makes `reached`; A = I."""
        linear, value, made = self.kink * float(beta.sum()), 0.0, reached
        if self.pulled is not None:
            made = reached - self.pulled
            linear, value = linear - float(self.pulled @ made), -0.5 * float(self.pulled @ self.pulled)
        bend = float((self.softness * beta) @ beta) + float(made @ made)
        length = linear / bend if linear > 0 else 0.0
        return value + length * (linear - 0.5 * length * bend), length

    @kept
    def nothing(self) -> np.ndarray:
        """Numbers that w = 0 is made of."""
        return -self.column.pull if self.column.pulled else np.zeros(self.n_rows)

    def from_sample(
        self, before: np.ndarray, some: LossColumn, alpha: np.ndarray, kept: float, step: int
    ) -> np.ndarray:
        """Numbers over all rows that coefficients are made of after steps over every so many-th row.

        They were made of `before`, of which a share is kept; the steps added alpha on the rows of the sample.
        """
        whole = kept * (before + self.column.pull)
        whole[::step] += alpha + (1.0 - kept) * some.column.pull
        return whole - self.column.pull

    @kept
    def few_entries(self) -> bool:
        """Whether dense rows are mostly zeros."""
        return isinstance(self.rows.rows, DenseRows) and share_worth_csr(self.rows.rows) < STORED_SHARE

    @kept
    def small(self) -> bool:
        """Whether all rows are one dense block for steps in compiled code."""
        return self.n_rows * self.width <= WHOLE_BLOCK_ENTRIES

    def sample(self, step: int) -> LossColumn:
        """Every so many rows, that many times as heavy."""
        column, chosen = self.column, np.arange(0, self.n_rows, step)
        weight = float(column.counts[chosen].sum())
        some = column.take(chosen, column.total / weight if weight > 0 else 1.0)
        rows = AffineRows(self.rows.rows.take(chosen), self.rows.constant)
        stored = rows.rows if self.stored is self.rows.rows else self.stored.take(chosen)
        found = LossColumn(some, rows, self.squares[chosen], stored, self.factors)
        found.quadratic = self.quadratic
        return found

    def start_weights(self) -> np.ndarray:
        """Weights of the rows in the coefficients of a start; those of 0 where it has none."""
        column, start = self.column, self.column.start
        if start is None or start.alpha is None:
            return self.nothing
        made: np.ndarray = column.y * start.alpha - column.pull
        return made - column.spread(self.margins(self.start_coefficients())) if column.kappa > 0 else made

    def start_coefficients(self) -> np.ndarray:
        """Coefficients of a start, with the intercept; zeros without one."""
        start = self.column.start
        if start is None:
            return np.zeros(self.width)
        return np.append(start.coef, start.intercept) if self.rows.constant else start.coef.copy()

    def records_of_rows(self) -> np.ndarray:
        """Eight numbers a row, as sweeps read them, with multipliers of 0."""
        weights, records = self.weights, self.weights.records
        if records is None:
            records = np.zeros((self.n_rows, 8))
            records[:, 1] = self.squares + float(self.rows.constant) + weights.softness
            records[:, 2], records[:, 3] = weights.caps, weights.softness
            if self.parts is not None and len(self.parts.columns) > 1:
                weights.records = records.copy()
        else:
            records = records.copy()
        records[:, 0] = self.y
        return records

    def margin_reach(self) -> float:
        """Move of an average margin while its multiplier grows to its upper bound, or by the steepness."""
        most = self.column.terms[0].steepest if self.soft else self.weights.cap
        return most * self.weights.mean_square

    def steepness_at_zero(self) -> float:
        """Steepness of the first envelopes on hinges at w = 0, around half the caps."""
        cap = self.weights.cap
        reach = cap * self.weights.mean_square
        if reach > FLAT:
            return STEEPNESS * cap
        steepest = REACHED_STEEPNESS / reach if reach * STEEPEST_AT_ZERO > REACHED_STEEPNESS else STEEPEST_AT_ZERO
        return max(FLAT_STEEPNESS, steepest) * cap


class LossColumnOfChosenRows(LossColumn):
    """Part of a loss column of the hybrid solver: chosen rows at their weights, as they were given or are stored."""

    def __init__(self, whole: LossColumn, chosen: np.ndarray, stored: bool = False) -> None:
        self.whole, self.chosen, self.quadratic = whole, chosen, whole.quadratic
        rows = whole.stored if stored else whole.rows.rows
        self.rows = AffineRows(rows.take(chosen), whole.rows.constant)
        self.stored = self.rows.rows
        self.caps, self.softness, self.kink = whole.caps[chosen], whole.softness[chosen], whole.kink
        self.y, self.soft = whole.column.y[chosen], whole.soft
        self.n_rows, self.width = self.caps.shape[0], whole.width
