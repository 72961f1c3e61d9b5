"""Row and Gram systems of engines: Q + R' D R solved over rows (d x d) or over a Gram matrix (m x m).

Q = ridge + kappa sum c_i (r_i - mean)(r_i - mean)' is the quadratic part of the objective and R holds the signed rows;
signs cancel in R' D R. Elements of the feature space are vectors of coefficients, with the intercept as last entry
where there is one. All systems answer the same calls (Sherman-Morrison-Woodbury turns one into the other), so the
engine is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np
from scipy.linalg import qr, solve_triangular

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import COPY_BYTES, SPAN_ENTRIES, Change, RowsInMemory, steps
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import SMALLEST_NORMAL
from mdlearn.numerics import cholesky
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.pieces_in_threads import over_pieces
from mdlearn.solvers.systems.scatter import Scatters
from mdlearn.solvers.systems.weighted_gram import (
    KnownWeightedGram,
    RunningWeightedGram,
    Work,
    copy_lower_weighted_gram,
    mirror_lower_weighted_gram,
)

Map = Callable[[np.ndarray], np.ndarray]
LOST_DIGITS = 1e-8
"""Difference of 1 and a sum close to it that has lost half its digits."""
FILLED_ENTRIES, FILLING_OPERATIONS = 1 << 17, 300.0
"""Entries of a matrix that stay in the cache while they are made, and operations that one costs: it is new memory."""
PASS_ROWS = 1 << 19
"""Rows of which numbers are changed at once: some milliseconds."""
UNRIDGED_SHIFT = 1e-10
"""Share by which the diagonal grows where an objective has no ridge: of directions only, never of the objective."""


def row_system_in_two_passes(
    system: RowSystem | GramSystem, element: np.ndarray, change: Change
) -> Generator[None, None, np.ndarray]:
    """Apply `RowSystem.through` or `GramSystem.through` in two passes, to what cannot be read by blocks."""
    f = system.decision(element)
    yield
    for rows in steps(f.shape[0], PASS_ROWS):
        f[rows] = change(rows, f[rows])
        yield
    return system.adjoint(f)


def stacked_row_triangle(stack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Triangle R by QR for a stacked row system, and its order of columns: rows are sorted by size first."""
    size = np.abs(stack).max(axis=1)
    if not np.isfinite(size).all():
        raise cholesky.NotPositiveDefinite("a row overflowed")
    triangle, pivots = qr(stack[np.argsort(-size, kind="stable")], mode="r", pivoting=True)
    return triangle[: stack.shape[1]], pivots


