"""Own parts of an objective, checked: a certificate, and features that belong to single rows and to a file."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn.forms.composite import Composite
from mdlearn.model.file.loading import load_with_notes
from mdlearn.model.model import Model
from mdlearn.objectives.base import Objective
from mdlearn.testing.reference import (
    CLOSE,
    ROUNDING,
    reference_fit,
    reference_form,
    reference_mapped,
    reference_sample,
    reference_task,
    require,
)


def has_terms(objective: Any) -> bool:
    """Whether an objective is declared by `terms`, rather than by parts of its own."""
    return type(reference_task(objective)).terms is not Objective.terms


def check_own_certificate(objective: Any) -> None:
    """Check the certificate of an objective's own Composite: its value, and that nothing falls below its bound."""
    found = _fitted_own_composite(objective)
    if found is None:
        return
    model, form, W = found
    certificate, rng = model.certificate, np.random.default_rng(0)
    scale = max(abs(certificate.objective), abs(form.unit * form.at_zero))

    def value(V: np.ndarray) -> float:
        return float(form.unit * form.objective(form.at(V)))

    require(
        abs(certificate.objective - value(W)) <= ROUNDING * scale,
        f"{model.objective}: the certificate says {certificate.objective!r}, but at() and penalty() give {value(W)!r} "
        "at the model's coefficients; let them depend on W alone",
    )
    for size in np.logspace(-6, 1, 100):
        V = W + size * (float(np.abs(W).max()) or 1.0) * rng.standard_normal(W.shape)
        require(
            value(V) >= certificate.lower_bound - ROUNDING * scale,
            f"{model.objective}: other coefficients reach {value(V)!r}, below the certified bound "
            f"{certificate.lower_bound!r}; least() is too high, or the smooth part is not convex",
        )


def _fitted_own_composite(objective: Any) -> tuple[Model, Composite, np.ndarray] | None:
    """Fitted model of an objective's own Composite, its form and coefficients (p, k); None for other forms."""
    X, y, _ = reference_sample(objective)
    model = reference_fit(objective, X, y)
    form = reference_form(reference_task(objective), X, y, model.bias, "linear")
    if not isinstance(form, Composite):
        return None
    rows = model.coef_.T if model.bias == "none" else np.vstack([model.coef_.T, model.intercept_])
    return model, form, rows


def check_features(objective: Any) -> None:
    """Check an objective's own features: each row's depend on it alone, make decision values, and are saved."""
    task = reference_task(objective)
    X, y, counts = reference_sample(objective)
    model = reference_fit(objective, X, y, sample_weight=counts)
    place, named = model._map, task.feature_map
    right = place is None if named is None else isinstance(place, named)
    require(
        right,
        f"{task.name}: feature_map is {named and named.__name__}, but features() makes "
        f"{'none' if place is None else type(place).__name__}; name that class, so that model files can be read",
    )
    if place is None or model._coef is None:
        return
    f = model.decision_function(X)
    F = reference_mapped(model, X) if place.linear else f
    one = partial(reference_mapped, model) if place.linear else model.decision_function
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
