"""From classes and instances that users name to objectives and engines with what was given for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mdlearn.data.features.kernels import DEFAULTS
from mdlearn.errors import did_you_mean
from mdlearn.objectives.base import FIT_ARGUMENTS, Objective
from mdlearn.plugins.manager import registry
from mdlearn.solvers.base import Solver


def instance_of(found: Any, own: dict[str, Any], kernel_names: tuple[str, ...]) -> Objective:
    """An objective with its hyper-parameters; `kernel_names` are those of the kernel, for the list of valid ones."""
    unknown = [name for name in own if name not in found.parameters and name not in found.aliases]
    if unknown:
        valid = ", ".join((*found.parameters, *kernel_names)) or "none"
        hint = did_you_mean(unknown[0], (*found.parameters, *kernel_names, *FIT_ARGUMENTS.difference(DEFAULTS)))
        raise ValueError(f"objective {found.name!r} has no parameter {unknown[0]!r} here; valid: {valid}{hint}")
    return instance_with(found, own)


def solver_of(found: Any) -> Solver:
    """An engine, from its class or an instance."""
    engine: Solver = found() if isinstance(found, type) else found
    return engine


def options_of(given: Any, engine: Solver | None) -> dict[str, Any]:
    """Options as a dict, their names checked as far as the engine is known before any work."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"solver_options needs to be a mapping of option names to values; got {given!r}")
    if engine is not None:
        engine.check_options(dict(given))
    known = {name for cls in registry().solvers.values() for name in cls.options}
    unknown = [name for name in given if engine is None and name not in known]
    if unknown:
        hint = did_you_mean(unknown[0], sorted(known))
        told = ", ".join(sorted(known))
        raise ValueError(f"no solver has an option {unknown[0]!r}; known solver_options: {told}{hint}")
    return dict(given)


def instance_with(found: Any, own: Mapping[str, Any]) -> Objective:
    """An objective from its class or an instance, with parameters that take the place of the instance's."""
    if isinstance(found, type):
        task: Objective = found(**own)
        return task
    names = {found.aliases.get(name, name) for name in own}
    kept = {name: value for name, value in found.given.items() if name not in names}
    again: Objective = type(found)(**kept, **own)
    return again
