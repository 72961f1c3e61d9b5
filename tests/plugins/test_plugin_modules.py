"""The examples of docs/plugins.md that are whole plugins: a solver and a kernel, installed and used by name."""

from __future__ import annotations

import numpy as np
import pytest
from documents import EXAMPLES
from plugin_cases import Site
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from smooth_reference import overlapping

import mdlearn
from mdlearn.cli import main


@pytest.fixture
def site(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch)
    site.add("descent-solver", EXAMPLES["solver"])
    site.add("laplace-kernel", EXAMPLES["kernel"])
    return site


def test_both_are_plugins(site, capsys):
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out == (
        "descent-solver 1.0: solvers descent; ok\nlaplace-kernel 1.0: kernels laplace; ok\n"
    )


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize(
    ("objective", "params"),
    [
        ("lsvm", {"nu": 0.3}),
        ("lssvm", {"C": 0.1}),
        ("lsldm", {"C": 0.1, "lambda1": 2.0, "lambda2": 3.0}),
        ("l2lr", {"lam": 0.05}),
    ],
)
def test_the_solver_finds_the_optimum(objective, params, bias, site):
    X, y = overlapping(60, 3)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    given = {"bias": bias, "sample_weight": weight, **params}
    exact = mdlearn.fit(objective, X, y, tol=1e-12, **given)
    model = mdlearn.fit(objective, X, y, solver="descent", tol=1e-9, **given)
    assert model.certificate.converged and exact.certificate.converged
    assert model.certificate.objective == pytest.approx(exact.certificate.objective, rel=2e-9)
    assert model.certificate.lower_bound <= exact.certificate.objective * (1.0 + 1e-12)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-3)
    bounds = [state.objective for state in model.history]
    assert model.n_iter > 3 and (np.diff(bounds) <= 1e-12 * bounds[0]).all()


def test_the_solver_takes_several_classes_types_and_threads(site):
    X, y = np.random.default_rng(1).standard_normal((60, 3)), np.tile([0, 1, 2], 20)
    given = {"solver": "descent", "nu": 0.1, "tol": 1e-5}
    models = [
        mdlearn.fit("lsvm", rows, y, multiclass=way, **given)
        for way in ("ovr", "ovo")
        for rows in (X, X.astype(np.float32), csr_matrix(X))
    ]
    models.append(mdlearn.fit("lsvm", X, y, n_threads=2, **given))
    assert all(model.certificate.converged for model in models)
    assert models[0].coef_.tobytes() == models[-1].coef_.tobytes()


@pytest.mark.parametrize(
    ("objective", "given", "told"),
    [
        ("svm", {}, "it takes no loss of the kind 'hinge'; use one of "),
        ("lsvm", {"kernel": "rbf"}, "it moves a weight vector, which only kernel='linear' has; use one of "),
        ("lsvm", {"bias": "free"}, "it knows no free bias; use one of "),
        ("mdlm", {"beta": 0.1}, "it knows no penalty on coefficients beside the squared norm; use one of "),
        ("lsvm", {"solver_options": {"step": 0.0}}, "solver option step needs to be"),
        ("lsvm", {"solver_options": {"length": 1.0}}, "solver 'descent' has no option 'length'; valid solver_options"),
    ],
)
def test_what_the_solver_refuses(objective, given, told, site):
    X, y = overlapping(60, 3)
    with pytest.raises(ValueError) as raised:
        mdlearn.fit(objective, X, y, solver="descent", **given)
    assert told in str(raised.value)


def test_the_step_is_an_option_and_limits_hold(site):
    X, y = overlapping(60, 3)
    with pytest.warns(
        mdlearn.ConvergenceWarning, match=r"^solver 'descent' of descent-solver 1\.0 stopped .*\(max_iter"
    ):
        short = mdlearn.fit("lsvm", X, y, solver="descent", solver_options={"step": 1e-4}, max_iter=5)
    assert short.n_iter == 5 and short.certificate.gap > 1e-6
    seen = []
    with pytest.warns(mdlearn.ConvergenceWarning, match="callback"):
        mdlearn.fit("lsvm", X, y, solver="descent", callback=lambda state: seen.append(state) or len(seen) == 2)
    assert len(seen) == 2


def test_the_kernel_is_what_it_says(site):
    X, y = overlapping(60, 3)
    gram = np.exp(-cdist(X, X, "cityblock") / 2.0)
    model = mdlearn.fit("ldm", X, y, kernel="laplace", width=2.0, tol=1e-10)
    given = mdlearn.fit("ldm", gram, y, kernel="precomputed", tol=1e-10)
    assert model.certificate.objective == pytest.approx(given.certificate.objective, rel=1e-9)
    np.testing.assert_allclose(model.decision_function(X), given.decision_function(gram), atol=1e-4)
    path = site.folder / "m.npz"
    model.save(path)
    assert mdlearn.load(path).decision_function(X).tobytes() == model.decision_function(X).tobytes()
