"""The check of objectives that make features of their own: they belong to single rows, and to a file."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn.model.file.persistence import load_with_notes
from mdlearn.testing.reference import CLOSE, mapped_matrix, require, sample, task_of, tight_fit


def check_features(objective: Any) -> None:
    """Features of a row depend on it alone, make the decision values, and come back from a model file."""
    task = task_of(objective)
    X, y, counts = sample(objective)
    model = tight_fit(objective, X, y, sample_weight=counts)
    place, named = model._map, task.feature_map
    right = place is None if named is None else isinstance(place, named)
    require(
        right,
        f"{task.name}: feature_map is {named and named.__name__}, but features() makes "
        f"{'none' if place is None else type(place).__name__}; name that class, so that model files can be read",
    )
    if place is None or model._coef is None:
        return
    require(
        place.columns == X.shape[1],
        f"{task.name}: {type(place).__name__}.columns is {place.columns} for rows of {X.shape[1]} columns",
    )
    f = model.decision_function(X)
    F = mapped_matrix(model, X) if place.linear else f
    one = partial(mapped_matrix, model) if place.linear else model.decision_function
    each = np.concatenate([one(row) for row in X[:, None]])
    scale = np.maximum(1.0, np.abs(each))
    require(
        F.shape == each.shape and float((np.abs(F - each) / scale).max()) <= CLOSE,
        f"{task.name}: {type(place).__name__}.{'features' if place.linear else 'scores'} of one row and of many rows "
        "differ; let them depend on that row and on the attributes alone",
    )
    own = F @ model._coef[0] + model.intercept_[0] if place.linear else f
    far = float((np.abs(own - f) / np.maximum(1.0, np.abs(f))).max())
    require(
        far <= CLOSE,
        f"{task.name}: the features and decision_function differ by {far:.2g}; scores() and rows() need to belong to "
        "features()",
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.npz"
        model.save(path)
        again = load_with_notes(path, lambda kind, name: task)[0]
    require(
        np.array_equal(again.decision_function(X), f),
        f"{task.name}: a model from its file predicts something else; encoded() needs to hold all that features() uses",
    )
