"""Rows of any kind, such as strings or graphs, which kernels alone compare: numbers say which of them are equal."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from mdlearn.data.rows.rows import DenseRows, Selection


class ObjectRows(DenseRows):
    """Rows of objects, one each; as numbers, X of shape (m, 1) has one for all equal rows, and no other meaning."""

    objects: list[Any]

    def __init__(self, X: np.ndarray, objects: list[Any]) -> None:
        super().__init__(X)
        vars(self)["objects"] = objects

    @classmethod
    def of(cls, X: Any, key: Callable[[Any], Any], title: str) -> ObjectRows:
        """Return rows of a list of objects; TypeError or ValueError for anything but a list (or array) of one or more.

        Rows are equal where `key` is, and are sorted by it where it can be: so nothing depends on their order or
        repetition. Where keys have no hash, each row is one of its own.
        """
        if isinstance(X, ObjectRows):
            return X
        given = X.to_numpy() if hasattr(X, "to_numpy") else X
        listed = isinstance(given, (Sequence, np.ndarray)) and getattr(given, "ndim", 1) > 0
        if not listed or isinstance(given, (str, bytes)):
            raise TypeError(f"{title} compares objects; give X as a list of them, not {type(X).__name__}")
        objects = list(given)
        if not objects:
            raise ValueError("X has 0 rows; give at least one")
        return cls(_numbers_of_object_rows([key(one) for one in objects])[:, None], objects)

    def take(self, rows: Selection) -> ObjectRows:
        """Selected rows as `ObjectRows`."""
        which = range(len(self.objects))[rows] if isinstance(rows, slice) else np.arange(len(self.objects))[rows]
        return ObjectRows(self.X[rows], [self.objects[i] for i in which])

    __getitem__ = take


def _numbers_of_object_rows(keys: list[Hashable]) -> np.ndarray:
    """Numbers of rows by their keys: equal for equal keys, in the order of the keys where they have one."""
    try:
        distinct: list[Any] = list(dict.fromkeys(keys))
    except TypeError:
        return np.arange(float(len(keys)))
    try:
        distinct.sort()
    except TypeError:
        pass
    place = {key: float(i) for i, key in enumerate(distinct)}
    return np.array([place[key] for key in keys])
