"""Rows and features that plugins derive from those of mdlearn.extend."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mdlearn.extend import DenseRows, LinearFeatures


@dataclass(frozen=True, eq=False)
class NamedRows(DenseRows):
    """Rows with one more field."""

    title: str = ""


@dataclass(frozen=True, eq=False)
class CheckedFeatures(LinearFeatures):
    """Features that look at their fields when they are made."""

    title: str = ""

    def __post_init__(self):
        assert self.title


class OwnFeatures(LinearFeatures):
    """Features with an __init__ of their own."""

    def __init__(self, rows):
        vars(self).update(rows=rows, ridge=None)


def test_derived_dataclasses_of_rows_have_what_rows_have():
    X = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    rows = NamedRows(X, model_dtype=np.dtype(np.float64), title="a")
    assert (rows.shape, rows.dtype, rows.entry_dtype, rows.title) == ((3, 2), np.float64, np.float32, "a")
    assert rows.dot(np.ones(2)).tolist() == [1.0, 5.0, 9.0]


def test_derived_features_that_are_made_otherwise_know_their_size():
    rows = DenseRows(np.ones((3, 2)))
    for features in (CheckedFeatures(rows, title="a"), OwnFeatures(rows)):
        assert (features.n_rows, features.width, features.dtype) == (3, 2, np.float64)
