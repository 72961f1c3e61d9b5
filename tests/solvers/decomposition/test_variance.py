"""Decomposition beside a variance: optima of LDM beside engines with the whole matrix, memory, limits."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from decomposition_cases import counted_rounds, data, make_small, slow_rounds
from pairwise import pairs_first

import mdlearn
from mdlearn.data.features import kernel_features
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.numerics import pivoted_cholesky
from mdlearn.numerics.interruptible import finished
from mdlearn.solvers.decomposition import growth, rounds, variance
from mdlearn.solvers.decomposition.solver import DecompositionReporter
from mdlearn.solvers.decomposition.variance import VarianceRounds

WEIGHTS = [(0.25, 0.25), (175.0, 0.0), (1000.0, 10.0), (0.0, 5.0)]
"""lambda1 and lambda2; in the last pair the mean alone."""
BIASES = "none", "regularized", "free"


def without_optimum(weights, C, bias):
    """Whether a free bias has no variance beside it."""
    return bias == "free" and weights[0] == 0


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Limits low enough that some hundred rows go through parts and working sets."""
    make_small(monkeypatch)


@pytest.mark.parametrize(*pairs_first(without_optimum, weights=WEIGHTS, C=[0.02, 1.0, 100.0], bias=BIASES))
def test_the_optimum(weights, C, bias):
    X, y = data(m=400)
    given = {"C": C, "bias": bias, "kernel": "rbf", "gamma": 0.3, "lambda1": weights[0], "lambda2": weights[1]}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **given)
    for tol in (1e-2, 1e-7):
        model = mdlearn.fit("ldm", X, y, solver="decomposition", tol=tol, **given)
        told = model.certificate
        assert told.converged and told.gap <= tol
        assert told.lower_bound <= exact.certificate.objective * (1 + 1e-12)
        assert told.objective == pytest.approx(exact.certificate.objective, rel=1.1 * tol)


@pytest.mark.parametrize("columns", [150, 300, 700])
def test_a_factor_of_few_columns_leads_to_the_same_optimum(columns, monkeypatch):
    """What a factor leaves of the variance is found by products; with few columns it is most of it."""
    monkeypatch.setattr(pivoted_cholesky, "MOST_PIVOTS", columns)
    X, y = data()
    given = {"C": 1.0, "kernel": "rbf", "gamma": 1.0, "lambda1": 500.0}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **given)
    model = mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-6, **given)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=1.1e-6)
    np.testing.assert_allclose(model.decision_function(X), exact.decision_function(X), atol=2e-2)


@pytest.mark.parametrize("d", [4, 20])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_products_are_read_from_the_values_between_all_rows(bias, d, monkeypatch):
    """These are made once, before any part, and stand for all values in single precision; sets have less rows."""
    monkeypatch.setattr(rounds, "KEPT_VALUES_ROWS", 8000)
    X, y = data(d=d)
    given = {"C": 10.0, "bias": bias, "kernel": "rbf", "gamma": 1.0 / d, "lambda1": 20.0}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **given)
    sizes, errors, made = counted_rounds(monkeypatch), [], []
    product, add, block, blocks = VarianceRounds._product, KernelTiles.add, KernelTiles.block, []
    bound, sets = VarianceRounds.block, []

    def seen(self, index, room):
        blocks.append(len(index))
        return block(self, index, room)

    def seen_bound(self, index):
        sets.append(len(index))
        H = yield from bound(self, index)
        # What the bound is made of: kernel, constant, and the part of the factor.
        G = yield from block(self.columns, index, np.empty(len(index) ** 2, dtype=self.columns.dtype))
        part = yield from self.taken(index)
        expected = G + self.constant - (part * self.taken_signs) @ part.T
        np.testing.assert_allclose(H, expected, atol=1e-5 * np.abs(expected).max())
        return H

    def checked(self, coefficients):
        found, expected = (yield from product(self, coefficients)), np.zeros_like(coefficients)
        finished(add(self.columns, expected, np.arange(len(expected)), coefficients))
        errors.append(np.abs(found - expected).max() / np.abs(expected).max())
        return found

    def counted(self, out, index, coef):
        made.append(self.dtype)
        return add(self, out, index, coef)

    monkeypatch.setattr(VarianceRounds, "_product", checked)
    monkeypatch.setattr(KernelTiles, "add", counted)
    monkeypatch.setattr(KernelTiles, "block", seen)
    monkeypatch.setattr(VarianceRounds, "block", seen_bound)
    told = mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-6, **given).certificate
    assert told.converged and told.objective == pytest.approx(exact.certificate.objective, rel=1.1e-6)
    assert set(sizes) == {700} and np.float32 not in made and blocks == [700]
    assert sets and max(sets) < 700
    assert errors and max(errors) < 1e-5


