"""Eigenvalues where LAPACK's divide and conquer fails, as it does on some kernel matrices with entries near 1e-308."""

import numpy as np
import pytest
import scipy.linalg

import mdlearn
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen


@pytest.fixture
def failing(monkeypatch):
    """Divide and conquer that always fails; returns how often it was asked."""
    real, asked = scipy.linalg.eigh, []

    def eigh(A, **options):
        if options.get("driver") == "evd":
            asked.append(A.shape)
            raise scipy.linalg.LinAlgError("not converged")
        return real(A, **options)

    monkeypatch.setattr(scipy.linalg, "eigh", eigh)
    return asked


def test_another_algorithm_takes_over(failing):
    B = np.random.default_rng(0).standard_normal((20, 30))
    A = B @ B.T
    before = A.copy()
    values, vectors = symmetric_eigen(A)
    assert failing == [(20, 20)] and (np.diff(values) >= 0).all()
    np.testing.assert_array_equal(A, before)
    np.testing.assert_allclose(vectors * values @ vectors.T, A, atol=1e-12 * values[-1])
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(20), atol=1e-13)


@pytest.mark.parametrize(
    "objective, grid",
    [
        ("lssvm", {"C": np.geomspace(0.1, 10.0, 6)}),
        ("uldm", {"C": np.geomspace(1e-4, 0.1, 6)}),
        ("ldm", {"C": [1.0, 10.0], "lambda1": [1.0, 2.0, 4.0, 8.0]}),
    ],
)
def test_paths_and_leave_one_out_go_on(failing, objective, grid):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + 0.5 * rng.standard_normal(40) > 0
    settings = {"kernel": "rbf", "gamma": 0.5}
    path = mdlearn.fit_path(objective, X, y, grid, **settings)
    assert failing and path.converged.all()
    for model, point in zip(path, path.points):
        alone = mdlearn.fit(objective, X, y, **point, **settings)
        assert model.certificate.objective == pytest.approx(alone.certificate.objective, rel=2e-6)
    if objective != "ldm":
        assert 0.5 < mdlearn.cross_validate(objective, X, y, cv="loo", **settings).mean <= 1.0


def test_entries_near_the_smallest_numbers():
    """A kernel so narrow that most of its values are below 1e-300."""
    X = np.random.default_rng(2).integers(0, 2, (60, 80)).astype(float)
    y = X[:, 0] > 0.5
    found = mdlearn.select("lssvm", X, y, {"C": [0.1, 10.0], "gamma": [8.0, 18.0, 19.0]}, kernel="rbf")
    assert np.isfinite(found.scores).all()
