"""Whitened column of the hybrid solver: rows in whose coordinates a variance term is part of the squared norm.

With A = L L' and w = L^-T x, the objective 1/2 w'Aw - e'w + loss(R w) is 1/2 |x|^2 - (L^-1 e)'x + loss((R L^-T) x):
that of the loss alone, on other rows. Coordinate ascent on these has no multipliers of the variance, which it would
move one by one, and the slower the larger the variance is beside the norm.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import blas, lapack

from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import COPY_BYTES, DenseRows, steps
from mdlearn.forms.margin import Column
from mdlearn.solvers.hybrid.loss_column import ColumnQuadratic, LossColumn
from mdlearn.solvers.hybrid.newton_start import margin_reach

WHITENED_COLUMNS = 300
"""Columns up to which whitening every class anew costs less than it saves: usps, 0.66 to 1.16 of the time without."""
WHITENED_ENTRIES = 1 << 12
"""Entries of the rows below which steps in compiled code cost less than any preparation: bupa and haberman."""
WHITENED_GAIN = 0.1
"""Reach of a margin times mean eigenvalue of the variance term from which whitening pays. On 12 real sets, C from 0.01
to 1, gaps of 1e-2 to 1e-5: 0.74 to 0.94 of the time without at C >= 0.1, 0.93 to 1.4 below."""
MOST_WHITENING = 5e7
"""Rows times columns squared up to which whitening pays. On drawn rows it takes 1.2 to 1.4 (2,000 x 200) and 1.4 to 2
times the time without (100,000 x 51), beyond; on 13 real sets of at most 1.1e7 0.57 to 1.01."""
LARGEST_VARIANCE = 1e8
"""Sum of the eigenvalues of the variance term up to which whitened rows keep eleven digits."""
WHITENED_OPERATIONS, LEAST_WIDTH = 1 << 26, 64
"""Operations of a piece of whitened rows, some milliseconds, where they have at least so many columns."""


class WhitenedColumn(LossColumn):
    """Whitened column of the hybrid solver: a loss without a variance term, on dense rows X L^-T.

    Parameters
    ----------
    problem : LossColumn
    L : ndarray of shape (n, n)
        Cholesky factor of its quadratic part; the lower triangle is read.
    whitened : ndarray of shape (m, n)
    squares : ndarray of shape (m,)
        Squared lengths of these rows.
    """

    def __init__(self, problem: LossColumn, L: np.ndarray, whitened: np.ndarray, squares: np.ndarray) -> None:
        rows = DenseRows(whitened)
        super().__init__(_without_variance(problem.column), AffineRows(rows, False), squares, rows)
        self.problem, self.declared, self.L = problem, problem.column, L
        self.quadratic = ColumnQuadratic(None, None, False)

    def coefficients(self, w: np.ndarray) -> tuple[np.ndarray, float]:
        """L^-T w, the coefficients of the rows as they were given, and their intercept."""
        return self.problem.coefficients(blas.dtrsv(self.L.T, w, lower=0, trans=0))


def whitening_pays(problem: LossColumn) -> bool:
    """Whether whitened rows cost the hybrid solver less than steps along the multipliers of a variance term."""
    column, n = problem.column, problem.width
    if column.kappa == 0 or problem.soft or column.start is not None or not isinstance(problem.stored, DenseRows):
        return False
    entries = problem.n_rows * n
    if n > WHITENED_COLUMNS or entries * n > MOST_WHITENING or not WHITENED_ENTRIES <= entries <= COPY_BYTES / 8.0:
        return False
    v, squares = problem.mean_row, float(problem.squares @ column.counts)
    variance = column.kappa * (squares + column.total * (float(problem.rows.constant) - float(v @ v)))
    return variance <= LARGEST_VARIANCE and margin_reach(problem) * variance > WHITENED_GAIN * n


def whitened_column(problem: LossColumn, quadratic: ColumnQuadratic) -> Generator[None, None, WhitenedColumn]:
    """Return a column of the hybrid solver in coordinates in which its quadratic part is the identity."""
    L = quadratic.L
    assert L is not None
    (m, d), n = problem.rows.rows.shape, problem.width
    inverse = np.triu(lapack.dtrtri(L.T, lower=0)[0])
    whitened, squares = np.empty((m, n)), np.empty(m)
    for part in steps(m, WHITENED_OPERATIONS // (n * max(n, LEAST_WIDTH))):
        block = whitened[part]
        # A product takes half the time of a triangular system with as few unknowns.
        np.matmul(problem.rows.rows.block(part), inverse[:d], out=block)
        if d < n:
            block += inverse[d]
        squares[part] = np.einsum("ij,ij->i", block, block)
        yield
    return WhitenedColumn(problem, L, whitened, squares)


def _without_variance(column: Column) -> Column:
    """Return a column without its variance term, with all that is known of it so far."""
    plain = object.__new__(type(column))
    vars(plain).update(vars(column), variance=0.0, kappa=0.0)
    return plain
