"""What engines ask for before they begin is what a fit takes of memory at the most."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import random as sparse_random

import mdlearn
from mdlearn.data.rows.rows import BLOCK_ENTRIES
from mdlearn.numerics import memory

ENGINES = {
    "uldm": ("direct", "newton"),
    "lsldm": ("direct", "newton"),
    "lssvm": ("direct", "cd"),
    "lsvm": ("newton", "decomposition"),
    "svm": ("interior", "cd", "decomposition"),
    "ldm": ("interior", "cd", "decomposition"),
}
M = 1500


def taken_and_asked(monkeypatch, fit):
    """Most bytes at the same time, and bytes that were asked for."""
    asked, require = [], memory.require

    def noted(size, *about):
        asked.append(size)
        require(size, *about)

    monkeypatch.setattr(memory, "require", noted)
    tracemalloc.start()
    try:
        fit()
        return tracemalloc.get_traced_memory()[1], sum(asked)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("objective", "solver"), [(o, s) for o, all_of in ENGINES.items() for s in all_of])
def test_no_engine_takes_more_than_a_tenth_beyond_what_it_asks_for(monkeypatch, objective, solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, 10))
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(M))
    mdlearn.fit(objective, X[:40], y[:40], kernel="rbf", solver=solver)  # imports are no part of it
    taken, asked = taken_and_asked(
        monkeypatch, lambda: mdlearn.fit(objective, X, y, kernel="rbf", solver=solver, tol=0.5)
    )
    assert taken < 1.1 * asked + 8.0 * BLOCK_ENTRIES  # and one block of rows


def test_a_face_over_both_multipliers_of_a_row_is_asked_for(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((M, 800))
    y = np.sign(X[:, 0] + 0.3 * rng.standard_normal(M))
    mdlearn.fit("svr", X[:40], y[:40], solver="cd")
    taken, asked = taken_and_asked(monkeypatch, lambda: mdlearn.fit("svr", X, y, solver="cd", tol=0.5))
    assert taken < 1.1 * asked


def test_sweeps_over_sparse_rows_need_no_cache():
    """More columns than rows, and more rows than go through a Gram matrix."""
    X = sparse_random(2300, 2600, 0.002, random_state=0, format="csr")
    y = np.where(np.arange(2300) % 2, 1.0, -1.0)
    options = {"cache": memory.LEAST_CACHE_BYTES}
    model = mdlearn.fit("svm", X, y, solver="cd", solver_options=options, max_iter=1, tol=0.9)
    assert np.isfinite(model.certificate.objective)
