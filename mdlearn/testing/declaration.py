"""Declaration tests: what an objective declares, names, texts, parameters, bounds and defaults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.forms.margin import BIASES
from mdlearn.objectives.base import Parameter, Setting
from mdlearn.testing.reference import reference_data, reference_fit, reference_sample, reference_task
from mdlearn.testing.require import require, require_error, require_terms


def check_declaration(objective: Any) -> None:
    """Test an objective's declaration: names, texts, parameters, default bias and terms as engines need them."""
    task = reference_task(objective)
    require(
        re.fullmatch(r"[a-z][a-z0-9_-]*", task.name) is not None,
        f"name is {task.name!r}; use lower-case letters, digits, '_' and '-'",
    )
    for text in ("summary", "formula"):
        lines = str(getattr(task, text)).splitlines()
        require(len(lines) == 1, f"{task.name}: {text} needs to be one line of text; `objectives` prints it")
    for name, parameter in task.parameters.items():
        declared = isinstance(parameter, (Parameter, Setting))
        require(declared, f"{task.name}: parameters[{name!r}] needs to be a Parameter or a Setting")
        require(bool(parameter.doc), f"{task.name}: parameter {name} has no doc; say what it is")
    require(task.default_bias in BIASES, f"{task.name}: default_bias needs to be one of {', '.join(BIASES)}")
    require_terms(task)


def check_unknown_parameter(objective: Any) -> None:
    """Test that a parameter outside the declaration is refused, and that the message lists the declared ones."""
    task = reference_task(objective)
    X, y, _ = reference_sample(objective)
    calls: dict[str, Callable[[], Any]] = {
        "fit": lambda: fit(objective, X, y, no_such_parameter=1.0),
        "the constructor": lambda: type(task)(no_such_parameter=1.0),
    }
    for place, call in calls.items():
        accepted = f"{task.name}: {place} accepts no_such_parameter; let Objective.__init__ refuse it"
        message = require_error(ValueError, call, accepted)
        missing = [name for name in task.parameters if name not in message]
        require(not missing, f"{task.name}: the message of {place} does not list {missing}: {message}")


def check_bounds(objective: Any) -> None:
    """Test the declaration of bounds: values outside are refused by name; the bounds themselves are usable."""
    task = reference_task(objective)
    X, y, _ = reference_sample(objective)
    for name, parameter in task.parameters.items():
        if not isinstance(parameter, Parameter):
            continue
        low, high, kind = parameter.low, parameter.high, int if parameter.integer else float
        outside = (low if parameter.strict else low - 1.0, high + 1.0)
        wrong: list[Any] = [math.nan, *(kind(end) for end in outside if math.isfinite(end))]
        wrong += [math.inf] if parameter.finite else []
        for value in [*wrong, *([1.5] if parameter.integer else []), "text"]:
            error = ValueError if isinstance(value, kind) else TypeError
            refuse = f"{task.name}: {name}={value!r} is accepted; Parameter.check needs to refuse it"
            message = require_error(error, partial(fit, objective, X, y, **{name: value}), refuse)
            named = name in message or error is TypeError
            require(named, f"{task.name}: the refusal of {name}={value!r} does not name it: {message}")
        for end in (high,) if parameter.strict else (low, high):
            if math.isfinite(end) or (end > 0 and not parameter.finite):
                at = f" at {name}={end:g}, which its bounds allow"
                require_terms(reference_task(objective, **{name: kind(end)}), at)


def check_params(objective: Any) -> None:
    """Test declared defaults: the model's params are those given and defaults for m = sum of the weights, in bounds."""
    task = reference_task(objective)
    X, y, counts = reference_sample(objective)
    model = reference_fit(objective, X, y, sample_weight=counts)
    want = task.complete(task.resolve(float(counts.sum())), reference_data(task, X, y, counts))
    require(
        list(model.params) == list(want) == list(task.parameters)
        and all(value is want[name] or np.array_equal(value, want[name]) for name, value in model.params.items()),
        f"{task.name}: model.params is {model.params}, but resolve(sum of the weights) gives {want}; let "
        "resolve() return every declared parameter and depend on nothing else",
    )
    for name, value in want.items():
        unfit = f"{task.name}: the default {name}={value!r} is outside its own bounds; change one of them"
        try:
            task.parameters[name].check(name, value)
        except (TypeError, ValueError) as error:
            raise AssertionError(unfit) from error
    explicit = reference_fit(objective, X, y, sample_weight=counts, **want)
    require(
        np.array_equal(explicit.coef_, model.coef_),
        f"{task.name}: the defaults given explicitly make another model; terms() needs to use its argument params only",
    )
