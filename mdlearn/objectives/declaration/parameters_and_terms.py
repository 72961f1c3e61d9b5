"""Parameters and terms that an objective declares, weights relative to C m, and the check of all these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.rows.arrays import LARGEST_ENTRY
from mdlearn.data.validation import Data, check_number
from mdlearn.errors import (
    ErrorNotes,
    ParametersWithErrorNotes,
    call_with_error_notes,
    came,
    class_is_foreign,
    did_you_mean,
    faulty,
    with_error_notes,
)
from mdlearn.forms.losses import Term, Terms
from mdlearn.forms.penalised.coefficient_terms import coefficient_terms_fault
from mdlearn.forms.row_terms import RowTerms
from mdlearn.objectives.declaration.relative import Relative

FIT_ARGUMENTS = frozenset(
    "objective X y solver solver_options kernel bias multiclass sample_weight class_weight tol max_iter time_limit "
    "random_state n_threads callback verbose warm_start X_decide bounds nonnegative monotone fairness A_ub b_ub "
    "gamma degree coef0 approximation n_components".split()
)
WAYS = ("ovr", "ovo", "joint", "fuzzy-min", "fuzzy-avg")
"""Ways of several classes that an objective can declare."""
BEYOND_FLOAT64 = "terms whose weights are beyond the range of float64"
"""What is wrong with terms that parameters and weights of rows lead to, and not the objective."""


@dataclass(frozen=True)
class Parameter:
    """Declared hyper-parameter: a number within bounds.

    Attributes
    ----------
    default : float or callable
        A value, or a function of (parameters so far, m) where m is the sum of the weights.
    doc : str
        What it is, with its symbol in the paper.
    low : float
        Smallest value allowed.
    high : float
        Largest value allowed; infinity itself is allowed only when this is infinite and `finite` is False.
    finite : bool
        Whether infinity is refused.
    strict : bool
        Whether `low` itself is refused.
    integer : bool
        Whether only whole numbers are allowed; values and default are then of type int.
    """

    default: float | Callable[[dict[str, Any], float], float]
    doc: str
    low: float = 0.0
    high: float = math.inf
    finite: bool = True
    strict: bool = False
    integer: bool = False

    def check(self, name: str, value: Any) -> float:
        """Return the value as a float, or as an int where only whole numbers are allowed.

        Parameters
        ----------
        name : str
            What errors call it.
        value : object
            What was given.

        Returns
        -------
        float

        Raises
        ------
        ValueError, TypeError
            One clear sentence, when it is not allowed.
        """
        if self.integer:
            return int(check_number(value, name, low=self.low, high=self.high, strict=self.strict, integer=True))
        high = min(self.high, float(np.finfo(float).max)) if self.finite else self.high
        high = math.inf if high > 1e300 else high
        if self.finite and high == math.inf and isinstance(value, float) and math.isinf(value):
            bound = f"{'>' if self.strict else '>='} {self.low:g}"
            raise ValueError(f"{name} needs to be a finite number {bound}; got {value!r}")
        return float(check_number(value, name, low=self.low, high=high, strict=self.strict))

    def fill(self, params: dict[str, Any], total: float) -> float:
        """Return the default.

        Parameters
        ----------
        params : dict
            The parameters declared before this one, filled in.
        total : float
            m, the sum of the weights.

        Returns
        -------
        float
        """
        value = self.default(params, total) if callable(self.default) else self.default
        return self.check("the default", value) if self.integer else float(value)


@dataclass(frozen=True)
class Setting:
    """Declared parameter that is no number: a name, an array, a callable.

    Attributes
    ----------
    default : object
        A value.
    doc : str
        What it is.
    allowed : callable
        allowed(name, value) returns the value as the objective uses it, or raises one clear sentence.
    by_row : callable or None
        Of a setting that is an array with a value for each row of X: by_row(n) makes one for n rows, which the checks
        of `mdlearn.testing` try. None: it is no such array.
    """

    default: Any
    doc: str
    allowed: Callable[[str, Any], Any]
    by_row: Callable[[int], Any] | None = None

    def __post_init__(self) -> None:
        if self.by_row is not None and not callable(self.by_row):
            raise TypeError(f"by_row needs to be a function that makes values for n rows, or None; got {self.by_row!r}")

    def check(self, name: str, value: Any) -> Any:
        """Return the value in its usual form.

        Parameters
        ----------
        name : str
            What errors call it.
        value : object
            What was given.

        Returns
        -------
        object

        Raises
        ------
        ValueError, TypeError
            One clear sentence, when it is not allowed.
        """
        return self.allowed(name, value)

    def fill(self, params: dict[str, Any], total: float) -> Any:
        """Return the default; parameters as for `Parameter.fill`.

        Parameters
        ----------
        params : dict
        total : float

        Returns
        -------
        object
        """
        return self.default


def one_of(*names: str, other: str = "") -> Callable[[str, Any], str]:
    """Make the check of a declared Setting that is one of some names; `other` says what else may be given."""

    def allowed(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            told = ", ".join(names) + other
            raise ValueError(f"{name} needs to be one of {told}; got {value!r}{did_you_mean(value, names)}")
        return value

    return allowed


def validate_declared_values(task: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values given to an objective by the names of its declared parameters, checked as far as possible without m.

    TypeError where the class itself declares what cannot be.
    """
    clash = FIT_ARGUMENTS.intersection(task.parameters)
    if clash:
        raise TypeError(f"objective {task.name!r} declares {sorted(clash)}, which are names of fit's own arguments")
    if class_is_foreign(type(task)) and not (
        isinstance(task.multiclass, (tuple, list)) and set(WAYS).issuperset(task.multiclass)
    ):
        raise TypeError(
            f"objective {task.name!r} has multiclass = {task.multiclass!r}; a tuple of some of these is needed: "
            f"{', '.join(WAYS)}"
        )
    if task.feature_map is not None and not {"ovr", "joint"}.issuperset(task.multiclass):
        raise TypeError(
            f"objective {task.name!r} has a feature_map, and a model has one map, not one per pair of classes; "
            "declare multiclass = ('ovr',)"
        )
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = task.aliases.get(key, key)
        if name not in task.parameters:
            valid, hint = ", ".join(task.parameters) or "none", did_you_mean(key, task.parameters)
            raise ValueError(f"objective {task.name!r} has no parameter {key!r}; valid: {valid}{hint}")
        if name in found:
            both = " and ".join(sorted(one for one in given if task.aliases.get(one, one) == name))
            raise ValueError(f"{both} are one parameter of objective {task.name!r}; give one of the two")
        found[name] = _validate_declared_value(task, name, key, value)
    return found


