"""Whitened column of the hybrid solver: rows in whose coordinates a variance term is part of the squared norm.

With M = I + kappa sum c_i x_i x_i' = L L', which has no signs, all classes share the rows X L^-T. That of a class is
A = M - kappa T v v', v its mean signed row and T the sum of the counts. With q = L^-1 v and g = kappa T / (1 - kappa T
|q|^2)::

    A^-1 = L^-T (I + g q q') L^-1

so that its rows are those and one entry more, sqrt(g) q'L^-1 x_i. The objective is that of the loss alone on such rows.
Coordinate ascent has no multipliers of the variance then, which it would move one by one, and the slower the larger the
variance is beside the norm.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
from scipy.linalg import blas, lapack

from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import COPY_BYTES, DenseRows, steps
from mdlearn.forms.margin import Column
from mdlearn.numerics import cholesky
from mdlearn.solvers.hybrid.loss_column import VISIT_OPERATIONS, LossColumn, LossColumnParts
from mdlearn.solvers.hybrid.metric import price_of_whitened_metric
from mdlearn.solvers.systems.whitening import LossColumnQuadratic, LossColumnWhitening

WHITENED_COLUMNS = 300
"""Columns up to which whitening every class anew costs less than it saves: usps, 0.66 to 1.16 of the time without."""
WHITENED_ENTRIES = 1 << 12
"""Entries of the rows below which steps in compiled code cost less than any preparation: bupa and haberman."""
WHITENED_GAIN = 0.1
"""Reach of a margin times mean eigenvalue of the variance term from which whitening pays. On 12 real sets, C from 0.01
to 1, gaps of 1e-2 to 1e-5: 0.74 to 0.94 of the time without at C >= 0.1, 0.93 to 1.4 below."""
CHEAP_WHITENING, DEAR_WHITENING = 0.5, 2.0
"""A share in a whitening, in prices of a sweep over rows as they are: up to the first it pays whatever the reach, below
the second at less of it in proportion. Shares of 0.2 to 0.4 on digits, soybean_large and four drawn sets of 10 to 26
classes, C from 0.01 to 10, gaps of 1e-2 to 1e-6: 0.55 to 1.16 of the time without, in the mean 0.8. Shares of 0.8 to
1.9 at C = 0.01 and a gap of 1e-2: 1.1 to 1.9."""
SETTLED_REACH, SMALL_VARIANCE = 2.5, 0.3
"""Reach of a margin over the square root of the tolerance, and mean eigenvalue of the variance term, up to which a few
sweeps over rows as they are end the fit, before a cheap whitening has paid. On the same sets, C from 0.003 to 0.03,
gaps of 1e-2 to 1e-4, fits take 0.73 to 1.1 of the time with it, in the mean 0.87; up to twice those reaches 0.85 to
1.06, beyond 0.9 to 2.0; with eigenvalues of 1 to 50 0.84 to 4.7, in most cases more than 1."""
MOST_WHITENING = 5e7
"""Rows times columns squared, for each class that shares them, up to which whitening pays. On drawn rows of two classes
it takes 1.2 to 1.4 (2,000 x 200) and 1.4 to 2 times the time without (100,000 x 51), beyond; on 13 real sets of at most
1.1e7 0.57 to 1.01; on the ten classes of usps (4.8e8) 0.3 to 0.6."""
LARGEST_SECOND_MOMENT = 1e6
"""Sum of the eigenvalues of kappa sum c x x' up to which whitened rows keep ten digits."""
WHITENED_OPERATIONS, LEAST_WIDTH = 1 << 26, 64
"""Operations of a piece of whitened rows, some milliseconds, where they have at least so many columns."""