def solve_row_system(R: np.ndarray, pivots: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solve A' A x = rhs of a row system, with the triangle of stacked rows A; empty directions stay 0."""
    diagonal = np.abs(np.diagonal(R))
    rank = int((diagonal > 1e-300 + 1e-18 * diagonal[0]).sum())
    inner = solve_triangular(R[:rank, :rank], rhs[pivots[:rank]], trans=1, check_finite=False)
    out = np.zeros_like(rhs)
    out[pivots[:rank]] = solve_triangular(R[:rank, :rank], inner, check_finite=False)
    return out


class RowSystem:
    """Row system of explicit rows: matrices of size d (+ 1 with a bias), made by one pass over row blocks.

    `scatters`: sums over the rows that other columns use as well.
    """

    def __init__(self, form: MarginForm, column: Column, scatters: Scatters | None = None) -> None:
        assert isinstance(form.features, LinearFeatures)
        self.form, self.features = form, form.features
        self.column, self.scatters = column, scatters
        self.bias = form.bias != "none"
        self.affine = AffineRows(self.features.rows, self.bias)
        ridge = np.ones(self.features.width) if self.features.ridge is None else self.features.ridge
        ridge = np.append(ridge, float(form.bias == "regularized")) if self.bias else ridge
        self.ridge = form.ridge * ridge
        self.no_ridge = form.ridge == 0
        self.metric = np.where(self.ridge > 0, self.ridge, 1.0)
        self.size = self.ridge.shape[0]
        self.stiffness = 1.0  # largest diagonal entry of the matrix last factored, over the smallest ridge
        # `restrict` holds these rows, and a caller may hold those of another choice beside them.
        self.most_restricted = int(COPY_BYTES / (16.0 * self.ridge.shape[0]))

    def setup(self) -> Work:
        """Form Q from centred rows: subtracting the mean afterwards would cost digits when it dominates."""
        column, Q, scatters = self.column, self.ridge, self.scatters
        if column.kappa > 0:
            scatters = Scatters(self.affine) if scatters is None else scatters
            Q = yield from scatters.centred(column)
            Q *= column.kappa
            Q[np.diag_indices(self.size)] += self.ridge
        known = None if scatters is None else KnownWeightedGram(column.counts, scatters.add)
        self.sum = RunningWeightedGram(self.features.rows, self.bias, Q, known)

    @property
    def Q(self) -> np.ndarray:
        """The quadratic part as a matrix, after `setup`."""
        return np.diag(self.ridge) if self.sum.Q.ndim == 1 else self.sum.Q

    @kept
    def centre(self) -> np.ndarray:
        """Mean signed row."""
        return self.adjoint(self.column.counts * self.column.y) / self.column.total

    def rows(self, rows: slice | np.ndarray) -> np.ndarray:
        """Block of the chosen rows, with the constant column of a bias."""
        return self.affine.block(rows)

    def decision(self, element: np.ndarray) -> np.ndarray:
        """f on the training rows."""
        return self.affine.dot(element)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """Sum of v_i (x_i, 1)."""
        return self.affine.adjoint(v)

    def through(self, element: np.ndarray, change: Change) -> Generator[None, None, np.ndarray]:
        """`adjoint` of what `change` makes of `decision`, range by range."""
        rows = self.features.rows
        if not isinstance(rows, RowsInMemory):
            return (yield from row_system_in_two_passes(self, element, change))
        coef, intercept = self.split(element)
        total = 0.0

        def changed(piece: slice, f: np.ndarray) -> np.ndarray:
            nonlocal total
            f += intercept
            v = change(piece, f)
            total += float(v.sum())
            return v

        w = yield from rows.through(coef, changed)
        return np.append(w, total) if self.bias else w

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        """`decision` and `adjoint` of at most `most_restricted` rows."""
        held, d = self.features.rows, self.features.width
        X = np.ones((rows.shape[0], self.size))
        for part in steps(rows.shape[0], max(64, SPAN_ENTRIES // self.size)):
            X[part, :d] = held.block(rows[part])
        return lambda element: X @ element, lambda v: v @ X

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element."""
        return self.ridge * element if self.sum.Q.ndim == 1 else self.sum.Q @ element

    def factor(self, D: np.ndarray) -> Work:
        """Factor Q + R' D R."""
        self.L = yield from cholesky.cholesky_shifted((yield from self.matrix(D, UNRIDGED_SHIFT)))

    def matrix(self, D: np.ndarray, shift: float) -> Generator[None, None, np.ndarray]:
        """Q + R' D R, which can be factored: without a ridge its diagonal grows by a share."""
        yield from self.sum.to(D)
        M = copy_lower_weighted_gram(self.sum.M, np.empty_like(self.sum.M))
        mirror_lower_weighted_gram(M)
        if self.no_ridge:
            # Without a ridge, columns that depend on each other leave directions that nothing holds: they stay.
            diagonal = np.diagonal(M)
            M[np.diag_indices_from(M)] = np.where(diagonal > 0, (1.0 + shift) * diagonal, 1.0)
        elif self.bias and M[-1, -1] == 0:
            M[-1, -1] = 1.0  # nothing holds the intercept: it stays
        self.stiffness = float(np.diagonal(M).max() / self.metric.min())
        return M

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor."""
        return cholesky.finite_cholesky_solution(cholesky.cholesky_solve(self.L, rhs))

    def split(self, element: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of an element."""
        return (element[:-1], float(element[-1])) if self.bias else (element, 0.0)


class StackedRowSystem(RowSystem):
    """Row system through a QR factorisation of the stacked square roots, never forming Q + R' D R.

    For few rows and columns with very wide boxes: forming the matrix would lose the ridge beside D |x|^2, and with it
    every direction that the rows on a kink do not span.
    """

    def setup(self) -> Work:
        """Keep the square roots: ridge, and centred rows for the variance."""
        column, n = self.column, self.ridge.shape[0]
        self.X = self.rows(slice(None))
        parts = [np.diag(np.sqrt(self.ridge))]
        if column.kappa > 0:
            centred = self.X - np.multiply.outer(column.y, self.centre)
            parts.append(np.sqrt(column.kappa * column.counts)[:, None] * centred)
        # The rows of the ridge and of the variance as one triangle.
        self.base = np.linalg.qr(np.vstack(parts), mode="r") if len(parts) > 1 else parts[0][:n]
        yield

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element, through the margins."""
        z = self.column.y * self.decision(element)
        return self.ridge * element - self.adjoint(self.column.y * self.column.spread(z))

    def factor(self, D: np.ndarray) -> Work:
        """QR with sorted rows and pivoted columns: stable for rows of very different length."""
        used = np.flatnonzero(D)
        self.triangle, self.pivots = stacked_row_triangle(
            np.vstack([np.sqrt(D[used])[:, None] * self.X[used], self.base])
        )
        yield

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor; a direction that nothing holds (a free intercept) stays."""
        return cholesky.finite_cholesky_solution(solve_row_system(self.triangle, self.pivots, rhs))


class GramSystem:
    """Gram system: elements are representer coefficients; a regularized bias is the constant kernel 1."""

    def __init__(self, form: MarginForm, column: Column, G: np.ndarray) -> None:
        self.features = form.features
        self.column = column
        self.G = G
        self.bias = form.bias == "free"
        self.constant = 1.0 if form.bias == "regularized" else 0.0
        self.size = G.shape[0] + self.bias
        self.metric = np.ones(self.size)
        self.most_restricted = G.shape[0]

    def setup(self) -> Work:
        """Nothing to prepare."""
        yield

    def _gram(self, v: np.ndarray) -> np.ndarray:
        return self.G @ v + self.constant * float(v.sum())

    def decision(self, element: np.ndarray) -> np.ndarray:
        """f on the training rows."""
        return self._gram(element[:-1]) + element[-1] if self.bias else self._gram(element)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """Sum of v_i (phi_i, 1)."""
        return np.append(v, v.sum()) if self.bias else v

    def through(self, element: np.ndarray, change: Change) -> Generator[None, None, np.ndarray]:
        """`adjoint` of what `change` makes of `decision`, range by range."""
        return (yield from row_system_in_two_passes(self, element, change))

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        """`decision` and `adjoint` of at most `most_restricted` rows."""
        G = self.G[rows]

        def decision(element: np.ndarray) -> np.ndarray:
            coef, intercept = self.split(element)
            return G @ coef + intercept

        def adjoint(v: np.ndarray) -> np.ndarray:
            whole = np.zeros(self.G.shape[0])
            whole[rows] = v
            return self.adjoint(whole)

        return decision, adjoint

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element; the free intercept has no ridge."""
        column = self.column
        spread = -column.y * column.spread(column.y * self.decision(element))
        if self.bias:
            return np.append(element[:-1] + spread, spread.sum())
        return element + spread

    def factor(self, D: np.ndarray) -> Work:
        """Factor I + T^(1/2) G T^(1/2) with T = D + kappa c, over the rows where T > 0.

        The rank-one part of the centring and the border of a free intercept follow by two solves each.
        """
        column = self.column
        T = D + column.kappa * column.counts
        self.used = np.flatnonzero(T)
        self.root = np.sqrt(T[self.used])
        n = self.used.shape[0]
        B = np.empty((n, n))
        whole = n == D.shape[0]

        def fill(rows: slice) -> None:
            part = B[rows]
            np.add(self.G[rows] if whole else self.G[np.ix_(self.used[rows], self.used)], self.constant, out=part)
            part *= self.root[rows, None]
            part *= self.root

        pieces = steps(n, max(32, FILLED_ENTRIES // max(n, 1)))
        yield from over_pieces(pieces, fill, lambda rows: FILLING_OPERATIONS * n * (rows.stop - rows.start))
        yield
        B[np.diag_indices(n)] += 1.0
        self.L = yield from cholesky.cholesky_shifted(B)
        p = column.counts * column.y
        self.rank_one: tuple[np.ndarray, np.ndarray, float] | None = None
        if column.kappa > 0:
            q = self._smooth(p)
            weight, through = column.kappa / column.total, self._gram(q)
            left = 1.0 - weight * float(p @ through)
            if left < LOST_DIGITS:  # the same without a difference, because (I + T G) q = p
                left = max(float(column.y @ (q + D * through)) / column.total, SMALLEST_NORMAL)
            self.rank_one = (q, p, weight / left)
        if self.bias:
            ones = T - (column.kappa * column.label_mean) * p
            self.border = self._inverse(ones)

    def _smooth(self, g: np.ndarray) -> np.ndarray:
        """(I + T G)^{-1} g without dividing by T: rows where T is small are kept on the right-hand side."""
        used, root = self.used, self.root
        out = g.copy()
        big = root > 1.0
        inner = np.where(big, g[used] / np.where(big, root, 1.0), 0.0)
        rest = g.copy()
        rest[used[big]] = 0.0
        out[used[big]] = 0.0
        out[used] += root * cholesky.cholesky_solve(self.L, inner - root * self._gram(rest)[used])
        return out

    def _inverse(self, g: np.ndarray) -> np.ndarray:
        """(I + N G)^{-1} g with N = T - kappa p p' / m."""
        out = self._smooth(g)
        if self.rank_one is not None:
            q, p, weight = self.rank_one
            out += q * (weight * float(p @ self._gram(out)))
        return out

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor."""
        if not self.bias:
            return cholesky.finite_cholesky_solution(self._inverse(rhs))
        first = self._inverse(rhs[:-1])
        # Without a row on a kink and without variance nothing holds the intercept: it stays.
        hold = float(self.border.sum())
        b = (first.sum() - rhs[:-1].sum() + rhs[-1]) / hold if hold > 0 else 0.0
        return cholesky.finite_cholesky_solution(np.append(first - b * self.border, b))

    def split(self, element: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of an element."""
        if self.bias:
            return element[:-1], float(element[-1])
        return element, self.constant * float(element.sum())


class SubsetSystem:
    """Row or Gram system over a subset of rows: margins and sums of these; elements, Q and factorisations of all."""

    def __init__(self, system: RowSystem, rows: np.ndarray, n_rows: int) -> None:
        self.whole, self.chosen, self.n_rows, self.size = system, rows, n_rows, system.size
        self.decision, self.adjoint = system.restrict(rows)
        self.most_restricted, self.bias, self.metric = system.most_restricted, system.bias, system.metric
        self.solve, self.quadratic, self.split = system.solve, system.quadratic, system.split

    @property
    def stiffness(self) -> float:
        """That of the matrix last factored."""
        return self.whole.stiffness

    def factor(self, D: np.ndarray) -> Work:
        """Factor Q + R' D R of the chosen rows."""
        weights = np.zeros(self.n_rows)
        weights[self.chosen] = D
        yield from self.whole.factor(weights)

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        """`decision` and `adjoint` of some of the chosen rows."""
        return self.whole.restrict(self.chosen[rows])