@pytest.mark.parametrize("cache, whole", [(1e9, True), (2e6, False)])
def test_values_are_kept_within_the_cache(cache, whole, monkeypatch):
    monkeypatch.setattr(rounds, "KEPT_VALUES_ROWS", 8000)
    X, y = data()
    sizes = counted_rounds(monkeypatch)
    given = {"kernel": "rbf", "gamma": 0.3, "solver_options": {"cache": cache}, "tol": 1e-4}
    assert mdlearn.fit("ldm", X, y, solver="decomposition", **given).certificate.converged
    assert (len(set(sizes)) == 1) == whole


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix, lambda X: X.astype(np.float32), np.asfortranarray])
@pytest.mark.parametrize("kernel", [{"kernel": "rbf", "gamma": 0.4}, {"kernel": "poly", "gamma": 0.2, "coef0": 1.0}])
def test_the_certificate_is_that_of_the_whole_matrix(kernel, storage):
    """Objective from dual coefficients and the kernel matrix, and the least that it can be, outside the library."""
    X, y = data(m=400)
    counts = np.random.default_rng(3).integers(1, 4, 400).astype(float)
    rows = storage(X)
    given = {"C": 2.0, "lambda1": 30.0, "lambda2": 12.0, **kernel}
    # Coefficients in single precision lose up to 4e-5 of the value with this kernel, whatever the engine.
    tol = 1e-4 if rows.dtype == np.float32 else 1e-5
    model = mdlearn.fit("ldm", rows, y, sample_weight=counts, solver="decomposition", tol=tol, **given)
    assert model.certificate.converged
    X = np.asarray(rows.todense() if sp.issparse(rows) else rows, dtype=float)
    inner = X @ X.T
    square = np.diagonal(inner)
    if kernel["kernel"] == "rbf":
        G = np.exp(-kernel["gamma"] * (square[:, None] + square - 2.0 * inner))
    else:
        G = (kernel["gamma"] * inner + 1.0) ** 3
    alpha, b, total = model.dual_coef_[0].astype(float), float(model.intercept_[0]), counts.sum()
    z = y * (G @ alpha + b)
    mean = counts @ z / total
    value = 0.5 * alpha @ G @ alpha + 0.5 * b * b + 2.0 * counts @ np.maximum(0.0, 1.0 - z)
    value += 2.0 * 30.0 * (counts @ np.square(z - mean)) / total - 12.0 * mean
    single = X.dtype != np.float64 or sp.issparse(rows) or rows.dtype == np.float32
    assert value == pytest.approx(model.certificate.objective, rel=1e-5 if single else 1e-9)
    other = mdlearn.fit("ldm", np.repeat(X, counts.astype(int), axis=0), np.repeat(y, counts.astype(int)), **given)
    assert other.solver != "decomposition"
    assert abs(value - other.certificate.objective) <= (tol + 1e-5) * abs(value)