class WhitenedColumn(LossColumn):
    """Whitened column of the hybrid solver: a loss without a variance term, on dense rows.

    Parameters
    ----------
    problem : LossColumn
    whitening : LossColumnWhitening
    """

    def __init__(self, problem: LossColumn, whitening: LossColumnWhitening) -> None:
        column, n = problem.column, problem.width
        means, place = problem.signed_means
        tilts = whitening.tilts(means)
        whitened = whitening.block(self)
        whitened[:, n] = tilts.last[place]
        rows = DenseRows(whitened)
        super().__init__(_whitened_without_variance(column), AffineRows(rows, False), tilts.squares[place], rows)
        self.problem, self.declared, self.L, self.tilted = problem, column, whitening.L, tilts.tilted[place]
        self.quadratic, self.mean_row = LossColumnQuadratic(None, None, False), tilts.mean_rows[place]

    def coefficients(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients of the rows as they were given, and their intercept."""
        return self.problem.coefficients(blas.dtrsv(self.L.T, w[:-1] + w[-1] * self.tilted, lower=0, trans=0))


def whitening_pays(problem: LossColumn, sharing: int = 1, tol: float = 0.0) -> bool:
    """Whether rows whitened for several columns cost less than steps along the multipliers of a variance term.

    `tol`: gap that is asked for, 0 where none is known.
    """
    column, n = problem.column, problem.width
    if column.kappa == 0 or problem.soft or column.start is not None or not isinstance(problem.stored, DenseRows):
        return False
    entries = problem.n_rows * n
    if n > WHITENED_COLUMNS or entries * n > sharing * MOST_WHITENING:
        return False
    if not WHITENED_ENTRIES <= entries <= COPY_BYTES / 8.0:
        return False
    moment = column.kappa * (float(problem.squares @ column.counts) + column.total * float(problem.rows.constant))
    if moment > LARGEST_SECOND_MOMENT:
        return False
    variance = (moment - column.kappa * column.total * float(problem.mean_row @ problem.mean_row)) / n
    share, reach = whitening_share(problem, sharing) if sharing > 1 else DEAR_WHITENING, problem.margin_reach()
    if share <= CHEAP_WHITENING:
        return variance > SMALL_VARIANCE or reach > SETTLED_REACH * math.sqrt(tol)
    return reach * variance > WHITENED_GAIN * min(1.0, share / DEAR_WHITENING)


def whitening_share(problem: LossColumn, sharing: int) -> float:
    """Price of a column's share of the whitening, in that of sweeps."""
    return price_of_whitened_metric(problem) / (sharing * (2.0 * problem.width + VISIT_OPERATIONS))


def whitened_column(problem: LossColumn, parts: LossColumnParts) -> Generator[None, None, WhitenedColumn]:
    """Return a column of the hybrid solver in coordinates in which its quadratic part is the identity."""
    counts, kappa, known = problem.column.counts, problem.column.kappa, parts.whitening
    if known is None or known.kappa != kappa or not np.array_equal(known.counts, counts):
        parts.whitening = known = yield from _whiten_column(problem, parts)
    return WhitenedColumn(problem, known)


def _whiten_column(problem: LossColumn, parts: LossColumnParts) -> Generator[None, None, LossColumnWhitening]:
    """Whiten the rows for all columns with the counts and the variance of this one."""
    counts, kappa = problem.column.counts, problem.column.kappa
    _, mean, about = yield from parts.scatters.of(counts)
    M = kappa * (about + np.multiply.outer(problem.column.total * mean, mean))
    M.flat[:: M.shape[0] + 1] += 1.0
    L = yield from cholesky.cholesky(M)
    (m, d), n = problem.rows.rows.shape, problem.width
    inverse = np.zeros((n + 1, n + 1), order="F")  # with the entry more
    inverse[:n, :n] = lapack.dtrtri(L.T, lower=0)[0]
    whitened, squares = np.empty((m, n + 1)), np.empty(m)
    whitened[:, d:n], whitened[:, n] = 1.0, 0.0
    for part in steps(m, WHITENED_OPERATIONS // (n * max(n, LEAST_WIDTH))):
        block = whitened[part]
        block[:, :d] = problem.rows.rows.block(part)
        # A product takes half the time of a triangular system with as few unknowns, in place as BLAS sees whole rows.
        blas.dtrmm(1.0, inverse, block.T, lower=0, trans_a=1, overwrite_b=1)
        squares[part] = np.einsum("ij,ij->i", block, block)
        yield
    return LossColumnWhitening(counts, kappa, L, whitened, squares)


def _whitened_without_variance(column: Column) -> Column:
    """Return a column without its variance term, with all that is known of it so far."""
    plain = object.__new__(type(column))
    vars(plain).update(vars(column), variance=0.0, kappa=0.0)
    return plain
