"""Lazy properties, computed once per object."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from mdlearn._solvers.lazy_descriptor import LazyDescriptor

Value = TypeVar("Value")


class kept(LazyDescriptor, Generic[Value]):
    """Lazy property: computed when it is first asked for, and kept in the object.

    `functools.cached_property` does the same and, before Python 3.12, holds a lock of the class meanwhile: a process
    that is forked in that moment waits for it forever, and threads with objects of their own wait for each other.
    """

    def __init__(self, make: Callable[[Any], Value]) -> None:
        super().__init__(make)
        self.__doc__ = make.__doc__

    if TYPE_CHECKING:

        @overload
        def __get__(self, instance: None, owner: type) -> kept[Value]: ...

        @overload
        def __get__(self, instance: object, owner: type) -> Value: ...

        def __get__(self, instance: Any, owner: type) -> Any: ...
