"""Pairs of classes: the data of the problems of a fit by pairs, gathered when they are asked for.

Of hundreds of classes there are tens of thousands of pairs: nothing is made for one whose turn never comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import overload

import numpy as np

from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.data.validation import Data

KEPT_POSITIONS = 1 << 18
"""Pairs times rows up to which positions are kept: a model asks for those of each pair several times."""


class ClassPairPositions(Sequence[np.ndarray]):
    """Positions of the rows of each pair of classes, ascending: all of them, or those of each class.

    `codes` (shape (m,)): class index of each row, of `k`; `in_order`: whether rows of both classes are in one order;
    else those of the first come before those of the second.

    `low`, `high` (shape (p,)): classes of each pair; `sizes` (shape (k,)): rows of each class; `by_class` (shape (m,)):
    rows class by class, `spans` of each.
    """

    def __init__(self, codes: np.ndarray, k: int, in_order: bool = True) -> None:
        self.sizes, numbers = np.bincount(codes, minlength=k), np.arange(k)
        self.low = numbers.repeat(numbers[::-1])
        self.high = np.arange(self.low.shape[0]) + (self.low * (self.low + 3) - 2 * k * self.low) // 2 + 1
        self.by_class, self.rows, self.in_order = np.argsort(codes, kind="stable"), numbers[:0], in_order
        ends = self.sizes.cumsum().tolist()
        self.spans = list(map(slice, [0, *ends[:-1]], ends))
        self._kept: dict[int, np.ndarray] = {}

    def among(self, rows: np.ndarray) -> ClassPairPositions:
        """Return the same with what stands for each row in the place of its position."""
        found = copy(self)
        found.rows, found._kept = rows, {}
        return found

    def __len__(self) -> int:
        return self.low.shape[0]

    @overload
    def __getitem__(self, j: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, j: slice) -> Sequence[np.ndarray]: ...
    def __getitem__(self, j: int | slice) -> np.ndarray | Sequence[np.ndarray]:
        if isinstance(j, slice):
            return [self[i] for i in range(*j.indices(len(self)))]
        found = self._kept.get(j)
        if found is None:
            found = np.concatenate([self.by_class[self.spans[code]] for code in self.classes(j)])
            if self.in_order:
                found.sort()
            found = found if self.rows.shape[0] == 0 else self.rows[found]
            if len(self) * self.by_class.shape[0] <= KEPT_POSITIONS:
                self._kept[j] = found
        return found

    def classes(self, j: int) -> tuple[int, int]:
        """Return both classes of a pair."""
        return int(self.low[j]), int(self.high[j])


class ClassPairProblems:
    """Data of the problems of a fit by pairs of classes.

    `data`: rows of more than two classes; `square`: whether X is a Gram matrix; `in_order`: whether the rows of a pair
    keep their order; else they are class by class; `sizes`: number of rows of each pair of classes, and their weight.
    """

    def __init__(self, data: Data, square: bool, in_order: bool = True) -> None:
        k = data.classes.shape[0]
        self.data, self.square, self.pairs = data, square, ClassPairPositions(data.codes, k, in_order)
        low, high, rows = self.pairs.low, self.pairs.high, self.pairs.sizes
        weights = np.bincount(data.codes, weights=data.counts, minlength=k)
        self.sizes = list(zip((rows[low] + rows[high]).tolist(), (weights[low] + weights[high]).tolist()))

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, j: int) -> Data:
        """Data of a pair of classes: rows of its own, copied each time."""
        data, pairs = self.data, self.pairs
        rows, (low, high) = pairs[j], pairs.classes(j)
        if self.square:
            X: Rows = DenseRows(data.X.block(rows)[:, rows].astype(data.X.dtype, copy=False))
        else:
            X = data.X.take(rows)
        codes, classes = (data.codes[rows] == high).astype(np.intp), data.classes[[low, high]]
        return replace(data, X=X, codes=codes, counts=data.counts[rows], classes=classes, rows=data.rows[rows])

    @property
    def places(self) -> Sequence[np.ndarray]:
        """Positions of the rows of each problem among the caller's; holds none of the rows."""
        return self.pairs.among(self.data.rows)

    @property
    def largest(self) -> int:
        """Number of rows of the largest problem."""
        return int(np.sort(self.pairs.sizes)[-2:].sum())
