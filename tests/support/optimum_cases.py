"""Overlapping classes, and fits by every engine that takes them, for the tests against reference.py."""

from __future__ import annotations

import warnings

import numpy as np
from judging import engine_names

import mdlearn

BIASES = ("none", "regularized", "free")


def overlapping(m=40, d=4, seed=0, share=0.5):
    """Two overlapping classes with labels -1/+1, both present."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(m) < share, 1, -1)
    y[:2] = 1, -1
    return rng.standard_normal((m, d)) + 0.7 * y[:, None] / np.sqrt(d), y


def must_accept(solver, kernel, bias):
    """What the contract promises; an engine may decline the rest with an error that names engines which can."""
    if solver == "auto":
        return True
    if solver == "cd":
        return bias in ("none", "regularized")
    return solver == "interior" and kernel == "linear"


def fits_of(X, y, settings, weight=None, **more):
    """(engine asked for, model, whether it warned) per engine that takes the case, 'auto' first."""
    found = []
    given = {key: value for key, value in settings.items() if key != "objective"}
    for solver in ("auto", *engine_names()):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("error")
            warnings.simplefilter("always", mdlearn.ConvergenceWarning)
            try:
                model = mdlearn.fit(
                    settings.get("objective", "ldm"), X, y, solver=solver, sample_weight=weight, **given, **more
                )
            except ValueError as error:
                if must_accept(solver, settings.get("kernel", "linear"), settings["bias"]):
                    raise
                assert solver in str(error) and "use one of" in str(error), f"a refusal names who can: {error}"
                continue
        if solver != "auto":
            assert model.solver == solver
        assert bool(caught) != model.certificate.converged, "a warning exactly when the gap is above tol"
        found.append((solver, model, bool(caught)))
    assert len(found) >= 2, "auto and at least one named engine"
    return found
