"""Rows whose classes a kernel tells apart, and limits of `decomposition` for small problems."""

from __future__ import annotations

import time

import numpy as np

from mdlearn.solvers.decomposition import growth, rounds


def data(m=700, d=4, seed=0, noise=0.6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) + 2.0
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] - 2.0 + noise * rng.standard_normal(m) > 0, 1, -1)
    return X, y


def make_small(monkeypatch):
    """Set limits low enough that some hundred rows go through parts and working sets."""
    monkeypatch.setattr(growth, "FIRST_PART_ROWS", 60)
    limits = {"LEAST_WORKING_ROWS": 40, "MOST_WORKING_ROWS": 120, "WHOLE_WORKING_ROWS": 0, "KEPT_VALUES_ROWS": 0}
    for name, n in limits.items():
        monkeypatch.setattr(rounds, name, n)


def counted_rounds(monkeypatch):
    """Return a list that gets the number of rows of every round."""
    sizes, climb = [], rounds.DecompositionRounds.climb_once

    def counted(self):
        sizes.append(self.u.shape[0])
        return climb(self)

    monkeypatch.setattr(rounds.DecompositionRounds, "climb_once", counted)
    return sizes


def slow_rounds(monkeypatch):
    """Make rounds so slow that a fast machine does not come to their end before a limit."""
    climb = rounds.DecompositionRounds.climb_once

    def slowly(self):
        time.sleep(0.05)
        return (yield from climb(self))

    monkeypatch.setattr(rounds.DecompositionRounds, "climb_once", slowly)