def test_classes_share_the_factor():
    X, y = data()
    y = y + (X[:, 2] > 2.5)
    model = mdlearn.fit("ldm", X, y, C=1.0, kernel="rbf", solver="decomposition", tol=1e-5)
    exact = mdlearn.fit("ldm", X, y, C=1.0, kernel="rbf", solver="cd", tol=1e-8)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=1e-5)
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.99


def test_the_same_seed_gives_the_same_bits():
    X, y = data()
    fits = [mdlearn.fit("ldm", X, y, kernel="rbf", solver="decomposition", tol=1e-4, random_state=s) for s in (1, 1, 2)]
    assert np.array_equal(fits[0].dual_coef_, fits[1].dual_coef_)
    assert not np.array_equal(fits[0].dual_coef_, fits[2].dual_coef_)


def test_a_start_saves_rounds(monkeypatch):
    X, y = data()
    given = {"kernel": "rbf", "solver": "decomposition", "tol": 1e-6}
    first = mdlearn.fit("ldm", X, y, C=1.0, **given)
    sizes = counted_rounds(monkeypatch)
    cold = mdlearn.fit("ldm", X, y, C=1.1, **given)
    n_cold = len(sizes)
    sizes.clear()
    warm = mdlearn.fit("ldm", X, y, C=1.1, warm_start=first, **given)
    assert set(sizes) <= {700} and len(sizes) < n_cold
    assert warm.certificate.objective == pytest.approx(cold.certificate.objective, rel=2e-6)


def test_what_it_refuses():
    X, y = data(m=60)
    with pytest.raises(ValueError, match="bias='free'"):
        mdlearn.fit("ldm", X, y, kernel="rbf", bias="free", lambda1=1e-5, solver="decomposition")


