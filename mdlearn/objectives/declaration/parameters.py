"""How objectives declare their parameters: numbers within bounds, and settings that are no numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.validation import check_number
from mdlearn.errors import did_you_mean


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
        """Return the value as a float.

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
        high = min(self.high, float(np.finfo(float).max)) if self.finite else self.high
        if self.finite and isinstance(value, float) and math.isinf(value):
            bound = f"{'>' if self.strict else '>='} {self.low:g}"
            raise ValueError(f"{name} needs to be a finite number {bound}; got {value!r}")
        high = math.inf if high > 1e300 else high
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


def one_of(*names: str) -> Callable[[str, Any], str]:
    """Check of a Setting that is one of some names."""

    def allowed(name: str, value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            told = ", ".join(names)
            raise ValueError(f"{name} needs to be one of {told}; got {value!r}{did_you_mean(value, names)}")
        return value

    return allowed
