"""Cholesky factorisations in pieces of a few milliseconds, so that a fit can be interrupted between them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial

import numpy as np
from scipy.linalg import LinAlgError, blas, cho_factor, cho_solve, lapack

from mdlearn.numerics.pieces_in_threads import over_pieces

PANEL_COLUMNS = 256
PANEL_SOLVE_ROWS = 3000
"""Rows beyond which one solution is made by panels."""
VECTOR_SOLVE_ROWS = 64
"""Rows beyond which two triangular solutions for one vector take less time than LAPACK's routine, which is for many:
8.3 to 5.0 us of 124 rows, 39 to 13 of 288."""
ROWS_PER_PIECE = 512
"""Rows of a panel, or columns of solutions, that one thread works on at a time."""


class NotPositiveDefinite(ArithmeticError):
    """Error of a Cholesky factorisation that met a pivot which is not positive."""


def cholesky(A: np.ndarray) -> Generator[None, None, np.ndarray]:
    """Factor a C-ordered symmetric matrix in place: its lower triangle becomes L with A = L L'.

    Left-looking: each panel takes all earlier ones in one product, so the matrix is passed over once per panel and
    only its lower triangle is read. Yields between products.
    """
    n = A.shape[0]
    width = max(n, 1) if n <= 3 * PANEL_COLUMNS else PANEL_COLUMNS
    for k in range(0, n, width):
        e = min(k + width, n)
        if k:
            earlier = A[k:e, :k] @ A[k:e, :k].T
            np.copyto(earlier, 0.0, where=~np.tri(e - k, dtype=bool))  # the strict upper triangle stays
            A[k:e, k:e] -= earlier
        # The transpose of a C-ordered block is what LAPACK sees without a copy: upper there is lower here.
        corner, info = lapack.dpotrf(A[k:e, k:e].T, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            raise NotPositiveDefinite(f"pivot {k + info} of {n}")
        if not np.may_share_memory(corner, A):  # a whole matrix was factored in place
            A[k:e, k:e] = corner.T
        if e < n:
            yield from over_pieces(
                [slice(r, min(r + ROWS_PER_PIECE, n)) for r in range(e, n, ROWS_PER_PIECE)],
                partial(_fill_panel, A, slice(k, e), corner),
                partial(_piece_operations, k, e - k),
            )
            yield
    return A


def _piece_operations(before: int, width: int, piece: slice) -> float:
    """Floating-point operations of a piece of a panel of some width that takes the numbers before it."""
    return (2.0 * before + width) * width * (piece.stop - piece.start)


def _fill_panel(A: np.ndarray, panel: slice, corner: np.ndarray, rows: slice) -> None:
    """Make some rows of a panel of the factor, below its corner."""
    k = panel.start
    if k:
        A[rows, panel] -= A[rows, :k] @ A[panel, :k].T
    A[rows, panel] = blas.dtrsm(1.0, corner, A[rows, panel].T, side=0, lower=0, trans_a=1).T


def cholesky_shifted(A: np.ndarray) -> Generator[None, None, np.ndarray]:
    """Factor A in place, or A with a trace of its own diagonal added where rounding made it indefinite.

    For Newton directions only: a direction from a slightly larger matrix is still a descent direction.
    """
    diagonal = np.diagonal(A).copy()
    shift = 1e-15 * A.shape[0]
    for _ in range(4):
        try:
            return (yield from cholesky(A))
        except NotPositiveDefinite:
            # The strict upper triangle is untouched by a factorisation.
            upper = np.triu(A, 1)
            A[:] = upper + upper.T
            A[np.diag_indices_from(A)] = diagonal * (1.0 + shift)
            shift *= 100.0
    return (yield from cholesky(A))


def cholesky_solution(A: np.ndarray, b: np.ndarray) -> Generator[None, None, np.ndarray]:
    """Solve A x = b by Cholesky, one time, for a C-ordered matrix whose lower triangle is read and overwritten."""
    if 0 < A.shape[0] <= 3 * PANEL_COLUMNS:
        x, info = lapack.dposv(A.T, b, lower=0, overwrite_a=1)[1:]
        if info != 0:
            raise NotPositiveDefinite(f"pivot {info} of {A.shape[0]}")
        return finite_cholesky_solution(x)
    return finite_cholesky_solution(cholesky_solve((yield from cholesky(A)), b))


def finite_cholesky_solution(x: np.ndarray) -> np.ndarray:
    """Return a solution by Cholesky, or raise NotPositiveDefinite when it overflowed: that says as much as none."""
    if not np.isfinite(x).all():
        raise NotPositiveDefinite("a solution overflowed")
    return x


def cholesky_solve(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve L L' x = b for a factor made by `cholesky`."""
    n = L.shape[0]
    if n == 0:
        return b.copy()
    if n > PANEL_SOLVE_ROWS:
        return _cholesky_solve_by_panels(L, b)
    if n > VECTOR_SOLVE_ROWS and b.ndim == 1:
        x = blas.dtrsv(L.T, b, lower=0, trans=1)
        return blas.dtrsv(L.T, x, lower=0, trans=0, overwrite_x=1)
    x, info = lapack.dpotrs(L.T, b, lower=0)
    if info != 0:
        raise ValueError(f"dpotrs refused argument {-info}")
    return x


