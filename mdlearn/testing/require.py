"""Requirements of the checks: each raises AssertionError with one sentence for the author of a plugin."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mdlearn.errors import UndeclaredParameterError
from mdlearn.forms.losses import Term
from mdlearn.model.model import Model
from mdlearn.objectives.base import Objective, Terms
from mdlearn.objectives.declaration.parameters_and_terms import resolve_declared_parameters

CLOSE = 1e-6
"""Largest difference of two decision values, in units of max(1, |f|)."""


def require(holds: bool, message: str) -> None:
    """Require in a check: raise AssertionError, with `message`, unless `holds`."""
    # Not the assert statement: these checks also hold under python -O.
    if not holds:
        raise AssertionError(message)


def require_clauses(title: str, clauses: Sequence[Callable[..., None]], *subject: Any) -> None:
    """Require that all clauses of a contract hold; the sentence on the first that does not begins with its name."""
    for clause in clauses:
        try:
            clause(*subject)
        except Exception as error:
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            told = " ".join([f"{kind}{error}", *getattr(error, "__notes__", ())])
            raise AssertionError(f"{title}: {clause.__name__} does not hold: {told}") from error


def require_close(first: tuple[Model, np.ndarray], second: tuple[Model, np.ndarray], message: str) -> None:
    """Require that models agree on the rows that go with each."""
    f, g = first[0].decision_function(first[1]), second[0].decision_function(second[1])
    require(f.shape == g.shape, f"{first[0].objective}: {message} (shapes {f.shape} and {g.shape})")
    worst = float((np.abs(f - g) / np.maximum(1.0, np.abs(g))).max())
    require(worst <= CLOSE, f"{first[0].objective}: {message} (decision values differ by {worst:.2g})")


def require_terms(task: Objective, where: str = "") -> None:
    """Require that `terms` is convex and readable, or the task has its own form."""
    if type(task).terms is Objective.terms:
        own = type(task).form is not Objective.form or type(task).problem is not Objective.problem
        require(own, f"{task.name}: neither terms() nor form() is written; write one of them")
        return
    try:
        terms = task.terms(resolve_declared_parameters(task, 40.0), 40.0)
    except Exception as error:
        told = str(error) if isinstance(error, UndeclaredParameterError) else repr(error)
        raise AssertionError(f"{task.name}: terms() raises an error of its own{where}: {told}") from error
    require(isinstance(terms, Terms), f"{task.name}: terms() returns {terms!r}{where}; return Terms(...)")
    for name in ("variance", "mean"):
        value = getattr(terms, name)
        right = isinstance(value, (int, float)) and 0 <= value < math.inf
        require(right, f"{task.name}: Terms.{name} is {value!r}{where}; it needs to be finite and >= 0")
    right = isinstance(terms.loss, tuple) and all(isinstance(term, Term) for term in terms.loss)
    require(
        right,
        f"{task.name}: Terms.loss is {terms.loss!r}{where}; it needs to be a tuple of HingeTerm, "
        "LogisticTerm, or what GivenLoss.terms returns",
    )


def require_error(kind: type[Exception] | tuple[type[Exception], ...], call: Callable[[], Any], told: str) -> str:
    """Require that a call raises an error of a kind; return its text."""
    try:
        call()
    except kind as error:
        return str(error)
    except Exception as error:
        wanted = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
        raise AssertionError(f"{told} with {wanted}, not {error!r}") from error
    raise AssertionError(told)
