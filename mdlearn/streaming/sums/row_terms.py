"""Row terms over row blocks: weights and thresholds of the loss terms in a block's rows, asked for in every pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.summary import Block, Summary
from mdlearn.data.validation import Data
from mdlearn.errors import faulty, with_error_notes
from mdlearn.forms.losses import Terms
from mdlearn.forms.margin import check_terms_of_unknown_labels
from mdlearn.forms.row_terms import RowTerms

ROUNDING_OF_ROW_TERMS = 1e-6
"""Difference of two answers for the same rows, relative to the largest, that is rounding, of float32 too."""


@dataclass(frozen=True, eq=False)
class BlockRowTerms:
    """Callable that makes the row terms of a block: weights and shifts of all T terms in its rows, shape (2, T, n)."""

    objective: Any  # whose they are, for errors
    say: Callable[[Data], RowTerms | None]  # its `row_terms`
    terms: Terms
    summary: Summary
    first: np.ndarray | None = None  # `row_term_sums` over all blocks, of the pass that writes the form

    def __call__(self, block: Block) -> np.ndarray:
        return self._of(block.data(self.summary, block.counts))

    def checked(self, block: Block) -> np.ndarray:
        """Return the row terms of a block; FaultyPlugin where those of every other row differ without the rest."""
        data, rows = block.data(self.summary, block.counts), np.arange(0, block.counts.shape[0], 2)
        names = ("codes", "counts", "rows", "targets", "indicators")
        some = {name: values[rows] for name in names if (values := getattr(data, name)) is not None}
        whole, alone = self._of(data), self._of(replace(data, X=data.X.take(rows), **some))
        for one, other in zip(alone, whole[..., rows]):
            if np.abs(one - other).max(initial=0.0) > ROUNDING_OF_ROW_TERMS * np.abs(other).max(initial=0.0):
                told = (
                    "says other things of rows without those beside them, while needs_all_rows is empty; give X and y"
                )
                raise faulty(self.objective, "objective", "row_terms", told)
        return whole

    def squares(self, block: Block) -> np.ndarray:
        """Return |x|^2 of the rows of a block, by which `row_term_sums` tells rows apart, shape (n,)."""
        return block.data(self.summary, block.counts).X.squares()

    def check_sums(self, later: np.ndarray) -> None:
        """Raise ValueError where the sums of a later pass are not those of the first."""
        first = self.first
        if first is not None and not (np.abs(later[0] - first[0]) <= ROUNDING_OF_ROW_TERMS * first[1]).all():
            raise ValueError(
                f"row_terms of objective {self.objective.name!r} say other things of the rows in the first pass than "
                "in a later one; give blocks that stay the same, in the same order, and let row terms depend on the "
                "row alone"
            )

    def _of(self, data: Data) -> np.ndarray:
        loss = self.terms.loss
        shape = len(loss), data.counts.shape[0]
        own = self.say(data) or RowTerms()
        if data.partial:
            check_terms_of_unknown_labels(self.terms, own)
        weights, shifts = with_error_notes(self.objective, "objective", "row_terms", own.checked, loss, shape[1])
        return np.array([np.ones(shape) if weights is None else weights, np.zeros(shape) if shifts is None else shifts])


def row_term_sums(own: np.ndarray, counts: np.ndarray, squares: np.ndarray) -> np.ndarray:
    """Return sums of some row terms, (2, T, n), by which passes are held against each other.

    Shape (2, 2, T, 2): weights and shifts times counts, and times counts times |x|^2; and the sizes of these.
    """
    each = np.stack([counts, counts * squares], axis=1)
    return np.stack([own @ each, np.abs(own) @ each])
