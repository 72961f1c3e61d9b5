"""Answers of forms that plugins bring: types, shapes and numbers, looked at where a method is called first.

An error inside such a method gains a line that says whose it is. Built-in classes are left as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

import numpy as np

from mdlearn.errors import ErrorNotes, came, faulty, is_foreign, steps_with_error_notes
from mdlearn.forms.joint.composite_point import CompositeEvaluation
from mdlearn.forms.proof import SMALLEST_NORMAL, Certificate, Solution

FORM = "a form"
"""What errors call an object that is a plugin's form or one of its problems."""
Fault = str | None
"""Half a sentence: what came and what is needed."""


def number_answer_fault(value: Any, low: float = -math.inf, high: float = math.inf, what: str = "") -> Fault:
    """Fault of an answer of a form that is to be a number within bounds, and not NaN; None: there is none."""
    kind = getattr(getattr(value, "dtype", None), "kind", "")
    real = isinstance(value, (int, float)) or (np.ndim(value) == 0 and kind != "" and kind in "iuf")
    if real and low <= value <= high:
        return None
    if 0 < low <= SMALLEST_NORMAL:
        needed = "a positive number" if high == math.inf else "a finite positive number"
    else:
        needed = "a number" if low == -math.inf else f"a number >= {low:g}"
    return f"returned {came(value)}{what}, {needed} is needed"


def floats_answer_fault(value: Any, shape: tuple[int, ...], what: str = "") -> Fault:
    """Fault of an answer of a form that is to be an array of finite floats; None: there is none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.shape != shape:
        return f"returned {came(value)}{what}, floats of shape {shape} are needed"
    return None if np.isfinite(value).all() else f"returned NaN or infinity{what}, finite numbers are needed"


def _evaluation_answer_fault(form: Any, found: Any) -> Fault:
    """Fault of what a form's `at` or `settle` returned."""
    if not isinstance(found, CompositeEvaluation):
        return f"returned {came(found)}, a CompositeEvaluation is needed"
    shape = getattr(form, "shape", np.shape(found.W))  # the first call may be one of __init__
    arrays = {"W": shape, "gradient": shape, "sizes": shape[:1]}
    faults = (floats_answer_fault(getattr(found, name), shape, f" as {name}") for name, shape in arrays.items())
    return number_answer_fault(found.value, what=" as value") or next(filter(None, faults), None)


def solution_answer_fault(found: Any) -> Fault:
    """Fault of the Solution of a form, as far as it tells without the rows: types, and lengths that belong together."""
    if not isinstance(found, Solution):
        return f"returned {came(found)}, a Solution is needed"
    if not isinstance(found.certificate, Certificate):
        return f"returned {came(found.certificate)} as certificate, a Certificate is needed"
    several = np.ndim(found.intercept) > 0
    lead = np.shape(found.intercept)
    wanted = {"intercept": lead[:1], "norm": lead[:1]}
    for name, shape in wanted.items():
        value = getattr(found, name)
        fault = (
            floats_answer_fault(value, shape, f" as {name}")
            if several
            else number_answer_fault(value, what=f" as {name}")
        )
        if fault:
            return fault
    shapes = {"coef": (*lead, None), "alpha": (*lead, 1, None) if several else (None,), "beta": (*lead, None, None)}
    for name, needed in shapes.items():
        value = getattr(found, name)
        if value is None and name != "beta":
            continue
        shown = str(needed).replace("None", "any")
        if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or not _answer_has_shape(value, needed):
            return f"returned {came(value)} as {name}, floats of shape {shown} are needed"
    if found.coef is not None and not np.isfinite(found.coef).all():
        return "returned NaN or infinity as coef, finite numbers are needed"
    return None


def _answer_has_shape(value: np.ndarray, needed: tuple[int | None, ...]) -> bool:
    """Whether an array of a form's solution has a shape; None stands for any length."""
    return value.ndim == len(needed) and all(n in (None, length) for n, length in zip(needed, value.shape))


def _pair_answer_fault(form: Any, found: Any) -> Fault:
    """Fault of two values, objective and bound, that a form returned."""
    two = isinstance(found, tuple) and len(found) == 2 and not any(number_answer_fault(one, -math.inf) for one in found)
    return None if two else f"returned {came(found)}, two numbers are needed"


