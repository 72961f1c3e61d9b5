"""Loading of a plugin: import, register, call its hooks, check what they return. Faults are noted and never raised."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pluggy

from mdlearn.data.features.kernels import DEFAULTS
from mdlearn.data.kernel_functions import KernelFunction
from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.objectives.base import FIT_ARGUMENTS, Objective, Parameter, Setting
from mdlearn.plugins.command import Command
from mdlearn.plugins.discovery import PluginEntryPoint
from mdlearn.plugins.hookspecs import API, OLDEST_API
from mdlearn.plugins.records import PluginRecord
from mdlearn.solvers.base import Solver

KINDS: dict[str, type] = {
    "objective": Objective,
    "solver": Solver,
    "kernel": KernelFunction,
    "source": RowBlocks,
    "command": Command,
}
HOOKS = {f"mdlearn_{kind}s": kind for kind in KINDS}
PLUGIN_NAME = re.compile(r"[a-z][a-z0-9_-]*")
DECLARED_BY_KIND: dict[str, tuple[tuple[str, ...], str, Any, str]] = {
    "objective": (("summary", "formula"), "parameters", (Parameter, Setting), "Parameter or Setting"),
    "solver": (("purpose",), "options", object, "defaults"),
    "kernel": (("summary",), "parameters", Parameter, "Parameter"),  # model files hold numbers: a Setting will not do
}
"""Texts of a plugin's class, its mapping, and what that maps names to: types, and words for them."""
SHOWN_CHARACTERS = 300
"""Characters of a plugin's own error message that are shown."""


