"""Reference that the checks share: data, tight fits, declared terms evaluated in plain NumPy."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.validation import Data
from mdlearn.errors import ConvergenceWarning, FaultyPlugin, FaultyProblem, UndeclaredParameterError
from mdlearn.forms.given import GivenTerm
from mdlearn.forms.losses import LogisticTerm, Term
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.penalised.coefficient_terms import CoefficientTerm, LimitTerm, coefficient_term_matrix
from mdlearn.forms.proof import Certificate
from mdlearn.model.model import Model
from mdlearn.model.task import task_of
from mdlearn.numerics.interruptible import finished
from mdlearn.objectives.base import Objective, Parameter, Setting
from mdlearn.objectives.declaration.parameters_and_terms import resolve_declared_parameters
from mdlearn.plugins.registry import find, registered_objective_with
from mdlearn.testing.require import require

TOL = 1e-15
"""Gap asked for, beyond what rounding allows: decision values differ by up to sqrt(2 (P - D)) |phi(x)|."""
REACHED = 1e-11
"""Gap demanded."""
ROUNDING = 1e-9
"""Relative difference allowed between two evaluations of one objective value."""
GAMMA = 0.5
KERNELS: tuple[dict[str, Any], ...] = ({"kernel": "linear"}, {"kernel": "rbf", "gamma": GAMMA})


class ReferenceObjective:
    """Values of the declared problems at coefficients, from `terms` alone."""

    def __init__(self, objective: Any, model: Model, X: np.ndarray, y: np.ndarray, counts: np.ndarray) -> None:
        task, linear = reference_task(objective), model.kernel.name == "linear"
        self.model, self.counts, self.total = model, counts, float(counts.sum())
        self.terms = task.terms({name: model.params[name] for name in task.parameters}, self.total)
        self.row_weights, self.shifts = _reference_row_terms(task, model, X, y, counts, len(self.terms.loss))
        self.signs, self.offset = _reference_signs(task_of(task).y, model, y)
        self.F = X if linear else reference_rbf_matrix(X, X)
        if model._map is not None:
            self.F = reference_landmarks(model, X) if hasattr(model, "landmarks_") else reference_mapped(model, X)
        self.M = np.eye(self.F.shape[1]) if linear else self.F
        if not linear and hasattr(model, "basis_indices_"):
            # |w| is the length of the coefficients of these rows; there are no others.
            features = reference_features(task, reference_data(task, X, y, counts), "rbf")
            self.M = np.zeros(self.F.shape)
            at = model.basis_indices_
            self.M[at, at] = 1.0 if getattr(features, "ridge", None) is None else features.ridge
        self.coefs = model._coef if model._coef is not None else model.dual_coef_
        if linear and hasattr(model, "landmarks_"):
            self.coefs = model.coef_.reshape(self.coefs.shape[0], -1)
        self.at_zero = self.value(0, np.zeros_like(self.coefs[0]), 0.0)
        self.scale = max(abs(model.certificate.objective), abs(self.at_zero))

    def value(self, j: int, coef: np.ndarray, b: float) -> float:
        """The full objective of problem j at other coefficients."""
        z = self.signs[j] * (self.F @ coef + b) - self.offset
        mean = float(self.counts @ z) / self.total
        value = 0.5 * float(coef @ self.M @ coef) + (0.5 * b * b if self.model.bias == "regularized" else 0.0)
        value *= self.terms.ridge
        last = abs(b) if self.model.bias == "regularized" else 0.0
        value += self.terms.penalty * (float(np.abs(coef).sum()) + last)
        value += sum(_reference_coefficient_term(term, coef) for term in self.terms.coefficient_terms)
        value += self.terms.variance * float(self.counts @ (z - mean) ** 2) / self.total - self.terms.mean * mean
        for term, own, shift in zip(self.terms.loss, self.row_weights, self.shifts):
            excess = term.side * (term.threshold + shift - z)
            if term.kind == "constraint" and excess[self.counts > 0].max() > ROUNDING:
                return math.inf
            value += float((self.counts * own) @ _reference_losses(term, z - shift))
        return value * self.terms.unit

    def model_objective(self, j: int) -> float:
        """The objective of problem j at the model's own coefficients."""
        return self.value(j, self.coefs[j], float(self.model.intercept_[j]))


