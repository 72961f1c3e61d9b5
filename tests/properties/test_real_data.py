"""Every binary set of the shared folder: a proven gap, checked outside the library."""

from __future__ import annotations

import tracemalloc

import data
import numpy as np
import pytest
from reference import dual_value, gram, linear_objective
from reference_qp import objective

import mdlearn

NAMES = data.binary_names() or ["absent"]
LAMBDA = 2.0**-4
GIVEN = {"C": 10.0, "lambda1": LAMBDA, "lambda2": LAMBDA, "bias": "none"}
SMALL = 3500  # rows of a kernel problem in the normal run


def prepared(name):
    if name == "absent":
        pytest.skip(f"no real data in {data.FOLDER} (set MDLEARN_SHARED)")
    return data.load(name)


def available_memory():
    try:
        with open("/proc/meminfo") as lines:
            sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}
        return sizes["MemAvailable"]
    except (OSError, KeyError):
        pytest.skip("the memory of this machine is not known")


def assert_proven(model, objective_value, bound, rows):
    certificate = model.certificate
    scale = max(abs(objective_value), 0.01 * GIVEN["C"] * rows)
    assert certificate.converged and certificate.gap <= 1e-6
    assert certificate.objective == pytest.approx(objective_value, rel=1e-10)
    assert certificate.lower_bound <= bound + 1e-9 * scale, "the multipliers do not prove that bound"
    assert (objective_value - bound) / scale <= 1e-6


def judge_linear(name):
    X, y = prepared(name)
    model = mdlearn.fit("ldm", X, y, **GIVEN)
    one = np.ones(len(y))
    value = linear_objective(X, y, model.coef_[0], 0.0, one, 10.0, LAMBDA, LAMBDA, "none")
    beta = model.duals[0]
    assert beta.min() >= 0 and beta.max() <= 10.0
    assert_proven(model, value, dual_value(beta, y, one, LAMBDA, LAMBDA, "none", X=X), len(y))
    return model


def judge_rbf(name):
    X, y = prepared(name)
    model = mdlearn.fit("ldm", X, y, kernel="rbf", gamma=1.0, **GIVEN)
    G = rbf(X)
    alpha = model.dual_coef_[0]
    f = G @ alpha
    one = np.ones(len(y))
    value = objective(y * f, alpha @ f, one, 10.0, LAMBDA, LAMBDA)
    beta = model.duals[0]
    assert beta.min() >= 0 and beta.max() <= 10.0
    assert_proven(model, value, dual_value(beta, y, one, LAMBDA, LAMBDA, "none", G=G), len(y))


def rbf(X):
    """exp(-|x - z|^2) in blocks; distances by differences of rows, without the cancellation of |x|^2 - 2xz + |z|^2."""
    return np.vstack([gram(X[i : i + 16], X, "rbf", 1.0, dtype=np.float64) for i in range(0, len(X), 16)])


@pytest.mark.parametrize("name", NAMES)
def test_linear(name):
    judge_linear(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rbf(name):
    X, _ = prepared(name)
    if len(X) > SMALL:
        pytest.skip(f"{name} has {len(X)} rows: see test_rbf_large")
    judge_rbf(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_rbf_large(name):
    X, y = prepared(name)
    if len(X) <= SMALL:
        pytest.skip(f"{name} has {len(X)} rows: see test_rbf")
    if 3 * 8 * len(X) ** 2 > available_memory() / 2:
        with pytest.raises(mdlearn.InsufficientMemory):
            mdlearn.fit("uldm", X, y, kernel="rbf", gamma=1.0, solver="direct")
        return
    judge_rbf(name)


def assert_refused_at_once(X, y, **given):
    """InsufficientMemory, with nothing of the size of a Gram matrix ever asked for."""
    calls = []

    def watch(state):
        calls.append(state)

    tracemalloc.start()
    try:
        with pytest.raises(mdlearn.InsufficientMemory) as caught:
            mdlearn.fit("uldm", X, y, callback=watch, **given)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert not calls
    assert peak < 10 * X.nbytes + 50e6, f"{peak / 1e6:.0f} MB were allocated on the way to the refusal"
    assert isinstance(caught.value, ValueError) and isinstance(caught.value, MemoryError)
    message = str(caught.value)
    assert "\n" not in message and any(word in message.lower() for word in ("memory", "gb", "gib", "bytes"))
    return message


@pytest.mark.parametrize("name", ["a9a", "ijcnn1"])
def test_too_many_rows_for_a_kernel(name):
    X, y = prepared(name)
    if 3 * 8 * len(X) ** 2 <= available_memory() / 2:
        pytest.skip("this machine has memory for three Gram matrices of that size")
    assert_refused_at_once(X, y, kernel="rbf", gamma=1.0, solver="direct")


def test_a_kernel_matrix_larger_than_the_memory_is_refused():
    """The same on a generated set, whatever the size of the machine: one Gram matrix alone takes all there is."""
    rows = int(np.sqrt(available_memory() / 8)) + 1000
    X = np.random.default_rng(0).standard_normal((rows, 1))
    y = np.where(X[:, 0] > 0, 1, -1)
    tracemalloc.start()
    try:
        with pytest.raises(mdlearn.InsufficientMemory) as caught:
            mdlearn.fit("ldm", X, y, kernel="rbf", gamma=1.0, bias="free", lambda1=1e-5, lambda2=1.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6
    assert "linear" in str(caught.value).lower(), "the message names an alternative"
