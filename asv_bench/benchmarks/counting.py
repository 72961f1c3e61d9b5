"""Rows that compiled loops visit, counted at their door."""

import sys
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np

import mdlearn._solvers.cd
import mdlearn._solvers.centred
import mdlearn._solvers.sgd

LOOPS = (mdlearn._solvers.cd, mdlearn._solvers.centred, mdlearn._solvers.sgd)
"""Modules whose functions sweep_* and walk_* take the order of the visits as their last argument."""


@contextmanager
def visits():
    """Count visits of rows by sweeps and stochastic steps: one inner product each, and an update where one is due.

    Yields
    ------
    SimpleNamespace
        Its `rows` is the count so far.
    """
    count = SimpleNamespace(rows=0)
    put_back = []

    def counted(function):
        def call(*given):
            count.rows += np.size(given[-1])
            return function(*given)

        return call

    loops = [f for module in LOOPS for name, f in vars(module).items() if name.startswith(("sweep", "walk"))]
    try:
        for function in loops:
            # Wherever the package has bound it, by import or as a module's own.
            for name, module in list(sys.modules.items()):
                if name.startswith("mdlearn."):
                    for key in [key for key, value in vars(module).items() if value is function]:
                        put_back.append((module, key, function))
                        setattr(module, key, counted(function))
        yield count
    finally:
        for module, key, function in put_back:
            setattr(module, key, function)
