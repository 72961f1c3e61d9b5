"""Generators that do work in interruptible pieces, and return what it comes to."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any


def finished(work: Generator[Any, Any, Any], look: Callable[[], Any] | None = None) -> Any:
    """Run interruptible work to its end and return its result; between its pieces it is told what `look` returns."""
    told = None
    while True:
        try:
            work.send(told)
        except StopIteration as done:
            return done.value
        told = None if look is None else look()
