"""Class contrasts, rows of a joint problem: x in the block of one class, -x in the block of another."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np

from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import SPAN_ENTRIES, Rows, Selection, steps
from mdlearn.numerics import memory
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.lazy_property import kept

ENTRIES_PER_PIECE = 1 << 19
"""Entries that are written out at once, some 20 ms."""


class ContrastRows(CsrRows):
    """Class contrasts: rows e_own x' - e_other x' over k blocks of columns, written out for the compiled sweeps only.

    With W of shape (k, d) laid out block after block, their products with W are (w_own - w_other) . x. All products are
    made from those of X; only `X`, which compiled loops read, holds the entries.

    `own`, `other` (shape (n,), intp): its two blocks, different ones.
    """

    def __init__(
        self, base: Rows, index: np.ndarray, own: np.ndarray, other: np.ndarray, k: int, constant: bool
    ) -> None:
        # The parent is frozen.
        vars(self).update(base=base, index=index, own=own, other=other, k=k, constant=constant)

    base: Rows  # shape (m, d)
    index: np.ndarray  # shape (n,), intp: row of `base` behind each row
    own: np.ndarray
    other: np.ndarray
    k: int  # number of blocks
    constant: bool  # whether every block ends with a column of ones

    @property
    def shape(self) -> tuple[int, int]:
        """(n, k d), or (n, k (d + 1)) with constants."""
        return int(self.index.shape[0]), self.k * self._width

    @property
    def _width(self) -> int:
        """Columns of a block."""
        return self.base.shape[1] + self.constant

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.base.dtype

    @property
    def entry_dtype(self) -> np.dtype[Any]:
        """Type of the numbers of `base`."""
        return self.base.entry_dtype

    @kept
    def X(self) -> Any:
        """The rows as a CSR matrix of the type of their entries, made when first asked for."""
        return finished(self.written())

    def written(self) -> Generator[None, None, Any]:
        """Write out the rows in interruptible pieces, once."""
        found = vars(self).get("X")
        if found is None:
            found = vars(self)["X"] = yield from self._written()
        return found

    def _written(self) -> Generator[None, None, Any]:
        from scipy.sparse import csr_matrix, hstack

        dtype, width = self.entry_dtype, self._width
        B = csr_matrix(self.base.matrix(), dtype=dtype)
        if self.constant:
            B = hstack([B, np.ones((B.shape[0], 1), dtype=dtype)], format="csr")
        ends = np.concatenate([[0], np.cumsum(2 * np.diff(B.indptr)[self.index], dtype=np.int64)])
        memory.require(20.0 * ends[-1], f"writing out {self.shape[0]} rows of a joint problem", "use fewer rows")
        whole = np.int32 if max(ends[-1], self.shape[1]) <= np.iinfo(np.int32).max else np.int64
        data, indices = np.empty(ends[-1], dtype), np.empty(ends[-1], whole)
        for span in steps(self.shape[0], ENTRIES_PER_PIECE * self.shape[0] // max(1, int(ends[-1]))):
            own, other = self.own[span], self.other[span]
            blocks, signs = np.column_stack([own, other]), np.where(own < other, 1.0, -1.0).astype(dtype)
            blocks.sort(axis=1)
            # Both halves of a row lie next to each other: as two rows first, then without the border between them.
            twice = B[np.repeat(self.index[span], 2)]
            lengths, out = np.diff(twice.indptr), slice(ends[span.start], ends[span.stop])
            data[out] = twice.data * np.repeat(np.column_stack([signs, -signs]).ravel(), lengths)
            indices[out] = twice.indices + np.repeat(blocks.ravel() * width, lengths)
            yield
        return csr_matrix((data, indices, ends.astype(whole)), shape=self.shape)

    def block(self, rows: Selection) -> np.ndarray:
        index, d = self.index[rows], self.base.shape[1]
        x, each = self.base.block(index), np.arange(index.shape[0])
        out = np.zeros((index.shape[0], self.k, self._width))
        for blocks, sign in ((self.own[rows], 1.0), (self.other[rows], -1.0)):
            out[each, blocks, :d] = sign * x
            out[each, blocks, d:] = sign
        return out.reshape(index.shape[0], self.shape[1])

    def take(self, rows: Selection) -> ContrastRows:
        """Selected rows, of the same base."""
        return ContrastRows(self.base, self.index[rows], self.own[rows], self.other[rows], self.k, self.constant)

    def spans(self) -> Iterable[slice]:
        """Row ranges of at most SPAN_ENTRIES entries each."""
        return steps(self.shape[0], SPAN_ENTRIES // (2 * self._width))

    def largest(self) -> float:
        return self.base.largest()

    def dot(self, w: np.ndarray) -> np.ndarray:
        """Products with w in float64, for w of shape (k d,) or (k d, q)."""
        w = np.asarray(w, dtype=np.float64)
        d = self.base.shape[1]
        W = np.moveaxis(w.reshape(self.k, self._width, -1), 0, 1)
        F = self.base.dot(W[:d].reshape(d, -1)).reshape(self.base.shape[0], self.k, W.shape[2])
        if self.constant:
            F = F + W[d]
        return (F[self.index, self.own] - F[self.index, self.other]).reshape(self.shape[0], *w.shape[1:])

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """Sum of v_i times the rows, shape (k d,)."""
        V = self.per_class(v)
        return self._blocks(self.base.adjoint(V).T, V.sum(axis=0))

    def per_class(self, v: np.ndarray) -> np.ndarray:
        """Coefficients of the rows of `base` in every block, shape (m, k), that v_i of these rows amount to."""
        return self._summed(self.own, v) - self._summed(self.other, v)

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        """sum_j a_ij^2 / scale_j of every row, float64."""
        assert centre is None, "sparse rows stay where they are"
        d = self.base.shape[1]
        if scale is None:
            square: np.ndarray = 2.0 * (self.base.squares()[self.index] + self.constant)
            return square
        each = [self.base.squares(part[:d]) + (1.0 / part[d:]).sum() for part in scale.reshape(self.k, -1)]
        S = np.column_stack(each)
        return np.asarray(S[self.index, self.own] + S[self.index, self.other])

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        V = self._summed(self.own, weights) + self._summed(self.other, weights)
        return self._blocks(np.array([self.base.column_squares(v) for v in V.T]), V.sum(axis=0))

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        if not isinstance(others, ContrastRows):
            return super().inner(others, centre)
        assert centre is None, "sparse rows stay where they are"
        # A row of `base` is behind up to k - 1 of these.
        (mine, here), (theirs, there) = (np.unique(r.index, return_inverse=True) for r in (self, others))
        G = (self.base.take(mine).inner(others.base.take(theirs)) + self.constant)[np.ix_(here, there)]
        same = np.zeros(G.shape)
        for blocks, sign in ((self.own, 1.0), (self.other, -1.0)):
            same += sign * (np.equal.outer(blocks, others.own) * 1.0 - np.equal.outer(blocks, others.other))
        return np.asarray(G * same)

    def _summed(self, blocks: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Sums of v over the rows with the same base row and block, shape (m, k)."""
        m = self.base.shape[0]
        return np.bincount(self.index * self.k + blocks, weights=v, minlength=m * self.k).reshape(m, self.k)

    def _blocks(self, W: np.ndarray, constants: np.ndarray) -> np.ndarray:
        """Rows (k, d) of values, and one per constant column, in the order of the columns."""
        return np.column_stack([W, constants]).ravel() if self.constant else W.ravel()


def class_contrasts(base: Rows, codes: np.ndarray, k: int, constant: bool) -> ContrastRows:
    """Class contrasts e_(own class) x' - e_other x' of all rows, shape (m (k - 1), k d): those of one x in sequence."""
    m = base.shape[0]
    index = np.repeat(np.arange(m), k - 1)
    own = codes[index]
    # The classes but one's own, in order.
    other = np.tile(np.arange(k - 1), m)
    return ContrastRows(base, index, own, other + (other >= own), k, constant)
