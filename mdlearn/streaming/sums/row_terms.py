"""Row terms over row blocks: weights and thresholds of the loss terms in a block's rows, asked for in every pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.row_blocks.summary import Block, Summary
from mdlearn.data.validation import Data
from mdlearn.errors import faulty, with_error_notes
from mdlearn.forms.losses import Term
from mdlearn.forms.row_terms import RowTerms

ROUNDING_OF_ROW_TERMS = 1e-6
"""Difference of two answers for the same rows, relative to the largest, that is rounding, of float32 too."""


@dataclass(frozen=True, eq=False)
class BlockRowTerms:
    """Callable that makes the row terms of a block: weights and shifts of all T terms in its rows, shape (2, T, n)."""

    objective: Any  # whose they are, for errors
    say: Callable[[Data], RowTerms | None]  # its `row_terms`
    terms: tuple[Term, ...]
    summary: Summary

    def __call__(self, block: Block) -> np.ndarray:
        return self._of(block.data(self.summary, block.counts))

    def checked(self, block: Block) -> np.ndarray:
        """Return the row terms of a block; FaultyPlugin where those of every other row differ without the rest."""
        data, rows = block.data(self.summary, block.counts), np.arange(0, block.counts.shape[0], 2)
        whole, targets = self._of(data), None if data.targets is None else data.targets[rows]
        some = {name: getattr(data, name)[rows] for name in ("codes", "counts", "rows")}
        alone = self._of(replace(data, X=data.X.take(rows), targets=targets, **some))
        for one, other in zip(alone, whole[..., rows]):
            if np.abs(one - other).max(initial=0.0) > ROUNDING_OF_ROW_TERMS * np.abs(other).max(initial=0.0):
                told = (
                    "says other things of rows without those beside them, while needs_all_rows is empty; give X and y"
                )
                raise faulty(self.objective, "objective", "row_terms", told)
        return whole

    def _of(self, data: Data) -> np.ndarray:
        shape = len(self.terms), data.counts.shape[0]
        own = self.say(data) or RowTerms()
        weights, shifts = with_error_notes(self.objective, "objective", "row_terms", own.checked, self.terms, shape[1])
        return np.array([np.ones(shape) if weights is None else weights, np.zeros(shape) if shifts is None else shifts])
