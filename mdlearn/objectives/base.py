"""The base class of objectives and the declaration of their parameters."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.checks import Data, check_number
from mdlearn.data.features import Features
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm

FIT_ARGUMENTS = frozenset(
    "objective X y solver solver_options kernel bias multiclass sample_weight class_weight tol max_iter time_limit "
    "random_state n_threads callback verbose warm_start gamma degree coef0".split()
)


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


@dataclass(frozen=True)
class Terms:
    """One binary problem: v Var(z) - a mean(z) + sum of declared loss terms.

    Attributes
    ----------
    variance : float
        v >= 0.
    mean : float
        a >= 0.
    loss : tuple of HingeTerm
        Summed over rows, each row counted by its weight.
    """

    variance: float = 0.0
    mean: float = 0.0
    loss: tuple[HingeTerm, ...] = ()


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
    """

    name: ClassVar[str]
    summary: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    parameters: ClassVar[dict[str, Parameter]] = {}
    default_bias: ClassVar[str] = "regularized"
    multiclass: ClassVar[tuple[str, ...]] = ("ovr",)

    def __init__(self, **given: Any) -> None:
        clash = FIT_ARGUMENTS.intersection(self.parameters)
        if clash:
            raise TypeError(f"objective {self.name!r} declares {sorted(clash)}, which are names of fit's own arguments")
        for key in given:
            if key not in self.parameters:
                raise ValueError(
                    f"objective {self.name!r} has no parameter {key!r}; valid: {', '.join(self.parameters) or 'none'}"
                )
        self.given = {key: self.parameters[key].check(key, value) for key, value in given.items()}

    def resolve(self, total: float) -> dict[str, float]:
        """Return all parameters; defaults that depend on m = `total` or on earlier parameters are filled in."""
        filled: dict[str, float] = {}
        for key, parameter in self.parameters.items():
            if key in self.given:
                filled[key] = self.given[key]
            else:
                default = parameter.default
                filled[key] = float(default(filled, total) if callable(default) else default)
        return filled

    def terms(self, params: dict[str, float], total: float) -> Terms:
        """Return the binary problem for resolved parameters; `total` is m, the sum of the weights."""
        raise NotImplementedError

    def check_column(self, params: dict[str, float], column: Column, bias: str) -> None:
        """Raise ValueError when the problem has no optimum for these data."""

    def form(self, data: Data, features: Features, bias: str, multiclass: str) -> MarginForm:
        """Write the form: one column for two classes, one per class against the rest for more."""
        params = self.resolve(data.total)
        terms = self.terms(params, data.total)
        k = data.classes.shape[0]
        positives = [1] if k == 2 else range(k)
        columns = []
        for positive in positives:
            y = np.where(data.codes == positive, 1.0, -1.0)
            columns.append(Column(y, data.counts, terms.variance, terms.mean, terms.loss))
            self.check_column(params, columns[-1], bias)
        return MarginForm(features, tuple(columns), bias)
