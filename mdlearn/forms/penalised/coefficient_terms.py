"""Terms of the coefficients: norms and linear constraints, declared by numbers as loss terms are.

Both are functions of v = K w, where K is the identity or a matrix with one column per feature. The intercept is not
among the coefficients. Where several classes are one problem, rows of K w have one number per class.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.errors import came

Matrix = Any
"""None (the identity), a dense or sparse array, or a function of the number of features that returns one."""


@dataclass(frozen=True, eq=False)
class NormTerm:
    """Norm of the coefficients: ``weight`` times the sum of the lengths of groups of K w.

    Without groups this is ``weight * sum_r |(K w)_r|``: L1, or the total variation for `first_differences`.

    Attributes
    ----------
    weight : float or sequence of float
        Finite factor >= 0; or one for each group, in the order of their sorted labels.
    groups : sequence or None
        A label for every row of K; rows of the same label are one group. None: every row is a group of its own.
    matrix : array, sparse matrix, callable or None
        K, with one column per feature; a function of the number of features that returns it; None: the identity.
    """

    weight: Any
    groups: Sequence[Any] | np.ndarray | None = None
    matrix: Matrix = None

    def __post_init__(self) -> None:
        weight = np.asarray(self.weight)
        if weight.dtype.kind not in "biuf" or weight.ndim > 1 or not (np.isfinite(weight) & (weight >= 0)).all():
            raise ValueError(f"a NormTerm needs finite weights >= 0; got {self.weight!r}")

    def labels(self, n: int) -> np.ndarray:
        """Number of the group of each of n rows of K, from 0."""
        if self.groups is None:
            return np.arange(n)
        if len(self.groups) != n:
            raise ValueError(f"a NormTerm over {n} numbers needs as many groups; got {len(self.groups)}")
        return np.unique(np.asarray(self.groups), return_inverse=True)[1].reshape(-1)

    def weights(self, n: int) -> np.ndarray:
        """Weight of each of n groups."""
        weight = np.asarray(self.weight, dtype=float)
        if weight.ndim and weight.shape != (n,):
            raise ValueError(f"a NormTerm of {n} groups needs one weight or {n}; got {weight.shape[0]}")
        return np.array(np.broadcast_to(weight, (n,)))


@dataclass(frozen=True, eq=False)
class LimitTerm:
    """Linear constraints on the coefficients: ``lower <= K w <= upper``.

    ``LimitTerm(lower=0.0)`` makes them nonnegative, ``LimitTerm(lower=0.0, matrix=first_differences)`` monotone, and
    ``LimitTerm(upper=b, matrix=A)`` is A w <= b. Equal limits are an equation.

    Attributes
    ----------
    lower, upper : float or sequence of float
        One number, or one for each row of K; infinite ones are none.
    matrix : array, sparse matrix, callable or None
        As for `NormTerm`.
    """

    lower: Any = -np.inf
    upper: Any = np.inf
    matrix: Matrix = None

    def __post_init__(self) -> None:
        sides = np.asarray(self.lower), np.asarray(self.upper)
        if any(side.dtype.kind not in "biuf" or side.ndim > 1 or np.isnan(side).any() for side in sides):
            raise ValueError(f"a LimitTerm needs limits that are numbers; got {self.lower!r} and {self.upper!r}")
        if all(side.ndim and side.size for side in sides) and sides[0].shape != sides[1].shape:
            raise ValueError(f"a LimitTerm has {sides[0].shape[0]} lower and {sides[1].shape[0]} upper limits")
        if (sides[0] > sides[1]).any() or (sides[0] == np.inf).any() or (sides[1] == -np.inf).any():
            raise ValueError(f"a LimitTerm needs lower <= upper; got {self.lower!r} and {self.upper!r}")

    def sides(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Both limits of n rows of K."""
        given = np.asarray(self.lower, dtype=float), np.asarray(self.upper, dtype=float)
        for side in given:
            if side.ndim and side.shape != (n,):
                raise ValueError(f"a LimitTerm over {n} numbers needs one limit or {n}; got {side.shape[0]}")
        return np.array(np.broadcast_to(given[0], (n,))), np.array(np.broadcast_to(given[1], (n,)))


CoefficientTerm = NormTerm | LimitTerm


def first_differences(d: int) -> Any:
    """Return the sparse matrix of the differences w_(j+1) - w_j of neighbouring coefficients, shape (d - 1, d).

    Parameters
    ----------
    d : int
        Number of features.

    Returns
    -------
    sparse matrix
    """
    from scipy.sparse import diags

    return diags([-np.ones(d - 1), np.ones(d - 1)], [0, 1], shape=(d - 1, d), format="csr")


def coefficient_term_matrix(term: CoefficientTerm, d: int) -> Any:
    """Return K of a coefficient term for d features, in CSR form.

    Raises ValueError for another number of columns, or numbers that are not finite.
    """
    from scipy.sparse import csr_matrix, identity

    if term.matrix is None:
        return identity(d, format="csr")
    given = term.matrix(d) if callable(term.matrix) else term.matrix
    found = csr_matrix(given, dtype=float)
    if found.shape[1] != d or not np.isfinite(found.data).all():
        raise ValueError(
            f"the matrix of a {type(term).__name__} needs finite numbers in {d} columns, one per feature; got "
            f"{came(given)}"
        )
    return found


def coefficient_terms_fault(terms: Any) -> str:
    """Fault of what is given as coefficient terms, as half a sentence; empty where there is none."""
    if isinstance(terms, tuple) and all(type(one) in (NormTerm, LimitTerm) for one in terms):
        return ""
    return f"{came(terms)} as coefficient_terms, a tuple of NormTerm and LimitTerm is needed"
