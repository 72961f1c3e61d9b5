"""Census of row blocks: what the first pass checks and counts of each, by what y is to the task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from mdlearn.data.labels import (
    check_classes,
    check_label_indicators,
    check_labels,
    check_no_targets,
    check_targets,
    read_some_labels,
)
from mdlearn.data.row_blocks.summary import Summary, check_same_labels, n_rows_for_summary, weights_of_block
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.validation import validate_class_factors, validated_column_names


@dataclass(frozen=True, eq=False)
class Census:
    """Census of some row blocks: counts that add up, and are checked once they have, as a `Summary`."""

    classes: np.ndarray  # shape (k,): sorted labels so far, those of weight 0 included
    rows: dict[int, int]  # of each block that has any
    width: int
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None  # of the first block
    totals: np.ndarray  # shape (g,): of each class, and of what is summed apart
    moments: np.ndarray  # shape (g, d)

    @classmethod
    def of(cls, block: tuple[Any, ...], number: int) -> Self | None:
        """Check and count a block; None where it has no rows."""
        if not n_rows_for_summary(block[0]):
            return None
        rows = check_rows(block[0])
        n, d = rows.shape
        names = validated_column_names(block[0])
        classes, masses, own = cls.masses(block[1], weights_of_block(block, n))
        return cls(classes, {number: n}, d, rows.dtype, names, masses.sum(axis=0), rows.adjoint(masses).T, **own)

    @classmethod
    def masses(cls, y: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        """Return classes of a block, weights of its rows in the sums, (n, g), and what else is counted."""
        classes, codes = check_labels(y, weights.shape[0])
        return classes, _masses_by_code(codes, weights, classes.shape[0]), {}

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
        parts = [one for one in (self, other) if one.classes.shape[0]] or [self]
        numbers = [one.classes.dtype.kind in "biuf" for one in parts]
        if numbers[0] != numbers[-1]:
            raise TypeError("labels of some blocks are numbers and of others are not; use one type")
        classes, apart = np.union1d(parts[0].classes, parts[-1].classes), self.totals.shape[0] - self.classes.shape[0]
        k = classes.shape[0]
        totals, moments = np.zeros(k + apart), np.zeros((k + apart, self.width))
        for one in (self, other):
            places = np.arange(k, k + apart)
            if one.classes.shape[0]:
                places = np.append(np.searchsorted(classes, one.classes), places)
            totals[places] += one.totals
            moments[places] += one.moments
        dtype = np.result_type(self.dtype, other.dtype)
        return replace(self, classes=classes, rows=self.rows | other.rows, dtype=dtype, totals=totals, moments=moments)

    def summary(self, class_weight: Any) -> Summary:
        """Make a summary with class weights; ValueError where there is nothing to learn from."""
        classes, k = self.classes, self.classes.shape[0]
        check_classes(classes, lambda: self.totals[:k], sum(self.rows.values()))
        factors = validate_class_factors(class_weight, classes, np.arange(k), self.totals[:k])
        totals = self.totals[:k] * factors
        used = totals > 0
        if used.sum() < 2:
            found = ", ".join(map(repr, classes[used].tolist())) or "none"
            raise ValueError(
                f"the blocks have one class with positive weight ({found}); a classifier needs at least two"
            )
        moments = self.moments[:k][used] * factors[used, None]
        return self.of_sums(classes[used], factors[used], totals[used], moments)

    def of_sums(self, classes: np.ndarray, factors: np.ndarray, totals: np.ndarray, moments: np.ndarray) -> Summary:
        """Make a summary with these classes, and factors and sums of their groups."""
        return Summary(classes, self.starts(), self.width, self.dtype, self.names, factors, totals, moments)


@dataclass(frozen=True, eq=False)
class PartlyLabelledCensus(Census):
    """Census of some row blocks of which some labels are unknown: the last sums are those of these rows.

    What -1 among floats stands for is not known of a block without NaN, but of all blocks.
    """

    ways: frozenset[bool] = frozenset()  # in which ways labels are unknown: whether by NaN among floats

    @classmethod
    def masses(cls, y: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        classes, codes, by_nan = read_some_labels(y, weights.shape[0])
        ways = frozenset([by_nan] if (codes < 0).any() else [])
        return classes, _masses_by_code(codes, weights, classes.shape[0] + 1), {"ways": ways}

    def __add__(self, other: Census) -> PartlyLabelledCensus:
        assert isinstance(other, PartlyLabelledCensus)
        both = super().__add__(other)
        assert isinstance(both, PartlyLabelledCensus)
        return replace(both, ways=self.ways | other.ways)

    def summary(self, class_weight: Any) -> Summary:
        """Make a summary with class weights, which are those of known labels."""
        if self.classes.dtype.kind == "f" and -1.0 in self.classes and self.ways != {True}:
            raise ValueError(
                "labels of some blocks are floats, -1 among them, and unknown ones are not all NaN; give NaN where the "
                "label is unknown, or whole numbers"
            )
        return super().summary(class_weight)

    def of_sums(self, classes: np.ndarray, factors: np.ndarray, totals: np.ndarray, moments: np.ndarray) -> Summary:
        """Make a summary; the last group is that of unknown labels."""
        sums = np.append(totals, self.totals[-1]), np.vstack([moments, self.moments[-1]])
        return replace(super().of_sums(classes, np.append(factors, 1.0), *sums), y="some labels")


@dataclass(frozen=True, eq=False)
class LabelSetCensus(Census):
    """Census of some row blocks whose y has a column for each label; the last sums are those of all rows."""

    @classmethod
    def masses(cls, y: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        labels, indicators = check_label_indicators(y, weights.shape[0])
        return labels, np.hstack([indicators, np.ones((weights.shape[0], 1))]) * weights[:, None], {}

    def __add__(self, other: Census) -> LabelSetCensus:
        self.check_width(other)
        check_same_labels(other.classes, self.classes)
        totals, moments = self.totals + other.totals, self.moments + other.moments
        dtype = np.result_type(self.dtype, other.dtype)
        return replace(self, rows=self.rows | other.rows, dtype=dtype, totals=totals, moments=moments)

    def summary(self, class_weight: Any) -> Summary:
        """Make a summary; ValueError where no row counts."""
        if not self.totals[-1] > 0:
            raise ValueError("the blocks have no row of positive weight; at least one is needed")
        factors = np.ones(self.totals.shape[0])
        return replace(self.of_sums(self.classes, factors, self.totals, self.moments), y="indicators")


@dataclass(frozen=True, eq=False)
class TargetCensus(Census):
    """Census of some row blocks of a regression: there are no classes, all rows are summed as one."""

    level: float = 0.0  # sum of counts times targets

    @staticmethod
    def targets(y: Any, n_rows: int) -> np.ndarray:
        """Return the targets of a block, checked."""
        return check_targets(y, n_rows)

    @classmethod
    def masses(cls, y: Any, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
        targets = cls.targets(y, weights.shape[0])
        return np.empty(0), weights[:, None], {"level": float(weights @ targets)}

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
        found = self.of_sums(self.classes, np.ones(1), self.totals, self.moments)
        return replace(found, level=self.level / total, y="numbers")


class RowCensus(TargetCensus):
    """Census of row blocks without labels, whose y is None, or ones."""

    @staticmethod
    def targets(y: Any, n_rows: int) -> np.ndarray:
        check_no_targets(y, n_rows)
        return np.zeros(n_rows)

    def summary(self, class_weight: Any) -> Summary:
        return replace(super().summary(class_weight), y="none")


def _masses_by_code(codes: np.ndarray, weights: np.ndarray, n_groups: int) -> np.ndarray:
    """Weights of rows in the group of their code; -1 is the last."""
    found = np.zeros((codes.shape[0], n_groups))
    found[np.arange(codes.shape[0]), codes] = weights
    return found


CENSUSES: dict[str, type[Census]] = {
    "labels": Census,
    "numbers": TargetCensus,
    "none": RowCensus,
    "some labels": PartlyLabelledCensus,
    "indicators": LabelSetCensus,
}
"""Kinds of census by what y is to the task."""