def _reference_signs(kind: str, model: Model, y: np.ndarray) -> tuple[list[np.ndarray], Any]:
    """Signs of each of the reference's problems and the offset of margins, by what y is to the objective's task."""
    if kind == "indicators":
        return [np.where(has > 0, 1.0, -1.0) for has in y.T], 0.0
    if kind != "labels":
        return [np.ones(y.shape[0])], y if kind == "numbers" else 0.0
    k = model.classes_.shape[0]
    return [np.where(y == c, 1.0, -1.0) for c in (model.classes_[1:] if k == 2 else model.classes_)], 0.0


def _reference_row_terms(
    task: Objective, model: Model, X: np.ndarray, y: np.ndarray, counts: np.ndarray, n_terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Reference weights and shifts of every term in every row of X, (T, n); 1 and 0 where none are declared."""
    data, shape = reference_data(task, X, y, counts), (n_terms, X.shape[0])
    found = task.row_terms(data, {name: model.params[name] for name in task.parameters})
    weights, shifts = np.ones(shape), np.zeros(shape)
    if found is not None and found.weights is not None:
        weights[:, data.rows] = found.weights
    if found is not None and found.shifts is not None:
        shifts[:, data.rows] = found.shifts
    return weights, shifts


def _reference_losses(term: Term, z: np.ndarray) -> np.ndarray:
    """Reference losses of one term at all rows, by its formula; a constraint that holds costs nothing."""
    if isinstance(term, GivenTerm):
        return term.weight * term.each(z)
    excess = term.side * (term.threshold - z)
    short = np.maximum(0.0, excess)
    if isinstance(term, LogisticTerm):
        return term.weight / term.alpha * np.logaddexp(0.0, term.alpha * excess)
    return 0.0 * short if term.hard else term.weight * short**term.power


def _reference_coefficient_term(term: CoefficientTerm, coef: np.ndarray) -> float:
    """Reference value of one term of the coefficients, by its formula; infinite beyond limits."""
    K = coefficient_term_matrix(term, coef.shape[0]).toarray()
    v, room = K @ coef, ROUNDING * (np.abs(K) @ np.abs(coef) + 1.0)
    if isinstance(term, LimitTerm):
        lower, upper = term.sides(v.shape[0])
        return 0.0 if ((v >= lower - room) & (v <= upper + room)).all() else math.inf
    labels = np.arange(v.shape[0]) if term.groups is None else np.asarray(term.groups)
    names = np.unique(labels)
    weights = np.broadcast_to(np.asarray(term.weight, dtype=float), names.shape)
    return float(sum(weight * np.linalg.norm(v[labels == name]) for weight, name in zip(weights, names)))


def reference_certificates(model: Model) -> tuple[Certificate, ...]:
    """Certificates of a model for the reference, one for each of its problems."""
    return model.certificate.parts or (model.certificate,)


def reference_task(objective: Any, **given: Any) -> Objective:
    """Instance of the objective to check, with some parameters replaced."""
    return registered_objective_with(find("objective", objective), given)


def reference_of_rows(objective: Any, rows: Any) -> Any:
    """Objective for some rows of the reference, in their order: with that part of what it was given for each row."""
    task = reference_task(objective)
    own = {
        name: np.asarray(value)[rows]
        for name, value in task.given.items()
        if value is not None and reference_maker_of_values(task, name)
    }
    return reference_task(objective, **own) if own else objective


def reference_maker_of_values(task: Objective, name: str) -> Callable[[int], Any] | None:
    """Maker of values for the rows of the reference, of a setting that holds one for each row of X; None for others."""
    declared = task.parameters[name]
    return declared.by_row if isinstance(declared, Setting) else None


def reference_has_terms(objective: Any) -> bool:
    """Whether an objective is declared by `terms`, rather than by parts of its own."""
    return type(reference_task(objective)).terms is not Objective.terms


def reference_moved(objective: Any) -> dict[str, float]:
    """Values beside the defaults, to check against the reference: of parameters that are real numbers.

    One whose default is 0 or follows from others stays: it may switch something on that has conditions of its own.
    """
    task = reference_task(objective)
    found = {}
    for name, parameter in task.parameters.items():
        value = task.given.get(name, getattr(parameter, "default", None))
        if isinstance(parameter, Parameter) and isinstance(value, float) and 0.0 < value < math.inf:
            room = 0.5 * (parameter.high - value)
            found[name] = value + min(0.75 * value, room)
    return found


def reference_kernels(objective: Any) -> tuple[dict[str, Any], ...]:
    """Kernels for a check against the reference: the linear one alone when the objective takes no other."""
    return KERNELS if reference_task(objective).kernels else KERNELS[:1]


def reference_title(objective: Any) -> str:
    """Name of an objective to check against the reference, with the parameters given to it, as pytest shows it."""
    task = reference_task(objective)
    return "-".join([task.name, *(f"{name}={_reference_text(value)}" for name, value in task.given.items())])


def _reference_text(value: Any) -> str:
    """Text of a parameter of an objective in a reference's title: of arrays their shape."""
    if np.ndim(value):
        return f"array{np.shape(value)}".replace(" ", "")
    return f"{value:g}" if isinstance(value, (int, float)) else str(value)


def reference_sample(objective: Any, k: int = 2) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, y for the objective's task and repetition counts 0 ... 3; one row stands there with two y.

    y are labels 0 ... k-1 of overlapping classes (every third one unknown, or a matrix of three labels, where the task
    is of that kind), numbers, or ones.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((36, 3))
    noise = rng.standard_normal((36, k))
    classes = np.argmax(X[:, :k] + noise, axis=1)
    X[1], classes[1] = X[0], (classes[0] + 1) % k
    counts = rng.integers(0, 4, 36)
    counts[:2] = 1, 2
    task = task_of(reference_task(objective))
    if not task.by_class and task.y == "none":
        return X + 1.0, np.ones(36), counts
    if task.y == "some labels":
        return X, np.where(np.arange(36) % 3 == 2, -1, classes), counts
    if task.y == "indicators":
        return X, (X + rng.standard_normal((36, 3)) > 0.0).astype(int), counts
    return X, classes if task.y == "labels" else 2.0 + X @ [1.0, -1.0, 0.5] + noise[:, 0], counts


def reference_rbf_matrix(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Kernel values exp(-GAMMA |a - b|^2) between the rows of A and of B, straight from the definition."""
    K: np.ndarray = np.exp(-GAMMA * np.square(A[:, None, :] - B[None, :, :]).sum(axis=2))
    return K


def reference_landmarks(model: Model, X: np.ndarray) -> np.ndarray:
    """Landmark features of rows in the blocks of their clusters, or the kernel between those; dot projections."""
    k = np.square(X[:, None, :] - model.centers_).sum(axis=2).argmin(axis=1)
    mu = X @ model.landmarks_.T
    if model.kernel.name == "rbf":
        return np.where(k[:, None] == k, reference_rbf_matrix(mu, mu), 0.0)
    return (np.eye(len(model.centers_))[k][:, :, None] * mu[:, None, :]).reshape(len(X), -1)


def reference_mapped(model: Model, X: np.ndarray) -> np.ndarray:
    """Features that a model of explicit rows makes of its own, shape (n, width)."""
    assert model._map is not None
    F: np.ndarray = model._map.checked(check_rows(X)).block(slice(None))
    return F


def reference_form(
    task: Objective, X: np.ndarray, y: np.ndarray, bias: str, kernel: str, counts: np.ndarray | None = None
) -> MarginForm:
    """Form that an objective writes for the reference's rows, with the linear or the rbf kernel."""
    data = reference_data(task, X, y, counts)
    params = resolve_declared_parameters(task, data.total, data)
    return task.form(data, reference_features(task, data, kernel), bias, params)


def reference_data(task: Objective, X: np.ndarray, y: np.ndarray, counts: np.ndarray | None) -> Data:
    """Training data of an objective for the reference, as fit makes them."""
    return task_of(task).read(X, y, counts, None, square=False)


def reference_features(task: Objective, data: Data, kernel: str) -> Any:
    """Features that an objective makes of the reference's rows, with the linear or the rbf kernel."""
    chosen = Kernel("rbf", {"gamma": GAMMA}) if kernel == "rbf" else Kernel("linear")
    params = resolve_declared_parameters(task, data.total, data)
    return finished(task.features(data, chosen, params, np.random.default_rng(0)))


def reference_fit(objective: Any, X: np.ndarray, y: np.ndarray, **settings: Any) -> Model:
    """Fit to TOL, for a check; the certified gap is demanded here, whatever the caller does with warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            model = fit(objective, X, y, tol=TOL, **settings)
        except (FaultyPlugin, FaultyProblem, UndeclaredParameterError) as error:
            raise AssertionError(str(error)) from error
    require(
        model.certificate.gap <= REACHED,
        f"{model.objective}: engine {model.solver} stops at the gap {model.certificate.gap:.2g} on {X.shape[0]} rows "
        "that can be solved to rounding; the declared terms are not what form() writes, or the engine is wrong",
    )
    return model