def _cholesky_solve_by_panels(L: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Solve L L' x = b by row panels: one call would read 8 n^2 bytes before Ctrl-C is seen."""
    x, n = np.array(b, dtype=np.float64), L.shape[0]
    one = x.ndim == 1
    x = x[:, None] if one else x
    panels = [slice(k, min(k + 2 * PANEL_COLUMNS, n)) for k in range(0, n, 2 * PANEL_COLUMNS)]
    for p in panels:
        x[p] -= L[p, : p.start] @ x[: p.start]
        x[p] = blas.dtrsm(1.0, L[p, p].T, x[p].T, side=1, lower=0, trans_a=0).T
    for p in reversed(panels):
        x[p] = blas.dtrsm(1.0, L[p, p].T, x[p], side=0, lower=0, trans_a=0)
        x[: p.start] -= L[p, : p.start].T @ x[p]
    return x[:, 0] if one else x


def cholesky_lower_solve(L: np.ndarray, B: np.ndarray) -> Generator[None, None, np.ndarray]:
    """Overwrite the C-ordered B with L^{-1} B for a Cholesky factor, by row panels, yielding between products."""
    n, width = B.shape
    for k in range(0, n, PANEL_COLUMNS):
        yield from over_pieces(
            [slice(c, min(c + ROWS_PER_PIECE, width)) for c in range(0, width, ROWS_PER_PIECE)],
            partial(_fill_lower_solution, L, B, slice(k, min(k + PANEL_COLUMNS, n))),
            partial(_piece_operations, k, PANEL_COLUMNS),
        )
        yield
    return B


def _fill_lower_solution(L: np.ndarray, B: np.ndarray, panel: slice, columns: slice) -> None:
    """Overwrite some columns of a panel of rows of B with the solution of the factor's lower system."""
    if k := panel.start:
        B[panel, columns] -= L[panel, :k] @ B[:k, columns]
    B[panel, columns] = blas.dtrsm(1.0, L[panel, panel].T, B[panel, columns].T, side=1, lower=0, trans_a=0).T


def cholesky_lower_inverse(L: np.ndarray, V: np.ndarray) -> Generator[None, None, np.ndarray]:
    """Overwrite V, given as the identity, with L^{-1} for a Cholesky factor, by row panels of its lower triangle."""
    n = L.shape[0]
    for k in range(0, n, PANEL_COLUMNS):
        e = min(k + PANEL_COLUMNS, n)
        if k:
            V[k:e, :k] = L[k:e, :k] @ V[:k, :k]
            V[k:e, :k] *= -1.0
        V[k:e, :e] = blas.dtrsm(1.0, L[k:e, k:e].T, V[k:e, :e].T, side=1, lower=0, trans_a=0).T
        yield
    return V


def nearly_inverse_by_cholesky(M: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return B -> V with M V = B, nearly, by a Cholesky factor of a semidefinite M; refinement does the rest."""
    trace = 10.0 * np.finfo(float).eps * float(np.diagonal(M).sum())
    while True:
        A = M.copy()
        A[np.diag_indices_from(A)] += trace if trace > 0 else 1.0
        try:
            factor = cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            trace *= 10.0
            continue
        return lambda B: cho_solve(factor, B, check_finite=False)
