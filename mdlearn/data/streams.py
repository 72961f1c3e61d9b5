"""Rows that come in blocks, again for every pass: what is kept of them is one block and sums.

A source is any re-iterable of (X, y) or (X, y, weight), or a function that returns a new iterator of them. The first
pass checks everything and counts; later passes trust it, and are held against its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mdlearn.data.arrays import as_rows, check_rows, only
from mdlearn.data.checks import MANY, check_labels, check_number, check_weights, class_factors, column_names
from mdlearn.data.rows import Rows

SAME = 1e-9
"""Relative difference of two sums of weights that is rounding."""


class Sums(dict[str, Any]):
    """What a pass adds up."""

    def __add__(self, other: Sums) -> Sums:
        return Sums({name: self[name] + other[name] for name in self})


Work = Callable[["Block"], Sums]
"""What a pass does with a block."""


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows that count.

    Attributes
    ----------
    X : Rows of shape (n, d)
    codes : ndarray of shape (n,), intp
        Places of their labels among all classes.
    counts : ndarray of shape (n,), float64
        Sample weight times class weight.
    number : int
        Which one of the source's blocks.
    """

    X: Rows
    codes: np.ndarray
    counts: np.ndarray
    number: int


@dataclass(frozen=True, eq=False)
class Summary:
    """What the first pass finds.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Sorted labels of rows that count.
    n_rows : int
        Rows given, those of weight 0 included.
    width : int
        Columns.
    dtype : dtype
        float32 when all blocks are, else float64.
    names : tuple of str, or None
        Columns of the first block when it is a data frame.
    factors : ndarray of shape (k,)
        Class weights.
    totals : ndarray of shape (k,)
        Sums of the counts by class.
    moments : ndarray of shape (k, d)
        Sums of counts times rows by class.
    """

    classes: np.ndarray
    n_rows: int
    width: int
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None
    factors: np.ndarray
    totals: np.ndarray
    moments: np.ndarray

    @property
    def total(self) -> float:
        """m: the sum of all counts."""
        return float(self.totals.sum())

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as a mapping, for a file."""
        found = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self) if one.name != "names"}
        found["dtype"] = np.empty(0, dtype=self.dtype)
        return found if self.names is None else found | {"names": np.array(self.names)}

    @classmethod
    def read(cls, found: dict[str, np.ndarray]) -> Summary:
        """What `arrays` gave."""
        names = tuple(found["names"].tolist()) if "names" in found else None
        numbers = {name: int(found[name]) for name in ("n_rows", "width")}
        rest = {name: found[name] for name in ("classes", "factors", "totals", "moments")}
        given: dict[str, Any] = {**rest, **numbers, "dtype": found["dtype"].dtype, "names": names}
        return cls(**given)


class RowBlocks:
    """Rows that come in blocks, again for every pass, for `mdlearn.fit` with y None.

    Parameters
    ----------
    source : iterable or callable
        Of (X, y) or (X, y, weight): a list, any object that gives a new iterator each time, or a function that returns
        one. The rows of a block and the order of blocks have to be the same each time.
    checkpoint : path-like, optional
        A file that says after every pass what has been reached: a fit with the same arguments goes on from there, to
        the same model. It stays when the fit is done.
    held : int, optional
        Rows near a kink that may be held in memory for each class. Default: 16 MB of them in all, and at least five
        for each coefficient.

    Raises
    ------
    TypeError
        For an iterator, which can be gone through only once, and for what is no source of blocks.
    """

    def __init__(self, source: Any, *, checkpoint: Any = None, held: int | None = None) -> None:
        if not callable(source) and not isinstance(source, Iterable):
            raise TypeError(
                f"row blocks need to be an iterable of (X, y) or a function that returns one; got {source!r}"
            )
        if isinstance(source, Iterator):
            raise TypeError(
                "row blocks are read many times, and an iterator only once; give a list, or a function that returns a "
                "new iterator"
            )
        self.source, self.checkpoint = source, checkpoint
        self.held = None if held is None else check_number(held, "held", low=1, integer=True)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Blocks as the caller gives them."""
        for block in self.source() if callable(self.source) else self.source:
            if not isinstance(block, tuple) or len(block) not in (2, 3):
                raise TypeError(
                    f"a block needs to be a tuple (X, y) or (X, y, weight); got {type(block).__name__}; where X is all "
                    "rows, give y"
                )
            yield block

    def scan(self, class_weight: Any) -> Generator[None, None, Summary]:
        """Check all blocks and count.

        Parameters
        ----------
        class_weight : mapping, "balanced" or None
            As for `mdlearn.fit`.

        Returns
        -------
        generator
            Yields None after each block, and returns a Summary.

        Raises
        ------
        TypeError, ValueError
            For blocks that are none, or that have nothing to learn from.
        """
        tree = Tree()
        for number, block in enumerate(self):
            try:
                census = Census.of(block)
            except (TypeError, ValueError) as error:
                raise type(error)(f"block {number}: {error}") from None
            if census is not None:
                tree.push(census)
            yield
        census = tree.total()
        if census is None:
            raise ValueError("the blocks have no rows; give at least one row per class")
        return census.summary(class_weight)

    def fold(self, work: Work, summary: Summary) -> Generator[None, None, Sums]:
        """Add up what a callable makes of all blocks; the sums depend on nothing but the blocks.

        Parameters
        ----------
        work : callable
            (Block) -> Sums.
        summary : Summary
            What `scan` found.

        Returns
        -------
        generator
            Yields None after each block, and returns the Sums.

        Raises
        ------
        ValueError
            When the blocks are not those of the first pass.
        """
        tree, rows, total = Tree(), 0, 0.0
        for number, block in enumerate(self):
            rows += _length(block[0])
            checked = taken(block, summary, number)
            if checked is not None:
                total += float(checked.counts.sum())
                tree.push(work(checked))
            yield
        if rows != summary.n_rows or abs(total - summary.total) > SAME * summary.total:
            raise ValueError(
                f"the blocks had {summary.n_rows} rows of weight {summary.total:g} in the first pass, and {rows} of "
                f"weight {total:g} in a later one; give blocks that stay the same"
            )
        found: Sums = tree.total()
        return found