def fill_declared_parameters(task: Any, total: float) -> dict[str, Any]:
    """All declared parameters of an objective: those given, relative ones as numbers, defaults for m = `total`."""
    filled: dict[str, Any] = {}
    foreign = class_is_foreign(type(task))
    if foreign:
        filled = ParametersWithErrorNotes.read_by(task, "objective", {})
    for key, parameter in task.parameters.items():
        if key in task.given:
            value = task.given[key]
        elif not foreign:
            value = parameter.fill(filled, total)
        else:
            value = with_error_notes(task, "objective", "parameters", parameter.fill, filled, total)
        if isinstance(value, Relative):
            value = parameter.check(key, value.of(filled["C"], total))
        filled[key] = value
    return filled


def _validate_declared_value(task: Any, name: str, key: str, value: Any) -> Any:
    """Check one value of a declared parameter that the caller calls `key`."""
    parameter = task.parameters[name]
    if not isinstance(value, Relative):
        return parameter.check(key, value)
    before = list(task.parameters)[: list(task.parameters).index(name)]
    if "C" not in before or not isinstance(parameter, Parameter) or parameter.integer:
        raise ValueError(f"{key} of objective {task.name!r} cannot be relative to C m; give a number")
    return value


def declared_objective_terms(task: Any, params: dict[str, Any], total: float) -> Terms:
    """Return an objective's `terms`, where these are declared terms whose weights float64 can hold.

    Raises TypeError, ValueError for anything else, and for parameters that lead to weights beyond float64.
    """
    if not class_is_foreign(type(task)):  # reckons with Python's numbers, of which NumPy does not warn
        return _checked_declared_terms(task, params, total)
    with ErrorNotes(task, "objective", "terms"), np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return _checked_declared_terms(task, params, total)


def declared_row_terms(task: Any, params: dict[str, Any], loss: tuple[Term, ...], data: Data) -> RowTerms | None:
    """Return an objective's `row_terms`; FaultyPlugin where they do not fit its loss terms and the rows of `data`."""
    found: RowTerms | None = call_with_error_notes(task, "objective", "row_terms", data, params)
    fault = ""
    if isinstance(found, RowTerms):
        fault = found.shape_fault(len(loss), data.counts.shape[0])
        fault = fault and f"RowTerms with {fault}"
    elif found is not None:
        fault = f"{came(found)}, RowTerms or None is needed"
    if fault:
        raise faulty(task, "objective", "row_terms", f"returned {fault}")
    return found


def declared_need_of_all_rows(cls: type, answering: type) -> str:
    """Need of all rows by methods of a class that are not those of the class which answers; empty where none is known.

    An answer covers the other methods of its own class, not those of a derived class.
    """
    for name in ("features", "problem", "form"):
        if getattr(cls, name) is not getattr(answering, name):
            return f"it makes its {name} of all rows"
    if cls.row_terms is answering.row_terms:  # type: ignore[attr-defined]
        return ""
    return "its row_terms may need all rows, unless its class says by needs_all_rows that returns '' that they do not"


