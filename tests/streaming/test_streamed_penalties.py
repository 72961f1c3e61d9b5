"""Penalties over row blocks: SMDLM with L1 and L2,1, against the fit in memory and the conditions of the optimum."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from mdlm_paper import fit_paper

import mdlearn
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.penalised.blocks import CoefficientBlocks
from mdlearn.objectives.base import Terms
from mdlearn.streaming.engines.penalised_model import (
    PenalisedModel,
    QuadraticSpectrum,
    minimise_penalised_model,
    stacked_columns,
)


def rows(m=600, d=6, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * np.exp(0.5 * rng.standard_normal(d)) + 0.3
    f = X[:, :2] @ np.array([1.0, -2.0]) + rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k))


def cut(X, y, *rest):
    ends = (0, 100, 100, 101, 350, 600)
    return [tuple(a[i:j] for a in (X, y, *rest)) for i, j in pairwise(ends)]


def finished(work):
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def same(one, other, tol=1e-8):
    a, b = one.certificate.objective, other.certificate.objective
    assert one.certificate.converged
    assert abs(a - b) <= tol * max(abs(b), 1e-3)
    assert one.certificate.lower_bound <= a


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("given", [{}, {"ridge": 0.1}, {"lambda1": 0.01}, {"lambda1": 4.0}])
@pytest.mark.parametrize("beta", [1e-3, 0.05, 0.3])
def test_two_classes(beta, given, bias):
    X, y = rows()
    given = {"beta": beta, "bias": bias, "tol": 1e-9, **given}
    streamed, held = fit_paper(cut(X, y), None, **given), fit_paper(X, y, **given)
    same(streamed, held)
    assert np.array_equal(streamed.coef_ != 0, held.coef_ != 0)
    assert streamed.n_iter <= 15


def test_rows_are_read_to_count_for_each_step_and_for_the_certificate():
    X, y = rows()
    reads = []

    def source():
        reads.append(None)
        return iter(cut(X, y))

    model = fit_paper(source, None, beta=0.05)
    assert model.certificate.converged and len(reads) == 1 + model.n_iter + 1


@pytest.mark.parametrize("way", ["joint", "ovr"])
@pytest.mark.parametrize("bias", ["none", "free"])
def test_several_classes(bias, way):
    X, y = rows(k=4)
    w = np.random.default_rng(1).integers(0, 3, 600)
    given = {"beta": 0.2, "bias": bias, "multiclass": way, "tol": 1e-9, "class_weight": "balanced"}
    streamed = fit_paper(cut(X, y, w), None, **given)
    held = fit_paper(X, y, sample_weight=w, **given)
    same(streamed, held)
    assert np.array_equal(streamed.coef_ != 0, held.coef_ != 0)
    assert np.allclose(streamed.decision_function(X), held.decision_function(X), atol=1e-3)
    if way == "joint":
        used = (streamed.coef_ != 0).any(axis=0)
        assert 0 < used.sum() < (6 if bias == "free" else 7)
        assert (streamed.coef_[:, used] != 0).all()


def test_the_conditions_of_the_optimum():
    """From the printed formula: |gradient_j| is beta where w_j is not 0, else at most beta."""
    X, y = rows()
    model = fit_paper(cut(X, y), None, beta=0.05, bias="free", tol=1e-12)
    s, w, b = np.where(y > 0, 1.0, -1.0), model.coef_[0], model.intercept_[0]
    z = s * (X @ w + b)
    slopes = -1.0 / (1.0 + np.exp(5.0 * (z - 1.0))) / 600 + 2.0 * (z - z.mean()) / 600 - 0.125 / 600
    gradient = X.T @ (s * slopes)
    on = w != 0
    assert 0 < on.sum() < 6
    assert np.allclose(gradient[on], -0.05 * np.sign(w[on]), atol=1e-6)
    assert (np.abs(gradient[~on]) <= 0.05 + 1e-6).all()
    assert abs((s * slopes).sum()) < 1e-6


def test_squared_hinges_of_plugins():
    class Sparse(mdlearn.Objective):
        name = "sparse-band"

        def terms(self, params, total):
            return Terms(variance=0.2, loss=(HingeTerm(1.0 / total, power=2),), ridge=0.0, penalty=0.05)

    X, y = rows()
    same(mdlearn.fit(Sparse, cut(X, y), None, tol=1e-9), mdlearn.fit(Sparse, X, y, tol=1e-9))


def test_float32():
    X, y = rows()
    X = X.astype(np.float32)
    streamed = fit_paper(cut(X, y), None, beta=0.05, tol=1e-5)
    same(streamed, fit_paper(X, y, beta=0.05, tol=1e-5), 1e-5)
    assert streamed.coef_.dtype == np.float32


@pytest.mark.slow
def test_checkpoints_and_limits(tmp_path):
    X, y = rows(k=3)
    given = {"beta": 0.02, "tol": 1e-9}
    whole = fit_paper(cut(X, y), None, **given)
    assert whole.n_iter > 2 and [state.iteration for state in whole.history] == list(range(1, whole.n_iter + 1))
    for passes in range(1, whole.n_iter + 1):
        kept = mdlearn.RowBlocks(cut(X, y), checkpoint=tmp_path / f"{passes}.npz")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            early = fit_paper(kept, None, max_iter=passes, **given)
        assert early.n_iter == passes
        assert early.certificate.lower_bound <= whole.certificate.objective * (1 + 1e-8)
        again = fit_paper(kept, None, **given)
        assert np.array_equal(again.coef_, whole.coef_) and again.certificate == whole.certificate
    with pytest.warns(mdlearn.ConvergenceWarning, match="stopped by the callback"):
        fit_paper(cut(X, y), None, callback=lambda state: True, **given)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        assert fit_paper(cut(X, y), None, time_limit=0.0, **given).n_iter == 0


@pytest.mark.slow
def test_no_optimum():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((8, 12)), np.arange(8) % 2
    with pytest.raises(ValueError, match="no optimum on these row blocks: the loss falls"):
        fit_paper([(X, y)], None, beta=1e-3, lambda2=2.0)


@pytest.mark.parametrize("rank", [8, 5])
@pytest.mark.parametrize("k", [1, 3])
def test_bounds_of_models(k, rank):
    """The bound is below the model everywhere, and meets it at its minimum."""
    rng = np.random.default_rng(k)
    A = rng.standard_normal((k, 8, rank))
    H, v = A @ A.transpose(0, 2, 1), rng.standard_normal(8 * k)
    G = np.column_stack([h @ g for h, g in zip(H, rng.standard_normal((k, 8)))]).ravel()
    blocks = CoefficientBlocks((), np.append(np.full(7, 2.0), 0.0) if rank == 8 else np.full(8, 2.0), (8, k), 8)
    whole = stacked_columns(list(H))
    model = PenalisedModel(blocks, 0.0, G, whole, v, np.ones(8 * k))
    w, s = finished(minimise_penalised_model(model, np.zeros(8 * k)))
    floor = -0.5 * float(G @ np.linalg.lstsq(whole, G, rcond=None)[0])
    lower = QuadraticSpectrum(list(H), np.ones(8 * k), False).bound(blocks, 0.0, G, v, s, floor)[0]
    least = model.at(w)
    assert lower <= least + 1e-9 * abs(least) and least - lower <= 1e-9 * max(abs(least), 1.0)
    for _ in range(200):
        u = w + rng.standard_normal(w.shape) * 10.0 ** rng.uniform(-6, 1)
        assert model.at(u) >= lower - 1e-9 * max(abs(lower), 1.0)
