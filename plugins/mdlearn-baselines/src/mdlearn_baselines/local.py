"""Linear functions near centres: the features of CSVM, of one SVM per cluster and of LLSVM."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import (
    BLOCK_ENTRIES,
    BlockRows,
    CsrRows,
    Data,
    DenseRows,
    FeatureMap,
    Kernel,
    Layout,
    MappedFeatures,
    Parameter,
    Rows,
    array_of,
    assign,
    check_number,
    choose,
    distinct,
    in_time,
    memory,
    squared_distances,
    steps,
)

TOUCHING = 1e-12
"""Squared distance to an anchor, next to the squares it was subtracted from, that counts as none (sparse rows)."""


@dataclass(frozen=True, eq=False)
class LocalMap(FeatureMap):
    """(x, offset) times gamma_v(x) in block v of K centres, and times `shared` in a block of all rows.

    A model has f(x) = sum_v gamma_v(x) (w_v . x + b_v), plus its intercept. Dense rows become blocks (`BlockRows`),
    CSR rows stay CSR.

    Attributes
    ----------
    centers : ndarray of shape (K, d), float64
    nearest : int
        1: gamma is 1 for the nearest centre (ties: the lowest index), else 0. More: gamma is proportional to
        1 / |x - c_v| over so many nearest centres, with sum 1; a centre at x itself has all weight.
    offset : float
        Constant that stands beside x; 0: there is none.
    shared : float
        0: there is no shared block.
    """

    centers: np.ndarray
    nearest: int
    offset: float
    shared: float = 0.0

    @property
    def columns(self) -> int:
        """d."""
        return int(self.centers.shape[1])

    @property
    def width(self) -> int:
        """d + 1 features for every centre, and for all rows where there is a shared block."""
        return (self.centers.shape[0] + bool(self.shared)) * (self.columns + 1)

    def attributes(self) -> dict[str, np.ndarray]:
        """`centers_` of a model."""
        return {"centers_": self.centers}

    def shown(self, coef: np.ndarray) -> np.ndarray:
        """(w_v, b_v) of shape (p, K, d + 1), in the type of `coef`."""
        K = self.centers.shape[0]
        blocks = coef.astype(np.float64).reshape(coef.shape[0], -1, self.columns + 1)
        own = blocks[:, :K] + self.shared * blocks[:, K:] if self.shared else blocks
        own[:, :, -1] *= self.offset
        return own.astype(coef.dtype)

    def encoded(self) -> dict[str, Any]:
        """All attributes."""
        return {"centers": self.centers, "nearest": self.nearest, "offset": self.offset, "shared": self.shared}

    @classmethod
    def decoded(cls, values: Mapping[str, Any]) -> LocalMap:
        """The map of `encoded`."""
        nearest, offset, shared = int(values["nearest"]), float(values["offset"]), float(values["shared"])
        centers = array_of(values, "centers", None, None)
        if not (1 <= nearest <= centers.shape[0] and 0 <= offset < math.inf and 0 <= shared < math.inf):
            raise ValueError(f"nearest={nearest}, offset={offset} and shared={shared} make no map")
        return cls(centers, nearest, offset, shared)

    def members(self, A: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Centres of some rows, ascending, and their gamma; both of shape (n, nearest)."""
        if self.nearest == 1:
            return assign(A, self.centers)[:, None], np.ones((A.shape[0], 1))
        n, K = A.shape[0], self.centers.shape[0]
        near, gamma = np.empty((n, self.nearest), dtype=np.intp), np.empty((n, self.nearest))
        for part in steps(n, BLOCK_ENTRIES // K):
            away = self._distances(A.take(part))
            near[part] = np.sort(np.argsort(away, axis=1, kind="stable")[:, : self.nearest], axis=1)
            away = np.take_along_axis(away, near[part], axis=1)
            least = away.min(axis=1, keepdims=True)
            # least / away instead of 1 / away: a distance of 0 needs no case of its own.
            gamma[part] = np.divide(least, away, out=np.ones_like(away), where=away > least)
        return near, gamma / gamma.sum(axis=1, keepdims=True)

    def _distances(self, A: Rows) -> np.ndarray:
        """Distances of some rows to all centres; those of dense rows by plain differences."""
        if not A.sparse:
            from scipy.spatial.distance import cdist

            return np.asarray(cdist(A.block(slice(None)), self.centers))
        squares = A.squares()
        D = squared_distances(A, self.centers, squares)
        D[np.add.outer(squares, DenseRows(self.centers).squares()) * TOUCHING >= D] = 0.0
        return np.sqrt(D)

    def _placed(self, A: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Blocks of some rows, ascending, and the factor of (x, offset) in each."""
        blocks, factors = self.members(A)
        if not self.shared:
            return blocks, factors
        n, K = A.shape[0], self.centers.shape[0]
        return np.column_stack([blocks, np.full(n, K)]), np.column_stack([factors, np.full(n, self.shared)])

    def features(self, A: Rows) -> Any:
        """Features of some rows: blocks of dense rows, a CSR matrix of CSR rows."""
        if isinstance(A, CsrRows):
            return self._sparse(A)
        work = self._blocked(A)
        while True:
            try:
                next(work)
            except StopIteration as done:
                return done.value

    def rows(self, A: Rows) -> Generator[None, None, Rows]:
        """Features of training rows, in the type of `A`; yields after a block of rows each."""
        return (yield from super().rows(A) if A.sparse else self._blocked(A))

    def _blocked(self, A: Rows) -> Generator[None, None, BlockRows]:
        """Features of dense rows."""
        m, d = A.shape
        n_blocks, each = self.width // (d + 1), self.nearest + bool(self.shared)
        size = float(m) * each * (d + 1) * A.dtype.itemsize
        memory.require(size, f"{each} x {d + 1} features of {m} rows", "give fewer rows or columns")
        parts = list(steps(m, BLOCK_ENTRIES // max(n_blocks, each * (d + 1))))
        placed = []
        for part in parts:
            placed.append(self._placed(A.take(part)))
            yield
        layout = Layout.of(np.concatenate([blocks for blocks, _ in placed]), n_blocks)
        F = np.empty((m * each, d + 1), dtype=A.dtype)
        for part, (_, factors) in zip(parts, placed):
            E = np.column_stack([A.block(part), np.full(part.stop - part.start, self.offset)])
            F[layout.place[part]] = E[:, None, :] * factors[:, :, None]
            yield
        return BlockRows(F, layout)

    def _sparse(self, A: CsrRows) -> Any:
        """Features of CSR rows as a CSR matrix."""
        from scipy.sparse import csr_matrix, hstack

        blocks, factors = self._placed(A)
        n, each = blocks.shape
        E = hstack([A.matrix(), csr_matrix(np.full((n, 1), self.offset))], format="csr")
        entries = np.repeat(np.diff(E.indptr), each)
        E = E[np.repeat(np.arange(n), each)]
        shift = blocks.astype(np.int64).ravel() * (self.columns + 1)
        data = E.data * np.repeat(factors.ravel(), entries)
        return csr_matrix((data, E.indices + np.repeat(shift, entries), E.indptr[::each]), shape=(n, self.width))

    def scores(self, A: Rows, coef: np.ndarray) -> np.ndarray:
        """sum_v gamma_v(x) (w_v . x + b_v) of new rows, shape (n, p), float64; all K functions, then the near ones."""
        W = self.shown(coef.astype(np.float64, copy=False))
        p, K, _ = W.shape
        F, flat = np.empty((A.shape[0], p)), W.reshape(p * K, -1)
        for part in steps(A.shape[0], BLOCK_ENTRIES // max(p * K, 1 if A.sparse else self.columns)):
            B = A.take(part)
            near, gamma = self.members(B)
            values = (B.dot(flat[:, :-1].T) + flat[:, -1]).reshape(-1, p, K)
            F[part] = (np.take_along_axis(values, near[:, None, :], axis=2) * gamma[:, None, :]).sum(axis=2)
        return F


def optional_count(name: str, value: Any) -> int | None:
    """Check of a Setting that is a whole number >= 1, or None."""
    return None if value is None else int(check_number(value, name, low=1, integer=True))


OFFSET = Parameter(1.0, "constant beside x, whose coefficients are the centres' own intercepts; 0: none")


class Local(mdlearn.Objective):
    """What CSVM, one SVM per cluster and LLSVM have in common: centres by k-means, then a linear machine.

    A subclass says in `number` which parameter has the number of centres, and makes the map in `placed`.
    """

    default_bias: ClassVar[str] = "none"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr",)
    kernels: ClassVar[bool] = False
    feature_map: ClassVar[type[FeatureMap] | None] = LocalMap
    number: ClassVar[str] = "n_clusters"

    def placed(self, centers: np.ndarray, params: dict[str, Any]) -> LocalMap:
        """The map of these centres."""
        raise NotImplementedError

    def features(
        self, data: Data, kernel: Kernel, params: dict[str, Any], rng: np.random.Generator
    ) -> Generator[None, Any, MappedFeatures]:
        """Find the centres by mdlearn's weighted k-means over distinct rows, then make the features."""
        points, seed = distinct(data.X, data.counts), int(rng.integers(2**31))
        work = choose("kmeans", points, params[self.number], seed, self.number)
        place = self.placed((yield from in_time(work)), params)
        return MappedFeatures((yield from place.rows(data.X)), map=place)
