"""The terms of a binary problem, as objectives declare them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.data.rows.arrays import LARGEST_ENTRY
from mdlearn.forms.certificates.unsolved import AtZero
from mdlearn.forms.losses import Term


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

    def at_zero(self, total: float) -> AtZero:
        """Return what is known at w = 0 of a problem of classification, without its rows.

        Parameters
        ----------
        total : float
            Weight of its rows.

        Returns
        -------
        AtZero
        """
        zero, counts = np.zeros(1), np.array([total])  # there all rows are one
        value = self.unit * float(sum(one.value(zero, counts) for one in self.loss))
        lower = -np.inf if self.mean > 0 else self.unit * float(sum(one.bound(zero, counts) for one in self.loss))
        return AtZero(value, lower, any(one.hard for one in self.loss))


BEYOND = "terms whose weights are beyond the range of float64"
"""What is wrong with terms that parameters and weights of rows lead to, and not the objective."""


def checked_terms(task: Any, params: dict[str, Any], total: float) -> Terms:
    """What an objective's `terms` returns, where these are declared terms whose weights float64 can hold.

    Raises
    ------
    TypeError, ValueError
        For anything else, and for parameters that lead to weights beyond float64.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            terms = task.terms(params, total)
            fault = _fault(terms, total)
    except ArithmeticError:
        fault = BEYOND
    if fault == BEYOND:
        told = ", ".join(f"{name}={value:g}" for name, value in params.items() if type(value) in (int, float))
        raise ValueError(
            f"objective {task.name!r} with {told} and rows of weight {total:g} has {fault}; give parameters and "
            "weights nearer 1"
        )
    if fault:
        raise TypeError(f"objective {task.name!r} is faulty: {fault}")
    return terms


def _fault(terms: Any, total: float) -> str:
    """What is wrong with terms, as half a sentence; empty where nothing is."""
    if not isinstance(terms, Terms):
        return f"its terms returned {type(terms).__name__}, Terms are needed"
    weights = [terms.variance, terms.mean, terms.penalty, terms.unit]
    rows = np.array([max(total, 1.0)])
    for one in terms.loss:
        if one.kind != "constraint":
            weights += [one.weight * float(rows[0]), one.value(np.zeros(1), rows)]
    return "" if all(abs(one) <= LARGEST_ENTRY for one in weights) and terms.unit > 0 else BEYOND
