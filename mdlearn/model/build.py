"""Build a Model from the outcome of an engine."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.data.validation import Data
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.proof import Certificate, Solution
from mdlearn.model.class_decisions import PAIRWISE
from mdlearn.model.model import Model

FEW_VALUES = 1 << 16
"""Numbers of all solutions together up to which one array of them all is cheaper than one solution after the other."""
SPREAD_AT_ONCE = 128
"""Solutions of some rows each that are spread over all rows at once."""

PROOF_AND_NORM, FUNCTION = attrgetter("beta", "norm"), attrgetter("coef", "alpha", "intercept")
"""Parts of a solution that prove and scale it, and those that its decision values are made of."""


def build_model(
    objective: str,
    params: dict[str, Any],
    kinds: tuple[str, str, bool],
    engine: tuple[str, str, dict[str, float | None]],
    steps: tuple[int, list[Any]],
    certificate: Certificate,
    solutions: list[Solution],
    data: Data,
    places: Sequence[np.ndarray],
    kernel: Kernel,
    mapping: FeatureMap | None,
    kind: type[Model] = Model,
) -> Model:
    """Build a model of an engine's solutions; dual coefficients are spread over all rows that the caller gave.

    `kinds` are bias, multiclass and whether scores make probabilities, `engine` is the engine's name, why it was chosen
    and what all engines claimed, `steps` number and history of its reports. `places` holds, for every solution, the
    positions of its rows among the caller's; `mapping` is what new rows go through, and `kind` is that of the task.
    """
    dtype = data.X.dtype
    betas, norms = zip(*map(PROOF_AND_NORM, solutions))
    pairs = len(solutions) > 1 and kinds[1] in PAIRWISE
    duals = _values_over_all_rows(betas, places, data.n_given, dtype, towards_zero=True)
    held = stored_coefficients(solutions, places, data.n_given, dtype)
    used = rows_used_by_models(solutions, places, data.n_given)
    (support,) = used.nonzero()
    mine = support if data.rows.shape[0] == data.n_given else np.flatnonzero(used[data.rows])
    return kind(
        objective=objective,
        params=params,
        kernel=kernel,
        bias=kinds[0],
        multiclass=kinds[1],
        probabilities=kinds[2],
        solver=engine[0],
        solver_reason=engine[1],
        solver_claims=engine[2],
        n_iter=steps[0],
        history=steps[1],
        certificate=certificate,
        classes_=data.classes,
        n_features_in_=data.n_given if kernel.name == "precomputed" else data.X.shape[1],
        intercept_=held.intercept,
        duals=duals[:, 0] if duals.shape[1] == 1 else duals,
        support_=support,
        n_support_=data.class_counts(mine),
        _names=data.names,
        _coef=held.coef,
        _alpha=held.alpha,
        _rows=None if held.coef is not None or kernel.name == "precomputed" else data.X.take(mine),
        _norms=joined_solution_values(norms),
        extras=_attributes_of_pairs(solutions) if pairs else dict(solutions[0].extras),
        _map=mapping,
    )


def model_without_rows(
    objective: str,
    params: dict[str, Any],
    kinds: tuple[str, str, bool],
    engine: tuple[str, str],
    steps: tuple[int, list[Any]],
    certificate: Certificate,
    classes: np.ndarray,
    W: np.ndarray,
    dtype: np.dtype[Any],
    names: tuple[str, ...] | None,
    kernel: Kernel,
    mapping: FeatureMap | None = None,
    kind: type[Model] = Model,
) -> Model:
    """Build a model of W alone, of shape (p, n + 1) for n features, the intercepts last: no single row is known.

    The other arguments are those of `build_model`, without claims.
    """
    none, extras = np.empty(0, dtype=np.intp), {} if mapping is None else mapping.attributes()
    rows = DenseRows(np.empty((0, W.shape[1] - 1 if mapping is None else mapping.columns), dtype))
    data = Data(rows, none, np.empty(0), classes, none, 0, names)
    norms, no_rows = np.sqrt(np.square(W[:, :-1]).sum(axis=1)), np.zeros((1, 0))
    solutions = [Solution(w[:-1], w[-1], None, no_rows, norm, certificate, extras=extras) for w, norm in zip(W, norms)]
    said, places = (objective, params, kinds, (*engine, dict[str, float | None]()), steps, certificate), [none] * len(W)
    return build_model(*said, solutions, data, places, kernel, mapping, kind)


class StoredCoefficients(NamedTuple):
    """Coefficients and intercepts of the model to build, in the type of the rows.

    `coef` (shape (p, width)); `alpha` (shape (p, n)): over all rows that the caller gave; `intercept` (shape (p,)).
    """

    coef: np.ndarray | None
    alpha: np.ndarray | None
    intercept: np.ndarray


def stored_coefficients(
    solutions: list[Any], places: Sequence[np.ndarray], n: int, dtype: np.dtype[Any]
) -> StoredCoefficients:
    """Coefficients, dual coefficients and intercepts of solutions, in the type of the model to build."""
    coef = alpha = None
    coefs, alphas, intercepts = zip(*map(FUNCTION, solutions))
    if coefs[0] is not None:
        coef = to_type(joined_solution_values(coefs, single=1), dtype)
    if type(None) not in map(type, alphas):
        alpha = _values_over_all_rows(alphas, places, n, dtype)[:, 0]
    return StoredCoefficients(coef, alpha, to_type(joined_solution_values(intercepts), dtype))


def joined_solution_values(values: Sequence[Any], single: int = 0) -> np.ndarray:
    """Values of all solutions for the model to build, joined; those of one column have `single` dimensions."""
    return np.array(values) if getattr(values[0], "ndim", 0) == single else np.concatenate(values)


def rows_used_by_models(solutions: list[Any], places: Sequence[np.ndarray], n: int) -> np.ndarray:
    """Whether the models to build use each of the caller's n rows, by dual coefficients, else by multipliers."""
    if len(solutions) == 1 and places[0].shape[0] == n and getattr(solutions[0].alpha, "ndim", 0) == 1:
        return np.asarray(solutions[0].alpha.astype(bool))  # `!= 0` takes three times as long over few rows
    alike = not [s for s in solutions if s.alpha is None]
    values = [solution.alpha if alike else solution.beta for solution in solutions]
    if have_few_values_of_all_rows(values, places, n):
        stacked = np.array(values)
        return np.asarray(stacked.any(axis=tuple(range(stacked.ndim - 1))))
    used = np.zeros(n, dtype=bool)
    for i in nonzero_solution_arrays(values):
        at = places[i]
        there = values[i].reshape(-1, at.shape[0]) != 0
        some = there[0] if there.shape[0] == 1 else there.any(axis=0)
        if at.shape[0] == n:
            used |= some
        else:
            used[at[some]] = True
    return used


