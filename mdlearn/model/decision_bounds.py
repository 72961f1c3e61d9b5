"""Intervals around decision values that contain those of the exact optimum, by a certificate's distance to it.

Decision values are inner products with features: |f(x) - f*(x)| <= |w - w*| |phi(x)|, and the certificate bounds the
first factor. What rounding may have done to f(x) itself is added.
"""

from __future__ import annotations

import numpy as np

from mdlearn.data.features.kernel_rounding import UNIT, most_kernel_half_roundings
from mdlearn.data.rows.rows import Rows, steps
from mdlearn.model.class_decisions import PAIRWISE, class_decision_pairs, class_decision_scores, class_decision_values
from mdlearn.model.record import FittedRecord

ROWS_OF_DIAGONAL = 64
"""Rows whose kernel values with each other are made at once where the kernel does not say k(x, x) alone."""


def _why_unproven(model: FittedRecord) -> str:
    """Why nothing is proven of a model's decision values, as the end of a sentence; empty where something is."""
    certificate = model.certificate
    if certificate.vouched_by:
        return f"{certificate.vouched_by} vouches for the certificate, mdlearn did not prove it"
    if certificate.kind in ("none", "residual"):
        return "the certificate has no lower bound"
    if model.kernel.name == "precomputed":
        return "a precomputed kernel does not say k(x, x) of new rows"
    if model._map is not None and not (model._map.linear and model._coef is not None):
        return "the decision values are not linear in features of known length"
    if not np.isfinite(_distances_to_optima(model)).all():
        if model.bias == "free":
            return "nothing bends the objective along a free bias; use bias='regularized' or 'none'"
        return (
            "the certificate says no distance to the optimum, as without a squared norm, or in files of older versions"
        )
    return ""


def _distances_to_optima(model: FittedRecord) -> np.ndarray:
    """Bound of |w - w*| of every problem, shape (p,)."""
    certificate, p = model.certificate, model.intercept_.shape[0]
    return np.array([one.distance for one in certificate.parts] or [certificate.distance] * p)


def _lengths_of_features(model: FittedRecord, A: Rows) -> np.ndarray:
    """|phi(x)| of every row, with the constant feature of a regularized bias, shape (n,)."""
    squares = _squared_lengths(model, A)
    squares = np.where(squares >= 0.0, squares, np.inf)  # a kernel that is none for these rows
    return np.sqrt(squares + 1.0 if model.bias == "regularized" else squares)


def _squared_lengths(model: FittedRecord, A: Rows) -> np.ndarray:
    """k(x, x) of every row, or |phi(x)|^2 of explicit features, shape (n,)."""
    kernel = model.kernel
    if model._map is not None:
        return model._map.squares(A)
    if model._coef is not None:
        return A.squares()
    if kernel.plain:
        return kernel.diagonal(A)
    found = np.empty(A.shape[0])
    for part in steps(A.shape[0], ROWS_OF_DIAGONAL):
        some = A.take(part)
        found[part] = kernel.block(some, some).diagonal()
    return found


def _rounding_sizes(model: FittedRecord) -> np.ndarray:
    """Rounding of decision values of every problem, at most, per unit of 1 + |phi(x)|, shape (p,)."""
    if model._coef is not None:
        size = np.square(model._coef, dtype=np.float64).sum(axis=1) + np.square(model.intercept_, dtype=np.float64)
        return UNIT * (model._coef.shape[1] + 4.0) * np.sqrt(2.0 * size)
    assert model._rows is not None
    alpha = np.abs(model.dual_coef_[:, model.support_]).astype(np.float64)
    roundings = 2.0 * most_kernel_half_roundings(model.kernel, model.n_features_in_) + model._rows.shape[0] + 4.0
    return UNIT * (
        roundings * (alpha @ np.sqrt(np.maximum(_squared_lengths(model, model._rows), 0.0))) + np.abs(model.intercept_)
    )


def class_decision_bounds(low: np.ndarray, high: np.ndarray, k: int, multiclass: str) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of the decision values of classes from those of all problems, `low` and `high` (n, p)."""
    if k <= 2 or multiclass not in PAIRWISE:
        return class_decision_values(low, k, multiclass), class_decision_values(high, k, multiclass)
    # The score of a class rises with the values of pairs in which it is the high one, and falls with the others.
    pairs = np.array(class_decision_pairs(k))
    lower, upper = (np.empty((low.shape[0], k)) for _ in range(2))
    for c in range(k):
        rises = pairs[:, 1] == c
        lower[:, c] = class_decision_scores(np.where(rises, low, high), k, multiclass)[:, c]
        upper[:, c] = class_decision_scores(np.where(rises, high, low), k, multiclass)[:, c]
    return lower, upper


class DecisionRoom:
    """Room between a model's decision values of every problem and those of the optimum, prepared once.

    `why`: why nothing is proven, as the end of a sentence; empty where something is. The model is not kept: a circle of
    references would hold its rows.
    """

    def __init__(self, model: FittedRecord) -> None:
        self.why = _why_unproven(model)
        if not self.why:
            self.distances, self.sizes = _distances_to_optima(model), _rounding_sizes(model)

    def of_rows(self, model: FittedRecord, A: Rows) -> np.ndarray:
        """Return the room of every row and problem of the model, shape (n, p)."""
        lengths = _lengths_of_features(model, A)
        room = np.multiply.outer(lengths, self.distances + self.sizes)
        room += self.sizes
        return room


def has_certain_class(f: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Whether the class of the largest value f (n, k) is that of all values between the bounds, shape (n,)."""
    predicted = f.argmax(axis=1)[:, None]
    others = upper.copy()
    np.put_along_axis(others, predicted, -np.inf, axis=1)
    certain: np.ndarray = np.take_along_axis(lower, predicted, axis=1)[:, 0] > others.max(axis=1)
    return certain
