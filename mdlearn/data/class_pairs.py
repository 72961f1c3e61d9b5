"""Pairs of classes: the data of the problems of a fit by pairs, gathered when they are asked for.

Of hundreds of classes there are tens of thousands of pairs: nothing is made for one whose turn never comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import overload

import numpy as np

from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.data.validation import Data


class ClassPairPositions(Sequence[np.ndarray]):
    """Positions of the rows of each pair of classes, ascending: all of them, or those of each class.

    `codes` (shape (m,)): class index of each row, of `k`; `rows`: what stands for each row, None: its position;
    `in_order`: whether rows of both classes are in one order; else those of the first come before those of the second.
    """

    def __init__(self, codes: np.ndarray, k: int, rows: np.ndarray | None = None, in_order: bool = True) -> None:
        self.sizes = np.bincount(codes, minlength=k)
        self.classes = list(combinations(range(k), 2))
        self.by_class, self._rows, self.in_order = np.argsort(codes, kind="stable"), rows, in_order
        self._parts = np.split(self.by_class, np.cumsum(self.sizes)[:-1])

    def __len__(self) -> int:
        return len(self.classes)

    @overload
    def __getitem__(self, j: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, j: slice) -> Sequence[np.ndarray]: ...
    def __getitem__(self, j: int | slice) -> np.ndarray | Sequence[np.ndarray]:
        if isinstance(j, slice):
            return [self[i] for i in range(*j.indices(len(self)))]
        low, high = self.classes[j]
        found = np.concatenate((self._parts[low], self._parts[high]))
        if self.in_order:
            found.sort()
        return found if self._rows is None else self._rows[found]


class ClassPairProblems:
    """Data of the problems of a fit by pairs of classes.

    `data`: rows of more than two classes; `square`: whether X is a Gram matrix; `in_order`: whether the rows of a pair
    keep their order; else they are class by class; `sizes`: number of rows of each pair of classes, and their weight.
    """

    def __init__(self, data: Data, square: bool, in_order: bool = True) -> None:
        k = data.classes.shape[0]
        self.data, self.square, self.pairs = data, square, ClassPairPositions(data.codes, k, None, in_order)
        (low, high), rows = np.triu_indices(k, 1), self.pairs.sizes
        weights = np.bincount(data.codes, weights=data.counts, minlength=k)
        self.sizes = list(zip((rows[low] + rows[high]).tolist(), (weights[low] + weights[high]).tolist()))

    def __len__(self) -> int:
        return len(self.pairs)

    def __getitem__(self, j: int) -> Data:
        """Data of a pair of classes: rows of its own, copied each time."""
        data, pairs = self.data, self.pairs
        rows, (low, high) = pairs[j], pairs.classes[j]
        if self.square:
            X: Rows = DenseRows(data.X.block(rows)[:, rows].astype(data.X.dtype, copy=False))
        else:
            X = data.X.take(rows)
        codes, classes = (data.codes[rows] == high).astype(np.intp), data.classes[[low, high]]
        return replace(data, X=X, codes=codes, counts=data.counts[rows], classes=classes, rows=data.rows[rows])

    @property
    def places(self) -> Sequence[np.ndarray]:
        """Positions of the rows of each problem among the caller's; holds none of the rows."""
        data = self.data
        return ClassPairPositions(data.codes, data.classes.shape[0], data.rows, self.pairs.in_order)

    @property
    def largest(self) -> int:
        """Number of rows of the largest problem."""
        return int(np.sort(self.pairs.sizes)[-2:].sum())
