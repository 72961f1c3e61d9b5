"""Grids of uldm with all rows in the basis: one eigendecomposition, against linear systems and single fits."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.basis import basis_features
from mdlearn.data.features.kernels import make_kernel
from mdlearn.data.validation import check_data
from mdlearn.forms.certificates.certified_solution import certify
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.plugins.registry import find
from mdlearn.solvers.dual_hessian.eigen import eigendecompose_gram
from mdlearn.solvers.quadratic.decompositions import Decompositions, KernelBasisSpectrum

GRID = {"C": [1e-12, 1e-8, 1e-4, 1e-2, 0.1]}


def sample(m=50, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(m) > 0.3, 1.0, -1.0), rng.integers(1, 4, m) * 1.0


def finished(work):
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def form_of(X, y, counts, bias, C, terms=(), index=None):
    data = check_data(X, y, counts, None, square=False)
    kernel = make_kernel(find("kernel", "rbf"), {"gamma": 0.7}, data.X, data.counts)
    index = np.arange(X.shape[0]) if index is None else index
    features = basis_features(data, kernel, index, shared=True)
    return MarginForm(features, (Column(y, data.counts, 0.5 / C, 1.0 / C, terms),), bias)


def extended(form, before=None):
    return finished((before or Decompositions()).extended(form, None))


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("lambda0", [0.3, 2.0])
def test_coefficients_are_those_of_the_linear_system(bias, lambda0):
    """(C I + lambda0 K) beta = h', eq. (34)-(35), written out for repeated rows."""
    X, y, counts = sample()
    again = np.repeat(np.arange(X.shape[0]), counts.astype(int))
    G = np.exp(-0.7 * np.square(X[again][:, None] - X[again]).sum(2))
    F = np.hstack([G, np.ones((G.shape[0], 1))]) if bias == "regularized" else G
    k = y[again, None] * F
    h, K = k.mean(axis=0), np.cov(k.T, bias=True)
    path = mdlearn.fit_path(
        "uldm", X, y, {"C": [1e-3, 1e-2, 0.1, 1.0]}, kernel="rbf", gamma=0.7, basis="all", bias=bias,
        lambda0=lambda0, sample_weight=counts,
    )  # fmt: skip
    for model, point in zip(path, path.points):
        beta = np.linalg.solve(point["C"] * np.eye(h.shape[0]) + lambda0 * K, h)
        np.testing.assert_allclose(model.decision_function(X[again]), F @ beta, rtol=1e-8, atol=1e-9)
        assert model.certificate.objective == pytest.approx(-0.5 * h @ beta, rel=1e-9)


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_point_is_certified_and_that_of_a_single_fit(bias, weighted):
    X, y, counts = sample(seed=1)
    weights = counts if weighted else None
    how = {"kernel": "rbf", "gamma": 0.7, "basis": "all", "bias": bias, "sample_weight": weights, "tol": 1e-10}
    path = mdlearn.fit_path("uldm", X, y, GRID, **how)
    assert path.gap.max() <= 1e-10
    for model, point in zip(path, path.points):
        alone = mdlearn.fit("uldm", X, y, solver="direct", **how, **point)
        assert model.certificate.objective == pytest.approx(alone.certificate.objective, rel=1e-9)
        scale = np.abs(alone.decision_function(X)).max()
        np.testing.assert_allclose(model.decision_function(X), alone.decision_function(X), atol=1e-6 * scale)


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_its_own_answers_are_certified(bias):
    """Without the help of corrections that would follow a poor answer; signs of one decomposition may differ."""
    X, y, counts = sample(seed=2)
    for C in (1e-12, 1e-6, 1.0):
        form = form_of(X, y, counts, bias, C)
        known = extended(form)
        assert isinstance(known.kernel, KernelBasisSpectrum)
        assert not known.rows
        other = np.roll(y, 1)
        turned = Column(other, form.columns[0].counts, 0.5 / C, 1.0 / C, ())
        for column in (form.columns[0], turned):
            assert certify(form, column, known.kernel.point(form, column), 1e-10)[1].certificate.gap <= 1e-10


def test_one_decomposition_serves_all_weights_of_a_path():
    X, y, counts = sample()
    known = extended(form_of(X, y, counts, "regularized", 1e-6))
    assert extended(form_of(X, y, counts, "regularized", 1e-3), known).kernel is known.kernel


def test_what_it_does_not_serve():
    X, y, counts = sample()
    free = form_of(X, y, counts, "free", 1e-3)
    assert extended(free).kernel is None
    part = form_of(X, y, counts, "regularized", 1e-3, index=np.arange(20))
    assert part.features.square(part.columns[0].counts) is None
    assert extended(part).kernel is None
    whole = form_of(X, y, counts, "regularized", 1e-3)
    assert whole.features.square(2.0 * whole.columns[0].counts) is None
    pair = HingeTerm(0.4, 1, 1.0, 2), HingeTerm(0.4, -1, 1.0, 2)
    squared = form_of(X, y, counts, "regularized", 1e-3, pair)
    assert extended(squared).kernel is None
    assert not KernelBasisSpectrum(finished(eigendecompose_gram(np.eye(50), 0.0, np.ones(50)))).serves(
        whole, whole.columns[0]
    )


@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_kernels_that_are_not_semidefinite(bias):
    """Then rows are decomposed as before."""
    X, y, _ = sample()
    G = -np.sqrt(np.square(X[:, None] - X).sum(2))
    path = mdlearn.fit_path("uldm", G, y, {"C": [1e-4, 1e-2, 0.1, 1.0]}, kernel="precomputed", basis="all", bias=bias)
    assert path.converged.all()