class Tree:
    """Sums in pairs, and pairs of pairs: the order that processes that share the work can keep to."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, Any]] = []

    def push(self, sums: Any) -> None:
        """Add what the next block gave."""
        level = 0
        while self.parts and self.parts[-1][0] == level:
            sums = self.parts.pop()[1] + sums
            level += 1
        self.parts.append((level, sums))

    def total(self) -> Any:
        """The sum of everything; None of nothing."""
        if not self.parts:
            return None
        _, sums = self.parts.pop()
        while self.parts:
            sums = self.parts.pop()[1] + sums
        return sums


def taken(block: tuple[Any, ...], summary: Summary, number: int) -> Block | None:
    """A block of a later pass, its labels numbered and its entries trusted; None where none of its rows count."""
    if not _length(block[0]):
        return None
    rows = as_rows(block[0])
    if rows.shape[1] != summary.width:
        raise ValueError(f"a block has {rows.shape[1]} columns, and the first one {summary.width}")
    labels, weights = np.asarray(block[1]), _weights(block, rows.shape[0])
    if labels.dtype.kind == "O" or labels.shape != weights.shape:
        classes, codes = check_labels(block[1], rows.shape[0])
        labels = classes[codes]
    places = np.searchsorted(summary.classes, labels)
    places = np.minimum(places, summary.classes.shape[0] - 1)
    known = summary.classes[places] == labels
    counts = np.where(known, weights * summary.factors[places], 0.0)
    used = np.flatnonzero(counts > 0)
    if not used.shape[0]:
        return None
    if used.shape[0] < counts.shape[0]:
        rows, places, counts = only(rows, used), places[used], counts[used]
    return Block(rows, places, counts, number)


def _length(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _weights(block: tuple[Any, ...], n_rows: int) -> np.ndarray:
    """Weights of a block; all of them may be 0."""
    given = block[2] if len(block) == 3 else None
    return np.zeros(n_rows) if given is not None and not np.any(given) else check_weights(given, n_rows)


@dataclass(frozen=True, eq=False)
class Census:
    """What is counted of some blocks.

    Attributes
    ----------
    classes : ndarray of shape (k,)
        Sorted labels so far, those of weight 0 included.
    rows : int
    width : int
    dtype : dtype
    names : tuple of str, or None
        Of the first block.
    totals : ndarray of shape (k,)
    moments : ndarray of shape (k, d)
    """

    classes: np.ndarray
    rows: int
    width: int
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None
    totals: np.ndarray
    moments: np.ndarray

    @classmethod
    def of(cls, block: tuple[Any, ...]) -> Census | None:
        """Check and count a block; None where it has no rows."""
        if not _length(block[0]):
            return None
        rows = check_rows(block[0])
        classes, codes = check_labels(block[1], rows.shape[0])
        weights = _weights(block, rows.shape[0])
        mine = np.zeros((rows.shape[0], classes.shape[0]))
        mine[np.arange(rows.shape[0]), codes] = weights
        names = column_names(block[0])
        return cls(classes, *rows.shape, rows.dtype, names, mine.sum(axis=0), rows.adjoint(mine).T)

    def __add__(self, other: Census) -> Census:
        if self.width != other.width:
            raise ValueError(
                f"a block has {other.width} columns and an earlier one {self.width}; give the same columns"
            )
        numbers = [one.classes.dtype.kind in "biuf" for one in (self, other)]
        if numbers[0] != numbers[1]:
            raise TypeError("labels of some blocks are numbers and of others are not; use one type")
        classes = np.union1d(self.classes, other.classes)
        totals, moments = np.zeros(classes.shape[0]), np.zeros((classes.shape[0], self.width))
        for one in (self, other):
            places = np.searchsorted(classes, one.classes)
            totals[places] += one.totals
            moments[places] += one.moments
        dtype = np.result_type(self.dtype, other.dtype)
        return Census(classes, self.rows + other.rows, self.width, dtype, self.names, totals, moments)

    def summary(self, class_weight: Any) -> Summary:
        """What is there to learn from; ValueError where that is nothing."""
        classes = self.classes
        fractions = classes.dtype.kind == "f" and (classes != np.rint(classes)).any()
        if fractions and 2 * classes.shape[0] > max(self.rows, MANY):
            raise ValueError(
                f"y holds {classes.shape[0]} different numbers in {self.rows} rows; give one label per class"
            )
        factors = class_factors(class_weight, classes, np.arange(classes.shape[0]), self.totals)
        totals = self.totals * factors
        used = totals > 0
        if used.sum() < 2:
            found = ", ".join(map(repr, classes[used].tolist())) or "none"
            raise ValueError(
                f"the blocks have one class with positive weight ({found}); a classifier needs at least two"
            )
        moments = self.moments[used] * factors[used, None]
        kept = classes[used], self.rows, self.width, self.dtype, self.names, factors[used]
        return Summary(*kept, totals[used], moments)
