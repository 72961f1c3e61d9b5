"""Sources of row blocks, checked: the same rows in every pass, all of them, added up in the promised order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks, Tree, paired
from mdlearn.data.rows.arrays import check_rows
from mdlearn.numerics.interruptible import finished
from mdlearn.plugins.registry import registry
from mdlearn.testing.require import require, require_clauses


def check_source(source: Any, X: Any = None, y: Any = None, weight: Any = None) -> None:
    """Check a source of row blocks: of a class what `given` leaves alone, of blocks every row in several passes.

    Parameters
    ----------
    source : str, class or RowBlocks
        A registered name or a class; or blocks over a few rows, best in three or more blocks, as `mdlearn.fit` would
        get them. Anything else is made `mdlearn.RowBlocks`.
    X : array-like or sparse matrix of shape (m, d), optional
        Rows that these blocks were made of, in their order.
    y : array-like of shape (m,) or (m, k), optional
        Their labels, or numbers; None where the blocks have none.
    weight : array-like of shape (m,), optional
        Their weights, where they have any.

    Raises
    ------
    AssertionError
        One sentence: the clause that does not hold, and the first block or row where it does not.
    """
    if isinstance(source, str):
        source = registry().sources[source]
    elif not isinstance(source, (type, RowBlocks)):
        source = RowBlocks(source)
    cls = source if isinstance(source, type) else type(source)
    title = f"source {getattr(cls, 'name', cls.__name__)!r}"
    require_clauses(title, (source_leaves_arrays_alone,), cls)
    if cls is source:
        return
    require_clauses(title, (source_gives_the_same_again, source_adds_up_in_pairs), source)
    if X is not None:
        require_clauses(title, (source_gives_all_rows,), source, X, y, weight)


def source_leaves_arrays_alone(cls: type[RowBlocks]) -> None:
    """Check that `given` of a class of sources returns None for NumPy arrays."""
    X, y = np.arange(8.0).reshape(4, 2), np.array([0, 1, 0, 1])
    require(
        cls.given(X, y, None) is None,
        "given(X, y, weight) takes NumPy arrays, which are not its own; return None for them",
    )


def source_gives_the_same_again(source: RowBlocks) -> None:
    """Check that a source gives the same rows in the same blocks in every pass, also after one that was given up."""
    first = _checked_source_pass(source).blocks
    given_up = source.reduced(_checked_source_block)
    next(given_up, None)
    given_up.close()
    for which, blocks in (
        ("second", _checked_source_pass(source).blocks),
        ("third", _checked_source_pass(source).blocks),
    ):
        require(
            len(blocks) == len(first),
            f"the first pass has {len(first)} blocks, the {which} one {len(blocks)}; begin anew in every pass",
        )
        for j, (one, other) in enumerate(zip(first, blocks)):
            _require_same_source_rows(one, other, f"block {j}", "the first pass", f"the {which} one")


def source_adds_up_in_pairs(source: RowBlocks) -> None:
    """Check that `reduced` of a source numbers blocks from 0, and adds up neighbours in pairs and pairs of pairs."""
    found = _checked_source_pass(source)
    n = len(found.blocks)
    require(
        list(found.numbers) == list(range(n)),
        f"reduced numbers {n} blocks {list(found.numbers)}; make needs to get 0, 1, 2, ... in the order of the sum",
    )
    tree = Tree()
    for number in range(n):
        tree.push(CheckedSourceBlocks(number, (number,), ()))
    wanted = tree.total()
    require(
        found.order == wanted.order,
        f"reduced adds up {n} blocks as {found.order}, {wanted.order} is needed; use mdlearn.extend.Tree",
    )


def source_gives_all_rows(source: RowBlocks, X: Any, y: Any, weight: Any) -> None:
    """Check that a source gives each of the rows that it was made of, with its own label and weight."""
    blocks = _checked_source_pass(source).blocks
    found = tuple(np.concatenate(parts) for parts in zip(*blocks))
    rows = _checked_source_rows(X)
    wanted = (
        rows,
        _checked_source_labels(y, len(rows)),
        np.ones(len(rows)) if weight is None else np.asarray(weight, dtype=float),
    )
    require(
        len(found[0]) == len(rows),
        f"the blocks have {[len(block[0]) for block in blocks]} rows, {sum(len(block[0]) for block in blocks)} in all; "
        f"{len(rows)} were given",
    )
    _require_same_source_rows(wanted, found, "all rows", "what was given", "the source")


BlockParts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rows of a block, their labels and weights."""


@dataclass(frozen=True)
class CheckedSourceBlocks:
    """Collected blocks of a pass over a source that is checked, and the order in which they were added up."""

    order: Any  # number of a block, or the orders of two sums
    numbers: tuple[int, ...]
    blocks: tuple[BlockParts, ...]

    def __add__(self, other: CheckedSourceBlocks) -> CheckedSourceBlocks:
        return CheckedSourceBlocks((self.order, other.order), self.numbers + other.numbers, self.blocks + other.blocks)


def _checked_source_pass(source: RowBlocks) -> CheckedSourceBlocks:
    """All blocks of one pass over a source; it needs to have any, with the same number of columns."""
    found = finished(source.reduced(_checked_source_block))
    require(
        isinstance(found, CheckedSourceBlocks), f"reduced returns {found!r}, the sum of what make returned is needed"
    )
    widths = [block[0].shape[1] for block in found.blocks]
    require(len(set(widths)) == 1, f"the blocks have {widths} columns; all need the same")
    return found


def _checked_source_block(number: int, block: Any) -> CheckedSourceBlocks:
    """Return one block of a source, checked and copied: the source may use its arrays again."""
    X, y, *rest = paired(block)
    rows = _checked_source_rows(X)
    labels = _checked_source_labels(y, len(rows))
    weights = np.array(rest[0], dtype=float) if rest and rest[0] is not None else np.ones(len(rows))
    for name, column, shape in (("labels", labels, labels.shape[:1]), ("weights", weights, weights.shape)):
        require(
            shape == rows.shape[:1],
            f"block {number} has {len(rows)} rows and {name} of shape {column.shape}; one for each row is needed",
        )
    return CheckedSourceBlocks(number, (number,), ((rows, labels, weights),))


def _checked_source_rows(X: Any) -> np.ndarray:
    """Rows of a block as a dense copy in float64."""
    return np.array(check_rows(X).block(slice(None)))


def _checked_source_labels(y: Any, n_rows: int) -> np.ndarray:
    """Labels of a block as a copy, several a row as a dense matrix; ones where a source gives rows alone."""
    if y is None:
        return np.ones(n_rows)
    return np.array(y.toarray() if hasattr(y, "tocsr") else y)


def _require_same_source_rows(first: Any, second: Any, where: str, one: str, other: str) -> None:
    """Require that two readings of a source agree in every row."""
    counts = len(first[0]), len(second[0])
    require(counts[0] == counts[1], f"{where}: {one} has {counts[0]} rows, {other} {counts[1]}")
    for name, a, b in zip(("the columns", "the label", "the weight"), first, second):
        require(a.shape[1:] == b.shape[1:], f"{where}: {one} has rows of shape {a.shape[1:]}, {other} {b.shape[1:]}")
        same = (a == b) | ((a != a) & (b != b))  # unknown labels are NaN
        differs = np.flatnonzero(~same.reshape(len(a), -1).all(axis=1))
        if differs.size:
            i = int(differs[0])
            require(False, f"{where}, row {i}: {one} has {name} {a[i].tolist()!r}, {other} {b[i].tolist()!r}")
