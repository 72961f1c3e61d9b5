"""Distinct rows in an order of their own.

Random choices of rows are made among the distinct rows of positive weight in lexicographic order. So they depend
neither on the order of the caller's rows nor on how often a row is repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, Selection, steps
from mdlearn.numerics import memory

Keys = Callable[[np.ndarray, int, int], np.ndarray]
REPEATED_HASH = np.uint64(0x9E3779B97F4A7C15)
"""Odd number that bits are mixed with."""
REPEATED_SAMPLE, REPEATED_SHARE = 256, 0.4
"""Rows that are looked at first, and the share of distinct ones among these, and at last of all, up to which groups of
equal rows are worth their search."""


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct rows of positive weight, in lexicographic order."""

    rows: Rows  # shape (m, d)
    where: np.ndarray  # shape (n,), intp: position in `rows` of each distinct row, n <= m
    counts: np.ndarray  # shape (n,): sum of the weights of the rows that are equal to it

    def __len__(self) -> int:
        """n."""
        return int(self.where.shape[0])

    def block(self, which: Selection) -> np.ndarray:
        """Selected distinct rows as a dense float64 array."""
        where = self.where[which]
        small = where.shape[0] * self.rows.shape[1] <= BLOCK_ENTRIES
        return self.rows.block(where) if small else self.rows.take(where).block(slice(None))

    def require(self, n: int, name: str) -> None:
        """ValueError unless `n` of them can be chosen; `name` is the parameter that asks for them."""
        if not 1 <= n <= len(self):
            raise ValueError(
                f"{name} is {n} but X has {len(self)} distinct rows of positive weight; give 1 to {len(self)}"
            )


class EqualRows(NamedTuple):
    """Groups of equal rows: `where` (shape (n,)), a row of each group; `group` (shape (m,)), that of each row."""

    where: np.ndarray
    group: np.ndarray

    def sums(self, v: np.ndarray) -> np.ndarray:
        """Return the sums of numbers of the rows over every group."""
        return np.bincount(self.group, v, self.where.shape[0])

    def filled(self, v: np.ndarray, caps: np.ndarray) -> np.ndarray:
        """Return the numbers of the groups shared out to their rows, one after the other up to its cap."""
        order = np.argsort(self.group, kind="stable")
        group, most = self.group[order], caps[order]
        before, first = np.cumsum(most) - most, np.ones(group.shape[0], dtype=bool)
        np.not_equal(group[1:], group[:-1], out=first[1:])
        out = np.empty(caps.shape[0])
        out[order] = np.clip(v[group] - (before - before[first][group]), 0.0, most)
        return out

    def level(self, v: np.ndarray) -> bool:
        """Whether numbers of the rows are the same in all of a group."""
        return bool((v == v[self.where][self.group]).all())