def _bound_answer_fault(form: Any, found: Any) -> Fault:
    """Fault of a form's bound: a number, and the kind of its proof. NaN and -inf are no proof."""
    right = isinstance(found, tuple) and len(found) == 2 and isinstance(found[0], (int, float, np.floating))
    right = right and isinstance(found[1], str)
    return None if right else f"returned {came(found)}, a number and the kind of proof are needed"


def _optional_answer(fault: Callable[[Any, Any], Fault]) -> Callable[[Any, Any], Fault]:
    """Check of a form's answer that may be None."""
    return lambda form, found: None if found is None else fault(form, found)


def _callable_answer_fault(form: Any, found: Any) -> Fault:
    """Fault of a form's `product`: a function of an array, tried once."""
    if not callable(found):
        return f"returned {came(found)}, a function or None is needed"
    made = found(np.zeros(form.shape))
    return floats_answer_fault(made, form.shape, " from its function")


def _problems_answer_fault(form: Any, found: Any) -> Fault:
    """Fault of the problems that a form consists of."""
    # The class of problems lies above: what has no part and no certificate is none.
    right = isinstance(found, tuple) and found and all(hasattr(one, "certify") for one in found)
    return None if right else f"returned {came(found)}, a tuple of at least one Problem is needed"


ANSWERS: dict[str, Callable[[Any, Any], Fault]] = {
    "at": _evaluation_answer_fault,
    "settle": _evaluation_answer_fault,
    "lipschitz": lambda form, found: number_answer_fault(found, 0.0, np.finfo(float).max),
    "penalty": lambda form, found: number_answer_fault(found),
    "prox": lambda form, found: floats_answer_fault(found, form.shape),
    "least": lambda form, found: number_answer_fault(found),
    "product": _optional_answer(_callable_answer_fault),
    "residual": _optional_answer(lambda form, found: number_answer_fault(found, 0.0)),
    "bound": _bound_answer_fault,
    "multipliers": lambda form, found: (
        None if np.ndim(found) == 3 else f"returned {came(found)}, floats of shape (k, T, m) are needed"
    ),
    "combination": _optional_answer(
        lambda form, found: floats_answer_fault(found, (form.shape[1], 1, form.features.n_rows))
    ),
    "certify": lambda form, found: solution_answer_fault(found),
    "certify_best": lambda form, found: solution_answer_fault(found),
    "certify_as_is": lambda form, found: solution_answer_fault(found),
    "values": _pair_answer_fault,
    "bounds_at_start": _pair_answer_fault,
    "fault": _optional_answer(
        lambda form, found: None if isinstance(found, str) else f"returned {came(found)}, a text or None is needed"
    ),
    "problems": _problems_answer_fault,
    "approximation": lambda form, found: (
        None if isinstance(found, np.ndarray) else f"returned {came(found)}, an array is needed"
    ),
}
"""Method of a form -> fault(form, answer). Everything else that is called is a matter of the class alone."""
NOTED = (*ANSWERS, "start", "prepare", "examine", "explain", "conclude", "starting_point", "begin", "untouched")
"""Methods of a form whose errors are told to be the plugin's."""


def check_answers(cls: type) -> None:
    """Have the methods that a class of forms outside mdlearn writes look at their first answer, and note errors."""
    if is_foreign(cls):
        for name in NOTED:
            method = vars(cls).get(name)
            if callable(method) and not isinstance(method, staticmethod):  # that one gets no form
                setattr(cls, name, _method_with_checked_answer(name, method))


def _method_with_checked_answer(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Method of a form that notes errors, and whose first answer is checked."""

    def checked(self: Any, *given: Any, **named: Any) -> Any:
        with ErrorNotes(self, FORM, name):
            found = method(self, *given, **named)
        seen = vars(self).setdefault("_answers_seen", set())
        if method not in seen:  # a class and its parent may write the same method
            seen.add(method)
            fault = ANSWERS[name](self, found) if name in ANSWERS else None
            if fault:
                raise faulty(self, FORM, name, fault)
        return found

    def steps(self: Any) -> Any:
        return steps_with_error_notes(self, FORM, name, partial(method, self))

    return wraps(method)(steps if name == "prepare" else checked)
