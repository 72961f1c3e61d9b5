"""Generators that do work in interruptible pieces, and return what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any, TypeVar

Beat = TypeVar("Beat")
Result = TypeVar("Result")


def finished(work: Generator[Any, Any, Any], look: Callable[[], Any] | None = None) -> Any:
    """Run interruptible work to its end and return its result; after each piece it receives what `look` returns."""
    told = None
    while True:
        try:
            work.send(told)
        except StopIteration as done:
            return done.value
        told = None if look is None else look()


def with_heartbeat(work: Generator[Any, Any, Result], beat: Beat) -> Generator[Beat, None, Result]:
    """Run interruptible work to its end, yield `beat` in the place of all that it yields, and return its result."""
    with closing(work):
        while True:
            try:
                next(work)
            except StopIteration as done:
                found: Result = done.value
                return found
            yield beat
