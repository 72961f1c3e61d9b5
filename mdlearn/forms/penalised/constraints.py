"""Constraints that a caller of a fit puts on the coefficients of a linear model, as limits of penalised problems.

    bounds             lower_j <= w_j <= upper_j
    nonnegative        w_j >= 0 of some columns
    monotone           f rises (+1) or falls (-1) with some columns: a sign of w_j
    fairness           |mean f of one group - mean f of the other| <= epsilon, means by weight
    A_ub, b_ub         A_ub w <= b_ub

The intercept is free of them all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import Data, check_number
from mdlearn.errors import came, did_you_mean
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.penalised.coefficient_terms import LimitTerm

ROUNDED_MEANS = 8.0
"""Roundings, times the root of the number of rows, that a difference of two means may have."""


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints as the caller gives them; None: there are none of that kind."""

    bounds: Any = None
    nonnegative: Any = None
    monotone: Any = None
    fairness: Any = None
    A_ub: Any = None
    b_ub: Any = None

    def of(self, form: Any, data: Data) -> MarginForm:
        """Return the form with these constraints; ValueError where it cannot have them, or they are none."""
        if data.classes.shape[0] > 2 or (isinstance(form, MarginForm) and len(form.columns) > 1):
            raise ValueError("constraints need two classes or a regression; fit one class against the rest")
        if not isinstance(form, MarginForm) or type(form.features) is not LinearFeatures or form.joint:
            raise ValueError(
                "constraints are for linear coefficients of objectives with declared losses; give kernel='linear' or "
                "another objective"
            )
        return replace(form, coefficient_terms=(*form.coefficient_terms, *self.terms(data)))

    def terms(self, data: Data) -> tuple[LimitTerm, ...]:
        """Return the limits that the constraints are."""
        d = data.X.shape[1]
        lower, upper = self._box(d)
        if data.X.dtype == np.float32:  # coefficients become float32, and stay within
            lower, upper = _float32_limits(lower, np.inf), _float32_limits(upper, -np.inf)
        if self.nonnegative is not None:
            everything = isinstance(self.nonnegative, (bool, np.bool_)) and bool(self.nonnegative)
            columns = range(d) if everything else _listed("nonnegative", self.nonnegative)
            for j in _positions("nonnegative", columns, data):
                lower[j] = max(lower[j], 0.0)
        if self.monotone is not None:
            if not isinstance(self.monotone, Mapping):
                raise TypeError(f"monotone needs to be a mapping of columns to 1 or -1; got {came(self.monotone)}")
            for j, sign in zip(_positions("monotone", self.monotone, data), self.monotone.values()):
                if not isinstance(sign, (int, float, np.number)) or sign not in (1, -1):
                    raise ValueError(f"monotone maps columns to 1 (f rises) or -1 (f falls); got {sign!r}")
                lower[j], upper[j] = (max(lower[j], 0.0), upper[j]) if sign > 0 else (lower[j], min(upper[j], 0.0))
        if (lower > upper).any():
            j = int((lower > upper).argmax())
            raise ValueError(f"the constraints on column {j} contradict each other: {lower[j]:g} <= w <= {upper[j]:g}")
        found = [] if np.isinf(lower).all() and np.isinf(upper).all() else [LimitTerm(lower, upper)]
        if (self.A_ub is None) != (self.b_ub is None):
            raise ValueError("A_ub and b_ub belong together: A_ub w <= b_ub")
        if self.A_ub is not None:
            found.append(LimitTerm(upper=_numbers("b_ub", self.b_ub, 1), matrix=_numbers("A_ub", self.A_ub, 2)))
        return tuple(found) if self.fairness is None else (*found, self._fair(data))

    def _box(self, d: int) -> tuple[np.ndarray, np.ndarray]:
        """Limits of every coefficient by `bounds`: one pair (lower, upper), or one for each column."""
        if self.bounds is None:
            return np.full(d, -np.inf), np.full(d, np.inf)
        given = np.array(self.bounds, dtype=object)
        if given.shape not in ((2,), (d, 2)):
            raise ValueError(f"bounds needs one pair (lower, upper) or {d}, one per column; got {came(self.bounds)}")
        pairs = given.reshape(-1, 2)
        try:
            lower = np.array([-np.inf if low is None else low for low, _ in pairs], dtype=float)
            upper = np.array([np.inf if high is None else high for _, high in pairs], dtype=float)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"bounds needs numbers, or None for no limit; got {self.bounds!r}") from None
        if not ((lower <= upper) & (lower < np.inf) & (upper > -np.inf)).all():
            raise ValueError(f"bounds needs lower <= upper, and finite coefficients between them; got {self.bounds!r}")
        return np.array(np.broadcast_to(lower, d)), np.array(np.broadcast_to(upper, d))

    def _fair(self, data: Data) -> LimitTerm:
        """Limit of the difference of two groups' mean decision values: the intercept has no part in it."""
        if not isinstance(self.fairness, tuple) or len(self.fairness) != 2:
            raise TypeError(f"fairness needs to be a pair (group, epsilon); got {came(self.fairness)}")
        group, epsilon = np.asarray(self.fairness[0]), check_number(self.fairness[1], "epsilon of fairness", low=0.0)
        if group.shape != (data.n_given,):
            raise ValueError(
                f"the group of fairness needs one value for each of {data.n_given} rows; got {came(group)}"
            )
        mine = group[data.rows]
        try:
            values = np.unique(mine)
        except TypeError:
            raise TypeError("the group of fairness needs values of one kind; got a mixture") from None
        if values.shape[0] != 2 or (mine.dtype.kind == "f" and np.isnan(mine).any()):
            shown = f"got {values.tolist()[:5]} among rows of positive weight"
            raise ValueError(f"the group of fairness needs two values; {shown}")
        first = mine == values[0]
        shares = [np.where(own, data.counts, 0.0) / float(data.counts[own].sum()) for own in (first, ~first)]
        difference = data.X.adjoint(shares[0] - shares[1])
        # Columns whose means are equal but for rounding have no part in it: sum |share x| <= sqrt(2 sum |share| x^2).
        sizes = np.sqrt(2.0 * data.X.column_squares(shares[0] + shares[1]))
        rounding = ROUNDED_MEANS * np.finfo(float).eps * np.sqrt(group.shape[0]) * sizes
        return LimitTerm(-epsilon, epsilon, matrix=np.where(np.abs(difference) > rounding, difference, 0.0)[None])


