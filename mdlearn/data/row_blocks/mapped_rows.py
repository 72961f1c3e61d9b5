"""Rows of features that a map makes when they are asked for: nothing of their size is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.rows.rows import Rows, Selection
from mdlearn.data.rows.scratch import Piece, Room


@dataclass(frozen=True, eq=False)
class MappedRows(Rows):
    """Features of rows, shape (m, map.width).

    Attributes
    ----------
    source : Rows of shape (m, d)
    map : FeatureMap
    """

    source: Rows
    map: FeatureMap

    @property
    def shape(self) -> tuple[int, int]:
        """(m, n)."""
        return self.source.shape[0], self.map.width

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of the rows."""
        return self.source.dtype

    def take(self, rows: Selection) -> Rows:
        """Features of some rows, computed."""
        return self.map.checked(self.source.take(rows))

    def block(self, rows: Selection) -> np.ndarray:
        """Features of some rows as a dense float64 array."""
        return self.take(rows).block(slice(None))

    def piece(self, rows: Selection, room: Room) -> Piece:
        """Features of some rows, as they are multiplied fastest."""
        return self.take(rows).piece(slice(None), room)

    def matrix(self) -> Any:
        """All features in float64."""
        return self.take(slice(None)).matrix()

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        """Inner products with other rows, float64 and dense."""
        return self.take(slice(None)).inner(others, centre)
