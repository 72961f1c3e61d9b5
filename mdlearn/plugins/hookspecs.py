"""The hooks through which objectives, solvers and commands arrive, built-in ones included, kernels, and sources."""

from __future__ import annotations

from collections.abc import Iterable

import pluggy

hookspec = pluggy.HookspecMarker("mdlearn")
hookimpl = pluggy.HookimplMarker("mdlearn")


@hookspec
def mdlearn_objectives() -> Iterable[type]:  # type: ignore[empty-body]
    """Return subclasses of `mdlearn.Objective`."""


@hookspec
def mdlearn_solvers() -> Iterable[type]:  # type: ignore[empty-body]
    """Return subclasses of `mdlearn.Solver`."""


@hookspec
def mdlearn_kernels() -> Iterable[type]:  # type: ignore[empty-body]
    """Return subclasses of `mdlearn.KernelFunction`."""


@hookspec
def mdlearn_sources() -> Iterable[type]:  # type: ignore[empty-body]
    """Return subclasses of `mdlearn.RowBlocks`."""


@hookspec
def mdlearn_commands() -> Iterable[type]:  # type: ignore[empty-body]
    """Return subclasses of `mdlearn.Command`."""
