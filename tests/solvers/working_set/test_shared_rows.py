"""Rows of a kernel's matrix that one class, or one point of a path, has computed are there for the others."""

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features import gram
from mdlearn.data.features.kernels import Kernel

K, GAMMA, DEFAULT_LENGTH = 4, 0.005, gram.SINGLE_ROW_LENGTH


@pytest.fixture
def entries(monkeypatch):
    """Kernel values that are computed, as a list of numbers."""
    made, tile = [], Kernel.tile

    def counted(self, *given):
        values = tile(self, *given)
        made.append(values.size)
        return values

    monkeypatch.setattr(Kernel, "tile", counted)
    monkeypatch.setattr(gram, "SINGLE_ROW_LENGTH", 48)  # products, not values that compiled loops make
    return made


def data(m=2000, d=60, seed=0):
    """Rows around K centres; some lie near another one. Values of so many columns are products."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=m)
    return 0.8 * rng.normal(size=(K, d))[y] + rng.normal(size=(m, d)), y


def count(entries, call):
    """Result of a call, and the number of kernel values that it took."""
    entries.clear()
    return call(), sum(entries)


def fit(X, y, **given):
    return mdlearn.fit("svm", X, y, **{"kernel": "rbf", "gamma": GAMMA, "tol": 1e-5, "solver": "cd", **given})


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_classes_share_rows(entries, bias):
    X, y = data()
    model, shared = count(entries, lambda: fit(X, y, bias=bias))
    assert model.certificate.converged
    alone = [count(entries, lambda k=k: fit(X, y == k, bias=bias)) for k in range(K)]
    assert shared < 0.7 * sum(number for _, number in alone)
    assert shared < 0.5 * X.shape[0] ** 2  # half of the matrix, which is symmetric
    f = model.decision_function(X)
    for k, (one, _) in enumerate(alone):
        assert f[:, k] == pytest.approx(one.decision_function(X), abs=0.02)
    objective = sum(one.certificate.objective for one, _ in alone)
    assert model.certificate.objective == pytest.approx(objective, rel=2e-5)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_points_of_a_path_share_rows(entries, bias):
    X, y = data(seed=1)
    given = {"kernel": "rbf", "gamma": GAMMA, "bias": bias, "tol": 1e-5, "solver": "cd"}
    values = [0.3, 1.0, 3.0, 10.0]
    path, shared = count(entries, lambda: mdlearn.fit_path("svm", X, y == 0, {"C": values}, **given))
    alone = [count(entries, lambda C=C: fit(X, y == 0, C=C, bias=bias)) for C in values]
    assert shared < 0.7 * sum(number for _, number in alone)
    assert shared < 0.5 * X.shape[0] ** 2
    for point, (one, _) in zip(path, alone):
        assert point.certificate.converged
        assert point.certificate.objective == pytest.approx(one.certificate.objective, rel=2e-5)


def test_threads_do_not_write_rows_of_each_other():
    """Classes that are solved at the same time have the whole matrix, to which nothing is added."""
    X, y = data(seed=2)
    one, *others = [fit(X, y, n_threads=2) for _ in range(3)]
    assert one.certificate.converged
    for other in others:
        assert np.array_equal(one.dual_coef_, other.dual_coef_)
    assert one.certificate.objective == pytest.approx(fit(X, y, n_threads=1).certificate.objective, rel=2e-5)


@pytest.mark.parametrize("C", [0.5, 20.0])
def test_pairs_of_classes_agree_with_libsvm(C):
    """Votes of pairs, equal ones by the sums of their values, as scikit-learn's SVC with break_ties."""
    svm = pytest.importorskip("sklearn.svm")
    X, y = data(m=2600, d=10, seed=3)
    new, _ = data(m=400, d=10, seed=4)
    model = fit(X, y, C=C, multiclass="ovo", bias="free", solver="auto", tol=1e-7)
    svc = svm.SVC(C=C, gamma=GAMMA, tol=1e-6, break_ties=True).fit(X, y)
    f = model.decision_function(new)
    assert f == pytest.approx(svc.decision_function(new), abs=1e-3)
    assert np.array_equal(model.predict(new), svc.predict(new))


@pytest.mark.parametrize("d", [49, 128])
def test_steps_over_up_to_128_columns_make_single_rows(d, entries, monkeypatch):
    """Most rows of the support are such: products make those alone that a working set adds."""
    monkeypatch.setattr(gram, "SINGLE_ROW_LENGTH", DEFAULT_LENGTH)
    X, y = data(m=1200, d=d, seed=5)
    signs, gamma = np.where(y < 2, -1.0, 1.0), 0.3 / d
    model, made = count(entries, lambda: fit(X, signs, gamma=gamma, bias="free", tol=1e-3))
    assert model.certificate.converged
    assert made < 0.5 * np.count_nonzero(model.dual_coef_) * X.shape[0]
    squares = (X * X).sum(axis=1)
    G = np.exp(-gamma * (squares[:, None] + squares - 2.0 * (X @ X.T)))
    alpha = model.dual_coef_[0]
    z = signs * (G @ alpha + model.intercept_[0])
    objective = 0.5 * alpha @ G @ alpha + np.maximum(0.0, 1.0 - z).sum()
    assert model.certificate.objective == pytest.approx(objective, rel=1e-10)
    assert abs(alpha).sum() - 0.5 * alpha @ G @ alpha >= objective * (1.0 - 1e-3)


def test_steps_on_a_whole_matrix_go_on_to_a_gap_of_one_in_a_thousand():
    """A further round costs more than these steps: one report is all that pairs of classes need."""
    X, y = data(m=600, d=10, seed=6)
    model = fit(X, y, gamma=0.05, multiclass="ovo", bias="free", solver="auto", tol=1e-3)
    assert model.certificate.converged and model.solver == "cd"
    assert model.n_iter == K * (K - 1) // 2
