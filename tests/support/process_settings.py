"""Settings of the process that all tests share, and how a test is seen to have changed them."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings

import numpy as np
import scipy.linalg  # SciPy brings a BLAS of its own
from threadpoolctl import ThreadpoolController

OF_OTHERS = {"PYTEST_CURRENT_TEST", "KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "_RJEM_MALLOC_CONF"}
"""What pytest, and scikit-learn and Polars on their import, set in the environment."""
OURS = {"mdlearn", *sys.stdlib_module_names}
FILTERS = "warning filters"
assert scipy.linalg
LIBRARIES = ThreadpoolController().select(user_api="blas").lib_controllers
"""Looked for once: it takes 10 ms, and asking each of them 1 microsecond."""
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
"""Processes among which pytest shares out the tests."""
BLAS_THREADS = [library.get_num_threads() for library in LIBRARIES]
"""What each has in a process of its own."""


class Settings:
    """What the settings are when this is made; a warning filter may name its module by text or by a pattern of it."""

    def __init__(self):
        self.modules = tuple(sys.modules)
        self.found = {
            "environment": {name: value for name, value in os.environ.items() if name not in OF_OTHERS},
            "BLAS threads": {library.filepath: library.get_num_threads() for library in LIBRARIES},
            "working folder": os.getcwd(),
            "NumPy's error state": {**np.geterr(), "call": np.geterrcall()},
            FILTERS: list(warnings.filters),
        }

    def put_back(self, but=()):
        """Set them again; return what was changed since, in words. Warning filters are pytest's to put back.

        Libraries add warning filters when they are first imported, in whichever test that is.
        """
        before, now = self.found, Settings()
        if before == now.found:  # as after nearly every test
            return []
        if any(name.partition(".")[0] not in OURS for name in {*now.modules}.difference(self.modules)):
            but = (*but, FILTERS)
        for found in (before, now.found):
            found[FILTERS] = [tuple(getattr(part, "pattern", part) for part in one) for one in found[FILTERS]]
        names = [name for name in before if before[name] != now.found[name] and name not in but]
        if names:
            for variable in now.found["environment"].keys() - before["environment"].keys():
                del os.environ[variable]
            os.environ.update(before["environment"])
            for library in LIBRARIES:
                library.set_num_threads(before["BLAS threads"][library.filepath])
            os.chdir(before["working folder"])
            state = dict(before["NumPy's error state"])
            np.seterrcall(state.pop("call"))
            np.seterr(**state)
        return [f"{name}: {told(before[name], now.found[name])}" for name in names]


def told(before, after):
    """The difference between two values; of dictionaries and lists, between the entries that differ."""
    if isinstance(before, dict):
        names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        before, after = ({name: given.get(name) for name in names} for given in (before, after))
    elif isinstance(before, list):
        gone, come = ([item for item in one if item not in other] for one, other in ((before, after), (after, before)))
        before, after = (gone, come) if gone or come else (before, after)
    return f"{before!r} became {after!r}"


def one_blas_thread():
    """One thread of BLAS for a reference's many small products: two wait for each other longer than they work."""
    return blas_threads([1] * len(LIBRARIES))


@contextlib.contextmanager
def blas_threads(numbers):
    """That many threads of each BLAS."""
    before = [library.get_num_threads() for library in LIBRARIES]
    try:
        for library, number in zip(LIBRARIES, numbers):
            library.set_num_threads(number)
        yield
    finally:
        for library, number in zip(LIBRARIES, before):
            library.set_num_threads(number)
