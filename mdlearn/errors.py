"""Exceptions and warnings that mdlearn raises beside the built-in ones, and what errors of unknown names end with."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from functools import lru_cache
from typing import Any


class ConvergenceWarning(UserWarning):
    """A fit stopped before its certified relative gap reached ``tol``."""


class UnprovenWarning(UserWarning):
    """Something was asked for that needs a proof which a model does not have."""


class PluginWarning(UserWarning):
    """A plugin could not be loaded or breaks a rule; nothing else is affected."""


class InsufficientMemory(ValueError, MemoryError):
    """A fit would not fit in memory; raised before anything large is allocated."""


class FaultyProblem(ValueError):
    """A problem that a plugin declares contradicts itself: nothing can be certified, by no engine."""


def did_you_mean(name: Any, known: Iterable[Any]) -> str:
    """End of an error's sentence about an unknown name, where a known one is close; else empty."""
    from difflib import get_close_matches

    names = [one for one in known if isinstance(one, str)]
    if not isinstance(name, str) or name in names:
        return ""
    lowered = {one.lower(): one for one in reversed(names)}
    close = get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
    return f"; did you mean {lowered[close[0]]!r}?" if close else ""


class FaultyPlugin(TypeError):
    """Foreign code, a plugin's or a class given to `fit`, returned what its contract does not allow."""


PLUGIN_OF_MODULE: dict[str, str] = {}
"""Module of what a plugin brings -> distribution and version; the loading of plugins fills it."""


class_is_foreign: Callable[[Any], bool] = lru_cache(maxsize=256)(lambda cls: not cls.__module__.startswith("mdlearn."))
"""Whether a class lies outside of mdlearn."""


def is_foreign(one: Any) -> bool:
    """Whether the class of an object, or a class, lies outside of mdlearn."""
    return class_is_foreign(one if isinstance(one, type) else type(one))


def _class_in_error(one: Any) -> type:
    """Class of an object that an error is about, or the class itself."""
    return one if isinstance(one, type) else type(one)


def _foreign_root_in_error(cls: type) -> str:
    """First part of the name of a class's module, for errors inside foreign code; empty where that is mdlearn's."""
    root = cls.__module__.partition(".")[0]
    return "" if root in ("mdlearn", "builtins") else root


def title_in_error(one: Any, kind: str) -> str:
    """Words for foreign code in errors: its kind, the name that users give, and the plugin that brings it."""
    plugin = ""
    if is_foreign(one):
        parts = _class_in_error(one).__module__.split(".")
        modules = [".".join(parts[:n]) for n in range(len(parts), 0, -1)]
        plugin = next((PLUGIN_OF_MODULE[module] for module in modules if module in PLUGIN_OF_MODULE), "")
    name = getattr(one, "name", None)
    return kind + (f" {name!r}" if isinstance(name, str) else "") + (f" of {plugin}" if plugin else "")


def faulty(one: Any, kind: str, method: str, what: str) -> FaultyPlugin:
    """Make the error for a wrong answer of foreign code: `what` says what came and what is needed."""
    return FaultyPlugin(f"{title_in_error(one, kind)} is faulty: {_class_in_error(one).__name__}.{method} {what}")


def came(value: Any) -> str:
    """Words for what came instead of what an error says is needed."""
    if hasattr(value, "dtype") and getattr(value, "shape", ()) != ():
        return f"an array of {value.dtype} and shape {value.shape}"
    return str(value) if isinstance(value, (bool, int, float, complex)) else type(value).__name__


