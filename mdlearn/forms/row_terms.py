"""Weights and thresholds by row: what makes the loss terms of a problem differ from row to row.

Sample weights say how often a row counts, in variance and mean as well. These weights are of the loss alone: costs of
single rows, that of a missing target 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.rows.arrays import LARGEST_ENTRY
from mdlearn.data.rows.rows import read_only_rows
from mdlearn.errors import came
from mdlearn.forms.losses import Term


@dataclass(frozen=True, eq=False)
class RowTerms:
    """Weights and thresholds of loss terms by row, beside those that the terms themselves have.

    In row i, term t is ``weights[t, i]`` times as heavy and its threshold ``shifts[t, i]`` higher: it is
    ``weights[t, i] * loss_t(z_i - shifts[t, i])``. Sample weights multiply it as they do everywhere.

    Attributes
    ----------
    weights : ndarray of shape (m,) or (T, m), or None
        Finite factors >= 0 of the weights of all T terms, or of each; None: 1.
    shifts : ndarray of shape (m,) or (T, m), or None
        Finite numbers that are added to the thresholds of all T terms, or of each; None: 0. A loss given by functions
        begins that much later.
    """

    weights: np.ndarray | None = None
    shifts: np.ndarray | None = None

    def of(self, terms: tuple[Term, ...], m: int) -> tuple[RowTerms | None, tuple[Term, ...]]:
        """Return them in the shape (T, m), with weights of at most 1, and the terms, which take the largest weight.

        None stands for weights and shifts that are the same in all rows.

        Parameters
        ----------
        terms : tuple of HingeTerm, LogisticTerm and GivenTerm
        m : int
            Number of rows.

        Raises
        ------
        ValueError
            For other shapes, negative weights, NaN or infinity, and where a term is a constraint.
        """
        weights, shifts = self.checked(terms, m)
        if not terms or (weights is None and shifts is None):
            return None, terms
        if weights is not None:
            most = weights.max(axis=1)
            terms = tuple(replace(t, weight=t.weight * float(own)) for t, own in zip(terms, most))
            weights = read_only_rows(
                np.divide(weights, most[:, None], out=np.ones_like(weights), where=most[:, None] > 0)
            )
        return RowTerms(weights, shifts), terms

    def shape_fault(self, n_terms: int, m: int) -> str:
        """Fault of their shapes for T terms and m rows, as half a sentence; empty where there is none."""
        for name in ("weights", "shifts"):
            if (values := getattr(self, name)) is None:
                continue
            found = np.asarray(values)
            if found.shape not in ((m,), (n_terms, m)) or found.dtype.kind not in "biuf":
                return (
                    f"{name} that are {came(found)}; numbers of shape ({m},) or ({n_terms}, {m}) are needed: one for "
                    "each row of `data`, or for each loss term one per row"
                )
        return ""

    def checked(self, terms: tuple[Term, ...], m: int) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return weights and shifts in the shape (T, m), None where they are; the ValueErrors of `of`."""
        if fault := self.shape_fault(len(terms), m):
            raise ValueError(f"by_row has {fault}")
        weights, shifts = (_by_term(name, getattr(self, name), len(terms), m) for name in ("weights", "shifts"))
        if not terms or (weights is None and shifts is None):
            return weights, shifts
        if any(t.hard for t in terms):
            raise ValueError("weights and thresholds of single rows need a loss of finite weight; lower C")
        if weights is not None:
            if float(weights.min()) < 0:
                raise ValueError(f"weights of loss terms by row need to be >= 0; got {float(weights.min())!r}")
            if not max(t.weight * float(own) for t, own in zip(terms, weights.max(axis=1))) <= LARGEST_ENTRY:
                raise ValueError(f"weights of loss terms by row are beyond {LARGEST_ENTRY:g}; give weights nearer 1")
        return weights, shifts

    def take(self, rows: np.ndarray) -> RowTerms:
        """Return those of some rows; shapes are (T, m)."""
        return RowTerms(*(one if one is None else one[:, rows] for one in (self.weights, self.shifts)))


def _by_term(name: str, values: Any, n_terms: int, m: int) -> np.ndarray | None:
    """Weights or shifts by row of every loss term, shape (T, m); ValueError for NaN and infinity."""
    if values is None:
        return None
    found = np.array(np.broadcast_to(np.asarray(values), (n_terms, m)), dtype=np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} of loss terms by row need to be finite; they hold NaN or infinity")
    return read_only_rows(found)
