"""Features of rows that come in blocks: landmarks and approximate kernels, found on a sample; and stochastic epochs."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.data.row_blocks import sample

L3 = {
    "plain": {},
    "squared": {"loss": "squared_hinge"},
    "rbf": {"projection": "rbf", "n_landmarks": 15, "n_clusters": 4},
    "soft": {"membership": "soft"},
    "smooth": {"smoothness": 0.5},
    "pca": {"landmark_selection": "pca", "n_landmarks": 3},
    "k-means": {"landmark_selection": "kmeans", "n_landmarks": 12, "n_clusters": 3},
}


def rows(m=700, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    f = X[:, 0] * X[:, 1] + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k))


def cut(X, y, *rest, ends=(0, 100, 100, 101, 450, 700)):
    return [tuple(a[i:j] for a in (X, y, *rest)) for i, j in pairwise(ends)]


def same(one, other, tol=1e-8):
    a, b = one.certificate.objective, other.certificate.objective
    assert one.certificate.converged and abs(a - b) <= tol * abs(b)
    assert one.certificate.lower_bound <= a


# ---------------------------------------------------------------- landmarks


@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("case", L3)
def test_the_l3svm_of_the_fit_in_memory(case, bias):
    """Where all rows are in the sample, clusters and landmarks are the same, too."""
    X, y = rows()
    given = {"bias": bias, "tol": 1e-10, **L3[case]}
    streamed, held = mdlearn.fit("l3svm", cut(X, y), None, **given), mdlearn.fit("l3svm", X, y, **given)
    same(streamed, held)
    assert np.array_equal(streamed.landmarks_, held.landmarks_) and np.array_equal(streamed.centers_, held.centers_)
    assert streamed.coef_.shape == held.coef_.shape and streamed.n_features_in_ == 4
    assert np.allclose(streamed.decision_function(X), held.decision_function(X), atol=1e-3)


def test_several_classes_weights_and_sparse_rows():
    X, y = rows(k=3)
    X = np.where(np.random.default_rng(1).random(X.shape) < 0.7, X, 0.0)
    w = np.random.default_rng(2).integers(0, 3, 700)
    given = {"tol": 1e-9, "n_clusters": 3, "class_weight": "balanced"}
    streamed = mdlearn.fit("l3svm", cut(sp.csr_matrix(X), y, w), None, **given)
    same(streamed, mdlearn.fit("l3svm", X, y, sample_weight=w, **given))


def test_given_points(tmp_path):
    X, y = rows()
    given = {"centers": X[:3], "landmarks": X[3:9], "tol": 1e-9}
    streamed = mdlearn.fit("l3svm", cut(X, y), None, **given)
    same(streamed, mdlearn.fit("l3svm", X, y, **given))
    streamed.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), streamed.decision_function(X))


def test_a_sample_of_the_rows(monkeypatch):
    """Few rows are kept, whatever the blocks are; the problem over their landmarks is solved for all rows."""
    monkeypatch.setattr(sample, "MOST_ROWS", 60)
    X, y = rows()
    streamed = mdlearn.fit("l3svm", cut(X, y), None, tol=1e-9, n_clusters=4)
    held = mdlearn.fit("l3svm", X, y, tol=1e-9, centers=streamed.centers_, landmarks=streamed.landmarks_)
    same(streamed, held)
    assert all((X == point).all(axis=1).any() for point in streamed.landmarks_)
    again = mdlearn.fit("l3svm", cut(X, y), None, tol=1e-9, n_clusters=4)
    assert np.array_equal(again.coef_, streamed.coef_)
    other = mdlearn.fit("l3svm", cut(X, y), None, tol=1e-9, n_clusters=4, random_state=1)
    assert not np.array_equal(other.landmarks_, streamed.landmarks_)


def test_rows_of_a_sample_are_drawn_alike():
    counts = np.zeros(40)
    for seed in range(400):
        parts = []
        for number in range(4):
            X = np.arange(10.0 * number, 10.0 * number + 10)[:, None]
            block = sample.Block(sample.DenseRows(X), np.zeros(10, dtype=int), np.ones(10), number)
            parts.append(sample.DrawRowBlockSample(seed, 8)(block)["sample"])
        drawn = ((parts[0] + parts[1]) + (parts[2] + parts[3])).X.block(slice(None)).ravel().astype(int)
        assert drawn.shape == (8,) and (np.diff(drawn) > 0).all()
        counts[drawn] += 1
    assert abs(counts - 80).max() < 5 * np.sqrt(80 * 0.8)


@pytest.mark.parametrize("given", [{"n_levels": 2}, {"kernel": "rbf"}])
def test_what_the_l3svm_refuses(given):
    with pytest.raises(ValueError, match=r"give n_levels=1|row blocks need kernel='linear'"):
        mdlearn.fit("l3svm", cut(*rows()), None, **given)


# ---------------------------------------------------------------- approximate kernels


@pytest.mark.parametrize("how", ["nystroem", "landmarks"])
@pytest.mark.parametrize("name", ["ldm", "svm", "lsvm", "uldm", "lssvm", "mdlm"])
def test_approximate_kernels(name, how):
    X, y = rows()
    given = {"kernel": "rbf", "approximation": how, "n_components": 30, "tol": 1e-10, "multiclass": "ovr"}
    streamed, held = mdlearn.fit(name, cut(X, y), None, **given), mdlearn.fit(name, X, y, **given)
    same(streamed, held)
    assert np.array_equal(streamed.landmarks_, held.landmarks_)
    assert streamed.approximation == how and streamed.kernel.name == "rbf"
    assert np.isclose(streamed.params["gamma"], held.params["gamma"], rtol=1e-12)


def test_gamma_is_that_of_all_rows(monkeypatch):
    monkeypatch.setattr(sample, "MOST_ROWS", 60)
    X, y = rows()
    X[:, 0] += 40.0
    given = {"kernel": "rbf", "approximation": "nystroem", "n_components": 10}
    for blocks in (cut(X, y), cut(sp.csr_matrix(X), y)):
        streamed = mdlearn.fit("svm", blocks, None, **given)
        assert np.isclose(streamed.params["gamma"], 1.0 / (4 * X.var()), rtol=1e-9)


@pytest.mark.parametrize("given", [{"objective": "l3svm"}, {"objective": "svm", "approximation": "nystroem"}])
def test_checkpoints(given, tmp_path):
    X, y = rows()
    if "approximation" in given:
        given = {**given, "kernel": "rbf", "n_components": 20}
    given = {**given, "tol": 1e-9}
    whole = mdlearn.fit(X=cut(X, y), y=None, **given)
    for passes in range(1, whole.n_iter + 1):
        kept = mdlearn.RowBlocks(cut(X, y), checkpoint=tmp_path / f"{passes}.npz")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mdlearn.fit(X=kept, y=None, max_iter=passes, **given)
        again = mdlearn.fit(X=kept, y=None, **given)
        assert np.array_equal(again.coef_, whole.coef_) and again.certificate == whole.certificate
    with pytest.raises(ValueError, match="belongs to another fit: its random_state"):
        mdlearn.fit(X=kept, y=None, random_state=5, **given)


def test_a_checkpoint_of_other_points_is_refused(tmp_path):
    X, y = rows()
    kept = mdlearn.RowBlocks(cut(X, y), checkpoint=tmp_path / "fit.npz")
    mdlearn.fit("l3svm", kept, None, landmarks=X[:300])
    other = X[:300].copy()
    other[150, 2] += 1.0  # where repr shows nothing
    with pytest.raises(ValueError, match="belongs to another fit: its landmarks"):
        mdlearn.fit("l3svm", kept, None, landmarks=other)


# ---------------------------------------------------------------- stochastic epochs


@pytest.mark.parametrize("solver, most", [("asgd", 1.02), ("sgd", 1.1)])
@pytest.mark.parametrize("name", ["ldm", "svm", "lsvm", "lssvm", "l2lr", "mdlm"])
def test_stochastic_epochs(name, solver, most):
    X, y = rows(3000)
    weight = {"lsvm": {"nu": 0.1}, "l2lr": {}, "mdlm": {"ridge": 0.1}}.get(name, {"C": 0.1})
    given = {"bias": "regularized", **weight}
    blocks = cut(X, y, ends=(0, 1000, 1000, 2000, 3000))
    streamed = mdlearn.fit(name, blocks, None, solver=solver, **given)
    exact = mdlearn.fit(name, X, y, **given)
    assert streamed.solver == solver and streamed.n_iter == 5
    assert exact.certificate.lower_bound <= streamed.certificate.objective <= most * exact.certificate.objective
    assert streamed.certificate.lower_bound <= exact.certificate.objective
    # The objective is that of the coefficients, over all rows.
    again = mdlearn.fit(name, blocks, None, solver=solver, **given)
    assert np.array_equal(again.coef_, streamed.coef_)


def test_more_epochs_come_nearer_and_say_so():
    X, y = rows(3000)
    blocks = cut(X, y, ends=(0, 1000, 2000, 3000))
    given = {"solver": "asgd", "C": 0.01}
    gaps = [
        mdlearn.fit("ldm", blocks, None, solver_options={"epochs": epochs}, **given).certificate.gap
        for epochs in (1, 30)
    ]
    assert gaps[1] < 0.5 * gaps[0]
    with pytest.warns(mdlearn.ConvergenceWarning, match="solver 'asgd' over row blocks stopped"):
        mdlearn.fit("ldm", blocks, None, tol=1e-6, **given)


def test_stochastic_checkpoints_and_limits(tmp_path):
    X, y = rows(k=3)
    given = {"solver": "asgd", "solver_options": {"epochs": 4}}
    whole = mdlearn.fit("ldm", cut(X, y), None, **given)

    def killed():
        for number, block in enumerate(cut(X, y)):
            killed.read += 1
            if killed.read > 5 * killed.passes + 3:
                raise RuntimeError(f"killed at block {number}")
            yield block

    for passes in range(1, 5):
        path = tmp_path / f"{passes}.npz"
        killed.read, killed.passes = 0, passes
        with pytest.raises(RuntimeError, match="killed"):
            mdlearn.fit("ldm", mdlearn.RowBlocks(killed, checkpoint=path), None, **given)
        again = mdlearn.fit("ldm", mdlearn.RowBlocks(cut(X, y), checkpoint=path), None, **given)
        assert np.array_equal(again.coef_, whole.coef_) and again.certificate == whole.certificate
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 2 reached"):
        assert mdlearn.fit("ldm", cut(X, y), None, max_iter=2, **given).n_iter == 2
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        stopped = mdlearn.fit("ldm", cut(X, y), None, time_limit=0.0, **given)
    assert stopped.n_iter == 0 and not stopped.coef_.any()


def test_what_stochastic_epochs_refuse():
    blocks = cut(*rows())
    with pytest.raises(ValueError, match=r"solver 'asgd' cannot take this problem: .*bias='free'"):
        mdlearn.fit("lssvm", blocks, None, solver="asgd")
    with pytest.raises(ValueError, match="takes rows of blocks as they are"):
        mdlearn.fit("l3svm", blocks, None, solver="asgd")
    with pytest.raises(ValueError, match="the steps diverge with eta0=1e"):
        mdlearn.fit("lsvm", blocks, None, solver="sgd", solver_options={"eta0": 1e80})


@pytest.mark.slow
def test_wide_rows_need_no_square_matrix(monkeypatch):
    """As many columns as make d x d numbers impossible."""
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 4e9)
    rng = np.random.default_rng(0)
    X = sp.random(300, 40_000, density=1e-3, format="csr", random_state=0)
    y = np.asarray(X[:, :20_000].sum(axis=1)).ravel() > np.asarray(X[:, 20_000:].sum(axis=1)).ravel()
    y ^= rng.random(300) < 0.05
    blocks = [(X[:150], y[:150]), (X[150:], y[150:])]
    with pytest.raises(mdlearn.InsufficientMemory, match="solver='asgd'"):
        mdlearn.fit("svm", blocks, None)
    model = mdlearn.fit("svm", blocks, None, solver="asgd", solver_options={"epochs": 20})
    assert model.score(X, y) > 0.9
