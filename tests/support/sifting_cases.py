"""Random problems for the tests of the interior engine's parts."""

from __future__ import annotations

import numpy as np
from draining import drain

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.common.primal_dual import PrimalDual
from mdlearn.solvers.systems.row_and_gram import RowSystem

SHAPES = ("hinge", "weights", "band", "regression", "variance")


def problem(shape, bias="none", seed=0, m=240, d=5, C=0.7):
    """A form of one column: `shape` names what is unusual about it."""
    rng = np.random.default_rng([seed, m, d])
    X = rng.normal(size=(m, d)) + 0.3
    score = X @ rng.normal(size=d) + rng.normal(size=m)
    y, offset, variance, mean = np.where(score > 0.2, 1.0, -1.0), None, 0.0, 0.0
    counts = rng.integers(1, 4, m).astype(float) if shape == "weights" else np.ones(m)
    terms = (HingeTerm(C),)
    if shape == "band":
        terms = (HingeTerm(C, threshold=0.5), HingeTerm(0.4 * C, side=-1, threshold=1.5))
    elif shape == "regression":
        y, offset = np.ones(m), 3.0 * score
        terms = (HingeTerm(C, threshold=-0.2), HingeTerm(C, side=-1, threshold=0.2))
    elif shape == "variance":
        variance, mean = 5.0, 0.0 if bias == "free" else 0.8
    column = Column(y, counts, variance, mean, terms, offset=offset)
    return MarginForm(LinearFeatures(DenseRows(X)), (column,), bias), column


def whole(form, column):
    """The state of all rows, ready to be solved with."""
    system = RowSystem(form, column)
    drain(system.setup())
    return PrimalDual(form, column, system)
