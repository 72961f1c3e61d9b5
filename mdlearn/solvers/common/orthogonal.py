"""Quadratics without a loss through an orthogonal factorisation: for a ridge that is tiny beside the variance.

With B the centred signed rows times sqrt(kappa c), D the ridge and g the mean signed row times a, the optimum is
(D + B'B) w = g. Forming B'B squares its condition, and the ridge is lost where it is below rounding of B'B. The QR
factorisation of the stack (B; D^(1/2)) keeps it::

    stack = Q R,   R' v = g,   R w = v,   (s; D^(1/2) w) = Q v

s = B w are the multipliers of the variance. From Q they have digits of their own; margins computed from w have lost
them where w is long, and with them every lower bound.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np
from scipy.linalg import lapack, solve_triangular

from mdlearn.forms.margin import Point
from mdlearn.numerics import memory
from mdlearn.solvers.base import Steps
from mdlearn.solvers.common.primal_dual import report_of
from mdlearn.solvers.systems.row_and_gram import RowSystem

PANEL_COLUMNS, OPERATIONS_PER_PIECE = 64, 1 << 30
"""Columns of a panel, and floating-point operations between two heartbeats: about 20 ms on one core."""
STIFF_STACK = 1e10
"""Sum of the squares of B, in units of the ridge, beyond which digits are worth a factorisation of twice the cost."""
STACK_ENTRIES = 3e8
"""Entries of a stack that is factored: 2.4 GB. Beyond, forming the matrix is what can be afforded."""
CORRECTIONS = 3


def orthogonal_is_worthwhile(system: RowSystem) -> bool:
    """Whether an orthogonal factorisation pays: no loss, a tiny ridge, a stack not too large; asked after `setup`."""
    column, m = system.column, system.features.n_rows
    if column.terms or system.no_ridge or column.kappa == 0 or (m + system.size) * system.size > STACK_ENTRIES:
        return False
    # The diagonal of Q, with what centring has taken from it.
    squares = np.diagonal(system.Q) - system.ridge + column.kappa * column.total * np.square(system.centre)
    return float((squares / system.metric).sum()) > STIFF_STACK


def solve_by_orthogonal_factors(system: RowSystem) -> Steps:
    """Yield the optimum of a quadratic from the orthogonal factorisation of its stack, then corrections of it."""
    form, column, n = system.form, system.column, system.size
    m = form.features.n_rows
    memory.require(16.0 * (m + n) * n, f"a factorisation of {m + n} x {n} numbers", "raise C or use a smaller basis")
    stack, root = np.zeros((m + n, n), order="F"), np.sqrt(column.kappa * column.counts)
    centre = system.centre
    for span in form.features.rows.spans():
        stack[span] = (column.y[span, None] * system.rows(span) - centre) * root[span, None]
        yield None
    stack[m + np.arange(n), np.arange(n)] = np.sqrt(system.ridge)
    reflections = yield from OrthogonalFactors.of(stack)
    g = column.mean * centre
    w, s, rest = np.zeros(n), np.zeros(m), g
    for _ in range(1 + CORRECTIONS):
        v = solve_triangular(reflections.R, rest, trans=1, check_finite=False)
        yield None
        s = s + reflections.apply(v)[:m]
        yield None
        w = w + solve_triangular(reflections.R, v, check_finite=False)
        if not (np.isfinite(w).all() and np.isfinite(s).all()):
            return
        point = Point(np.zeros((0, m)), -root * s, *system.split(w))
        yield report_of(form, column, point, column.y * system.decision(w))
        alpha = root * s
        rest = g - system.ridge * w - (system.adjoint(column.y * alpha) - float(alpha.sum()) * centre)


class OrthogonalFactors:
    """Orthogonal Q and triangle R of a tall matrix: reflections by panels; below its diagonal, R holds what is left."""

    def __init__(self, rows: int, panels: list[tuple[np.ndarray, np.ndarray]], R: np.ndarray) -> None:
        self.rows, self.panels, self.R = rows, panels, R

    @classmethod
    def of(cls, A: np.ndarray) -> Generator[None, None, OrthogonalFactors]:
        """Factor a Fortran-ordered matrix, which is overwritten; yield between pieces."""
        rows, n = A.shape
        panels = []
        for k in range(0, n, PANEL_COLUMNS):
            e = min(k + PANEL_COLUMNS, n)
            panel, tau, _, _ = lapack.dgeqrf(A[k:, k:e], lwork=(e - k) * PANEL_COLUMNS)
            step = max(PANEL_COLUMNS, OPERATIONS_PER_PIECE // (8 * (e - k) * (rows - k)))
            for c in range(e, n, step):
                piece = A[k:, c : c + step]
                A[k:, c : c + step] = lapack.dormqr("L", "T", panel, tau, piece, lwork=piece.shape[1] * PANEL_COLUMNS)[
                    0
                ]
                yield
            A[k:, k:e] = panel
            panels.append((panel, tau))
            yield
        R = np.array(A[:n], order="F")
        yield
        return cls(rows, panels, R)

    def apply(self, v: np.ndarray) -> np.ndarray:
        """Q (v; 0), for v of shape (n,) or (n, k)."""
        out = np.zeros((self.rows, 1 if v.ndim == 1 else v.shape[1]), order="F")
        out[: v.shape[0]] = v[:, None] if v.ndim == 1 else v
        for p in reversed(range(len(self.panels))):
            k = p * PANEL_COLUMNS
            panel, tau = self.panels[p]
            out[k:] = lapack.dormqr("L", "N", panel, tau, out[k:], lwork=out.shape[1] * PANEL_COLUMNS)[0]
        return out[:, 0] if v.ndim == 1 else out
