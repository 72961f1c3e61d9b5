"""Which columns are quadratic: problems without a loss, or with a squared one."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.margin import Column


def quadratic(column: Column) -> bool:
    """Whether the declared loss is a sum of squared losses: squared terms in pairs of opposite sides."""
    terms = [t for t in column.terms if t.weight > 0]
    low = sorted((t.threshold, t.weight) for t in terms if t.side > 0)
    high = sorted((t.threshold, t.weight) for t in terms if t.side < 0)
    return low == high and all(t.kind == "squared" for t in terms)


def steepness(column: Column) -> np.ndarray:
    """Second derivative of each term's squared loss, shape (T, m); the terms of side -1 come with those of side +1."""
    weights = np.array([2.0 * t.weight if t.side > 0 else 0.0 for t in column.terms])
    return np.multiply.outer(weights, column.counts).reshape(-1, column.counts.shape[0])


def along_margins(column: Column) -> tuple[float, float]:
    """(D, pull) of a quadratic column, per unit of count: its loss is D/2 z^2 - pull z and a constant."""
    falling = [t for t in column.terms if t.side > 0]
    return sum(2.0 * t.weight for t in falling), sum(2.0 * t.weight * t.threshold for t in falling)
