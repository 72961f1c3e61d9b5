"""Summary of row blocks: a census of each, what is known of all, and blocks as later passes take them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap, FeatureMapRows
from mdlearn.data.labels import check_classes, check_labels, check_no_targets, check_targets
from mdlearn.data.rows.arrays import array_as_rows, check_rows, selected_rows
from mdlearn.data.rows.rows import Rows, steps
from mdlearn.data.rows.scratch import Room
from mdlearn.data.validation import Data, check_weights, validate_class_factors, validated_column_names

ENTRIES = 1 << 18
"""Entries of features that are made at once."""


@dataclass(frozen=True, eq=False)
class Block:
    """Row block checked against the summary: rows that count, with their classes, or targets, and counts."""

    X: Rows  # shape (n, d): features, made when they are asked for where a map makes them
    codes: np.ndarray  # shape (n,), intp: places of their labels among all classes; 0 in a regression
    counts: np.ndarray  # shape (n,): sample weight times class weight
    number: int  # which one of the source's blocks
    targets: np.ndarray | None = None  # shape (n,): numbers to be met, in a regression
    # shape (n,): places among the rows of all blocks; None where the first pass had another number of rows here
    rows: np.ndarray | None = None

    def data(self, summary: Summary, counts: np.ndarray) -> Data:
        """Return its rows as training data, as they were given, with these counts; ValueError if blocks changed."""
        if self.rows is None:
            raise ValueError(
                f"block {self.number} has another number of rows than in the first pass; give blocks that stay the same"
            )
        X, n = self.X.source if isinstance(self.X, FeatureMapRows) else self.X, summary.n_rows
        targets = None if summary.alone else self.targets
        return Data(X, self.codes, counts, summary.classes, self.rows, n, summary.names, targets)

    @property
    def total(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def labels(self) -> np.ndarray:
        """Targets of the rows, or places of their classes, shape (n,)."""
        return self.codes if self.targets is None else self.targets


class SummarySums(dict[str, Any]):
    """Sums by name, in a summary of row blocks or of a later pass, which add up over blocks."""

    @classmethod
    def zeros(cls, p: int, names: str, **shapes: tuple[int, ...]) -> SummarySums:
        """Sums with all entries 0, p columns first: numbers by their names, and arrays by their shapes."""
        each = {**dict.fromkeys(names.split(), ()), **shapes}
        return cls({name: np.zeros((p, *shape)) for name, shape in each.items()})

    def __add__(self, other: SummarySums) -> SummarySums:
        return SummarySums({name: self[name] + other[name] for name in self})


@dataclass(frozen=True, eq=False)
class Summary:
    """Summary of row blocks: results of the first pass."""

    classes: np.ndarray  # shape (k,): sorted labels of rows that count; none in a regression, where k is 1 below
    starts: np.ndarray  # shape (b + 1,), int: rows given before each block, those of weight 0 included, and all
    width: int  # columns d
    dtype: np.dtype[Any]  # float32 when all blocks are, else float64
    names: tuple[str, ...] | None  # columns of the first block when it is a data frame
    factors: np.ndarray  # shape (k,): class weights
    totals: np.ndarray  # shape (k,): sums of the counts by class
    moments: np.ndarray  # shape (k, n): sums of counts times features by class
    mapping: FeatureMap | None = None  # what makes n features of a row; None: its d columns are the features
    level: float | None = None  # mean of the targets of a regression; 0 of rows alone, whose targets are all 0
    alone: bool = False  # whether rows are alone, without labels or targets

    @property
    def total(self) -> float:
        """m: the sum of all counts."""
        return float(self.totals.sum())

    @property
    def n_rows(self) -> int:
        """Number of the rows given."""
        return int(self.starts[-1])

    def places(self, number: int, n: int, used: np.ndarray) -> np.ndarray | None:
        """Places among all rows of those that are used of a block's n; None where the first pass found others there."""
        known = self.starts[number : number + 2]
        return known[0] + used if known.shape[0] == 2 and known[1] - known[0] == n else None

    @property
    def n_features(self) -> int:
        """n."""
        return int(self.moments.shape[1])

    @property
    def n_sums(self) -> int:
        """Number of the classes that sums are made over; one in a regression."""
        return int(self.totals.shape[0])

    def mapped(self, mapping: FeatureMap, moments: np.ndarray) -> Summary:
        """Return this summary with features that a map makes, and their sums."""
        return replace(self, mapping=mapping, moments=moments)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays of this summary by name, for a file; without the map, which is made again."""
        rest = ("names", "mapping", *(["level"] if self.level is None else []))
        found = {one.name: np.asarray(getattr(self, one.name)) for one in fields(self) if one.name not in rest}
        found["dtype"] = np.empty(0, dtype=self.dtype)
        return found if self.names is None else found | {"names": np.array(self.names)}

    @classmethod
    def read(cls, found: dict[str, np.ndarray]) -> Summary:
        """Make a summary of what `arrays` returned."""
        names = tuple(found["names"].tolist()) if "names" in found else None
        rest = {name: found[name] for name in ("classes", "starts", "factors", "totals", "moments")}
        given: dict[str, Any] = {**rest, "width": int(found["width"]), "dtype": found["dtype"].dtype, "names": names}
        given |= {"level": float(found["level"]) if "level" in found else None, "alone": bool(found["alone"])}
        return cls(**given)


def block_checked_by_summary(block: tuple[Any, ...], summary: Summary, number: int) -> Block | None:
    """Check a block of a later pass against the summary, its entries trusted; None where none of its rows count."""
    if not n_rows_for_summary(block[0]):
        return None
    rows = array_as_rows(block[0])
    if rows.shape[1] != summary.width:
        raise ValueError(f"a block has {rows.shape[1]} columns, and the first one {summary.width}")
    counts, targets = _weights_in_summary(block, rows.shape[0]), None
    if summary.level is not None:
        targets = np.zeros(rows.shape[0]) if summary.alone else check_targets(block[1], rows.shape[0])
        places = np.zeros(rows.shape[0], dtype=np.intp)
    else:
        labels = np.asarray(block[1])
        if labels.dtype.kind == "O" or labels.shape != counts.shape:
            classes, codes = check_labels(block[1], rows.shape[0])
            labels = classes[codes]
        places = np.searchsorted(summary.classes, labels)
        places = np.minimum(places, summary.classes.shape[0] - 1)
        known = summary.classes[places] == labels
        counts = np.where(known, counts * summary.factors[places], 0.0)
    used = np.flatnonzero(counts > 0)
    if not used.shape[0]:
        return None
    at = summary.places(number, counts.shape[0], used)
    if used.shape[0] < counts.shape[0]:
        rows, places, counts = selected_rows(rows, used), places[used], counts[used]
        targets = None if targets is None else targets[used]
    made = rows if summary.mapping is None else FeatureMapRows(rows, summary.mapping)
    return Block(made, places, counts, number, targets, at)


def n_rows_for_summary(X: Any) -> int:
    """Number of rows of a block's X, as the caller gave it, for the summary of row blocks."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _weights_in_summary(block: tuple[Any, ...], n_rows: int) -> np.ndarray:
    """Sample weights of a row block that is summarised; all of them may be 0."""
    given = block[2] if len(block) == 3 else None
    return np.zeros(n_rows) if given is not None and not np.any(given) else check_weights(given, n_rows)


