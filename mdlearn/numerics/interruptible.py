"""Generators that do work in interruptible pieces, and return what it comes to."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any


def finished(work: Generator[Any, Any, Any]) -> Any:
    """What interruptible work returns, done at once."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value
