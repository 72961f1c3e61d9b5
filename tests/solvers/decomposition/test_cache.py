"""`cache` bounds what kernel engines without a matrix keep: small ones end exactly, or one sentence says why not."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from decomposition_cases import data

import mdlearn
from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.numerics import memory, pivoted_cholesky

ENGINES = {"svm": "decomposition", "lsvm": "decomposition", "ldm": "decomposition", "lssvm": "newton-cg"}
KERNEL = {"kernel": "rbf", "gamma": 0.3}


def seen_ranks(monkeypatch):
    """Ranks of the partial factors that fits make."""
    ranks, draw = [], pivoted_cholesky.randomly_pivoted_cholesky

    def seen(columns, diagonal, rank, rng):
        ranks.append(rank)
        return draw(columns, diagonal, rank, rng)

    monkeypatch.setattr(pivoted_cholesky, "randomly_pivoted_cholesky", seen)
    return ranks


@pytest.mark.parametrize("kernel", [KERNEL, {"kernel": "poly", "gamma": 0.2, "coef0": 1.0}])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_working_set_fits_into_it(C, kernel, monkeypatch):
    X, y = data(m=1200)
    sizes, block = [], KernelTiles.block

    def seen(self, index, room):
        sizes.append(room.nbytes)
        return block(self, index, room)

    monkeypatch.setattr(KernelTiles, "block", seen)
    given = {"C": C, "tol": 1e-5, "bias": "free", **kernel}
    model = mdlearn.fit("svm", X, y, solver="decomposition", solver_options={"cache": 1e6}, **given)
    assert 0 < max(sizes) <= 1e6 and model.certificate.converged
    exact = mdlearn.fit("svm", X, y, solver="interior", **given).certificate
    assert model.certificate.objective == pytest.approx(exact.objective, rel=2e-5)


def test_more_free_rows_than_a_working_set_has_are_left_to_newton(monkeypatch):
    X, y = data(m=1500, noise=1.5)
    ranks = seen_ranks(monkeypatch)
    given = {"nu": 20.0, "tol": 1e-6, **KERNEL}
    model = mdlearn.fit("lsvm", X, y, solver="decomposition", solver_options={"cache": 1e6}, **given)
    free = np.count_nonzero(model.duals)
    assert 4 * free**2 > 1e6 and model.certificate.converged
    assert len(ranks) == 1 and 8 * 1500 * ranks[0] <= 1e6, "the other engine has the same cache"
    exact = mdlearn.fit("lsvm", X, y, solver="interior", **given).certificate
    assert model.certificate.objective == pytest.approx(exact.objective, rel=2e-6)


@pytest.mark.parametrize("objective", ["ldm", "lssvm", "lsvm"])
def test_a_partial_factor_fits_into_it(objective, monkeypatch):
    X, y = data(m=2500)
    ranks, cache = seen_ranks(monkeypatch), 3e6
    given = {"tol": 1e-5, "bias": "regularized", **KERNEL}
    engine = "decomposition" if objective == "ldm" else "newton-cg"
    model = mdlearn.fit(objective, X, y, solver=engine, solver_options={"cache": cache}, **given)
    assert len(ranks) == 1 and 8 * 2500 * ranks[0] <= cache and model.certificate.converged


def test_a_cache_too_small_beside_a_variance_is_one_sentence():
    X, y = data(m=2500)
    with pytest.raises(ValueError, match=r"cache=1e\+06 is too small for a variance over 2500 rows") as told:
        mdlearn.fit("ldm", X, y, solver="decomposition", solver_options={"cache": 1e6}, **KERNEL)
    needed = float(re.search(r"needs (\d+) bytes", str(told.value))[1])
    mdlearn.fit("ldm", X, y, solver="decomposition", solver_options={"cache": needed}, tol=1e-3, **KERNEL)
    with pytest.raises(ValueError, match="is too small"):
        mdlearn.fit("ldm", X, y, solver="decomposition", solver_options={"cache": 0.9 * needed}, **KERNEL)


@pytest.mark.parametrize("engine, objective", [("decomposition", "svm"), ("newton-cg", "lssvm")])
def test_other_caches_are_no_caches(engine, objective):
    X, y = data(m=50)
    with pytest.raises(ValueError, match=r"solver option cache needs to be a number >= 1e\+06; got 10"):
        mdlearn.fit(objective, X, y, solver=engine, solver_options={"cache": 10}, **KERNEL)
    with pytest.raises(TypeError, match="solver option cache"):
        mdlearn.fit(objective, X, y, solver=engine, solver_options={"cache": "1 GB"}, **KERNEL)


@pytest.mark.parametrize("objective", ENGINES)
def test_memory_is_asked_for_by_the_cache(objective, monkeypatch):
    X, y = data(m=3000)
    monkeypatch.setattr(memory, "available_bytes", lambda: 6e7)
    given = {"solver": ENGINES[objective], "tol": 1e-2, "bias": "regularized", **KERNEL}
    with pytest.raises(
        mdlearn.InsufficientMemory, match=r"half of the available memory.*smaller solver_options=\{'cache'"
    ):
        mdlearn.fit(objective, X, y, **given)
    assert mdlearn.fit(objective, X, y, solver_options={"cache": 4e6}, **given).certificate.converged


LIMITED = """
import re, resource, sys, warnings
import numpy as np, mdlearn
from mdlearn.numerics import memory
objective, engine, cache, times = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
warnings.simplefilter("error")
rng = np.random.default_rng(0)
X = rng.uniform(0.0, 4.0, (9000, 2))
y = np.where(X.astype(int).sum(axis=1) % 2 == 0, 1.0, -1.0) * np.where(rng.random(9000) < 0.05, -1.0, 1.0)
given = {"kernel": "rbf", "gamma": 2.0, "solver": engine, "tol": 1e-3, "bias": "regularized"}
mdlearn.fit(objective, X[:300], y[:300], **given)  # modules, buffers of BLAS
asked = []
memory.available_bytes = lambda: float("inf")
ask = memory.require

def limit(n_bytes, what, *others):
    if "solver" in what:
        asked.append(n_bytes)
        used = int(re.search(r"VmSize:\\s*(\\d+)", open("/proc/self/status").read())[1]) * 1024
        resource.setrlimit(resource.RLIMIT_AS, (int(used + times * n_bytes), resource.RLIM_INFINITY))
    ask(n_bytes, what, *others)

memory.require = limit
told = mdlearn.fit(objective, X, y, solver_options={"cache": cache}, **given).certificate
print(len(asked), told.converged, told.gap)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS and /proc")
@pytest.mark.parametrize("objective", ENGINES)
@pytest.mark.parametrize("cache", [1e7, 4e7, 1e9])
def test_the_memory_that_is_asked_for_is_enough(objective, cache):
    """With half as much again as address space, no fit breaks; half of what there is may be asked for."""
    cache = max(cache, 3e7) if objective == "ldm" else cache
    call = [sys.executable, "-c", LIMITED, objective, ENGINES[objective], repr(cache)]
    done = subprocess.run([*call, "1.5"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    asked, converged, gap = done.stdout.split()
    assert int(asked) >= 1 and converged == "True" and float(gap) <= 1e-3
