"""Some rows of others, not copied: for what reads them once, or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.rows import Rows, Selection


@dataclass(frozen=True, eq=False)
class ChosenRows(Rows):
    """The rows `which` of `whole`. A product costs a pass over all of `whole`; engines get copies (`taken`).

    Attributes
    ----------
    whole : Rows of shape (n, d)
    which : ndarray of shape (m,), intp
    """

    whole: Rows
    which: np.ndarray

    @property
    def sparse(self) -> bool:  # type: ignore[override]
        """Whether those of `whole` are."""
        return self.whole.sparse

    @property
    def shape(self) -> tuple[int, int]:
        """(m, d)."""
        return int(self.which.shape[0]), self.whole.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.whole.dtype

    def taken(self) -> Rows:
        """A copy of the rows, of the type of `whole`."""
        return self.whole.take(self.which)

    def block(self, rows: Selection) -> np.ndarray:
        """Some rows as a dense float64 array."""
        return self.whole.block(self.which[rows])

    def take(self, rows: Selection) -> Rows:
        """A copy of some rows."""
        return self.whole.take(self.which[rows])

    def matrix(self) -> Any:
        """All rows in float64."""
        return self.taken().matrix()

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        """Inner products with other rows."""
        return self.taken().inner(others, centre)

    def dot(self, w: np.ndarray) -> np.ndarray:
        """X w, from a pass over `whole`."""
        return self.whole.dot(w)[self.which]

    def adjoint(self, v: np.ndarray) -> np.ndarray:
        """X' v, from a pass over `whole`."""
        return self.whole.adjoint(self._spread(v))

    def squares(self, scale: np.ndarray | None = None, centre: np.ndarray | None = None) -> np.ndarray:
        """Squared length of every row."""
        return self.whole.squares(scale, centre)[self.which]

    def column_squares(self, weights: np.ndarray) -> np.ndarray:
        """Weighted squared length of every column."""
        return self.whole.column_squares(self._spread(weights))

    def _spread(self, v: np.ndarray) -> np.ndarray:
        """Numbers of these rows as numbers of all rows of `whole`."""
        out = np.zeros((self.whole.shape[0], *v.shape[1:]))
        out[self.which] = v
        return out
