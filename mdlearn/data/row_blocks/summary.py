"""Summary of row blocks: what is known of all, and blocks as later passes take them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap, FeatureMapRows
from mdlearn.data.labels import check_label_indicators, check_labels, check_targets, read_some_labels
from mdlearn.data.rows.arrays import array_as_rows, selected_rows
from mdlearn.data.rows.rows import Rows, steps
from mdlearn.data.rows.scratch import Room
from mdlearn.data.validation import Data, check_weights

ENTRIES = 1 << 18
"""Entries of features that are made at once."""


@dataclass(frozen=True, eq=False)
class Block:
    """Row block checked against the summary: rows that count, with their classes, or targets, and counts."""

    X: Rows  # shape (n, d): features, made when they are asked for where a map makes them
    codes: np.ndarray  # shape (n,), intp: places of their labels among all classes, -1 where unknown; else 0
    counts: np.ndarray  # shape (n,): sample weight times class weight
    number: int  # which one of the source's blocks
    targets: np.ndarray | None = None  # shape (n,): numbers to be met, in a regression
    indicators: np.ndarray | None = None  # shape (n, k), bool: which of several labels rows have
    # shape (n,): places among the rows of all blocks; None where the first pass had another number of rows here
    rows: np.ndarray | None = None

    def data(self, summary: Summary, counts: np.ndarray) -> Data:
        """Return its rows as training data, as they were given, with these counts; ValueError if blocks changed."""
        if self.rows is None:
            raise ValueError(
                f"block {self.number} has another number of rows than in the first pass; give blocks that stay the same"
            )
        X = self.X.source if isinstance(self.X, FeatureMapRows) else self.X
        return summary.data(X, self.codes, counts, self.rows, summary.n_rows, self.targets, self.indicators)

    @property
    def total(self) -> float:
        """Sum of the counts."""
        return float(self.counts.sum())

    @property
    def labels(self) -> np.ndarray:
        """Targets of the rows, places of their classes, shape (n,), or which labels they have, shape (n, k)."""
        if self.indicators is not None:
            return self.indicators
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
    """Summary of row blocks: results of the first pass.

    Sums are those of g groups of rows: of each class, and of the rows of unknown labels where labels may be unknown; of
    each label, and of all rows, where rows may have several labels; of all rows without classes.
    """

    classes: np.ndarray  # shape (k,): sorted labels of rows that count; none in a regression, where g is 1
    starts: np.ndarray  # shape (b + 1,), int: rows given before each block, those of weight 0 included, and all
    width: int  # columns d
    dtype: np.dtype[Any]  # float32 when all blocks are, else float64
    names: tuple[str, ...] | None  # columns of the first block when it is a data frame
    factors: np.ndarray  # shape (g,): class weights
    totals: np.ndarray  # shape (g,): sums of the counts
    moments: np.ndarray  # shape (g, n): sums of counts times features
    mapping: FeatureMap | None = None  # what makes n features of a row; None: its d columns are the features
    level: float | None = None  # mean of the targets of a regression; 0 of rows alone, whose targets are all 0
    y: str = "labels"  # what y is to the task: see `mdlearn.extend.Task`

    @property
    def total(self) -> float:
        """m: the sum of all counts."""
        return float(self.totals[-1] if self.y == "indicators" else self.totals.sum())

    @property
    def moment(self) -> np.ndarray:
        """Sum of counts times features over all rows, shape (n,)."""
        rows: np.ndarray = self.moments[-1] if self.y == "indicators" else self.moments.sum(axis=0)
        return rows

    @property
    def positives(self) -> tuple[int, ...]:
        """Places of the classes, or labels, whose rows have the sign +1: one for each binary problem."""
        k = self.classes.shape[0]
        return (1,) if k == 2 and self.y != "indicators" else tuple(range(k))

    def of_positive(self, place: int) -> tuple[float, np.ndarray]:
        """Sums of the rows whose sign is +1: of their counts, and of counts times features, (n,).

        Those of unknown labels are among them: their z is f(x).
        """
        groups = [place, -1] if self.y == "some labels" else [place]
        return float(self.totals[groups].sum()), self.moments[groups].sum(axis=0)

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
        """g: number of the groups that sums are made over."""
        return int(self.totals.shape[0])

    def group(self, place: int) -> str:
        """Name of a group in a sentence, after "of"; empty where it is all rows."""
        if place < self.classes.shape[0]:
            return f"{'label' if self.y == 'indicators' else 'class'} {self.classes.tolist()[place]!r}"
        return "rows of unknown label" if self.y == "some labels" else ""

    def mapped(self, mapping: FeatureMap, moments: np.ndarray) -> Summary:
        """Return this summary with features that a map makes, and their sums."""
        return replace(self, mapping=mapping, moments=moments)

    def data(
        self,
        X: Rows,
        codes: np.ndarray,
        counts: np.ndarray,
        rows: np.ndarray,
        n_given: int,
        targets: np.ndarray | None,
        indicators: np.ndarray | None,
    ) -> Data:
        """Return some rows as training data; `rows`: where they are among the `n_given`."""
        known = None if self.y == "none" else targets
        partial = self.y == "some labels"
        return Data(X, codes, counts, self.classes, rows, n_given, self.names, known, indicators, partial)

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
        given |= {"level": float(found["level"]) if "level" in found else None, "y": str(found["y"])}
        return cls(**given)


def block_checked_by_summary(block: tuple[Any, ...], summary: Summary, number: int) -> Block | None:
    """Check a block of a later pass against the summary, its entries trusted; None where none of its rows count."""
    if not n_rows_for_summary(block[0]):
        return None
    rows = array_as_rows(block[0])
    n = rows.shape[0]
    if rows.shape[1] != summary.width:
        raise ValueError(f"a block has {rows.shape[1]} columns, and the first one {summary.width}")
    counts, places = weights_of_block(block, n), np.zeros(n, dtype=np.intp)
    targets = indicators = None
    if summary.level is not None:
        targets = np.zeros(n) if summary.y == "none" else check_targets(block[1], n)
    elif summary.y == "indicators":
        labels, indicators = check_label_indicators(block[1], n)
        check_same_labels(labels, summary.classes)
    else:
        places, known = _places_in_summary(block[1], n, summary)
        counts = np.where(known, counts * summary.factors[places], 0.0)
    used = np.flatnonzero(counts > 0)
    if not used.shape[0]:
        return None
    at = summary.places(number, n, used)
    if used.shape[0] < n:
        rows, places, counts = selected_rows(rows, used), places[used], counts[used]
        targets, indicators = (None if one is None else one[used] for one in (targets, indicators))
    made = rows if summary.mapping is None else FeatureMapRows(rows, summary.mapping)
    return Block(made, places, counts, number, targets, indicators, at)


def _places_in_summary(y: Any, n_rows: int, summary: Summary) -> tuple[np.ndarray, np.ndarray]:
    """Places of a block's labels among the classes of the summary, -1 where unknown; and whether they count."""
    unknown = np.zeros(n_rows, dtype=bool)
    if summary.y == "some labels":
        own, codes, _ = read_some_labels(y, n_rows)
        unknown = codes < 0
        labels = np.append(own, summary.classes[:1])[codes]
    else:
        labels = np.asarray(y)
        if labels.dtype.kind == "O" or labels.shape != (n_rows,):
            own, codes = check_labels(y, n_rows)
            labels = own[codes]
    places = np.searchsorted(summary.classes, labels)
    places = np.minimum(places, summary.classes.shape[0] - 1)
    known = summary.classes[places] == labels
    places[unknown] = -1
    return places, known | unknown


