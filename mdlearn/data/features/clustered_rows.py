"""Rows that are zero but for a few dense blocks each: landmark features of x in the block of x's cluster."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers import blocks as kernel
from mdlearn.data.clustering.distances import assign, memberships
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.landmarks import landmark_projector
from mdlearn.data.rows.rows import SPAN_ENTRIES, Rows, Selection, steps
from mdlearn.data.rows.scratch import Room, ScratchPiece
from mdlearn.numerics import memory
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.lazy_property import kept


@dataclass(frozen=True, eq=False)
class Layout:
    """Layout of clustered rows: t blocks of each of m rows, kept block after block, so that BLAS takes all of one."""

    blocks: np.ndarray  # shape (m, t), intp: blocks of each row, ascending and distinct
    starts: np.ndarray  # shape (K + 1,), intp: entries starts[k] to starts[k + 1] - 1 belong to block k
    owner: np.ndarray  # shape (m t,), intp: row of each entry
    place: np.ndarray  # shape (m, t), intp: entries of each row, in the order of `blocks`

    @classmethod
    def of(cls, blocks: np.ndarray, n_blocks: int) -> Layout:
        """Arrange rows whose blocks are given, ascending; in each block rows keep their order."""
        m, t = blocks.shape
        flat = blocks.ravel()
        by = np.argsort(flat, kind="stable")
        place = np.empty(m * t, dtype=np.intp)
        place[by] = np.arange(m * t)
        starts = np.searchsorted(flat[by], np.arange(n_blocks + 1))
        return cls(blocks, starts, by // t, place.reshape(m, t))

    @property
    def n_blocks(self) -> int:
        """K."""
        return int(self.starts.shape[0]) - 1


@dataclass(frozen=True, eq=False)
class BlockRows(Rows):
    """Clustered rows: m rows of K blocks of L columns each, of which only t blocks per row are not zero.

    The K L columns are never written out, except by `block` and `matrix`.
    """

    F: np.ndarray  # shape (m t, L), float32 or float64: the blocks, in the order of `layout`
    layout: Layout
    model_dtype: np.dtype[Any] | None = field(default=None, kw_only=True)  # type that models have; None: that of F
    sparse: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.layout.place.shape[0]), self.layout.n_blocks * self.width

    @property
    def width(self) -> int:
        """L."""
        return int(self.F.shape[1])

    @property
    def separate(self) -> bool:
        """Whether every row is in one block alone."""
        return self.layout.place.shape[1] == 1

    @property
    def coupled(self) -> int:
        """L, if every row is in one block; else all columns."""
        return self.width if self.separate else self.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.entry_dtype if self.model_dtype is None else self.model_dtype

    @property
    def entry_dtype(self) -> np.dtype[Any]:
        dtype: np.dtype[Any] = self.F.dtype
        return dtype

    def take(self, rows: Selection) -> BlockRows:
        """Selected rows, as rows of blocks; a copy."""
        old = self.layout
        layout = Layout.of(old.blocks[rows], old.n_blocks)
        F = np.empty((layout.owner.shape[0], self.width), dtype=self.F.dtype)
        F[layout.place.ravel()] = self.F[old.place[rows].ravel()]
        return BlockRows(F, layout, model_dtype=self.model_dtype)

    def piece(self, rows: Selection, room: Room) -> ScratchPiece:
        """Selected rows for several products: block by block, where every row is in one block alone."""
        part = self.take(rows)
        return ClusteredRowsPiece(part, room) if self.separate else ScratchPiece(part.block(slice(None)), room)

    def block(self, rows: Selection) -> np.ndarray:
        part = self.take(rows)
        out = np.zeros((part.shape[0], self.layout.n_blocks, self.width))
        for k, some, B in part._pieces():
            out[part.layout.owner[some], k] = B
        return out.reshape(part.shape)

    def matrix(self) -> Any:
        """All rows as a CSR matrix of float64, with the zeros inside blocks."""
        from scipy.sparse import csr_matrix

        place, width = self.layout.place, self.width
        indices = self.layout.blocks[:, :, None] * width + np.arange(width)
        ends = np.arange(place.shape[0] + 1) * (place.shape[1] * width)
        data = self.F[place.ravel()].astype(np.float64, copy=False)
        return csr_matrix((data.ravel(), indices.ravel(), ends), shape=self.shape)

    def spans(self) -> Iterable[slice]:
        """Row ranges of at most SPAN_ENTRIES entries in blocks each."""
        return steps(self.shape[0], SPAN_ENTRIES // (self.layout.place.shape[1] * self.width))

    def largest(self) -> float:
        return float(np.max([np.abs(B).max(initial=0.0) for _, _, B in self._pieces()]))

    def dot(self, w: np.ndarray) -> np.ndarray:
        w = np.ascontiguousarray(w, dtype=np.float64)
        W = w.reshape(self.layout.n_blocks, self.width, *w.shape[1:])
        values = np.empty((self.F.shape[0], *w.shape[1:]))
        if w.ndim == 1:
            for part in self._ranges():
                kernel.dot(self.F, self.layout.starts, W, values, part.start, part.stop)
        else:
            for k, some, B in self._pieces():
                values[some] = B @ W[k]
        return self._summed(values)

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """X' v in float64, for v of shape (m,) or (m, k); rows of v = 0 cost nothing where v is one vector."""
        v = np.ascontiguousarray(v, dtype=np.float64)
        if v.ndim > 1:
            return self._collected(v, lambda B: B)
        out = np.zeros((self.layout.n_blocks, self.width))
        for part in self._ranges():
            kernel.adjoint(self.F, self.layout.starts, self.layout.owner, v, out, part.start, part.stop)
        return out.ravel()

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        return self._collected(weights, lambda B: B * B)

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        assert centre is None, "sparse rows stay where they are"
        inverse = None if scale is None else (1.0 / scale).reshape(self.layout.n_blocks, self.width)
        values = np.empty(self.F.shape[0])
        for k, some, B in self._pieces():
            values[some] = np.einsum("ij,ij->i", B, B) if inverse is None else (B * B) @ inverse[k]
        return self._summed(values)

    def scaled(self, by: np.ndarray) -> Rows:
        block_of = np.repeat(np.arange(self.layout.n_blocks), np.diff(self.layout.starts))
        return BlockRows(self.F * by.reshape(-1, self.width)[block_of], self.layout)

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        assert centre is None, "sparse rows stay where they are"
        if not others.sparse:
            return self.dot(others.block(slice(None)).T)
        if not isinstance(others, BlockRows):
            return others.inner(self).T
        out = np.zeros((self.shape[0], others.shape[0]))
        mine, theirs = self.layout, others.layout
        for k, some, B in self._pieces():
            other = slice(theirs.starts[k], theirs.starts[k + 1])
            out[np.ix_(mine.owner[some], theirs.owner[other])] += B @ others.F[other].T.astype(np.float64, copy=False)
        return out

    def _pieces(self) -> Iterator[tuple[int, slice, np.ndarray]]:
        """Block, range of entries and these in float64; of at most SPAN_ENTRIES numbers each."""
        starts = self.layout.starts
        for k in np.flatnonzero(starts[1:] > starts[:-1]).tolist():
            begin, n = int(starts[k]), int(starts[k + 1] - starts[k])
            for part in steps(n, SPAN_ENTRIES // self.width):
                some = slice(begin + part.start, begin + part.stop)
                yield k, some, self.F[some].astype(np.float64, copy=False)

    def _ranges(self) -> Iterable[slice]:
        """Ranges of entries for the compiled products, some milliseconds each."""
        return steps(self.F.shape[0], 16 * SPAN_ENTRIES // self.width)

    def _summed(self, values: np.ndarray) -> np.ndarray:
        """Sum of each row's entries."""
        place = self.layout.place
        return values[place[:, 0]] if place.shape[1] == 1 else values[place].sum(axis=1)

    def _collected(self, v: np.ndarray, of: Any) -> np.ndarray:
        """Sum of v_i times a function of the blocks, per column."""
        v = np.asarray(v, dtype=np.float64)[self.layout.owner]
        out = np.zeros((self.layout.n_blocks, self.width, *v.shape[1:]))
        for k, some, B in self._pieces():
            out[k] += of(B).T @ v[some]
        return out.reshape(self.shape[1], *v.shape[1:])


class ClusteredRowsPiece(ScratchPiece):
    """Piece of clustered rows that are in one block each: products take what is there.

    `rows` of shape (n, K L).
    """

    def __init__(self, rows: BlockRows, room: Room) -> None:
        self.rows, self.room = rows, room

    def dot(self, W: np.ndarray) -> np.ndarray:
        return self.rows.dot(W.T)

    def adjoint(self, A: np.ndarray) -> np.ndarray:
        return self.rows.adjoint(A).T

    def sizes(self, A: np.ndarray) -> np.ndarray:
        return BlockRows(np.abs(self.rows.F), self.rows.layout).adjoint(A).T

    def add_square(self, H: np.ndarray, weights: np.ndarray) -> None:
        """Add sum_i weights_i x_i x_i' to H: only its diagonal blocks change."""
        L = self.rows.width
        for k, some, B in self.rows._pieces():
            at = slice(k * L, (k + 1) * L)
            ScratchPiece(B, self.room).add_square(H[at, at], weights[self.rows.layout.owner[some]])

    def dense(self, which: Selection) -> np.ndarray:
        return self.rows.block(which)


class LazyClusteredRows(BlockRows):
    """Clustered rows of one block each, all of them made when the first is asked for."""

    made_when_asked = True
    separate = True

    def __init__(
        self, make: Callable[[], BlockRows], rows: int, n_blocks: int, width: int, model_dtype: np.dtype[Any]
    ) -> None:
        # The parent is frozen.
        vars(self).update(make=make, _size=(rows, n_blocks, width), model_dtype=model_dtype)

    make: Callable[[], BlockRows]  # makes the rows
    _size: tuple[int, int, int]

    @property
    def shape(self) -> tuple[int, int]:
        rows, n_blocks, width = self._size
        return rows, n_blocks * width

    @property
    def width(self) -> int:
        return self._size[2]

    @property
    def entry_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def complete(self) -> bool:
        return "_made" in vars(self)

    @kept
    def _made(self) -> BlockRows:
        return self.make()

    @property
    def F(self) -> np.ndarray:
        """The blocks."""
        return self._made.F

    @property
    def layout(self) -> Layout:
        """Where they lie."""
        return self._made.layout


def clustered_rows(
    rows: Rows, centers: np.ndarray, landmarks: np.ndarray, projection: Kernel, width: float | None = None
) -> Generator[None, Any, BlockRows]:
    """Clustered rows of landmark features: projections of x, in the block of its cluster; yields after a block of rows.

    Returned are rows of shape (m, K L), for K centres and L landmarks, in float64 as predictions count with them. Where
    it is told that the time is up, rows of one block each are left to be made when they are asked for. `width` is that
    of soft clusters: a row is then in several blocks, scaled by its weight in each (see `memberships`); None: in the
    block of the nearest centre only. See Zantedeschi, Emonet & Sebban, L3-SVMs (2017), section 2.
    """
    m, K, L = rows.shape[0], centers.shape[0], landmarks.shape[0]
    later = LazyClusteredRows(
        lambda: finished(clustered_rows(rows, centers, landmarks, projection)), m, K, L, rows.dtype
    )
    labels, weights = [], []
    step = max(1, SPAN_ENTRIES // max(K, L, 1 if rows.sparse else rows.shape[1]))
    for part in steps(m, step):
        if width is None:
            labels.append(assign(rows.take(part), centers)[:, None])
        else:
            found, by = memberships(rows.take(part), centers, width)
            order = np.argsort(found, axis=1)
            labels.append(np.take_along_axis(found, order, axis=1))
            weights.append(np.take_along_axis(by, order, axis=1))
        if (yield) and width is None:
            return later
    layout = Layout.of(np.concatenate(labels), K)
    size = float(layout.owner.shape[0]) * L * 8.0
    memory.require(size, f"{L} features of {m} rows", "lower n_landmarks")
    F, project = np.empty((layout.owner.shape[0], L)), landmark_projector(projection, landmarks, rows.sparse)
    for i, part in enumerate(steps(m, step)):
        mu = project(rows.take(part))
        F[layout.place[part]] = mu[:, None, :] if width is None else mu[:, None, :] * weights[i][:, :, None]
        if (yield) and width is None:
            return later
    return BlockRows(F, layout, model_dtype=rows.dtype)
