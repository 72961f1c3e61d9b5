"""Estimators of plugins, checked: scikit-learn's conventions, and that what they predict is what their model proves."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mdlearn.testing.require import require, require_clauses


def check_estimator(estimator: Any) -> None:
    """Check a classifier for scikit-learn that a plugin makes of its objective, such as a class of its own.

    Parameters
    ----------
    estimator : classifier
        Not fitted; `fit` leaves the model in its attribute `model_`, as the estimators of `mdlearn.sklearn` do.

    Raises
    ------
    AssertionError
        One sentence: the clause that does not hold, and why.
    ImportError
        If scikit-learn is missing.
    """
    clauses = (
        estimator_keeps_scikit_learns_conventions,
        estimator_predicts_what_its_model_does,
        estimator_counts_rows_by_their_weights,
        estimator_repeats_itself,
        estimator_takes_params_set_later,
    )
    require_clauses(f"estimator {type(estimator).__name__!r}", clauses, estimator)


def estimator_keeps_scikit_learns_conventions(estimator: Any) -> None:
    """Check an estimator by all of scikit-learn's own checks."""
    from sklearn.utils.estimator_checks import check_estimator as conventions_check

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        conventions_check(estimator)


def estimator_predicts_what_its_model_does(estimator: Any) -> None:
    """Check that an estimator has a proven model, and labels and decision values of that model for names as labels."""
    X, codes, _ = _estimator_sample()
    for names in (np.array(["no", "yes"]), np.array(["a", "b", "c"])):
        fitted = _fitted_estimator(estimator, X, names[codes % len(names)])
        model: Any = getattr(fitted, "model_", None)
        require(model is not None, "fit leaves no model_; keep what mdlearn.fit returns there")
        kind = model.certificate.kind
        require(kind != "none", "its model has a certificate of kind 'none'; let the objective be one that has a proof")
        require(np.array_equal(fitted.classes_, names), f"classes_ are {fitted.classes_!r}, the labels are {names!r}")
        require(
            np.array_equal(fitted.predict(X), model.predict(X)),
            f"predict differs from that of model_ for {len(names)} classes",
        )
        require(
            np.allclose(fitted.decision_function(X), model.decision_function(X), rtol=1e-12, atol=1e-12),
            f"decision_function differs from that of model_ for {len(names)} classes",
        )


def estimator_counts_rows_by_their_weights(estimator: Any) -> None:
    """Check that sample weights of an estimator are repetitions: the objective of its model is the same."""
    X, codes, counts = _estimator_sample()
    weighted = _fitted_estimator(estimator, X, codes % 2, sample_weight=counts.astype(float))
    each = np.repeat(np.arange(X.shape[0]), counts)
    repeated = _fitted_estimator(estimator, X[each], codes[each] % 2)
    values = [one.model_.certificate.objective for one in (weighted, repeated)]
    gap = sum(one.model_.certificate.gap for one in (weighted, repeated))
    require(
        abs(values[0] - values[1]) <= (gap + 1e-8) * max(map(abs, values)),
        f"weights give {values[0]!r}, as many equal rows {values[1]!r}; hand sample_weight to mdlearn.fit",
    )


def estimator_takes_params_set_later(estimator: Any) -> None:
    """Check that numbers which `set_params` gives make the model that they make when an estimator is made of them."""
    from sklearn.base import clone

    X, codes, _ = _estimator_sample()
    for name, value in estimator.get_params(deep=False).items():
        if not isinstance(value, float):
            continue
        later = clone(estimator).set_params(**{name: 0.5 * value if value else 0.25})
        try:
            first = _fitted_estimator(later, X, codes % 2)  # a copy, which is made of the numbers
        except ValueError:
            continue  # a number that is not allowed
        require(
            np.array_equal(_fit_quietly(later, X, codes % 2).decision_function(X), first.decision_function(X)),
            f"set_params({name}={getattr(later, name, None)!r}) makes another model than {name} given at first; "
            "let __init__ keep parameters as they are, and read them in fit",
        )


def estimator_repeats_itself(estimator: Any) -> None:
    """Check that an estimator with the same parameters has the same decision values again, bit by bit."""
    X, codes, _ = _estimator_sample()
    one, other = (_fitted_estimator(estimator, X, codes % 2).decision_function(X) for _ in range(2))
    require(np.array_equal(one, other), "two fits with the same parameters have other decision values")


def _estimator_sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, codes of three overlapping classes, of which two are kept by a remainder, and repetitions 1 ... 3."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((36, 3))
    return X, np.argmax(X + rng.standard_normal((36, 3)), axis=1), rng.integers(1, 4, 36)


def _fitted_estimator(estimator: Any, X: np.ndarray, y: np.ndarray, **given: Any) -> Any:
    """Return a fitted copy of an estimator to be checked."""
    from sklearn.base import clone

    return _fit_quietly(clone(estimator), X, y, **given)


def _fit_quietly(estimator: Any, X: np.ndarray, y: np.ndarray, **given: Any) -> Any:
    """Return an estimator to be checked after its fit, warnings left out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y, **given)