def check_same_labels(labels: np.ndarray, others: np.ndarray) -> None:
    """Raise ValueError where the columns of a block's y are not those of an earlier one, `others`."""
    if not np.array_equal(labels, others):
        shown = [f"{len(one)} columns" if one.dtype.kind in "iu" else str(one.tolist()) for one in (labels, others)]
        raise ValueError(
            f"y of a block has {shown[0]} and that of an earlier one {shown[1]}; give the same labels in every block"
        )


def n_rows_for_summary(X: Any) -> int:
    """Number of rows of a block's X, as the caller gave it, for the summary of row blocks."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def weights_of_block(block: tuple[Any, ...], n_rows: int) -> np.ndarray:
    """Sample weights of a row block that is summarised; all of them may be 0."""
    given = block[2] if len(block) == 3 else None
    return np.zeros(n_rows) if given is not None and not np.any(given) else check_weights(given, n_rows)


@dataclass(frozen=True, eq=False)
class ClassMoments:
    """Work of a pass over row blocks: sums of features by group, the moments of a `Summary`."""

    n_groups: int

    def __call__(self, block: Block) -> SummarySums:
        """Sums of counts times features, shape (g, n)."""
        found, room = np.zeros((self.n_groups, block.X.shape[1])), Room()
        for rows in steps(block.counts.shape[0], ENTRIES // block.X.shape[1]):
            mine, some = np.zeros((rows.stop - rows.start, self.n_groups)), block.indicators
            if some is None:  # the last group is that of unknown labels, whose code is -1
                mine[np.arange(mine.shape[0]), block.codes[rows]] = block.counts[rows]
            else:
                mine[:, :-1], mine[:, -1] = some[rows] * block.counts[rows, None], block.counts[rows]
            found += block.X.piece(rows, room).adjoint(mine)
        return SummarySums(moments=found)


@dataclass(frozen=True, eq=False)
class EntrySpread:
    """Work of a pass for a summary of row blocks: sum of squared differences of all entries to their mean."""

    mean: float

    def __call__(self, block: Block) -> SummarySums:
        """Of one block."""
        return SummarySums(spread=block.X.spread(block.counts, self.mean))
