"""Feature map of an objective: features of training rows at fit, of new rows in a model, and as plain values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.arrays import LARGEST_ENTRY, check_rows
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, RowsInMemory, Selection, read_only_rows
from mdlearn.data.rows.scratch import Room, ScratchPiece
from mdlearn.errors import call_with_error_notes, came, faulty
from mdlearn.numerics import memory
from mdlearn.numerics.lazy_property import kept

FIRST_BLOCK_ROWS = 64
"""Rows of the first block: it tells how many entries a row of features has."""


class FeatureMap(ABC):
    """Feature map phi(x) of f(x) = w . phi(x) + b: what an objective makes of rows, and a model of new rows.

    A subclass has what was found on the training rows (centres, scales) as attributes, and writes `columns`, `width`,
    `features`, `encoded` and `decoded`. The rest follows, and can be overridden where there is a shorter way. Its
    objective names it as `Objective.feature_map`: so a model file needs no name of a class, and loading executes
    nothing that comes from the file.

    Attributes
    ----------
    linear : bool
        Whether decision values are linear in coefficients. Where they are not, `scores` says what they are, `width` is
        the number of coefficients of one problem, and `features` may raise.
    """

    linear: ClassVar[bool] = True

    @property
    def approximation(self) -> str | None:
        """Name of the kernel approximation behind these features; None: there is none."""
        return None

    @property
    @abstractmethod
    def columns(self) -> int:
        """Columns that X needs to have."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of features: the length of w."""

    @abstractmethod
    def features(self, A: Rows) -> Any:
        """Features of some rows, which `A.block(slice(None))` shows as a dense float64 array and `A.matrix()` as kept.

        Parameters
        ----------
        A : Rows of shape (n, columns)

        Returns
        -------
        array, sparse matrix or Rows of shape (n, width)
            Each row may depend on that row of `A` alone. Numbers become float64, also those of float32 rows.
        """

    @abstractmethod
    def encoded(self) -> Mapping[str, Any]:
        """Values that a model file holds; ValueError for code, which no file holds.

        Returns
        -------
        mapping of str to object
            Numbers, strings, None, and arrays of numbers.
        """

    @classmethod
    @abstractmethod
    def decoded(cls, values: Mapping[str, Any]) -> Self:
        """Make the map of what `encoded` returned; ValueError for values that make none (a file may be damaged).

        Parameters
        ----------
        values : mapping of str to object
            See `array_of`.

        Returns
        -------
        FeatureMap
        """

    def attributes(self) -> dict[str, np.ndarray]:
        """Arrays that a model has as attributes: here none.

        Returns
        -------
        dict of str to ndarray
        """
        return {}

    def shown(self, coef: np.ndarray) -> np.ndarray:
        """Array that a model shows as `coef_`: here the coefficients themselves.

        Parameters
        ----------
        coef : ndarray of shape (p, width)
            Coefficients of p problems.

        Returns
        -------
        ndarray
        """
        return coef

    def folded(self, coef: np.ndarray) -> np.ndarray | None:
        """Coefficients of x itself by cluster, which a model shows as `folded_coef_`; None: there are none."""
        return None

    def over(self, kernel: Kernel) -> Kernel:
        """Return `kernel` between features; here ValueError: they are explicit rows."""
        raise ValueError(f"{type(self).__name__} makes explicit rows; kernel {kernel.name!r} has none")

    def rows(self, A: Rows) -> Generator[None, Any, Rows]:
        """Features of training rows, float64 as for new rows; yields after a block of rows each.

        Parameters
        ----------
        A : Rows of shape (m, columns)

        Returns
        -------
        generator
            Yields None, and returns Rows of shape (m, width). Where it is told that the time is up, dense rows are
            left to be made when they are asked for: w = 0 needs none.

        Raises
        ------
        InsufficientMemory
            When they would not fit, as far as the first rows tell.
        ValueError, TypeError
            When `features` returns another shape, or numbers that are not finite.
        """
        parts, out = [], None
        for part, made in self._blocks(A):
            if part.start == 0:
                size = float(A.shape[0]) * _feature_map_bytes(made) / made.shape[0]
                memory.require(size, f"{self.width} features of {A.shape[0]} rows", "ask for fewer features")
                out = None if made.sparse else np.empty((A.shape[0], self.width))
            if out is None:
                parts.append(made.X if isinstance(made, CsrRows) else made.matrix())
            else:
                out[part] = made.block(slice(None))
            if (yield) and out is not None:
                return LazyFeatureMapRows(A, self)
        if out is not None:
            return DenseRows(out, model_dtype=A.dtype)
        from scipy.sparse import vstack

        return CsrRows(vstack(parts, format="csr"), model_dtype=A.dtype)

    def scores(self, A: Rows, coef: np.ndarray) -> np.ndarray:
        """Values w . phi(x) of new rows.

        Parameters
        ----------
        A : Rows of shape (n, columns)
        coef : ndarray of shape (p, width)

        Returns
        -------
        ndarray of shape (n, p), float64
        """
        F = np.empty((A.shape[0], coef.shape[0]))
        for part, made in self._blocks(A):
            F[part] = made.dot(coef.T)
        return F

    def squares(self, A: Rows) -> np.ndarray:
        """Squared lengths |phi(x)|^2 of new rows.

        Parameters
        ----------
        A : Rows of shape (n, columns)

        Returns
        -------
        ndarray of shape (n,), float64
        """
        found = np.empty(A.shape[0])
        for part, made in self._blocks(A):
            found[part] = made.squares()
        return found

    def scorer(self, coef: np.ndarray) -> Callable[[Rows], np.ndarray]:
        """`scores` with the coefficients of one model, which may prepare them once."""
        return partial(self.scores, coef=coef)

    def _blocks(self, A: Rows) -> Iterator[tuple[slice, Rows]]:
        """Ranges of rows with their features, of about BLOCK_ENTRIES entries each."""
        start, step = 0, FIRST_BLOCK_ROWS
        while start < A.shape[0]:
            part = slice(start, min(start + step, A.shape[0]))
            made = self.checked(A.take(part))
            yield part, made
            width = _feature_map_bytes(made) / (made.shape[0] * made.entry_dtype.itemsize)
            entries = max(1.0, width, 1 if A.sparse else A.shape[1])
            start, step = part.stop, max(1, int(BLOCK_ENTRIES / entries))

    def checked(self, A: Rows) -> Rows:
        """Features of some rows as rows of finite numbers: float64, for models of the type of `A`."""
        what = f"what {type(self).__name__}.features returned"
        made = call_with_error_notes(self, "a feature map", "features", A)
        if not isinstance(made, Rows):
            made = made if hasattr(made, "tocsr") else np.asarray(made)
            # Rounded to float32, they would not be those of a prediction that folds or mixes coefficients.
            found = check_rows(made.astype(np.float64, copy=False) if made.dtype.kind in "biuf" else made, what)
            assert isinstance(found, RowsInMemory)
            made = replace(found, model_dtype=A.dtype)
        if made.shape != (A.shape[0], self.width):
            raise ValueError(f"{what} has shape {made.shape}; it needs to be {(A.shape[0], self.width)}")
        return made


