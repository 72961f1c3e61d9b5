"""Lazy properties, computed once per object."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


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
