"""Q + R' D R for rows that have entries in one block of columns each: an arrow, solved block by block.

Without a variance term only the bias connects the blocks. A block with fewer rows of positive weight than columns is
solved through a matrix of the number of those rows (Woodbury). So a problem of K blocks costs what its blocks cost.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.blocks import BlockRows
from mdlearn.data.features import BLOCK_OPERATIONS, symmetric
from mdlearn.data.rows import COPY_BYTES, Rows, steps
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers import linalg
from mdlearn.solvers.systems import Map, RowSystem, Work


class BlockSystem(RowSystem):
    """Explicit rows of blocks, each row in one."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        super().__init__(form, column)
        assert isinstance(form.features.rows, BlockRows)
        self.blocks: BlockRows = form.features.rows
        self.most_restricted = int(COPY_BYTES / (8.0 * self.blocks.width))

    def setup(self) -> Work:
        """Nothing to prepare: Q is the ridge."""
        yield

    def quadratic(self, element: np.ndarray) -> np.ndarray:
        """Q times an element."""
        return self.ridge * element

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        """`decision` and `adjoint` of at most `most_restricted` rows."""
        part = self.blocks.take(rows)
        if not self.bias:
            return part.dot, part.adjoint
        return lambda element: part.dot(element[:-1]) + element[-1], lambda v: np.append(part.adjoint(v), v.sum())

    def factor(self, D: np.ndarray) -> Work:
        """Factor the blocks, then eliminate them from the bias."""
        rows, width = self.blocks, self.blocks.width
        root = np.sqrt(D[rows.layout.owner])
        self.parts: list[Map | None] = []
        border, left = np.zeros((rows.layout.n_blocks, width)), 0.0
        for k in range(rows.layout.n_blocks):
            start, stop = rows.layout.starts[k], rows.layout.starts[k + 1]
            used = start + np.flatnonzero(root[start:stop])
            if used.shape[0] == 0:
                self.parts.append(None)
                continue
            factored = _by_rows if used.shape[0] < width else _by_columns
            part, border[k], rest = yield from factored(rows.F, used, root[used])
            self.parts.append(part)
            left += rest
        if self.bias:
            corner = self.ridge[-1] + left
            # Nothing holds a free intercept without a row on a kink: it stays.
            self.border, self.corner = border.ravel(), corner if corner > 0 else 1.0

    def _inverse(self, rhs: np.ndarray) -> np.ndarray:
        """The blocks' inverses times a vector."""
        out = rhs.reshape(len(self.parts), -1).copy()
        for k, part in enumerate(self.parts):
            if part is not None:
                out[k] = part(out[k])
        return out.ravel()

    def solve(self, rhs: np.ndarray) -> np.ndarray:
        """Solve with the last factor; the border is that of the inverse already."""
        if not self.bias:
            return linalg.finite(self._inverse(rhs))
        b = (rhs[-1] - float(self.border @ rhs[:-1])) / self.corner
        return linalg.finite(np.append(self._inverse(rhs[:-1]) - b * self.border, b))

    @staticmethod
    def bytes_of(rows: Rows) -> float:
        """Bytes that factors take when all rows have a weight."""
        assert isinstance(rows, BlockRows)
        n, L = np.diff(rows.layout.starts).astype(np.float64), float(rows.width)
        return 8.0 * float(np.where(n < L, n * (n + L), L * L).sum())


Factored = Generator[None, None, tuple[Map, np.ndarray, float]]
"""Inverse of M = I + B'B as a function, M^-1 B' d, and d' (I + BB')^-1 d, for B = diag(d) F."""


def _by_rows(F: np.ndarray, used: np.ndarray, d: np.ndarray) -> Factored:
    """Through I + BB', for few rows."""
    B = F[used].astype(np.float64, copy=False) * d[:, None]
    N = yield from symmetric(B.shape[0], B.shape[1], lambda rows, columns: B[rows] @ B[columns].T)
    N[np.diag_indices_from(N)] += 1.0
    L = yield from linalg.cholesky_shifted(N)
    inner = linalg.solve(L, d)

    def once(r: np.ndarray) -> np.ndarray:
        return r - B.T @ linalg.solve(L, B @ r)

    def refined(r: np.ndarray) -> np.ndarray:
        # With large weights, the difference has lost digits.
        x = once(r)
        return x + once(r - x - B.T @ (B @ x))

    return refined, B.T @ inner, float(d @ inner)


def _by_columns(F: np.ndarray, used: np.ndarray, d: np.ndarray) -> Factored:
    """Through I + B'B, for few columns."""
    width = F.shape[1]
    M, h = np.eye(width), np.zeros(width)
    pieces = list(steps(used.shape[0], max(64, BLOCK_OPERATIONS // (2 * width * width))))
    for part in pieces:
        B = F[used[part]].astype(np.float64, copy=False) * d[part, None]
        M += B.T @ B
        h += B.T @ d[part]
        yield
    L = yield from linalg.cholesky_shifted(M)
    border = linalg.solve(L, h)
    # A sum of squares: the difference that it equals would lose its digits.
    left = float(border @ border)
    for part in pieces:
        rest = d[part] * (1.0 - F[used[part]] @ border)
        left += float(rest @ rest)
    return lambda r: linalg.solve(L, r), border, left
