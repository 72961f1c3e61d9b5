"""Passes over decision values: losses of all columns, their slopes and second derivatives, block by block.

Declared terms are numbers to a compiled pass, which takes variance and mean along. Given ones bring functions of
arrays, which are called for one column after the other; what they return is added to what the compiled pass finds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn._solvers import apg
from mdlearn.data.rows.rows import steps
from mdlearn.forms.losses import Term, loss_term_table
from mdlearn.forms.margin import Column

VALUES_PER_CALL = 1 << 17
"""Decision values that one call takes: a few milliseconds."""
INFINITE_DERIVATIVE = 1e100
"""Derivatives beyond which a given loss counts as infinite."""
COMPILED_KINDS = frozenset({"squared", "logistic"})
"""Kinds of terms that the kernel knows."""


class LossPass:
    """Pass that turns decision values (m, k) into derivatives of losses in place, with signs and counts (m, k).

    `steepest` (shape (k,)): largest second derivative of the losses of every column at margins near 0, per unit of
    count; `reach`: margin next to which some slope still changes; `floors` (shape (k,)): what the losses of every
    column are nowhere below, per unit of count, -inf where none is known; `mixed`: whether some columns have given
    terms.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        terms = [[t for t in c.terms if t.weight > 0] for c in columns]
        declared = [[t for t in own if t.kind in COMPILED_KINDS] for own in terms]
        # GivenTerms, but for the name: kinds decide.
        self.given: list[list[Any]] = [[t for t in own if t.kind not in COMPILED_KINDS] for own in terms]
        self.mixed = any(self.given)
        self.numbers = np.zeros((max(len(own) for own in declared), len(columns), 5))
        # Classes against the rest have one tuple of terms, which thousands of them need not read anew.
        which = {id(c.terms): j for j, c in enumerate(columns)}
        own_numbers = {key: _loss_pass_numbers(declared[j]) for key, j in which.items()}
        steepest = {
            key: _loss_pass_steepest_declared(declared[j]) + _loss_pass_steepest_given(self.given[j])
            for key, j in which.items()
        }
        for j, c in enumerate(columns):
            self.numbers[: len(declared[j]), j] = own_numbers[id(c.terms)]
        self.steepest = np.array([steepest[id(c.terms)] for c in columns])
        reaches = [abs(t.threshold) + 40.0 / getattr(t, "alpha", 40.0) for j in which.values() for t in declared[j]]
        reaches += [t.reach for j in which.values() for t in self.given[j]]
        self.reach = max(reaches, default=1.0)
        self.floors = np.array([sum(t.weight * t.floor for t in own) for own in self.given], dtype=np.float64)

    def slopes(self, F: np.ndarray, signs: np.ndarray, counts: np.ndarray, rest: np.ndarray) -> float:
        """Replace F by the derivatives of losses, variance and mean; return their value. `rest` as the kernel has it.

        Where a loss is not finite the value is inf and the derivatives mean nothing.
        """
        value = 0.0
        for part in steps(F.shape[0], VALUES_PER_CALL // F.shape[1]):
            A, y, c = F[part], signs[part], counts[part]
            Z = y * A if self.mixed else A
            value += apg.slopes(A, y, c, self.numbers, rest)
            if self.mixed:
                with np.errstate(over="ignore", invalid="ignore"):
                    value += sum(self._add(A[:, j], y[:, j], Z[:, j], c[:, j], j) for j in range(F.shape[1]))
        return value

    def _add(self, out: np.ndarray, y: np.ndarray, z: np.ndarray, counts: np.ndarray, column: int) -> float:
        """Add the slopes of one column's given terms; return their value."""
        value, z, counts = 0.0, np.ascontiguousarray(z), np.ascontiguousarray(counts)
        for term in self.given[column]:
            slopes = term.slopes(z, counts)
            value += term.value(z, counts)
            if not (value < np.inf and float(slopes.max(initial=0.0)) < INFINITE_DERIVATIVE):
                return np.inf
            out -= term.side * y * slopes
        return value

    def bends(self, F: np.ndarray, signs: np.ndarray, counts: np.ndarray) -> None:
        """Replace F by the second derivatives of the losses; beyond all bounds, the largest that engines can take."""
        for part in steps(F.shape[0], VALUES_PER_CALL // F.shape[1]):
            A, y, c = F[part], signs[part], counts[part]
            Z = y * A if self.mixed else A
            apg.bends(A, y, c, self.numbers)
            for j, own in enumerate(self.given):
                if own:
                    z, each = np.ascontiguousarray(Z[:, j]), np.ascontiguousarray(c[:, j])
                    with np.errstate(over="ignore"):
                        A[:, j] += sum(np.minimum(term.curvatures(z, each), INFINITE_DERIVATIVE) for term in own)


def _loss_pass_steepest_given(terms: Sequence[Any]) -> float:
    """Largest second derivative in a loss pass of given terms; both sides of one loss have none at the same margin."""
    sides: dict[object, dict[int, float]] = {}
    for term in terms:
        own = sides.setdefault(term.loss, {1: 0.0, -1: 0.0})
        own[term.side] += term.steepest
    return sum(max(own.values()) for own in sides.values())


def _loss_pass_numbers(terms: list[Term]) -> np.ndarray:
    """Loss terms as numbers that the compiled loss pass reads, (T, 5)."""
    side, threshold, _, rise, height, sharpness = loss_term_table(terms).T
    return np.transpose((height > 0, height + 0.5 * rise, side, threshold, sharpness + (rise > 0)))


def _loss_pass_steepest_declared(terms: Sequence[Term]) -> float:
    """Largest second derivative in a loss pass of declared terms."""
    logistic = sum(t.steepest for t in terms if t.kind == "logistic")
    squared = [t for t in terms if t.kind == "squared"]
    # Piecewise constant: largest next to some threshold.
    places = [t.threshold - t.side * 1e-9 * (1.0 + abs(t.threshold)) for t in squared]
    return logistic + max(
        (sum(t.steepest for t in squared if t.side * (t.threshold - z) > 0) for z in places), default=0.0
    )
