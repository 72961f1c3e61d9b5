"""One method on one split: hyper-parameters chosen by cross-validation, a fit to all training rows, the test part."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from mdlearn import Certificate, ConvergenceWarning, Model, fit, select
from mdlearn.extend import accuracy, auc, f1_macro, f1_micro
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Record

Grid = Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]


def judged(
    data: str,
    method: str,
    repeat: int,
    parts: Parts,
    objective: str,
    grid: Grid | None,
    *,
    cv: Any = 5,
    seed: int = 0,
    **fixed: Any,
) -> tuple[Record, Model]:
    """Choose, fit and test.

    Parameters
    ----------
    data, method : str
    repeat : int
        As in the record.
    parts : Parts
    objective : str
    grid : mapping or sequence of mappings, or None
        As for `mdlearn.select`; None fits once with `fixed` alone.
    cv : int or other
        Folds, as for `mdlearn.select`.
    seed : int
    **fixed
        Further arguments of `mdlearn.fit` and hyper-parameters that all points have.

    Returns
    -------
    Record
        With accuracy, macro and micro F1, and for two classes the area under the ROC curve; with a grid also "cv", the
        mean score of the best point on the folds.
    Model
        Fitted to the training part.
    """
    started = time.perf_counter()
    chosen: dict[str, Any] = {}
    validated: dict[str, float] = {}
    certificates: tuple[Certificate, ...] = ()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record counts fits that are not certified
        if grid is None:
            model = fit(objective, parts.X, parts.y, random_state=seed, n_threads=1, **fixed)
        else:
            found = select(objective, parts.X, parts.y, grid, cv=cv, random_state=seed, n_threads=1, **fixed)
            assert found.model is not None
            model, chosen, certificates = found.model, found.best_params, found.certificates
            validated = {"cv": found.best_score}
    values = {**measured(model, parts), **validated}
    seconds = time.perf_counter() - started
    every = (*certificates, model.certificate)
    return (
        Record(
            data,
            method,
            repeat,
            values,
            chosen,
            len(every),
            sum(one.converged for one in every),
            max(one.gap for one in every),
            seconds,
        ),
        model,
    )


def measured(model: Model, parts: Parts) -> dict[str, float]:
    """Scores of a model on the test part."""
    predicted = model.predict(parts.X_test)
    values = {
        "accuracy": accuracy(parts.y_test, predicted),
        "f1_macro": f1_macro(parts.y_test, predicted),
        "f1_micro": f1_micro(parts.y_test, predicted),
    }
    positive = parts.y_test == model.classes_[1]
    if model.classes_.shape[0] == 2 and positive.any() and not positive.all():
        values["auc"] = auc(positive, model.decision_function(parts.X_test))
    return values
