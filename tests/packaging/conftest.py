"""Fixtures of the tests of benchmarks."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "asv_bench"


@pytest.fixture(scope="module")
def bench():
    """The benchmarks and the programs beside them, as asv and they themselves import each other."""
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))


@pytest.fixture
def process():
    """A process of its own, as each benchmark has, which may filter warnings."""
    with warnings.catch_warnings():
        yield
