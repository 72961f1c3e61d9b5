"""MAMC: every promise of an objective, the closed form, and its neighbours in the family."""

import numpy as np
import pytest
from mdlearn_baselines.mamc import MAMC

import mdlearn
from mdlearn.testing import parametrize_with_checks


def sample():
    """Overlapping classes of unequal size, and repetition counts, some of them 0."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3)) + 0.3
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(40) > 0, 1, -1)
    return X, y, rng.integers(0, 4, 40).astype(float)


@parametrize_with_checks(["mamc"])
def test_conformance(objective, check):
    check(objective)


def test_the_linear_optimum_is_the_mean_of_the_signed_rows():
    X, y, counts = sample()
    model = mdlearn.fit("mamc", X, y, sample_weight=counts)
    mean = (counts * y) @ X / counts.sum()
    assert model.coef_[0] == pytest.approx(mean, abs=1e-14) and model.intercept_ == [0.0]
    assert model.certificate.objective == pytest.approx(-0.5 * mean @ mean, rel=1e-12)
    assert model.certificate.lower_bound <= -0.5 * mean @ mean * (1 - 1e-12)
    assert model.certificate.converged


def test_no_direction_of_unit_length_has_a_larger_mean_margin():
    X, y, counts = sample()
    model = mdlearn.fit("mamc", X, y, sample_weight=counts)
    best = counts @ model.margins(X, y, normalized=True) / counts.sum()
    assert best == pytest.approx(np.linalg.norm(model.coef_))
    V = np.random.default_rng(2).standard_normal((500, 3))
    V /= np.linalg.norm(V, axis=1)[:, None]
    assert (((counts * y) @ X @ V.T) / counts.sum()).max() <= best


def test_with_a_kernel_it_is_the_parzen_classifier():
    X, y, counts = sample()
    Z = X[:9] + 0.2
    model = mdlearn.fit(MAMC, X, y, sample_weight=counts, kernel="rbf", gamma=0.5)
    K = np.exp(-0.5 * ((Z[:, None] - X[None]) ** 2).sum(axis=2))
    assert model.decision_function(Z) == pytest.approx(K @ (counts * y) / counts.sum(), abs=1e-14)


def test_balanced_classes_give_half_the_difference_of_their_means():
    X, y, _ = sample()
    model = mdlearn.fit("mamc", X, y, class_weight="balanced")
    assert model.coef_[0] == pytest.approx(0.5 * (X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)), abs=1e-14)


def test_it_is_ldm_without_loss_and_variance():
    X, y, counts = sample()
    for bias in ("none", "regularized"):
        ours = mdlearn.fit("mamc", X, y, sample_weight=counts, bias=bias)
        same = mdlearn.fit("ldm", X, y, sample_weight=counts, bias=bias, C=0.0, lambda1=0.0, lambda2=1.0)
        assert ours.coef_ == pytest.approx(same.coef_, abs=1e-12)
        assert ours.intercept_ == pytest.approx(same.intercept_, abs=1e-12)
        assert ours.certificate.objective == pytest.approx(same.certificate.objective, rel=1e-12)


def test_there_is_no_free_bias():
    X, y, _ = sample()
    with pytest.raises(ValueError, match=r"'mamc' has no free bias: .* give bias='none' or bias='regularized'"):
        mdlearn.fit("mamc", X, y, bias="free")


def test_it_can_be_saved(tmp_path):
    X, y, counts = sample()
    for kernel in ("linear", "rbf"):
        model = mdlearn.fit("mamc", X, y, sample_weight=counts, kernel=kernel)
        model.save(tmp_path / "model.npz")
        again = mdlearn.load(tmp_path / "model.npz")
        assert np.array_equal(again.decision_function(X), model.decision_function(X))