def sample_repeats(rows: Rows) -> bool:
    """Whether a sample of dense rows says that groups of equal ones are worth their search."""
    m, d = rows.shape
    if m < 2 * REPEATED_SAMPLE or not isinstance(rows, DenseRows):
        return False
    some = rows.X[:: m // REPEATED_SAMPLE] @ _key_weights(d)
    return np.unique(some).shape[0] <= REPEATED_SHARE * some.shape[0]


def _key_weights(d: int) -> np.ndarray:
    """Return what rows are multiplied by so that products tell which may be equal."""
    return np.cos(np.arange(1.0, d + 1.0))


def equal_rows(rows: Rows, beside: Sequence[np.ndarray]) -> EqualRows | None:
    """Group dense rows that are equal, with the numbers `beside` them; None where few are, or a sample says so.

    One product with every row says which may be equal: those that rounding leaves apart are groups of their own. None,
    too, where it is the same for rows that differ.
    """
    if not isinstance(rows, DenseRows) or not sample_repeats(rows):
        return None
    (m, d), X = rows.shape, rows.X
    key = X @ _key_weights(d)
    for k, numbers in enumerate(beside):
        key += np.sin(k + 1.0) * numbers
    # Sixteen bits of it are sorted in a pass; where two numbers share these, groups may be in several parts.
    bits = (key.view(np.uint64) * REPEATED_HASH >> np.uint64(48)).astype(np.uint16)
    order, first = np.argsort(bits, kind="stable"), np.ones(m, dtype=bool)
    key = key[order]
    np.not_equal(key[1:], key[:-1], out=first[1:])
    where = order[first]
    if where.shape[0] > REPEATED_SHARE * m:
        return None
    group = np.empty(m, dtype=np.intp)
    group[order] = np.cumsum(first) - 1
    found = EqualRows(where, group)
    same = np.array_equal(X, X[where].take(group, axis=0)) and all(found.level(numbers) for numbers in beside)
    return found if same else None


def distinct(rows: Rows, counts: np.ndarray) -> Distinct:
    """Find the distinct rows of positive weight, sorted by their first column, then the second, and so on.

    Rows are compared as numbers: -0.0 is 0.0, float32 and float64 and dense and sparse rows have one order.
    """
    order, first = distinct_row_order(rows, np.flatnonzero(counts > 0))
    return Distinct(rows, order[first], np.add.reduceat(counts[order], np.flatnonzero(first)))


def distinct_row_order(rows: Rows, which: np.ndarray, key: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Sort rows by a key of theirs, if given, then lexicographically, as `distinct` does; and say which are distinct.

    More and more columns are looked at, for the rows only that what came before left tied, in blocks of some
    BLOCK_ENTRIES.

    Return `which` in order, where equal rows keep theirs, and whether each has another key or other numbers than the
    one before it.
    """
    keys, length = (
        _distinct_keys_of_dense_rows(rows) if isinstance(rows, DenseRows) else _distinct_keys_of_csr_rows(rows)
    )
    by = np.arange(which.shape[0]) if key is None else np.argsort(key, kind="stable")
    order, first = which[by], np.zeros(which.shape[0], dtype=bool)
    first[0] = True
    if key is not None:
        first[1:] = key[by[1:]] != key[by[:-1]]
    start, width = 0, 1
    while start < length:
        tied = np.flatnonzero(~(first & np.append(first[1:], True)))
        if tied.shape[0] == 0:
            break
        width = min(width, max(1, 4 * BLOCK_ENTRIES // tied.shape[0]), length - start)
        group = np.cumsum(first)[tied]
        table = _distinct_key_table(group, keys(order[tied], start, start + width))
        by = _distinct_key_order(table)
        order[tied], table = order[tied][by], table[by]
        first[tied[1:]] = (table[1:] != table[:-1]).any(axis=1)
        start, width = start + width, 2 * width
    return order, first


def _distinct_key_order(table: np.ndarray) -> np.ndarray:
    """Order of the lines of a table of sort keys, equal ones as they stand; by numbers where two columns allow."""
    if table.shape[1] > 2:
        return np.argsort(table.view(f"V{8 * table.shape[1]}").ravel(), kind="stable")
    by = np.argsort(table[:, 1].astype(np.uint64), kind="stable")
    if table[0, 0] == table[-1, 0]:  # one group alone
        return by
    return by[np.argsort(table[by, 0].astype(np.uint64), kind="stable")]


def _distinct_key_table(group: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Table of sort keys: unsigned integers whose bytes compare as the group number, then the float64 values, do."""
    table = np.empty((values.shape[0], values.shape[1] + 1), dtype=">u8")
    table[:, 0] = group
    bits = np.add(values, 0.0, out=values).view(np.int64)  # -0.0 + 0.0 is 0.0
    # Negative numbers: all bits flipped. Others: the sign bit.
    bits ^= (bits >> 63) | np.int64(-(2**63))
    table[:, 1:] = bits.view(np.uint64)
    return table


def _distinct_keys_of_dense_rows(rows: DenseRows) -> tuple[Keys, int]:
    """Sort keys of dense rows: columns of some rows in float64, a new array; and how many there are."""
    return lambda which, start, stop: np.array(rows.X[:, start:stop][which], dtype=np.float64, order="C"), rows.shape[1]


def _distinct_keys_of_csr_rows(rows: Rows) -> tuple[Keys, int]:
    """Sort keys of CSR rows: k-th entries as two numbers each, in the order of the dense rows; and the longest row.

    Where two rows differ first, one has an entry and the other a zero (or a later entry, or none), or both have entries
    in the same column. So a negative entry comes before anything in later columns and a positive one after: with
    sign(value) (d - column) as first number, 0 for no entry, and the value as second.
    """
    assert isinstance(rows, CsrRows)
    A, d = rows.X, rows.shape[1]
    if not all(bool(A.data[part].all()) for part in steps(A.nnz, BLOCK_ENTRIES)):
        memory.require(A.data.nbytes + A.indices.nbytes, "X without its stored zeros", "call X.eliminate_zeros()")
        A = A.copy()
        A.eliminate_zeros()

    def keys(which: np.ndarray, start: int, stop: int) -> np.ndarray:
        at = A.indptr[which][:, None] + np.arange(start, stop)
        there = at < A.indptr[which + 1][:, None]
        at = at[there]
        out = np.zeros((which.shape[0], stop - start, 2))
        out[there, 1] = A.data[at]
        out[there, 0] = np.sign(out[there, 1]) * (d - A.indices[at])
        return out.reshape(which.shape[0], -1)

    return keys, int(np.diff(A.indptr).max())
