"""Frozen dataclasses whose fields are written all at once."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any, TypeVar

Frozen = TypeVar("Frozen")
READ_ONLY = {"read_only": True}
"""Metadata of a field that holds an array, or None: a view that cannot be written to."""


def quick_init(cls: type[Frozen]) -> type[Frozen]:
    """Give a frozen dataclass without slots an `__init__` that writes all fields at once, into the object's dictionary.

    That of `dataclasses` calls ``object.__setattr__`` for every field, which takes four times as long, and a small fit
    makes ninety. Arguments, defaults and ``__post_init__`` are as they were, and a field that is set later is an error.
    Arrays in fields with the metadata `READ_ONLY` become views that cannot be written to.
    """
    made: Any = cls.__init__
    code = made.__code__
    names = code.co_varnames[1 : code.co_argcount]
    own = {one.name: one.default_factory for one in fields(cls)}  # type: ignore[arg-type]
    factories = {f"made_{name}": own[name] for name in names if own[name] is not MISSING}
    unset = dict(zip(reversed(names), reversed(made.__defaults__ or ())))
    lines = [f"def __init__(self, {', '.join(names)}):"]
    lines += [f" if {name} is unset['{name}']: {name} = made_{name}()" for name in names if f"made_{name}" in factories]
    for one in fields(cls):  # type: ignore[arg-type]
        if READ_ONLY.items() <= one.metadata.items():
            view = f"{one.name} = {one.name}.view(); {one.name}.flags.writeable = False"
            lines.append(f" if {one.name} is not None: {view}")
    lines.append(f" self.__dict__.update({', '.join(f'{name}={name}' for name in names)})")
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    space: dict[str, Any] = {"unset": unset, **factories}
    exec("\n".join(lines), space)
    init = space["__init__"]
    init.__defaults__, init.__annotations__ = made.__defaults__, made.__annotations__
    init.__qualname__, init.__module__ = made.__qualname__, cls.__module__
    cls.__init__ = init  # type: ignore[method-assign]
    return cls