def _checked_declared_terms(task: Any, params: dict[str, Any], total: float) -> Terms:
    cause: ArithmeticError | None = None
    try:
        terms: Terms = task.terms(params, total)
        fault = _declared_terms_fault(task, terms, total)
    except ArithmeticError as error:
        fault, cause = BEYOND_FLOAT64, error
    if fault == BEYOND_FLOAT64:
        told = ", ".join(f"{name}={value:g}" for name, value in params.items() if type(value) in (int, float))
        raise ValueError(
            f"objective {task.name!r} with {told} and rows of weight {total:g} has {fault}; give parameters and "
            "weights nearer 1"
        ) from cause
    if fault:
        raise faulty(task, "objective", "terms", fault)
    return terms


def _declared_terms_fault(task: Any, terms: Any, total: float) -> str:
    """Fault of an objective's declared terms, as half a sentence; empty where there is none."""
    if not isinstance(terms, Terms):
        return f"returned {came(terms)}, Terms are needed"
    if class_is_foreign(type(task)):
        fault = (
            declared_loss_fault(terms.loss)
            or coefficient_terms_fault(terms.coefficient_terms)
            or _declared_factors_fault(terms)
        )
        if fault:
            return f"returned Terms with {fault}"
    weights, rows = [terms.variance, terms.mean, terms.penalty, terms.unit], max(total, 1.0)
    for one in terms.loss:
        if one.kind != "constraint":
            weights += one.weight * rows, one.value_at_zero(rows)
    for value in weights:
        if not -LARGEST_ENTRY <= value <= LARGEST_ENTRY:
            return BEYOND_FLOAT64
    return "" if terms.unit > 0 else BEYOND_FLOAT64


def declared_loss_fault(loss: Any) -> str:
    """Fault of the loss that an objective declares, as half a sentence; empty where there is none."""
    if isinstance(loss, tuple) and all(isinstance(one, Term) for one in loss):
        return ""
    held = "a tuple with " + came(next(one for one in loss if not isinstance(one, Term))) if type(loss) is tuple else ""
    return f"{held or came(loss)} as loss, a tuple of HingeTerm, LogisticTerm or what GivenLoss.terms returns is needed"


def _declared_factors_fault(terms: Terms) -> str:
    """Fault of the factors in declared terms, as half a sentence; infinite ones are a matter of parameters."""
    for name in ("variance", "mean", "penalty", "unit"):
        value = getattr(terms, name)
        if not isinstance(value, (int, float, np.integer, np.floating)) or value < 0:
            return f"{came(value)} as {name}, a number >= 0 is needed"
    return "" if terms.ridge in (0, 1) else f"{came(terms.ridge)} as ridge, 0 or 1 is needed"


def resolve_declared_parameters(task: Any, total: float, data: Data | None = None) -> dict[str, Any]:
    """All declared parameters of an objective, those that depend on the rows too where `data` are given.

    FaultyPlugin for a foreign objective that returns other names, or something else than numbers.
    """
    if not class_is_foreign(type(task)):
        own: dict[str, Any] = task.resolve(total)
        return own if data is None else task.complete(own, data)
    params = _declared_parameters_from(task, "resolve", total)
    return params if data is None else complete_declared_parameters(task, params, data)


def complete_declared_parameters(task: Any, params: dict[str, Any], data: Data) -> dict[str, Any]:
    """Declared parameters of an objective with the defaults that depend on the rows; errors as above."""
    return _declared_parameters_from(task, "complete", params, data)


def _declared_parameters_from(task: Any, method: str, *given: Any) -> dict[str, Any]:
    """Return the declared parameters that a method of an objective answers with; those of a foreign one are checked."""
    params: dict[str, Any] = call_with_error_notes(task, "objective", method, *given)
    if not class_is_foreign(type(task)):
        return params
    fault = "" if isinstance(params, dict) else f"returned {came(params)}, a dict of all parameters is needed"
    if not fault and params.keys() != task.parameters.keys():
        names = ", ".join(task.parameters) or "none"
        fault = f"returned the parameters {', '.join(map(str, params)) or 'none'}, those declared are needed: {names}"
    for name, parameter in {} if fault else task.parameters.items():
        value = params[name]
        number = isinstance(value, (int, float, np.integer, np.floating)) and value == value
        if isinstance(parameter, Parameter) and not number:
            fault = f"returned {came(value)} as {name}, a number is needed"
    if fault:
        raise faulty(task, "objective", method, fault)
    return ParametersWithErrorNotes.read_by(task, "objective", params)
