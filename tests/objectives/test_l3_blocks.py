"""L3-SVM fits on rows of blocks: classes that share their first factor, one cluster, threads, interruption."""

from __future__ import annotations

import numpy as np
import pytest
from draining import drain
from l3 import block_features, problem

import mdlearn
from mdlearn.data.features.clustered_rows import BlockRows
from mdlearn.solvers.newton.solver import Newton
from mdlearn.solvers.systems import system_choice as system_choice


def several(m=150, seed=0):
    X, _, centers, landmarks = problem(m, seed=seed)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.3).astype(int)
    return X, y, centers, landmarks


def fitted(X, y, centers, landmarks, **settings):
    settings = {"loss": "squared_hinge", "tol": 1e-10, **settings}
    return mdlearn.fit("l3svm", X, y, centers=centers, landmarks=landmarks, **settings)


@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("K", [1, 4])
@pytest.mark.parametrize("C", [0.5, 1e3, 1e6])
def test_classes_end_where_the_gradient_of_the_written_objective_is_zero(C, K, bias):
    X, y, centers, landmarks = several()
    centers = centers[:K]
    weights = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
    model = fitted(X, y, centers, landmarks, C=C, bias=bias, sample_weight=weights)
    assert model.solver == "newton" and model.certificate.converged
    phi, m = block_features(X, centers, landmarks), weights.sum()
    for j, label in enumerate(model.classes_):
        signs = np.where(y == label, 1.0, -1.0)
        theta, b = model.coef_[j].ravel(), model.intercept_[j]
        pull = 2.0 * C / m * weights * signs * np.maximum(0.0, 1.0 - signs * (phi @ theta + b))
        size = np.abs(phi).T @ np.abs(pull) + np.abs(theta)
        assert np.abs(theta - phi.T @ pull).max() <= 1e-7 * size.max()
        assert abs((b if bias == "regularized" else 0.0) - pull.sum()) <= 1e-7 * (np.abs(pull).sum() + abs(b))


def test_one_cluster_is_the_linear_machine_on_projections():
    X, y, centers, landmarks = several()
    one = fitted(X, y, centers[:1], landmarks, C=30.0)
    plain = mdlearn.fit("lsvm", X @ landmarks.T, y, nu=2.0 * 30.0 / len(X), bias="regularized", tol=1e-10)
    assert one.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-9)
    assert np.allclose(one.decision_function(X), plain.decision_function(X @ landmarks.T), atol=1e-6)


def test_the_first_factor_is_made_once_and_is_no_other_answer(monkeypatch):
    X, y, centers, landmarks = several()
    made = []
    plain = system_choice.common_first_system_factor

    def counted(form):
        found = yield from plain(form)
        made.append(found)
        return found

    monkeypatch.setattr("mdlearn.solvers.newton.solver.common_first_system_factor", counted)
    shared = fitted(X, y, centers, landmarks, C=30.0)
    assert len(made) == 1 and made[0] is not None

    def nothing(form):
        return None
        yield

    monkeypatch.setattr("mdlearn.solvers.newton.solver.common_first_system_factor", nothing)
    alone = fitted(X, y, centers, landmarks, C=30.0)
    assert np.array_equal(shared.coef_, alone.coef_) and shared.n_iter == alone.n_iter


def test_classes_that_begin_differently_share_nothing():
    X, y, centers, landmarks = several()
    forms = []
    original = Newton.prepare

    def seen(self, form, options):
        forms.append(form)
        return (yield from original(self, form, options))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Newton, "prepare", seen)
        fitted(X, y, centers, landmarks, C=30.0)
        fitted(X, np.minimum(y, 1), centers, landmarks, C=30.0)
    several_classes, two_classes = forms
    assert isinstance(several_classes.features.rows, BlockRows)
    assert drain(system_choice.common_first_system_factor(several_classes))[1] is not None
    assert drain(system_choice.common_first_system_factor(two_classes))[1] is None


@pytest.mark.parametrize("K", [1, 4])
def test_threads_give_the_same_bits(K):
    X, y, centers, landmarks = several(400)
    runs = [fitted(X, y, centers[:K], landmarks, C=100.0, n_threads=2) for _ in range(2)]
    one = fitted(X, y, centers[:K], landmarks, C=100.0, n_threads=1)
    assert np.array_equal(runs[0].coef_, runs[1].coef_)
    assert np.allclose(runs[0].coef_, one.coef_, rtol=0, atol=1e-8 * np.abs(one.coef_).max())