@dataclass(frozen=True, eq=False)
class Census:
    """Census of some row blocks: counts that add up, and are checked once they have, as a `Summary`."""

    classes: np.ndarray  # shape (k,): sorted labels so far, those of weight 0 included
    rows: dict[int, int]  # of each block that has any
    width: int
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None  # of the first block
    totals: np.ndarray  # shape (k,)
    moments: np.ndarray  # shape (k, d)

    @classmethod
    def of(cls, block: tuple[Any, ...], number: int) -> Census | None:
        """Check and count a block; None where it has no rows."""
        if not n_rows_for_summary(block[0]):
            return None
        rows = check_rows(block[0])
        classes, codes = check_labels(block[1], rows.shape[0])
        weights = _weights_in_summary(block, rows.shape[0])
        mine = np.zeros((rows.shape[0], classes.shape[0]))
        mine[np.arange(rows.shape[0]), codes] = weights
        names = validated_column_names(block[0])
        sizes = {number: rows.shape[0]}
        return cls(classes, sizes, rows.shape[1], rows.dtype, names, mine.sum(axis=0), rows.adjoint(mine).T)

    def starts(self) -> np.ndarray:
        """Rows before each block, and all, shape (b + 1,)."""
        sizes = np.zeros(max(self.rows) + 2, dtype=np.int64)
        sizes[[number + 1 for number in self.rows]] = list(self.rows.values())
        return sizes.cumsum()

    def check_width(self, other: Census) -> None:
        """ValueError where another block has another number of columns."""
        if self.width != other.width:
            raise ValueError(
                f"a block has {other.width} columns and an earlier one {self.width}; give the same columns"
            )

    def __add__(self, other: Census) -> Census:
        self.check_width(other)
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
        return Census(classes, self.rows | other.rows, self.width, dtype, self.names, totals, moments)

    def summary(self, class_weight: Any) -> Summary:
        """Make a summary with class weights; ValueError where there is nothing to learn from."""
        classes = self.classes
        check_classes(classes, lambda: self.totals, sum(self.rows.values()))
        factors = validate_class_factors(class_weight, classes, np.arange(classes.shape[0]), self.totals)
        totals = self.totals * factors
        used = totals > 0
        if used.sum() < 2:
            found = ", ".join(map(repr, classes[used].tolist())) or "none"
            raise ValueError(
                f"the blocks have one class with positive weight ({found}); a classifier needs at least two"
            )
        moments = self.moments[used] * factors[used, None]
        kept = classes[used], self.starts(), self.width, self.dtype, self.names, factors[used]
        return Summary(*kept, totals[used], moments)