def array_of(values: Mapping[str, Any], name: str, *shape: int | None) -> np.ndarray:
    """Array of a feature map's encoded `values` in float64; ValueError unless of this shape (None: any length >= 1)."""
    found = values.get(name)
    if (
        not isinstance(found, np.ndarray)
        or found.dtype.kind not in "iuf"
        or found.ndim != len(shape)
        or any(n < 1 or (w is not None and n != w) for n, w in zip(found.shape, shape))
        or not np.isfinite(found).all()
    ):
        raise ValueError(f"{name} is no array of finite numbers of the shape {shape}")
    return found.astype(np.float64, copy=False)


def check_feature_map_size(largest: float, dtype: Any = np.float64) -> None:
    """Raise ValueError where squares of a feature map's features overflow, or a model's `dtype` cannot hold them."""
    if LARGEST_ENTRY >= largest > float(np.finfo(dtype).max):
        raise ValueError(f"features made of X have size {largest:.3g}, beyond float32; scale the columns of X")
    if not largest <= LARGEST_ENTRY:
        raise ValueError(f"features made of X have size {largest:.3g}, whose squares overflow; scale the columns of X")


def _feature_map_bytes(rows: Rows) -> float:
    """Bytes that rows take which a feature map made; of sparse ones twice, as they are put together from parts."""
    if isinstance(rows, CsrRows):
        return 2.0 * (rows.X.data.nbytes + rows.X.indices.nbytes)
    return float(rows.shape[0]) * rows.shape[1] * rows.entry_dtype.itemsize


@dataclass(frozen=True, eq=False)
class FeatureMapRows(Rows):
    """Features by a feature map, shape (m, map.width), made anew whenever rows are asked for."""

    source: Rows  # shape (m, d)
    map: FeatureMap

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape[0], self.map.width

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.source.dtype

    def take(self, rows: Selection) -> Rows:
        return self.map.checked(self.source.take(rows))

    def block(self, rows: Selection) -> np.ndarray:
        return self.take(rows).block(slice(None))

    def piece(self, rows: Selection, room: Room) -> ScratchPiece:
        return self.take(rows).piece(slice(None), room)

    def matrix(self) -> Any:
        return self.take(slice(None)).matrix()

    def inner(self, others: Rows, centre: np.ndarray | None = None) -> np.ndarray:
        return self.take(slice(None)).inner(others, centre)


class LazyFeatureMapRows(DenseRows):
    """Dense features by a feature map, of all rows when the first is asked for."""

    made_when_asked = True
    suits_blas = True

    def __init__(self, source: Rows, by: FeatureMap) -> None:
        # The parent is frozen.
        vars(self).update(source=source, by=by, model_dtype=source.dtype)

    source: Rows  # shape (m, d)
    by: FeatureMap

    @property
    def shape(self) -> tuple[int, int]:
        return self.source.shape[0], self.by.width

    @property
    def entry_dtype(self) -> np.dtype[Any]:
        return np.dtype(np.float64)

    @property
    def complete(self) -> bool:
        return "X" in vars(self)

    @kept
    def X(self) -> np.ndarray:
        """The features."""
        out = np.empty(self.shape)
        for part, made in self.by._blocks(self.source):
            out[part] = made.block(slice(None))
        return read_only_rows(out)


@dataclass(frozen=True)
class MappedFeatures(LinearFeatures):
    """Explicit rows that a feature map made."""

    map: Any = None  # what made them, and makes those of new rows

    def mapping(self) -> Any:
        return self.map

    def attributes(self) -> dict[str, np.ndarray]:
        found: dict[str, np.ndarray] = call_with_error_notes(self.map, "a feature map", "attributes")
        if not isinstance(found, dict) or not all(isinstance(one, np.ndarray) for one in found.values()):
            raise faulty(self.map, "a feature map", "attributes", f"returned {came(found)}, a dict of arrays is needed")
        return found
