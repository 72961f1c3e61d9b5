"""Leave-one-out in closed form: which forms have it, and their decomposition (`mdlearn.margins.loo_quadratic`)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np

from mdlearn.data.features.spaces import Features, LinearFeatures
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.margins.loo_quadratic import Decomposition, Quadratic, of_gram, of_rows
from mdlearn.numerics import memory
from mdlearn.solvers.quadratic.columns import quadratic, steepness

DECOMPOSED_WIDTH = 2
"""Columns per row up to which the rows themselves are decomposed, not their Gram matrix: small values stay exact."""


def closed(form: Any) -> bool:
    """Whether leaving a row out has a closed form: a quadratic objective of margins, with a squared norm."""
    if not isinstance(form, MarginForm) or form.joint or form.ridge != 1 or form.penalty > 0:
        return False
    return all(
        quadratic(column) and column.offset is None and column.kappa + float(steepness(column).sum()) > 0
        for column in form.columns
    )


def weights_of(column: Column) -> Quadratic:
    """Weights of a column of such a form, whose total is that without one repetition."""
    low = [t for t in column.terms if t.side > 0]
    steep, pull = sum(2.0 * t.weight for t in low), sum(2.0 * t.weight * t.threshold for t in low)
    return Quadratic(column.total, column.variance, column.mean, steep, pull)


def decomposed(features: Features, counts: np.ndarray, bias: str) -> Generator[None, None, Decomposition]:
    """Decompose the rows of a problem: O(m n min(m, n)) for m rows of n columns, O(m^3) for a Gram matrix.

    Raises
    ------
    InsufficientMemory
        Where that would not fit.
    """
    m = counts.shape[0]
    explicit = isinstance(features, LinearFeatures) and features.width <= DECOMPOSED_WIDTH * m
    width = features.width if explicit else m
    memory.require(32.0 * m * width, f"leave-one-out with {m} x {width} numbers", "give cv=5")
    if not explicit:
        G = yield from features.gram()
        return of_gram(np.asarray(G, dtype=np.float64), counts, bias)
    assert isinstance(features, LinearFeatures)
    A = np.empty((m, width + 1))
    for span in features.rows.spans():
        A[span, :-1] = features.rows.block(span)
        yield
    if features.ridge is not None:
        A[:, :-1] /= np.sqrt(features.ridge)
    return of_rows(A, counts, bias)
