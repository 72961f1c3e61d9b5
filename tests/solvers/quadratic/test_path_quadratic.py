"""One decomposition for all quadratic points of a path: the same answers as factorisations, or these where they win."""

from __future__ import annotations

import numpy as np
import pytest
from pairwise import pairs_first
from path_cases import RBF, path, rows, single

import mdlearn
from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.certified_solution import certify
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.leastsquares import least_squares_loss
from mdlearn.solvers.dual_hessian import eigen as decomposed
from mdlearn.solvers.dual_hessian.eigen import eigendecompose_gram
from mdlearn.solvers.quadratic import solver as direct
from mdlearn.solvers.quadratic import spectrum
from mdlearn.solvers.quadratic.decompositions import KernelSpectrum
from mdlearn.solvers.quadratic.solver import Direct

WEIGHTS = [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]
GRIDS = {
    "uldm": ("uldm", {"C": WEIGHTS}, {}),
    "uldm rbf": ("uldm", {"C": WEIGHTS}, RBF),
    "uldm scaled": ("uldm", {"C": WEIGHTS}, {**RBF, "c_scaling": "max_diag"}),
    "lssvm": ("lssvm", {"C": [1e-3, 0.1, 1.0, 50.0, 1e3]}, {}),
    "lssvm rbf": ("lssvm", {"C": [0.0, 1e-3, 0.1, 1.0, 50.0, 1e3]}, RBF),
    "lsldm": ("lsldm", {"C": [0.0, 10.0], "lambda1": [0.0, 1.0], "lambda2": [1.0, 500.0]}, {}),
    "lsldm rbf": ("lsldm", {"C": [0.1, 10.0], "lambda1": [0.0, 1.0], "lambda2": [0.0, 5.0, 500.0]}, RBF),
}


def done(work):
    """The value of a generator that yields heartbeats."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize(*pairs_first(name=[*GRIDS], k=[2, 3], bias=["none", "regularized", "free"]))
def test_the_answers_of_factorisations(name, k, bias):
    objective, grid, settings = GRIDS[name]
    X, y, counts = rows(k=k, m=80)
    if bias == "free" and name == "lssvm rbf":
        grid = {"C": grid["C"][1:]}
    # With C = 1e-12, kernel columns nearly cancel in decision values.
    tol = 1e-8 if name in ("uldm rbf", "uldm scaled") else 1e-10
    for weights in (None, counts):
        given = {**settings, "bias": bias, "sample_weight": weights, "tol": tol}
        found = path(objective, X, y, grid, **given)
        assert found.converged.all()
        for point, model in zip(found.points, found):
            one = single(objective, X, y, **point, **given)
            assert model.certificate.gap <= max(tol, one.certificate.gap)
            assert model.certificate.objective == pytest.approx(one.certificate.objective, rel=2e-9, abs=1e-13)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss, variance", [(0.0, 2.0), (3.0, 0.0), (0.7, 40.0)])
def test_the_optimum_over_a_gram_matrix(bias, loss, variance):
    """Against the stationary point of the objective itself, from one dense linear system."""
    rng = np.random.default_rng(3)
    X, y, c = rng.standard_normal((40, 3)), np.where(rng.random(40) > 0.4, 1.0, -1.0), rng.uniform(0.3, 3.0, 40)
    features = KernelFeatures(DenseRows(X), Kernel("rbf", {"gamma": 0.5}))
    G, m, a = done(features.gram()), c.sum(), 1.3
    column = Column(y, c, variance, a, least_squares_loss(loss) if loss else ())
    form = MarginForm(features, (column,), bias)
    known = KernelSpectrum(done(eigendecompose_gram(G, float(bias == "regularized"), c)))
    assert known.serves(form, column)
    _, solution = certify(form, column, known.point(form, column), 1e-10)
    # Margins z = S (u, b); derivative of everything but the norm is A z - r.
    Z = y[:, None] * np.column_stack([G, np.ones(40)])
    A = 2 * variance / m * (np.diag(c) - np.outer(c, c) / m) + 2 * loss * np.diag(c)
    r = a / m * c + 2 * loss * c
    Q = np.zeros((41, 41))
    Q[:40, :40], Q[40, 40] = G, bias == "regularized"
    use = slice(0, 41 if bias != "none" else 40)
    w = np.linalg.lstsq((Q + Z.T @ A @ Z)[use, use], (Z.T @ r)[use], rcond=None)[0]
    w = np.append(w, 0.0) if bias == "none" else w
    assert solution.certificate.gap <= 1e-10
    f = G @ solution.alpha + solution.intercept
    assert np.abs(f - (G @ w[:40] + w[40])).max() <= 1e-8 * np.abs(f).max()
    assert not known.serves(form, Column(y, 2.0 * c, variance, a, column.terms))
    assert not known.serves(form, Column(y, c, 0.0, a, ()))


def test_decompositions_and_factorisations_are_counted(monkeypatch):
    X, y, _ = rows(m=80)
    counted = {"of the basis": 0, "eigh": 0, "svd": 0, "system": 0}

    def counting(module, name, key):
        plain = getattr(module, name)

        def call(*args, **kwargs):
            counted[key] += 1
            return plain(*args, **kwargs)

        monkeypatch.setattr(module, name, call)

    counting(decomposed, "symmetric_eigen", "of the basis")
    counting(spectrum, "symmetric_eigen", "eigh")
    counting(spectrum, "svd", "svd")
    counting(direct, "choose_system", "system")
    grid = {"C": [1e-4, 1e-3, 1e-2, 0.1], "lambda0": [1.0, 2.0, 5.0]}
    path("uldm", X, y, grid, **RBF)
    assert counted == {"of the basis": 1, "eigh": 0, "svd": 0, "system": 0}
    path("uldm", X, y, {"C": [1e-3, 0.1]}, **RBF)
    assert counted == {"of the basis": 1, "eigh": 0, "svd": 0, "system": 2}
    path("uldm", X, y, grid)
    assert counted == {"of the basis": 1, "eigh": 1, "svd": 0, "system": 2}


@pytest.mark.parametrize("seconds, left", [(50.0, [4, 3, 2, 1]), (200.0, [1, 1, 1, 1])])
def test_points_are_solved_one_by_one_where_a_decomposition_would_not_end_in_time(seconds, left, monkeypatch, clock):
    monkeypatch.setattr("mdlearn.driver.driver.symmetric_eigen_seconds", lambda order: seconds)
    seen, prepare = [], Direct.prepare_next

    def noted(self, form, options, before, left):
        seen.append(left)
        return prepare(self, form, options, before, left)

    monkeypatch.setattr(Direct, "prepare_next", noted)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 6)), np.arange(40) % 2
    path = mdlearn.fit_path("lsldm", X, y, {"C": [0.1, 1.0, 10.0, 100.0]}, time_limit=100.0)
    assert seen == left and path.converged.all()
