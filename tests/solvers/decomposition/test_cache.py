"""`cache` bounds what kernel engines without a matrix keep: small ones end exactly, or one sentence says why not."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from decomposition_cases import data

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.numerics import memory, pivoted_cholesky

ENGINES = {"svm": "decomposition", "lsvm": "decomposition", "ldm": "decomposition", "lssvm": "newton-cg"}
KERNEL = {"kernel": "rbf", "gamma": 0.3}


def seen_ranks(monkeypatch):
    """Ranks of the partial factors that fits make."""
    ranks, draw = [], pivoted_cholesky.randomly_pivoted_cholesky

    def seen(columns, diagonal, rank, *others):
        ranks.append(rank)
        return draw(columns, diagonal, rank, *others)

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
@pytest.mark.parametrize("engine", ["its own", "auto"])
def test_a_cache_without_bound_is_one(objective, engine):
    X, y = data(m=50)
    solver = ENGINES[objective] if engine == "its own" else engine
    model = mdlearn.fit(objective, X, y, solver=solver, solver_options={"cache": np.inf}, **KERNEL)
    assert model.certificate.converged


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


def gap_outside(objective, model, X, y, C):
    """Relative gap of a model's coefficients and multipliers by the printed sums, with the whole kernel matrix."""
    K, m = np.exp(-0.3 * np.square(X[:, None] - X).sum(axis=2)) + 1.0, X.shape[0]
    alpha = model.dual_coef_[0]
    f, beta = K @ alpha, model.duals[0].ravel()[:m]
    z, norm = y * f, 0.5 * float(alpha @ K @ alpha)
    if objective == "svm":
        assert ((beta >= 0) & (beta <= C)).all()
        return (norm + C * np.maximum(0, 1 - z).sum()) / (beta.sum() - norm) - 1
    return (norm + C * np.square(np.maximum(0, 1 - z)).sum()) / (beta.sum() - norm - (beta**2).sum() / (4 * C)) - 1


@pytest.mark.parametrize("objective", ["svm", "lsvm"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_a_small_one_chooses_an_engine_that_ends_exactly(objective, C):
    """A matrix of all rows would take seven times as much: the optimum is that of sums computed outside."""
    X, y = data(m=1500)
    y = np.where(y > 0, 1.0, -1.0)
    given = {"bias": "regularized", "tol": 1e-5, **KERNEL} | ({"C": C} if objective == "svm" else {"nu": 2 * C})
    model = mdlearn.fit(objective, X, y, solver_options={"cache": 2.5e6}, **given)
    assert model.solver == "decomposition" and model.certificate.converged
    assert 0 <= gap_outside(objective, model, X, y, C) <= 1.01e-5


@pytest.mark.parametrize("objective, whole", [("svm", "cd"), ("lssvm", "direct")])
def test_the_choice_is_among_engines_that_keep_to_it(objective, whole):
    X, y = data(m=1200)
    for options, solver in ((None, whole), ({"cache": 1e6}, ENGINES[objective])):
        model = mdlearn.fit(objective, X, y, solver_options=options, tol=1e-3, **KERNEL)
        assert model.solver == solver and model.certificate.converged
    assert mdlearn.fit("svm", X, y, solver_options={"cache": 1e9}, tol=1e-3, **KERNEL).solver == "cd"


def test_nobody_goes_on_with_a_whole_matrix(monkeypatch):
    """Engines that go on where one ended without the gap asked for know no such bound, so they are not asked."""
    X, y = data(m=400)
    monkeypatch.setattr(KernelFeatures, "gram", lambda self: pytest.fail("the whole matrix was asked for"))
    with pytest.warns(mdlearn.ConvergenceWarning):
        mdlearn.fit("svm", X, y, C=1e3, solver_options={"cache": 1e6}, tol=1e-15, **KERNEL)


@pytest.mark.parametrize("objective", ["svm", "ldm"])
def test_one_too_small_for_a_whole_matrix_is_one_sentence(objective):
    X, y = data(m=1500)
    given = {"solver": "cd", "tol": 1e-3, **KERNEL}
    with pytest.raises(
        ValueError, match=r"^solver option cache=1e\+07 is too small for the matrices of 1500 rows"
    ) as told:
        mdlearn.fit(objective, X, y, solver_options={"cache": 1e7}, **given)
    needed = float(re.search(r"need (\d+) bytes", str(told.value))[1])
    assert needed >= 8 * 1500**2
    assert mdlearn.fit(objective, X, y, solver_options={"cache": needed}, **given).certificate.converged
    with pytest.raises(ValueError, match="is too small"):
        mdlearn.fit(objective, X, y, solver_options={"cache": needed - 1}, **given)


def test_options_that_no_claimant_knows_are_those_of_the_chosen_one():
    X, y = data(m=60)
    with pytest.raises(ValueError, match=r"^solver 'hybrid' has no option 'epochs'"):
        mdlearn.fit("svm", X, y, solver_options={"epochs": 2})


LIMITED = """
import re, resource, sys, warnings
import numpy as np, mdlearn
from mdlearn.numerics import memory
objective, engine, cache, times = sys.argv[1], sys.argv[2], float(sys.argv[3]), float(sys.argv[4])
warnings.simplefilter("error")
rng = np.random.default_rng(0)
m = int(sys.argv[5])
X = rng.uniform(0.0, 4.0, (m, 2))
y = np.where(X.astype(int).sum(axis=1) % 2 == 0, 1.0, -1.0) * np.where(rng.random(m) < 0.05, -1.0, 1.0)
given = {"kernel": "rbf", "gamma": 2.0, "solver": engine, "tol": 1e-3, "bias": "regularized"}
mdlearn.fit(objective, X[:300], y[:300], **given)  # modules, buffers of BLAS
asked = []
memory.available_bytes = lambda: float("inf")
ask = memory.require

def limit(n_bytes, what, *others):
    if "solver" in what or "kernel problem" in what:
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
    fit_within(objective, ENGINES[objective], max(cache, 3e7) if objective == "ldm" else cache, 9000)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="RLIMIT_AS and /proc")
@pytest.mark.parametrize("objective", ["svm", "lsvm", "ldm"])
def test_the_memory_that_whole_matrices_are_asked_for_is_enough(objective):
    fit_within(objective, "cd", 1e9, 2500)


def fit_within(objective, engine, cache, m):
    """Fit in a process with one and a half times the memory as address space that is asked for."""
    call = [sys.executable, "-c", LIMITED, objective, engine, repr(cache), "1.5", str(m)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    asked, converged, gap = done.stdout.split()
    assert int(asked) >= 1 and converged == "True" and float(gap) <= 1e-3
