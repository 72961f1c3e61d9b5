"""Weights of an objective that are declared relative to C m."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mdlearn.data.validation import check_number


@dataclass(frozen=True, order=True)
class Relative:
    """Declared weight of `ratio` times C m, where m is the sum of the weights of the rows that are fitted."""

    ratio: float

    def __repr__(self) -> str:
        return f"relative({self.ratio:g})" if float(f"{self.ratio:g}") == self.ratio else f"relative({self.ratio!r})"

    def of(self, C: float, total: float) -> float:
        """The weight for this C and m."""
        return self.ratio * C * total


def relative(ratio: float) -> Relative:
    """Declare a weight of an objective relative to C m, in `fit`, in any grid and as a parameter of estimators.

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


def declared_number(value: Any, C: float, total: float) -> Any:
    """Return a declared weight as a number: itself, or what one relative to C m stands for."""
    return value.of(C, total) if isinstance(value, Relative) else value