@dataclass(frozen=True, eq=False)
class TargetCensus(Census):
    """Census of some row blocks of a regression: there are no classes, all rows are summed as one."""

    level: float = 0.0  # sum of counts times targets

    @staticmethod
    def targets(y: Any, n_rows: int) -> np.ndarray:
        """Return the targets of a block, checked."""
        return check_targets(y, n_rows)

    @classmethod
    def of(cls, block: tuple[Any, ...], number: int) -> TargetCensus | None:
        """Check and count a block; None where it has no rows."""
        if not n_rows_for_summary(block[0]):
            return None
        rows = check_rows(block[0])
        targets, weights = cls.targets(block[1], rows.shape[0]), _weights_in_summary(block, rows.shape[0])
        sums = np.array([weights.sum()]), rows.adjoint(weights[:, None]).T
        names = validated_column_names(block[0])
        sizes = {number: rows.shape[0]}
        return cls(np.empty(0), sizes, rows.shape[1], rows.dtype, names, *sums, level=float(weights @ targets))

    def __add__(self, other: Census) -> TargetCensus:
        assert isinstance(other, TargetCensus)
        self.check_width(other)
        sums = self.totals + other.totals, self.moments + other.moments
        numbers = self.rows | other.rows, self.width, np.result_type(self.dtype, other.dtype)
        return type(self)(self.classes, *numbers, self.names, *sums, level=self.level + other.level)

    def summary(self, class_weight: Any) -> Summary:
        """Make a summary; ValueError where no row counts."""
        total = float(self.totals[0])
        if not total > 0:
            raise ValueError("the blocks have no row of positive weight; a regression needs at least one")
        kept = self.classes, self.starts(), self.width, self.dtype, self.names, np.ones(1)
        return Summary(*kept, self.totals, self.moments, level=self.level / total)


class RowCensus(TargetCensus):
    """Census of row blocks without labels, whose y is None, or ones."""

    @staticmethod
    def targets(y: Any, n_rows: int) -> np.ndarray:
        check_no_targets(y, n_rows)
        return np.zeros(n_rows)

    def summary(self, class_weight: Any) -> Summary:
        return replace(super().summary(class_weight), alone=True)


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Work of a pass over row blocks: sums of features by class, the moments of a `Summary`."""

    n_classes: int

    def __call__(self, block: Block) -> SummarySums:
        """Sums of counts times features, shape (k, n)."""
        found, room = np.zeros((self.n_classes, block.X.shape[1])), Room()
        for rows in steps(block.counts.shape[0], ENTRIES // block.X.shape[1]):
            mine = np.zeros((rows.stop - rows.start, self.n_classes))
            mine[np.arange(mine.shape[0]), block.codes[rows]] = block.counts[rows]
            found += block.X.piece(rows, room).adjoint(mine)
        return SummarySums(moments=found)


@dataclass(frozen=True, eq=False)
class EntrySpread:
    """Work of a pass for a summary of row blocks: sum of squared differences of all entries to their mean."""

    mean: float

    def __call__(self, block: Block) -> SummarySums:
        """Of one block."""
        return SummarySums(spread=block.X.spread(block.counts, self.mean))
