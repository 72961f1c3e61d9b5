"""Hook specifications: objectives, solvers, commands (built-in ones included), kernels and sources arrive by hooks."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

API, OLDEST_API = 1, 1
"""Number of the contract with plugins, and the oldest one whose plugins work; see `mdlearn.extend`."""

hookspec = pluggy.HookspecMarker("mdlearn")
hookimpl = pluggy.HookimplMarker("mdlearn")


@hookspec
def mdlearn_objectives() -> Iterable[type]:  # type: ignore[empty-body]
    """Hook specification: return subclasses of `mdlearn.Objective`."""


@hookspec
def mdlearn_solvers() -> Iterable[type]:  # type: ignore[empty-body]
    """Hook specification: return subclasses of `mdlearn.Solver`."""


@hookspec
def mdlearn_kernels() -> Iterable[type]:  # type: ignore[empty-body]
    """Hook specification: return subclasses of `mdlearn.KernelFunction`."""


@hookspec
def mdlearn_sources() -> Iterable[type]:  # type: ignore[empty-body]
    """Hook specification: return subclasses of `mdlearn.RowBlocks`."""


@hookspec
def mdlearn_commands() -> Iterable[type]:  # type: ignore[empty-body]
    """Hook specification: return subclasses of `mdlearn.Command`."""
