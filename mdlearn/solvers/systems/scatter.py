"""Scatter of rows about their mean, sums of squares for all columns that weigh the rows alike; their signed means."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

import numpy as np

from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import DenseRows, Rows, steps
from mdlearn.forms.margin import Column
from mdlearn.solvers.systems.weighted_gram import PIECE_ENTRIES, Work, add_weighted_gram, mirror_lower_weighted_gram

LEFT_BY_CENTRE = 1e-3
"""Share of a column's squares that a centre leaves at least where these are summed up first: digits are lost beyond."""

CENTRED_ENTRIES = 1 << 14
"""Entries up to which dense rows are centred in any case: a copy of so few costs less than to look at its digits."""


COLUMNS_TOGETHER = 16
"""Columns whose mean signed rows come from one product: some numbers for every row."""


class SignedMeans(NamedTuple):
    """Mean signed rows of columns that weigh the rows alike, shape (k, n), the columns' variance terms being alike."""

    columns: Sequence[Column]
    means: np.ndarray


class MeansOfColumns:
    """Mean signed rows of all columns of a form: a pass over the rows serves several columns."""

    def __init__(self, rows: AffineRows, columns: Sequence[Column]) -> None:
        first = columns[0]
        alike = all(one.counts is first.counts and one.kappa == first.kappa for one in columns)
        self.rows, self.columns = rows, columns
        self.places = {id(one): j for j, one in enumerate(columns)} if alike else {}
        self.found: dict[int, SignedMeans] = {}

    def of(self, column: Column) -> tuple[SignedMeans, int]:
        """Return a column's mean signed row with those of its neighbours, and its place among these."""
        at = self.places.get(id(column))
        if at is None:
            return self._means((column,)), 0
        group, place = divmod(at, COLUMNS_TOGETHER)
        found = self.found.get(group)
        if found is None:
            start = group * COLUMNS_TOGETHER
            self.found[group] = found = self._means(self.columns[start : start + COLUMNS_TOGETHER])
        return found, place

    def _means(self, columns: Sequence[Column]) -> SignedMeans:
        if len(columns) == 1:
            (one,) = columns
            return SignedMeans(columns, self.rows.adjoint(one.y * one.counts)[None] / one.total)
        signed = np.array([one.y for one in columns])
        signed *= columns[0].counts
        return SignedMeans(columns, np.ascontiguousarray(self.rows.adjoint(signed.T).T) / columns[0].total)


class Scatter(NamedTuple):
    """Scatter of rows: their weights, their mean, and the sum of squares about it."""

    counts: np.ndarray
    mean: np.ndarray
    about: np.ndarray


class Scatters:
    """Scatter of rows (x, 1) about their mean; the sums for the last weights are kept.

    With r_i = y_i x_i, x = m + d and v = l m + s, where l is the mean of the signs and s that of y_i d_i::

        sum c_i (r_i - v)(r_i - v)' = sum c_i d_i d_i' - C s s' + C ((1 - l^2) m m' - l (m s' + s m'))

    so that all classes share the first sum, and no digits are lost where m is large beside d.

    `stored`: the same rows without the zeros of dense ones; None: the rows themselves.
    """

    def __init__(self, rows: AffineRows, stored: Rows | None = None) -> None:
        self.rows, self.stored = rows, rows.rows if stored is None else stored
        self.scatter: Scatter | None = None
        self.plain: tuple[np.ndarray, np.ndarray] | None = None

    def of(self, counts: np.ndarray) -> Generator[None, None, Scatter]:
        """Mean row and sum of squares about it, of rows that weigh `counts`."""
        before = self.scatter
        if before is not None and _same_scatter_weights(counts, before.counts):
            return before
        mean = self.rows.adjoint(counts) / counts.sum()
        n, d = mean.shape[0], self.stored.shape[1]
        about = np.zeros((n, n))  # a constant column does not vary
        few = self.rows.rows.shape[0] * d <= CENTRED_ENTRIES and not self.stored.sparse
        M = None if few else (yield from self._sum_less_mean(counts, mean[:d]))
        if M is None:
            M = yield from self._sum_about(counts, mean[:d])
        about[:d, :d] = M
        found = Scatter(counts, mean, about)
        self.scatter = found
        return found

    def _sum_about(self, counts: np.ndarray, mean: np.ndarray) -> Generator[None, None, np.ndarray]:
        """The sum from rows less their mean."""
        rows, (m, d) = self.rows.rows, self.stored.shape
        yield from rows.written()
        if m * d <= PIECE_ENTRIES:
            with np.errstate(over="ignore", invalid="ignore"):
                B = (rows.block(slice(0, m)) - mean) * np.sqrt(counts)[:, None]
                return np.asarray(B.T @ B)
        M = np.zeros((d, d))
        for part in steps(m, max(64, PIECE_ENTRIES // d)):
            with np.errstate(over="ignore", invalid="ignore"):
                some = DenseRows(rows.block(part) - mean)
            yield from add_weighted_gram(some, False, counts[part], M)
        mirror_lower_weighted_gram(M)
        return M

    def _sum_less_mean(self, counts: np.ndarray, mean: np.ndarray) -> Generator[None, None, np.ndarray | None]:
        """The sum from that of the rows as they are, not copied or made dense; None: digits would be lost."""
        with np.errstate(over="ignore", invalid="ignore"):
            squares = self.stored.column_squares(counts)
            if (squares - counts.sum() * np.square(mean) < LEFT_BY_CENTRE * squares).any():
                return None  # before the product, which is what costs
        M = np.zeros((mean.shape[0], mean.shape[0]))
        yield from add_weighted_gram(self.stored, False, counts, M)
        with np.errstate(over="ignore", invalid="ignore"):
            M -= np.multiply.outer(counts.sum() * mean, mean)
        mirror_lower_weighted_gram(M)
        return M

    def centred(self, column: Column) -> Generator[None, None, np.ndarray]:
        """The matrix sum c_i (r_i - v)(r_i - v)' of a column."""
        _, m, about = yield from self.of(column.counts)
        C, weights = column.total, column.counts * column.y
        label = float(weights.sum()) / C
        s = self.rows.adjoint(weights - label * column.counts) / C
        s -= (float(weights.sum()) / C - label) * m
        with np.errstate(over="ignore", invalid="ignore"):
            V = np.stack((m, s), axis=1)
            found: np.ndarray = V @ (C * np.array([[1.0 - label * label, -label], [-label, -1.0]])) @ V.T
            found += about
        return found

    def add(self, factor: float, counts: np.ndarray, M: np.ndarray) -> Work:
        """Add factor sum c_i x_i x_i' to the lower triangle of M."""
        centred, plain = self.scatter, self.plain
        if centred is not None and _same_scatter_weights(counts, centred.counts):
            whole = centred.about
            with np.errstate(over="ignore", invalid="ignore"):
                M += np.multiply.outer((factor * float(counts.sum())) * centred.mean, centred.mean)
        elif plain is not None and _same_scatter_weights(counts, plain[0]):
            whole = plain[1]
        else:
            whole = np.zeros_like(M)
            yield from add_weighted_gram(self.stored, self.rows.constant, counts, whole)
            self.plain = counts, whole
        with np.errstate(over="ignore", invalid="ignore"):
            M += factor * whole


def _same_scatter_weights(counts: np.ndarray, before: np.ndarray) -> bool:
    """Whether a scatter of rows with earlier weights is that of these."""
    return counts is before or np.array_equal(counts, before)
