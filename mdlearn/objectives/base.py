"""The base class of objectives and the declaration of their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.checks import Data, check_number
from mdlearn.data.feature_map import FeatureMap
from mdlearn.data.features import Features, KernelFeatures, LinearFeatures
from mdlearn.data.kernels import Kernel
from mdlearn.forms.losses import Term
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.problem import Form
from mdlearn.forms.proof import Solution

FIT_ARGUMENTS = frozenset(
    "objective X y solver solver_options kernel bias multiclass sample_weight class_weight tol max_iter time_limit "
    "random_state n_threads callback verbose warm_start gamma degree coef0".split()
)

TASKS = ("classification", "regression")


@dataclass(frozen=True)
class Parameter:
    """A hyper-parameter: a number within bounds.

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
    """

    default: float | Callable[[dict[str, Any], float], float]
    doc: str
    low: float = 0.0
    high: float = math.inf
    finite: bool = True
    strict: bool = False

    def check(self, name: str, value: Any) -> float:
        """Return the value as a float; raise one clear sentence when it is not allowed."""
        high = min(self.high, float(np.finfo(float).max)) if self.finite else self.high
        if self.finite and isinstance(value, float) and math.isinf(value):
            bound = f"{'>' if self.strict else '>='} {self.low:g}"
            raise ValueError(f"{name} needs to be a finite number {bound}; got {value!r}")
        high = math.inf if high > 1e300 else high
        return float(check_number(value, name, low=self.low, high=high, strict=self.strict))

    def fill(self, params: dict[str, Any], total: float) -> float:
        """Return the default; `params` are the parameters declared before this one."""
        return float(self.default(params, total) if callable(self.default) else self.default)


@dataclass(frozen=True)
class Setting:
    """A parameter that is no number: a name, an array, a callable.

    Attributes
    ----------
    default : object
        A value.
    doc : str
        What it is.
    allowed : callable
        allowed(name, value) returns the value as the objective uses it, or raises one clear sentence.
    """

    default: Any
    doc: str
    allowed: Callable[[str, Any], Any]

    def check(self, name: str, value: Any) -> Any:
        """Return the value in its usual form; raise one clear sentence when it is not allowed."""
        return self.allowed(name, value)

    def fill(self, params: dict[str, Any], total: float) -> Any:
        """Return the default."""
        return self.default


def one_of(*names: str) -> Callable[[str, Any], str]:
    """Check of a Setting that is one of some names."""

    def allowed(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(f"{name} needs to be one of {', '.join(names)}; got {value!r}")
        return value

    return allowed


@dataclass(frozen=True)
class Terms:
    """One binary problem: v Var(z) - a mean(z) + sum of declared loss terms.

    Attributes
    ----------
    variance : float
        v >= 0.
    mean : float
        a >= 0.
    loss : tuple of HingeTerm, LogisticTerm and GivenTerm (see `mdlearn.forms.given.GivenLoss.terms`)
        Summed over rows, each row counted by its weight.
    ridge : float
        1, or 0 for an objective without 1/2 |w|^2.
    unit : float
        Factor > 0 of the whole objective: other weights of 1/2 |w|^2 are written as unit * (1/2 |w|^2 + rest / unit).
    penalty : float
        Factor of the sum over features of the length of their coefficients (L1 for one column, else L2,1).
    """

    variance: float = 0.0
    mean: float = 0.0
    loss: tuple[Term, ...] = ()
    ridge: float = 1.0
    unit: float = 1.0
    penalty: float = 0.0


class Objective:
    """Base class: declare `name`, `summary`, `parameters` and write `terms`.

    Parameters
    ----------
    **given : float
        Values of the declared parameters; the rest take their defaults at fit.

    Raises
    ------
    ValueError, TypeError
        For an unknown parameter (the message lists the valid ones) or a value out of range.

    Attributes
    ----------
    kernels : bool
        Whether it takes kernels other than linear.
    needs_rows : bool
        Whether it needs the rows themselves: then a precomputed kernel will not do.
    probabilities : bool
        Whether sigma(f) is a probability: models then have `predict_proba`.
    feature_map : type or None
        Class of the feature map that `features` makes, which model files are read with; None: it makes none.
    task : str
        "classification", or "regression": y then holds numbers, and z in `terms` is the residual f(x) - y.
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    parameters: ClassVar[Mapping[str, Parameter | Setting]] = {}
    default_bias: ClassVar[str] = "regularized"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr", "ovo", "fuzzy-min", "fuzzy-avg")
    kernels: ClassVar[bool] = True
    needs_rows: ClassVar[bool] = False
    probabilities: ClassVar[bool] = False
    task: ClassVar[str] = "classification"
    feature_map: ClassVar[type[FeatureMap] | None] = None

    def __init__(self, **given: Any) -> None:
        clash = FIT_ARGUMENTS.intersection(self.parameters)
        if clash:
            raise TypeError(f"objective {self.name!r} declares {sorted(clash)}, which are names of fit's own arguments")
        if self.task not in TASKS:
            raise TypeError(f"objective {self.name!r} has the task {self.task!r}; known tasks: {', '.join(TASKS)}")
        if self.feature_map is not None and not {"ovr", "joint"}.issuperset(self.multiclass):
            raise TypeError(
                f"objective {self.name!r} has a feature_map, and a model has one map, not one per pair of classes; "
                "declare multiclass = ('ovr',)"
            )
        for key in given:
            if key not in self.parameters:
                raise ValueError(
                    f"objective {self.name!r} has no parameter {key!r}; valid: {', '.join(self.parameters) or 'none'}"
                )
        self.given = {key: self.parameters[key].check(key, value) for key, value in given.items()}

    def resolve(self, total: float) -> dict[str, Any]:
        """Return all parameters; defaults that depend on m = `total` or on earlier parameters are filled in."""
        filled: dict[str, Any] = {}
        for key, parameter in self.parameters.items():
            filled[key] = self.given[key] if key in self.given else parameter.fill(filled, total)
        return filled

    def complete(self, params: dict[str, Any], data: Data) -> dict[str, Any]:
        """Return resolved parameters with the defaults that depend on the rows filled in; here: as they are."""
        return params

    def features(
        self, data: Data, kernel: Kernel, params: dict[str, Any], rng: np.random.Generator
    ) -> Generator[None, None, Features]:
        """Make the features of training rows, in interruptible pieces: here, those of the kernel."""
        return LinearFeatures(data.X) if kernel.name == "linear" else KernelFeatures(data.X, kernel)
        yield  # what makes this a generator

    def problem(
        self,
        data: Data,
        features: Features,
        kernel: Kernel,
        bias: str,
        params: dict[str, Any],
        solve: Callable[[Form], list[Solution]],
    ) -> Generator[None, Any, Form]:
        """Make the form, in interruptible pieces; `solve` is for forms that need another's solution first."""
        return self.form(data, features, bias, params)
        yield  # what makes this a generator

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Return the binary problem for resolved parameters; `total` is m, the sum of the weights."""
        raise NotImplementedError

    def check_column(self, params: dict[str, Any], column: Column, bias: str) -> None:
        """Raise ValueError when the problem has no optimum for these signs and counts."""

    def form(self, data: Data, features: Features, bias: str, params: dict[str, Any]) -> Form:
        """Write the form: one column for two classes or for numbers, one per class against the rest for more."""
        terms = self.terms(params, data.total)
        columns = []
        for y in data.signs():
            columns.append(Column(y, data.counts, terms.variance, terms.mean, terms.loss, offset=data.targets))
            self.check_column(params, columns[-1], bias)
        return MarginForm(features, tuple(columns), bias, terms.ridge, terms.unit, terms.penalty)

    def check_form(self, form: Form, params: dict[str, Any]) -> None:
        """Raise ValueError when a form, complete and about to be solved, has no optimum."""

    def arranged(self, solution: Solution, form: Form) -> Solution:
        """Return a solution by class and row of X, for a form that has other rows or columns; here: as it is."""
        return solution
