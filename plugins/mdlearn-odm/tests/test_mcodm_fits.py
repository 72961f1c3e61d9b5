"""mcODM as a user meets it: early ends, files, real data, and every way its engine solves linear systems."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from mdlearn_odm import CCP, coordinates
from mdlearn_odm.ccp import Descent
from mdlearn_odm.coordinates import Coordinates
from mdlearn_odm.joint import JointMargins

import mdlearn
from mdlearn.extend import LinearFeatures, check_data, memory


def sample(k=3, m=90, d=4, seed=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, m)
    return rng.standard_normal((m, d)) + 1.2 * rng.standard_normal((k, d))[y], y


def real(name):
    """A bundled set, standardised."""
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def test_a_price_beyond_the_band_narrows_the_distribution_of_margins():
    X, y = real("wine")
    spread = []
    for mu in (0.0, 0.1, 1.0):
        model = mdlearn.fit("mcodm", X, y, mu=mu)
        spread.append(model.margins(X, y).std())
        assert model.certificate.converged and model.score(X, y) == 1.0
        assert model.certificate.vouched_by == "mdlearn_odm.joint.JointMargins"
    assert spread[0] > spread[1] > spread[2]


def test_unseen_rows_of_a_real_set():
    X, y = real("iris")
    train = np.arange(len(y)) % 2 == 0
    for settings in ({}, {"kernel": "rbf", "gamma": 0.2}, {"bias": "free", "theta": 0.0}):
        model = mdlearn.fit("mcodm", X[train], y[train], **settings)
        assert model.certificate.converged and model.score(X[~train], y[~train]) > 0.93


def test_reports_fall_and_claim_no_bound():
    X, y = real("wine")
    states = []
    model = mdlearn.fit("mcodm", X, y, mu=1.0, callback=states.append, tol=1e-11)
    objectives = np.array([state.objective for state in states])
    assert (np.diff(objectives) <= 1e-12 * objectives[0]).all() and objectives[-1] < 0.1 * objectives[0]
    assert all(state.lower_bound == -np.inf and np.isfinite(state.gap) for state in states)
    assert states[-1].gap == pytest.approx(model.certificate.gap, rel=1e-3, abs=1e-13)
    convex = mdlearn.fit("mcodm", X, y, mu=0.0)
    assert all(np.isfinite(state.lower_bound) for state in convex.history)


@pytest.mark.parametrize("mu, measure", [(0.5, "relative first-order residual"), (0.0, "relative gap")])
@pytest.mark.parametrize("given", [{"max_iter": 3}, {"time_limit": 0.0}, {"callback": lambda state: True}])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_early_ends(given, mu, measure, kernel):
    X, y = sample()
    with pytest.warns(mdlearn.ConvergenceWarning) as caught:
        model = mdlearn.fit("mcodm", X, y, mu=mu, kernel=kernel, **given)
    certificate = model.certificate
    if kernel == "rbf" and "time_limit" in given:
        measure = "relative gap"  # without a Gram matrix nothing is known at all
        assert (certificate.kind, certificate.gap) == ("none", np.inf)
    assert f" stopped at {measure} {certificate.gap:.2g} instead of 1e-06" in str(caught[0].message)
    assert not certificate.converged and certificate.gap > 1e-6
    assert certificate.objective <= len(y) * (1 + 1e-12)  # the objective at 0
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("settings", [{}, {"kernel": "rbf"}, {"mu": 0.0, "bias": "free"}])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_saved_and_loaded(settings, dtype, tmp_path):
    X, y = sample()
    X = X.astype(dtype)
    model = mdlearn.fit("mcodm", X, np.array(["a", "b", "c"])[y], **settings)
    assert model.certificate.converged and model.intercept_.dtype == dtype
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert again.certificate == model.certificate and again.history == model.history
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.duals, model.duals) and again.duals.shape == (3, 2, 90)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_every_linear_system_gives_the_same(kernel, bias, monkeypatch):
    X, y = sample(4)
    settings = {"mu": 0.3, "bias": bias, "kernel": kernel, "tol": 1e-11}
    straight = mdlearn.fit("mcodm", X, y, **settings)
    monkeypatch.setattr(coordinates, "MATRIX", 0)
    moments = mdlearn.fit("mcodm", X, y, **settings)
    monkeypatch.setattr(coordinates, "NARROW", 0)
    diagonal = mdlearn.fit("mcodm", X, y, **settings)
    for model in (moments, diagonal):
        assert model.certificate.converged
        assert model.decision_function(X) == pytest.approx(straight.decision_function(X), abs=1e-4)
        assert model.intercept_ == pytest.approx(straight.intercept_, abs=1e-4)


def test_sparse_rows_more_columns_than_rows_and_a_given_matrix():
    X, y = sample(3, 40, 70)
    X[np.abs(X) < 0.5] = 0.0
    dense, rows = (mdlearn.fit("mcodm", Z, y, bias="none", tol=1e-11) for Z in (X, sp.csr_matrix(X)))
    given = mdlearn.fit("mcodm", X @ X.T, y, kernel="precomputed", bias="none", tol=1e-11)
    assert dense.coef_ == pytest.approx(rows.coef_, abs=1e-5)
    assert dense.decision_function(X) == pytest.approx(given.decision_function(X @ X.T), abs=1e-5)
    assert dense.coef_ == pytest.approx(dense.dual_coef_ @ X, abs=1e-8)
    tall = mdlearn.fit("mcodm", np.vstack([X, X]), np.r_[y, y], bias="none", tol=1e-11)
    assert tall.coef_ == pytest.approx(dense.coef_, abs=1e-4)  # explicit rows; the mean loss is the same


def test_rows_with_two_runners_up():
    """Classes 1 and 2 are mirror images, and class 0 lies on the mirror: far beyond the band its leads are equal."""
    rng = np.random.default_rng(0)
    right = rng.standard_normal((30, 2)) * 0.4 + np.array([-0.2, 1.0])
    X = np.vstack([np.column_stack([rng.uniform(1.0, 9.0, 30), np.zeros(30)]), right, right * [1, -1]])
    y = np.repeat([0, 1, 2], 30)
    model = mdlearn.fit("mcodm", X, y, mu=0.5, lam=1000.0, tol=1e-9)
    assert model.certificate.converged
    assert (model.margins(X, y)[:30] > 1.2).any()


def test_degenerate_inputs():
    X, y = sample()
    nothing = mdlearn.fit("mcodm", X, y, lam=0.0)
    assert not nothing.coef_.any() and nothing.certificate.converged and nothing.certificate.objective == 0.0
    assert not mdlearn.fit("mcodm", np.zeros_like(X), y).coef_.any()
    for theta in (0.0, 0.999):
        assert mdlearn.fit("mcodm", X, y, theta=theta).certificate.converged
    for mu in (1e-8, 1e6):
        assert mdlearn.fit("mcodm", X, y, mu=mu).certificate.converged
    constant = mdlearn.fit("mcodm", np.zeros_like(X), y, bias="free", mu=0.0)
    assert constant.certificate.converged and constant.certificate.kind == "duality gap"
    for lam in (1e-6, 1e7):
        assert mdlearn.fit("mcodm", X, y, lam=lam).certificate.converged
    G = X @ X.T - 50.0 * np.eye(len(y))
    with pytest.raises(ValueError, match="not positive semidefinite"):
        mdlearn.fit("mcodm", G, y, kernel="precomputed")


def test_from_anywhere_downwards():
    """The procedure itself, from random coefficients: it ends lower, and at first-order conditions."""
    X, y = real("wine")
    data = check_data(X, y, None, None, square=False)
    form = JointMargins(data, LinearFeatures(data.X), "none", {"lam": 178.0, "mu": 0.5, "theta": 0.2})
    for seed in range(6):
        descent = Descent(form, Coordinates(form, data.X))
        descent.V = np.random.default_rng(seed).standard_normal((13, 3))
        descent.F, descent._loosely = X @ descent.V, lambda: iter(())
        begun, reports = descent.objective(), [report for report in descent.steps() if report is not None]
        certificate = form.certify(min(reports, key=lambda report: report.objective).point, 1e-10)
        assert certificate.certificate.converged and certificate.certificate.objective < begun


def test_it_asks_for_memory_first(monkeypatch):
    X, y = sample()
    monkeypatch.setattr(memory, "available_bytes", lambda: 2e4)
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0.0)
    for kernel in ("linear", "rbf"):
        with pytest.raises(mdlearn.InsufficientMemory, match="solver 'ccp' on 90 rows and 3 classes needs"):
            mdlearn.fit("mcodm", X, y, kernel=kernel)


def test_refusals_and_the_plugin():
    X, y = sample()
    with pytest.raises(ValueError, match=r"solver 'newton' cannot take this problem.*use one of.*ccp"):
        mdlearn.fit("mcodm", X, y, solver="newton")
    with pytest.raises(ValueError, match="'ccp' cannot take this problem: it knows the joint problem"):
        mdlearn.fit("ldm", X, y, solver="ccp")
    with pytest.raises(ValueError, match="'ovr' is not possible here; give one of auto, joint"):
        mdlearn.fit("mcodm", X, y, multiclass="ovr")
    assert mdlearn.fit("mcodm", X, y % 2).solver != "ccp" and mdlearn.fit("mcodm", X, y).solver == "ccp"
    assert mdlearn.fit("mcodm", X, y).params == {"lam": 90.0, "mu": 0.5, "theta": 0.2}


def test_the_engine_hands_over_often():
    X, y = sample(5, 400, 20)
    kept = []

    class Counting(CCP):
        def iterate(self, form, part, shared, options, rng):
            for report in super().iterate(form, part, shared, options, rng):
                kept.append(report)
                yield report

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mdlearn.fit("mcodm", X, y, solver=Counting)
    beats = sum(report is None for report in kept)
    assert beats > 5 * (len(kept) - beats)