@dataclass
class LoadedPlugin:
    """LoadedPlugin while it is being loaded, from its entry point."""

    source: PluginEntryPoint  # where it comes from
    disabled: bool = False  # switched off: it is not imported
    # kind -> classes that may be used as far as this plugin alone is concerned
    offered: dict[str, list[Any]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    faults: list[str] = field(default_factory=list)  # what is wrong with it
    clashes: list[str] = field(default_factory=list)  # names that other plugins offer too, a sentence each

    def record(self, known: Mapping[str, Mapping[str, Any]]) -> PluginRecord:
        """Record of this plugin after loading; `known` is the registry's: kind -> name -> class."""
        state = "error" if self.faults else "conflict" if self.clashes else "disabled" if self.disabled else "ok"
        return PluginRecord(
            self.source.distribution,
            self.source.version,
            self.source.entry,
            state=state,
            error="; ".join([*self.faults, *self.clashes]) or None,
            **{
                f"{kind}s": tuple(cls.name for cls in own if cls.name in known[kind] and known[kind][cls.name] is cls)
                for kind, own in self.offered.items()
            },
        )


def load_plugin(manager: pluggy.PluginManager, plugin: LoadedPlugin) -> None:
    """Load a plugin: fill in what it offers and what is wrong with it.

    Only KeyboardInterrupt gets through: it cannot be told from the user's Ctrl-C. Anything else, SystemExit too, is
    the plugin's own fault.
    """
    doing = "import failed"
    try:
        thing = plugin.source.load()
        fault = _api_fault(thing)
        if fault:
            plugin.faults.append(fault)
            return
        doing = "registration failed"
        _register_loaded_plugin(manager, thing, plugin)
        doing = "what it returns cannot be examined"
        for name, classes in _hook_answers(manager, thing, plugin):
            _keep_usable_classes(name, classes, plugin)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        newer = isinstance(error, ImportError) and error.name == "mdlearn.extend"
        advice = f"; this mdlearn has API {API}: install the versions that belong together" if newer else ""
        plugin.faults.append(f"{doing}: {plugin_error_line(error)}{advice}")


def plugin_error_line(error: BaseException, most: int = SHOWN_CHARACTERS) -> str:
    """Type and message of an error of a plugin, in one line of limited length."""
    try:
        message = str(error)
    except Exception:
        message = ""
    return textwrap.shorten(f"{type(error).__name__}: {message}".rstrip(": "), most, placeholder=" ...")


def _api_fault(thing: Any) -> str | None:
    """Why a plugin cannot be loaded with this number of the contract; None where it can, or names none."""
    needed = getattr(thing, "requires_api", OLDEST_API)
    if isinstance(needed, bool) or not isinstance(needed, int):
        return f"requires_api is {needed!r}; a whole number is needed"
    if needed > API:
        return f"it needs API {needed} of mdlearn.extend, this mdlearn has {API}; install a newer mdlearn"
    if needed < OLDEST_API:
        was = f"it was written for API {needed} of mdlearn.extend"
        return f"{was}, the oldest is {OLDEST_API}; install a newer version of it"
    return None


def _register_loaded_plugin(manager: pluggy.PluginManager, thing: Any, plugin: LoadedPlugin) -> None:
    """Register a loaded plugin's hooks with pluggy, and note faults of their names and decorators."""
    try:
        manager.register(thing, plugin.source.title)
    except BaseException:
        # pluggy keeps the hooks that came before the faulty one.
        if manager.get_plugin(plugin.source.title) is thing:
            manager.unregister(name=plugin.source.title)
        raise
    # This is what check_pending does, for one plugin: pluggy's own stops at the first misspelt name of all plugins.
    callers = manager.get_hookcallers(thing) or []
    for caller in callers:
        mine = [one for one in caller.get_hookimpls() if one.plugin is thing and not one.optionalhook]
        if mine and not caller.has_spec():
            plugin.faults.append(f"hook {caller.name!r} does not exist; known hooks: {', '.join(HOOKS)}")
    there = [name for name in HOOKS if callable(getattr(thing, name, None))]
    bare = [name for name in there if manager.parse_hookimpl_opts(thing, name) is None]
    plugin.faults += [f"{name} lacks the decorator @mdlearn.hookimpl" for name in bare]
    if not callers and not bare:
        known = ", ".join(HOOKS)
        plugin.faults.append(f"it implements no hook (known: {known}); the entry point needs to name their module")


def _hook_answers(manager: pluggy.PluginManager, thing: Any, plugin: LoadedPlugin) -> Iterator[tuple[str, Any]]:
    """Answers of a loaded plugin's hooks by name; each is called for itself: a failing one stops no other."""
    for name, kind in HOOKS.items():
        for implementation in getattr(manager.hook, name).get_hookimpls():
            if implementation.plugin is not thing:
                continue
            if implementation.wrapper or implementation.hookwrapper:
                plugin.faults.append(f"hook {name} is a wrapper; return your own classes instead")
                continue
            try:
                answer = implementation.function()
                answer = list(answer) if isinstance(answer, Iterable) and not isinstance(answer, str) else answer
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                plugin.faults.append(f"hook {name} failed: {plugin_error_line(error)}")
                continue
            if isinstance(answer, list):
                yield kind, answer
            else:
                needed = f"it needs to return a list of subclasses of mdlearn.{KINDS[kind].__name__}"
                plugin.faults.append(f"hook {name} returned {answer!r}; {needed}")


def _keep_usable_classes(kind: str, classes: list[Any], plugin: LoadedPlugin) -> None:
    """Keep the classes of a loaded plugin that can be used, each once."""
    base = KINDS[kind]
    for cls in classes:
        if not (isinstance(cls, type) and issubclass(cls, base)):
            wrong = f"which is no subclass of mdlearn.{base.__name__}"
            plugin.faults.append(f"hook mdlearn_{kind}s returned {cls!r}, {wrong}")
            continue
        fault = _plugin_name_fault(kind, cls) or OWN_FAULTS[kind](cls)
        if fault:
            plugin.faults.append(f"{kind} class {cls.__name__} {fault}")
        elif not any(cls is other for other in plugin.offered[kind]):
            plugin.offered[kind].append(cls)


def _plugin_name_fault(kind: str, cls: Any) -> str | None:
    """Fault in the name of a class that a loaded plugin brings; None where there is none."""
    name = getattr(cls, "name", None)
    if name is None:
        return "has no name"
    if not isinstance(name, str) or not PLUGIN_NAME.fullmatch(name):
        return f"is named {name!r}; a name needs lower-case letters, digits, '_' and '-', a letter first"
    if kind == "solver" and name == "auto":
        return "is named 'auto', which stands for the choice among all solvers"
    if kind == "kernel" and name == "callable":
        return "is named 'callable', which stands for a function k(A, B)"
    return None


def _plugin_text_fault(cls: Any, *names: str) -> str | None:
    """Fault in the texts of a class that a loaded plugin brings; None where there is none."""
    # What listings and errors about other classes read needs to be right, or they would fail as well.
    wrong = [name for name in names if not isinstance(getattr(cls, name, None), str)]
    return f"needs a text as {wrong[0]}" if wrong else None


def _is_plugin_mapping(given: Any, kinds: type | tuple[type, ...]) -> bool:
    """Whether an attribute of a loaded plugin's class maps names to values of these kinds."""
    return isinstance(given, Mapping) and all(
        isinstance(name, str) and isinstance(value, kinds) for name, value in given.items()
    )


def _plugin_call_fault(call: Callable[[], Any], what: str) -> str | None:
    """Fault of a call in the loading of a plugin: the error that it raises; None where there is none."""
    try:
        call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"{what} ({plugin_error_line(error)})"
    return None


def _plugin_declaration_fault(kind: str, cls: Any) -> str | None:
    """Fault in what a class of a loaded plugin declares, or that it cannot be made; None where there is none."""
    texts, name, values, needed = DECLARED_BY_KIND[kind]
    fault = _plugin_text_fault(cls, *texts)
    if not fault and not _is_plugin_mapping(getattr(cls, name), values):
        fault = f"needs {name} that map names to {needed}"
    if not fault and kind == "kernel" and cls.rows not in ("numbers", "any"):
        fault = f"has rows = {cls.rows!r}, which needs to be 'numbers' or 'any'"
    taken = [] if fault or kind != "kernel" else sorted(FIT_ARGUMENTS.difference(DEFAULTS).intersection(cls.parameters))
    if taken:
        fault = f"declares {taken}, which are names of fit's own arguments"
    return fault or _plugin_call_fault(cls, "cannot be made without arguments")


def _plugin_source_fault(cls: Any) -> str | None:
    """Fault of a source of row blocks that a loaded plugin brings; None where there is none."""
    same = getattr(cls.given, "__func__", None) is vars(RowBlocks)["given"].__func__
    return "needs a class method given(X, y, weight) of its own" if same else None


def _plugin_command_fault(cls: Any) -> str | None:
    """Fault of a command that a loaded plugin brings; None where there is none."""

    def declare() -> None:
        cls().add_arguments(argparse.ArgumentParser(exit_on_error=False))

    return _plugin_text_fault(cls, "summary", "description", "epilog") or _plugin_call_fault(
        declare, "cannot declare its arguments"
    )


OWN_FAULTS: dict[str, Callable[[Any], str | None]] = {
    **{kind: partial(_plugin_declaration_fault, kind) for kind in DECLARED_BY_KIND},
    "source": _plugin_source_fault,
    "command": _plugin_command_fault,
}