def _float32_limits(limits: np.ndarray, towards: float) -> np.ndarray:
    """Limits in float32, of constraints whose coefficients are: the nearest numbers on the side `towards`."""
    near = limits.astype(np.float32)
    outside = near < limits if towards > 0 else near > limits
    return np.where(outside, np.nextafter(near, np.float32(towards)), near).astype(np.float64)


def _numbers(name: str, given: Any, ndim: int) -> Any:
    """Numbers of a constraint, as float64: an array of so many dimensions, or a sparse matrix as it is."""
    if hasattr(given, "tocsr") and ndim == 2 and given.dtype.kind in "biuf":
        return given
    try:
        found = np.asarray(given)
        real = found.dtype.kind in "biuf" and found.ndim == ndim
    except ValueError:  # ragged
        real = False
    if not real:
        raise TypeError(f"{name} needs real numbers in {ndim} dimension{'s' if ndim > 1 else ''}; got {came(given)}")
    return found.astype(np.float64)


def _listed(name: str, columns: Any) -> list[Any]:
    """List of the columns of a constraint."""
    if isinstance(columns, (str, bytes)) or not isinstance(columns, Iterable):
        raise TypeError(f"{name} needs to be a list of columns; got {came(columns)}")
    return list(columns)


def _positions(name: str, columns: Iterable[Any], data: Data) -> list[int]:
    """Positions of a constraint's columns, which are numbers or names of a data frame."""
    d, found = data.X.shape[1], []
    for one in columns:
        if isinstance(one, str):
            if data.names is None or one not in data.names:
                hint = "" if data.names is None else did_you_mean(one, data.names)
                raise ValueError(f"{name} names the column {one!r}, which X does not have{hint}")
            found.append(data.names.index(one))
        else:
            j = check_number(one, f"column of {name}", low=-d, high=d - 1, integer=True)
            found.append(j % d)
    return found