class ErrorNotes:
    """Context of a call of code that may be foreign: an error inside it gains a line that says whose it is.

    `one`: what has the method; errors of built-in classes stay as they are; `kind`: such as "objective": what the hook
    brings.
    """

    __slots__ = ("kind", "method", "one")

    def __init__(self, one: Any, kind: str, method: str) -> None:
        self.one, self.kind, self.method = one, kind, method

    def __enter__(self) -> None:
        return

    def __exit__(self, raised: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            note_origin(error, self.one, self.kind, self.method)


def call_with_error_notes(one: Any, kind: str, method: str, *given: Any) -> Any:
    """Call a method and return what it returns; where its class is foreign, errors inside it are told to be its own."""
    if not class_is_foreign(one if isinstance(one, type) else type(one)):
        return getattr(one, method)(*given)
    with ErrorNotes(one, kind, method):
        return getattr(one, method)(*given)


def with_error_notes(one: Any, kind: str, method: str, call: Callable[..., Any], *given: Any) -> Any:
    """Do the same for a function that belongs to a method of a class that may be foreign."""
    if not class_is_foreign(type(one)):
        return call(*given)
    with ErrorNotes(one, kind, method):
        return call(*given)


NOTE_BEGINNING = "(raised in "
"""Beginning of the line that says which foreign code an error comes from."""
REFUSING_METHODS = ("check_column", "check_form", "check_options")
"""Methods of foreign code that say by a ValueError what they do not take: a sentence for the user, no fault."""
HOOKED_KINDS = ("objective", "solver", "kernel", "source", "command")
"""Kinds of foreign code that a hook brings."""


def note_origin(error: BaseException, one: Any, kind: str, method: str) -> None:
    """Add to an error inside foreign code a line: method, hook and plugin; once, where it was raised.

    A refusal of a method that is there to refuse gets none.
    """
    if isinstance(error, FaultyPlugin) or not isinstance(error, Exception):
        return
    classes = _class_in_error(one).__mro__
    # An inherited method is mdlearn's, unless it has called something of the plugin's.
    if not _foreign_root_in_error(next(cls for cls in classes if method in vars(cls) or cls is object)):
        roots, trace = set(map(_foreign_root_in_error, classes)) - {""}, error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in roots:
            trace = trace.tb_next
        if trace is None:
            return
        called = trace.tb_frame.f_code.co_name
        method = called if hasattr(classes[0], called) else method
    if method in REFUSING_METHODS and isinstance(error, ValueError) and is_raised_by(error, one):
        return
    title = title_in_error(one, kind)
    hook = f", hook mdlearn_{kind}s" if " of " in title and kind in HOOKED_KINDS else ""
    add_error_note(error, f"{classes[0].__name__}.{method}: {title}{hook}")


def is_raised_by(error: BaseException, one: Any) -> bool:
    """Whether a `raise` statement of mdlearn's, or of the package of foreign code, made an error that came out of it.

    Such an error is a sentence for the user; one that Python or another package raises is not.
    """
    from dis import opname

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return False
    root, own = trace.tb_frame.f_globals.get("__name__", "").partition(".")[0], _class_in_error(one).__mro__
    at = opname[trace.tb_frame.f_code.co_code[trace.tb_lasti]]
    return at == "RAISE_VARARGS" and root in {"mdlearn", *map(_foreign_root_in_error, own)}


def add_error_note(error: BaseException, where: str) -> None:
    """Add to an error a line that says where it was raised, unless one does already."""
    if not any(note.startswith(NOTE_BEGINNING) for note in getattr(error, "__notes__", ())):
        error.add_note(f"{NOTE_BEGINNING}{where})")


def steps_with_error_notes(one: Any, kind: str, method: str, begin: Callable[[], Any]) -> Generator[Any, Any, Any]:
    """Return the generator of a method; where that is foreign, errors inside it are told to be its own."""
    return _foreign_steps_with_error_notes(one, kind, method, begin) if is_foreign(one) else begin()


def _foreign_steps_with_error_notes(
    one: Any, kind: str, method: str, begin: Callable[[], Any]
) -> Generator[Any, Any, Any]:
    """Go through the generator that a foreign method returns, with notes on its errors."""
    with ErrorNotes(one, kind, method):
        work = begin()
        if not isinstance(work, Generator):
            raise faulty(one, kind, method, f"returned {came(work)}, a generator is needed")
        return (yield from work)


class ParametersWithErrorNotes(dict[str, Any]):
    """Parameters that foreign code reads: a name that it has not declared is told to be its own fault.

    `reader`: words for that code in the error.
    """

    reader = ""

    @classmethod
    def read_by(cls, one: Any, kind: str, params: Mapping[str, Any]) -> ParametersWithErrorNotes:
        """Make those that the methods of an object, such as an objective, are given."""
        found = cls(params)
        found.reader = title_in_error(one, kind)
        return found

    def __missing__(self, name: str) -> Any:
        declared = ", ".join(self) or "none"
        raise UndeclaredParameterError(
            f"{self.reader} is faulty: it reads the parameter {name!r}, which it does not declare, or declares later; "
            f"declared: {declared}"
        )


class UndeclaredParameterError(KeyError):
    """Name of a parameter that foreign code reads and has not declared."""

    def __str__(self) -> str:
        return str(self.args[0])