@pytest.mark.slow
def test_a_heavy_variance_beside_large_C():
    """kappa m = 15,625: a factor of columns in single precision left so much of the kernel that no round led on."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (3000, 2))
    y = np.where(np.sin(2.5 * X[:, 0]) * np.sin(2.5 * X[:, 1]) + 0.3 * rng.standard_normal(3000) > 0, 1, -1)
    given = {"C": 100.0, "lambda1": 3906.25, "lambda2": 0.0, "kernel": "rbf", "gamma": 2.0}
    weights = np.full(3000, 10000 / 3000)
    model = mdlearn.fit("ldm", X, y, sample_weight=weights, solver="decomposition", tol=1e-6, **given)
    assert model.certificate.converged


def test_limits_end_it_with_what_it_has(monkeypatch):
    X, y = data(m=2000)
    with monkeypatch.context() as slow:
        slow_rounds(slow)
        with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
            model = mdlearn.fit("ldm", X, y, C=100.0, kernel="rbf", solver="decomposition", tol=1e-12, time_limit=0.2)
    told = model.certificate
    assert told.lower_bound <= told.objective <= 2000 * 100.0
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter"):
        model = mdlearn.fit("ldm", X, y, kernel="rbf", solver="decomposition", tol=1e-10, max_iter=1)
    assert model.certificate.gap < 1.0


def test_nothing_lacking_is_no_error(monkeypatch):
    """Decision values that are exact already: conjugate gradients have nothing to divide by."""
    monkeypatch.setattr(variance, "SHRUNK_RESIDUAL", -1.0)
    seen = []

    def exactly(self, coefficients, exact):
        self.exact, self.exact_gap = self.f.copy(), self.gap
        seen.append(self)

    monkeypatch.setattr(variance.VarianceRounds, "refine", exactly)
    X, y = data()
    with pytest.warns(mdlearn.ConvergenceWarning) as caught:
        mdlearn.fit("ldm", X, y, kernel="rbf", solver="decomposition", tol=1e-13, max_iter=2)
    assert seen and "ended by" not in str(caught[0].message)


def test_precision_beyond_reach_ends():
    X, y = data()
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit("ldm", X, y, kernel="rbf", solver="decomposition", tol=1e-16)
    assert model.certificate.gap < 1e-9


def test_bounds_that_rise_and_fall_by_rounding_end(monkeypatch):
    """Rounds over float32 rows went up and down by 1e-12 for all of the 10,000 that a fit may take."""
    monkeypatch.undo()  # all rows are one working set
    rounds = counted_rounds(monkeypatch)
    X, y = np.zeros((10, 2), np.float32), np.array([0, 1, 1, 1, 0, 0, 0, 1, 0, 0])
    X[7, 1] = 4.0
    given = {"C": 0.7, "lambda1": 0.005, "kernel": "rbf", "bias": "none", "tol": 1e-9}
    weights = np.array([1.0, 1e-3, 3.0, 1.0, 3.0, 1.0, 1.0, 1.0, 3.0, 2.0])
    with pytest.warns(mdlearn.ConvergenceWarning, match="rounding"):
        mdlearn.fit("ldm", X, y, solver="decomposition", sample_weight=weights, **given)
    assert len(rounds) < 300


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_a_certificate_asks_for_the_product_of_the_report(bias, monkeypatch):
    """A product in double precision costs as much as three in single precision."""
    monkeypatch.setattr(kernel_features, "BLOCK_ENTRIES", 0)  # the whole matrix is more than one block
    products, reports = KernelFeatures.decided, DecompositionReporter.report
    made = {"products": 0, "reports": 0}

    def decided(self, coef):
        made["products"] += 1
        return products(self, coef)

    def report(self):
        made["reports"] += 1
        return reports(self)

    monkeypatch.setattr(KernelFeatures, "decided", decided)
    monkeypatch.setattr(DecompositionReporter, "report", report)
    X, y = data()
    given = {"C": 1.0, "bias": bias, "kernel": "rbf", "gamma": 0.3, "lambda1": 175.0}
    assert mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-5, **given).certificate.converged
    assert made["products"] == made["reports"] > 0


@pytest.mark.slow
def test_many_rows_need_no_matrix(monkeypatch):
    """8,200 rows: their matrix takes 538 MB."""
    monkeypatch.undo()
    X, y = data(m=8200, d=3)
    mdlearn.fit("ldm", X[:500], y[:500], kernel="rbf")
    tracemalloc.start()
    model = mdlearn.fit("ldm", X, y, C=1.0, kernel="rbf", tol=1e-3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.solver == "decomposition" and model.certificate.converged
    assert peak < 300e6
    assert mdlearn.fit("ldm", X[:1500], y[:1500], kernel="rbf", tol=1e-2).solver == "cd"


def test_a_free_bias_beside_a_class_of_two_rows(monkeypatch):
    """Most parts would hold one class alone, whose variance holds no bias."""
    monkeypatch.setattr(growth, "FIRST_PART_ROWS", 64)
    X, y = data(m=1024)
    y = np.where(np.arange(1024) % 512 == 7, 1, -1)
    given = {"C": 10.0, "bias": "free", "kernel": "rbf", "gamma": 0.3, "lambda1": 50.0}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-9, **given).certificate
    for seed in range(3):
        told = mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-6, random_state=seed, **given).certificate
        assert told.converged and told.lower_bound <= exact.objective * (1 + 1e-12), seed
        assert told.objective - exact.objective <= 1.1e-6 * 0.01 * 10.0 * 1024, seed  # a share of the value at w = 0


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_a_polynomial_kernel_of_rows_far_from_the_origin(bias):
    """Its factor tells all of the matrix, and the variance leaves less of it than its rounding to seven digits."""
    X, y = data(m=400, d=7)
    X = 0.01 * X + 3.0
    given = {"kernel": "poly", "degree": 1, "coef0": 1.0, "bias": bias, "C": 300.0, "lambda1": 180.0}
    exact = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-5, **given).certificate
    told = mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-4, time_limit=60.0, **given).certificate
    assert told.converged and told.lower_bound <= exact.objective * (1 + 1e-12)
    assert told.objective == pytest.approx(exact.objective, rel=1.2e-4)
