"""What is given to an objective: numbers, and weights relative to C m, which can be chosen without knowing m."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mdlearn.data.validation import check_number
from mdlearn.errors import did_you_mean
from mdlearn.objectives.declaration.parameters import Parameter


@dataclass(frozen=True, order=True)
class Relative:
    """A weight of `ratio` times C m, where m is the sum of the weights of the rows that are fitted.

    Attributes
    ----------
    ratio : float
    """

    ratio: float

    def __repr__(self) -> str:
        return f"relative({self.ratio:g})" if float(f"{self.ratio:g}") == self.ratio else f"relative({self.ratio!r})"

    def of(self, C: float, total: float) -> float:
        """The weight for this C and m."""
        return self.ratio * C * total


def relative(ratio: float) -> Relative:
    """State a weight of an objective relative to C m, in `fit`, in any grid and as a parameter of estimators.

    m is the sum of the weights of the rows that are fitted: in cross-validation, of the training rows of each fold. The
    variance of margins acts only where its weight is comparable with C m.

    Parameters
    ----------
    ratio : float
        >= 0 and finite.

    Returns
    -------
    Relative
        Equal and ordered by its ratio; models hold the number that it stands for.

    Raises
    ------
    TypeError, ValueError
        For anything but such a number.

    Examples
    --------
    >>> import mdlearn
    >>> X, y = mdlearn.datasets.two_gaussians(200, random_state=0)
    >>> mdlearn.fit("ldm", X, y, C=10, lambda1=mdlearn.relative(1 / 256)).params["lambda1"]
    7.8125
    """
    return Relative(float(check_number(ratio, "ratio", low=0.0, high=1.7e308)))


def number_of(value: Any, C: float, total: float) -> Any:
    """A value, or what a relative one stands for."""
    return value.of(C, total) if isinstance(value, Relative) else value


def checked_parameters(task: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Values given to an objective by the names of its parameters, checked as far as they can be without m."""
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = task.aliases.get(key, key)
        if name not in task.parameters:
            valid, hint = ", ".join(task.parameters) or "none", did_you_mean(key, task.parameters)
            raise ValueError(f"objective {task.name!r} has no parameter {key!r}; valid: {valid}{hint}")
        if name in found:
            both = " and ".join(sorted(one for one in given if task.aliases.get(one, one) == name))
            raise ValueError(f"{both} are one parameter of objective {task.name!r}; give one of the two")
        found[name] = _checked(task, name, key, value)
    return found


def _checked(task: Any, name: str, key: str, value: Any) -> Any:
    """A value of a parameter that the caller calls `key`."""
    parameter = task.parameters[name]
    if not isinstance(value, Relative):
        return parameter.check(key, value)
    before = list(task.parameters)[: list(task.parameters).index(name)]
    if "C" not in before or not isinstance(parameter, Parameter):
        raise ValueError(f"{key} of objective {task.name!r} cannot be relative to C m; give a number")
    return value
