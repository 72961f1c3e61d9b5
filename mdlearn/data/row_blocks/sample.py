"""Sample of rows that come in blocks, drawn before features are made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.summary import Block, Summary, SummarySums
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.data.validation import Data

MOST_ROWS, MOST_ENTRIES = 100_000, 1 << 24
"""Rows of a sample, and their entries (128 MB of float64)."""


def joined_samples(parts: list[Rows]) -> Rows:
    """Rows of several samples, one after the other; dense ones and sparse ones together are sparse."""
    if len(parts) == 1:
        return parts[0]
    if not any(part.sparse for part in parts):
        return DenseRows(np.concatenate([part.X for part in parts if isinstance(part, DenseRows)]))
    from scipy.sparse import csr_matrix, vstack

    held = [part.X if isinstance(part, CsrRows) else csr_matrix(part.block(slice(None))) for part in parts]
    dtype = np.result_type(*(part.dtype for part in parts))
    return CsrRows(vstack(held, format="csr").astype(dtype, copy=False))


@dataclass(frozen=True, eq=False)
class Sample:
    """Sample of rows, drawn without replacement: those with the smallest random numbers, in the order of the blocks."""

    X: Rows  # shape (n, d)
    codes: np.ndarray  # shape (n,), intp: as of a `Block`
    counts: np.ndarray  # shape (n,): as of all rows: a row counts as often as it does there
    numbers: np.ndarray  # shape (n,): random ones in [0, 1)
    most: int  # more rows than this are not kept
    targets: np.ndarray | None = None  # shape (n,): those of a regression
    indicators: np.ndarray | None = None  # shape (n, k), bool: which of several labels rows have

    def __add__(self, other: Sample) -> Sample:
        mine, theirs = self._of_each_row(), other._of_each_row()
        joined: dict[str, Any] = {name: np.concatenate([mine[name], theirs[name]]) for name in mine}
        return replace(self, X=joined_samples([self.X, other.X]), **joined).least()

    def least(self) -> Sample:
        """Without the rows that are too many."""
        if self.numbers.shape[0] <= self.most:
            return self
        at = np.sort(np.argpartition(self.numbers, self.most)[: self.most])
        chosen: dict[str, Any] = {name: values[at] for name, values in self._of_each_row().items()}
        return replace(self, X=self.X.take(at), **chosen)

    def _of_each_row(self) -> dict[str, np.ndarray]:
        """Arrays with something for each row, by name."""
        names = ("codes", "counts", "numbers", "targets", "indicators")
        return {name: values for name in names if (values := getattr(self, name)) is not None}

    def data(self, summary: Summary) -> Data:
        """The sample as training data."""
        n = self.codes.shape[0]
        return summary.data(self.X, self.codes, self.counts, np.arange(n), n, self.targets, self.indicators)


@dataclass(frozen=True, eq=False)
class DrawRowBlockSample:
    """Work of a pass over row blocks: draw a sample of the rows."""

    seed: int
    most: int

    @classmethod
    def of(cls, seed: int, summary: Summary) -> DrawRowBlockSample:
        """As many rows as a sample may have."""
        return cls(seed, min(MOST_ROWS, max(1, MOST_ENTRIES // summary.width)))

    def __call__(self, block: Block) -> SummarySums:
        """Draw at most `most` rows of a block."""
        rng = np.random.default_rng([self.seed, block.number, 2])
        numbers = np.asarray(rng.random(block.counts.shape[0]))
        drawn = Sample(block.X, block.codes, block.counts, numbers, self.most, block.targets, block.indicators)
        return SummarySums(sample=drawn.least())