def have_few_values_of_all_rows(values: Sequence[np.ndarray], places: Sequence[np.ndarray], n: int) -> bool:
    """Whether solutions' arrays for the model to build are alike, few, and of all rows: they go together then."""
    shape = values[0].shape
    if len(values) * values[0].size > FEW_VALUES:
        return False
    if len(values) == 1:
        return places[0].shape[0] == n
    return shape[-1] == n and not [one for one in values if one.shape != shape]


def nonzero_solution_arrays(values: Sequence[np.ndarray]) -> list[int]:
    """Positions of solutions' arrays that are not all 0, for the model to build; a shared one is read once."""
    if len(values) == 1:
        return [0] if values[0].size else []
    known: dict[int, bool] = {}
    for one in values:
        if id(one) not in known:
            known[id(one)] = not is_zero_solution_array(one)
    return [i for i, one in enumerate(values) if known[id(one)]]


def is_zero_solution_array(values: np.ndarray) -> bool:
    """Whether a solution's array is all 0 for the model to build; one number may stand for all of its values."""
    return not np.count_nonzero(values if any(values.strides) else values.flat[:1])


def _attributes_of_pairs(solutions: list[Any]) -> dict[str, Any]:
    """Attributes of the model to build, from features of each pair of classes, or none."""
    names = sorted({name for s in solutions for name in s.extras})
    none = np.empty(0, dtype=np.int64)
    return {name: tuple(s.extras.get(name, none) for s in solutions) for name in names}


def _values_over_all_rows(
    values: Sequence[np.ndarray], places: Sequence[np.ndarray], n: int, dtype: np.dtype[Any], towards_zero: bool = False
) -> np.ndarray:
    """Values over some rows as (p, T, n) over all of the caller's rows, in `dtype`, for the model to build."""
    first = values[0]
    each, terms = first.shape[0] if first.ndim > 2 else 1, first.shape[-2] if first.ndim > 1 else 1
    if each == 1 and have_few_values_of_all_rows(values, places, n):
        together = np.array(first) if len(values) == 1 else np.array(values)
        return to_type(together.reshape(len(values), terms, n), dtype, towards_zero)
    out = np.zeros((each * len(values), terms, n), dtype)
    filled = nonzero_solution_arrays(values)  # zeros are there already
    some = [i for i in filled if places[i].shape[0] < n] if each == 1 else []
    for few in (some[a : a + SPREAD_AT_ONCE] for a in range(0, len(some), SPREAD_AT_ONCE)):
        rows = [places[i] for i in few]
        together = to_type(np.concatenate([values[i].reshape(terms, -1) for i in few], axis=1), dtype, towards_zero)
        out[np.array(few).repeat([len(one) for one in rows]), :, np.concatenate(rows)] = together.T
    for i in filled if not some else set(filled).difference(some):
        at = places[i]
        whole = slice(None) if at.shape[0] == n else at
        for j, part in enumerate(values[i].reshape(each, terms, values[i].shape[-1])):
            if each == 1 or not is_zero_solution_array(part):
                out[i * each + j][:, whole] = to_type(part, dtype, towards_zero)
    return out
