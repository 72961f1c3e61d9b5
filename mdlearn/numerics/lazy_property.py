"""Lazy properties, computed once per object, and frozen dataclasses whose fields are written all at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")
Frozen = TypeVar("Frozen")


class kept(Generic[Value]):
    """Lazy property: computed when it is first asked for, and kept in the object.

    `functools.cached_property` does the same and, before Python 3.12, holds a lock of the class meanwhile: a process
    that is forked in that moment waits for it forever, and threads with objects of their own wait for each other.
    """

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> kept[Value]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: Any, owner: type) -> Any:
        if instance is None:
            return self
        # No __set__: from now on the object's own dictionary answers.
        value = instance.__dict__[self.name] = self.make(instance)
        return value


def quick_init(cls: type[Frozen]) -> type[Frozen]:
    """Give a frozen dataclass without slots an `__init__` that writes all fields at once, into the object's dictionary.

    That of `dataclasses` calls ``object.__setattr__`` for every field, which takes four times as long, and a small fit
    makes ninety. Arguments, defaults and ``__post_init__`` are as they were, and a field that is set later is an error.
    """
    made: Any = cls.__init__
    code = made.__code__
    names = code.co_varnames[1 : code.co_argcount]
    own = {one.name: one.default_factory for one in fields(cls)}  # type: ignore[arg-type]
    factories = {f"made_{name}": own[name] for name in names if own[name] is not MISSING}
    unset = dict(zip(reversed(names), reversed(made.__defaults__ or ())))
    lines = [f"def __init__(self, {', '.join(names)}):"]
    lines += [f" if {name} is unset['{name}']: {name} = made_{name}()" for name in names if f"made_{name}" in factories]
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
