"""Source of row blocks, which come again for every pass: what is kept of them is one block and sums.

A source is any re-iterable of (X, y) or (X, y, weight), or a function that returns a new iterator of them. The first
pass checks everything and counts; later passes trust it, and are held against its counts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.census import CENSUSES, Census
from mdlearn.data.row_blocks.summary import (
    Block,
    ClassMoments,
    Summary,
    SummarySums,
    block_checked_by_summary,
    n_rows_for_summary,
)
from mdlearn.data.validation import check_number
from mdlearn.errors import came, faulty, is_foreign, steps_with_error_notes

ROUNDING_OF_WEIGHTS = 1e-9
"""Relative difference of two sums of weights that is rounding."""


Work = Callable[[Block], SummarySums]
"""What a pass does with a block."""
Make = Callable[[int, Any], Any]
"""What becomes of a block with its number: something that adds up, or None."""


def plus(one: Any, other: Any) -> Any:
    """Add up results of two row blocks of a source; where one is None, return the other."""
    if one is None or other is None:
        return other if one is None else one
    return operator.add(one, other)


class Tree:
    """Tree of sums over row blocks of a source, of pairs and pairs of pairs: an order for several processes, too.

    `add`: (one, other) -> their sum.
    """

    def __init__(self, add: Callable[[Any, Any], Any] = plus) -> None:
        self.add, self.parts = add, list[tuple[int, Any]]()

    def push(self, sums: Any) -> None:
        """Add what the next block gave."""
        level = 0
        while self.parts and self.parts[-1][0] == level:
            sums = self.add(self.parts.pop()[1], sums)
            level += 1
        self.parts.append((level, sums))

    def total(self) -> Any:
        """The sum of everything; None of nothing."""
        if not self.parts:
            return None
        _, sums = self.parts.pop()
        while self.parts:
            sums = self.add(self.parts.pop()[1], sums)
        return sums


def census_of_source_block(number: int, block: Any, kind: type[Census] = Census) -> Census | None:
    """Check and count a block of a source; errors say which one it is."""
    try:
        return kind.of(paired(block), number)
    except (TypeError, ValueError) as error:
        raise type(error)(f"block {number}: {error}") from None


def paired(block: Any) -> tuple[Any, ...]:
    """Block of a source of row blocks as a tuple (X, y) or (X, y, weight); TypeError for anything else."""
    if not isinstance(block, tuple) or len(block) not in (2, 3):
        raise TypeError(
            f"a block needs to be a tuple (X, y) or (X, y, weight); got {type(block).__name__}; where X is all rows, "
            "give y"
        )
    return block


@dataclass(frozen=True, eq=False)
class Portion:
    """Result of a pass over some row blocks of a source, which has been counted before."""

    rows: int  # rows given
    weight: float  # sum of the counts
    sums: SummarySums | None  # what work made of them; None where none counts
    # of counts times entries by class, and of their sizes; None where nobody asks whether rows are the same
    moments: SummarySums | None = None

    def __add__(self, other: Portion) -> Portion:
        moments = plus(self.moments, other.moments)
        return Portion(self.rows + other.rows, self.weight + other.weight, plus(self.sums, other.sums), moments)


@dataclass(frozen=True, eq=False)
class SourceWork:
    """Callable that makes the `Portion` of a row block of a source, in a pass after the first."""

    work: Work  # (Block) -> SummarySums
    summary: Summary  # what the first pass found
    moments: bool = False  # whether to add up what tells that the rows are those of the first pass

    def __call__(self, number: int, block: Any) -> Portion:
        """Do the work on the rows that count."""
        checked = block_checked_by_summary(paired(block), self.summary, number)
        rows = n_rows_for_summary(block[0])
        if checked is None:
            return Portion(rows, 0.0, None)
        found = None
        if self.moments:
            found = ClassMoments(self.summary.n_sums)(checked)
            found["sizes"] = float(checked.counts @ np.sqrt(checked.X.squares()))
            if checked.targets is not None:
                found["targets"] = float(checked.counts @ checked.targets)
                found["target sizes"] = float(checked.counts @ np.abs(checked.targets))
        return Portion(rows, checked.total, self.work(checked), found)


class RowBlocks:
    """Row blocks of a source that gives them again for every pass, for `mdlearn.fit` with y None.

    A subclass whose blocks are elsewhere writes `reduced` anew, and nothing else. Where a plugin brings it
    (`mdlearn_sources`), it has a name, and `given` makes it of what `mdlearn.fit` is given.

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

    @classmethod
    def given(cls, X: Any, y: Any, weight: Any) -> RowBlocks | None:
        """Make blocks of an X of a kind that this class knows; None for any other, and here always.

        Parameters
        ----------
        X, y, weight : object
            X, y and sample_weight of `mdlearn.fit`.

        Returns
        -------
        RowBlocks or None
        """
        return None

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Blocks as the caller gives them."""
        return map(paired, self.source() if callable(self.source) else self.source)

    def reduced(self, make: Make) -> Generator[None, None, Any]:
        """Add up what a callable makes of every block, in pairs of neighbours and pairs of pairs.

        Parameters
        ----------
        make : callable
            (number of the block, block) -> something that adds up, or None. It can be sent to another process.

        Returns
        -------
        generator
            Yields None now and then, at least after each block, and returns the sum; None of nothing.
        """
        tree = Tree()
        for number, block in enumerate(self):
            tree.push(make(number, block))
            yield
        return tree.total()

    def _reduced(self, make: Make, kind: type) -> Generator[None, None, Any]:
        """Return what `reduced` does, checked: a sum of this kind, or None."""
        found = yield from steps_with_error_notes(self, "source", "reduced", partial(self.reduced, make))
        if not isinstance(found, (kind, type(None))):
            raise faulty(self, "source", "reduced", f"returned {came(found)}, the sum of what make returned is needed")
        return found

    def scan(self, class_weight: Any, *, y: str = "labels") -> Generator[None, None, Summary]:
        """Check all blocks and count.

        Parameters
        ----------
        class_weight : mapping, "balanced" or None
            As for `mdlearn.fit`.
        y : {"labels", "numbers", "none", "some labels", "indicators"}
            What y of a block holds, as in `mdlearn.extend.Task`.

        Returns
        -------
        generator
            Yields None now and then, and returns a Summary.

        Raises
        ------
        TypeError, ValueError
            For blocks that are none, or that have nothing to learn from.
        """
        if y not in ("labels", "some labels") and class_weight is not None:
            who = "rows of one class each" if y == "indicators" else "classifiers"
            raise ValueError(f"class_weight {class_weight!r} is for {who}; give a block (X, y, weight)")
        kind = CENSUSES[y]
        make = partial(census_of_source_block, kind=kind)
        census: Census | None = yield from self._reduced(make, kind)
        if census is None:
            told = "row per class" if y in ("labels", "some labels") else "row"
            raise ValueError(f"the blocks have no rows; give at least one {told}")
        return census.summary(class_weight)

    def fold(self, work: Work, summary: Summary, *, proof: bool = False) -> Generator[None, None, SummarySums]:
        """Add up what a callable makes of all blocks; the sums depend on nothing but the blocks.

        Parameters
        ----------
        work : callable
            (Block) -> SummarySums.
        summary : Summary
            What `scan` found.
        proof : bool, default False
            Whether a certificate is made of the sums. Then the rows of a plugin's source, where no map makes features
            of them, are held against those of the first pass, by their sums over each class.

        Returns
        -------
        generator
            Yields None now and then, and returns the SummarySums.

        Raises
        ------
        ValueError
            When the blocks are not those of the first pass.
        """
        moments = proof and is_foreign(self) and summary.mapping is None
        make = SourceWork(work, summary, moments)
        found: Portion = (yield from self._reduced(make, Portion)) or Portion(0, 0.0, None)
        if found.rows != summary.n_rows or not abs(found.weight - summary.total) <= ROUNDING_OF_WEIGHTS * summary.total:
            raise ValueError(
                f"the blocks had {summary.n_rows} rows of weight {summary.total:g} in the first pass, and {found.rows} "
                f"of weight {found.weight:g} in a later one; give blocks that stay the same"
            )
        if found.moments is not None:
            off = np.abs(found.moments["moments"] - summary.moments)
            if not off.max(initial=0.0) <= ROUNDING_OF_WEIGHTS * found.moments["sizes"]:
                c, j = np.unravel_index(int(off.argmax()), off.shape)
                name = summary.group(int(c))
                group = f" of {name}" if name else ""
                raise ValueError(
                    f"the blocks had other rows in the first pass than in a later one: column {j}{group} "
                    f"added up to {summary.moments[c, j]:.10g}, and to "
                    f"{found.moments['moments'][c, j]:.10g}; give blocks that stay the same"
                )
            if summary.level is not None:
                first, later = summary.level * summary.total, found.moments["targets"]
                if not abs(later - first) <= ROUNDING_OF_WEIGHTS * found.moments["target sizes"]:
                    raise ValueError(
                        f"the blocks had other targets in the first pass than in a later one: they added up to "
                        f"{first:.10g}, and to {later:.10g}; give blocks that stay the same"
                    )
        assert found.sums is not None
        return found.sums
