"""The hybrid engine against optima that other code finds, and against its own formulas, recomputed here."""

from __future__ import annotations

import numpy as np
import pytest
from hybrid_cases import LOSSES, OBJECTIVES, bound, objective, optimum, sample
from two_hinges import TwoHinges

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.extend import Column, HingeTerm, MarginForm
from mdlearn.solvers.hybrid import descent, loss_column, newton_start, semismooth, solver, sweeps

CASES = {
    "plain": {},
    "weak": {"C": 1e-3},
    "strong": {"C": 30.0},
    "mean": {"a": 2.0},
    "variance": {"v": 5.0},
    "variance and mean": {"v": 20.0, "a": 3.0, "C": 0.2},
}


def taken(loss, given):
    return loss != "logistic" or not given.get("v")


def fit(loss, X, y, **given):
    return mdlearn.fit(OBJECTIVES[loss], X, y, **{"solver": "hybrid", **given})


def biases(loss):
    return ("none", "regularized", "free") if loss == "logistic" else ("none", "regularized")


PROBLEMS = [
    (loss, bias, case)
    for loss in LOSSES
    for bias in biases(loss)
    for case, given in CASES.items()
    if taken(loss, given)
]


@pytest.mark.parametrize("loss, bias, case", PROBLEMS)
def test_the_optimum(loss, bias, case):
    X, y = sample()
    model = fit(loss, X, y, bias=bias, tol=1e-10, **CASES[case])
    best, f = optimum(loss, X, y, bias, **CASES[case])
    found = model.certificate
    assert found.converged and found.gap <= 1e-10
    assert found.objective == pytest.approx(best, rel=1e-9)
    assert found.lower_bound <= best + 1e-12 * max(1.0, abs(best)) <= found.objective + 2e-12 * max(1.0, abs(best))
    np.testing.assert_allclose(model.decision_function(X), f, atol=1e-3 * np.abs(f).max())


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("case", ["plain", "strong", "mean", "variance"])
def test_many_rows_per_column(loss, case):
    """Enough rows that a sample comes first, and steps over the rows next to a kink."""
    if not taken(loss, CASES[case]):
        pytest.skip("no variance beside a logistic loss")
    X, y = sample(3000, 5, seed=2)
    model = fit(loss, X, y, tol=1e-9, **CASES[case])
    other = mdlearn.fit(
        OBJECTIVES[loss], X, y, solver="newton" if loss == "logistic" else "interior", tol=1e-11, **CASES[case]
    )
    assert model.certificate.converged and other.certificate.converged
    assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-8)
    assert model.certificate.lower_bound <= other.certificate.objective * (1 + 1e-12)


@pytest.mark.parametrize("loss, bias, case", [one for one in PROBLEMS if one[1] != "free"])
@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-10])
def test_coefficients_and_the_certificate_after_every_kind_of_end(loss, bias, case, tol):
    """dual_coef_ make the coefficients, and objective and bound are those of the formulas."""
    X, y = sample(seed=3)
    given = CASES[case]
    model = fit(loss, X, y, bias=bias, tol=tol, **given)
    w, b, alpha, found = model.coef_[0], model.intercept_[0], model.dual_coef_[0], model.certificate
    assert found.converged and found.gap <= tol
    size = np.abs(alpha) @ np.abs(X)
    assert (np.abs(X.T @ alpha - w) <= 1e-12 * size + 1e-300).all()
    if bias == "regularized":
        assert abs(alpha.sum() - b) <= 1e-12 * np.abs(alpha).sum()
    value = objective(loss, X, y, w, b, bias, **given)
    assert found.objective == pytest.approx(value, rel=1e-12)
    below = bound(loss, X, y, model.duals[0], bias, **given)
    if given.get("v"):  # with a variance multipliers say more than together with what the engine pulls by
        assert found.lower_bound <= below + 1e-9 * abs(value)
    else:
        assert found.lower_bound == pytest.approx(below, rel=1e-9, abs=1e-12 * abs(value))
    best, _ = optimum(loss, X, y, bias, **given)
    assert found.lower_bound <= best + 1e-12 * max(1.0, abs(best)) and value >= best - 1e-12 * max(1.0, abs(best))


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_an_end_inside_of_every_phase(loss, monkeypatch):
    """Sweeps alone, and Newton steps alone from the first row on: each ends at the same optimum."""
    X, y = sample(400, 6, seed=4)
    best = mdlearn.fit(OBJECTIVES[loss], X, y, solver="interior", tol=1e-12).certificate.objective
    monkeypatch.setattr(sweeps, "STEPS_AHEAD", 1e9)
    monkeypatch.setattr(newton_start, "STEPS_AHEAD", 1e9)
    monkeypatch.setattr(newton_start, "ROWS_PER_COLUMN", 10**9)
    swept = fit(loss, X, y, tol=1e-4)
    monkeypatch.setattr(sweeps, "STEPS_AHEAD", 0)
    monkeypatch.setattr(newton_start, "STEPS_AHEAD", 0)
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    stepped = fit(loss, X, y, tol=1e-10)
    monkeypatch.setattr(semismooth, "NEAR_BLOCK_ENTRIES", 0)
    dear = fit(loss, X, y, tol=1e-10)
    for model in (swept, stepped, dear):
        assert model.certificate.converged
        assert model.certificate.objective == pytest.approx(best, rel=2 * model.certificate.tol)
        np.testing.assert_allclose(X.T @ model.dual_coef_[0], model.coef_[0], rtol=0, atol=1e-11)


def test_envelopes_that_are_too_steep_become_flatter(monkeypatch):
    """Steps are cut short between kinks where many rows are equal: 134 places without this, each a pass."""
    rng = np.random.default_rng(1)
    X = np.eye(5)[rng.integers(5, size=(3000, 12))].reshape(3000, -1)
    y = np.where(X @ rng.standard_normal(60) > 0, 1, -1)
    places = []
    evaluate = semismooth.SemismoothNewton.evaluate
    monkeypatch.setattr(semismooth.SemismoothNewton, "evaluate", lambda self: (places.append(1), evaluate(self)))
    monkeypatch.setattr(loss_column, "WHOLE_BLOCK_ENTRIES", 0)
    monkeypatch.setattr(sweeps, "STEPS_AHEAD", 0)
    monkeypatch.setattr(newton_start, "STEPS_AHEAD", 0)
    monkeypatch.setattr(newton_start, "newton_start_steepness", lambda problem, w, between: 1e5 * problem.caps.max())
    assert fit("hinge", X, y, tol=1e-8, C=1000.0).certificate.converged
    assert len(places) < 80


def test_sweeps_in_pieces_are_the_same_sweeps(monkeypatch):
    X, y = sample(500, 5, seed=5)
    whole = fit("hinge", X, y, tol=1e-8)
    monkeypatch.setattr(descent, "VISIT_ENTRIES", 1 << 11)
    pieces = fit("hinge", X, y, tol=1e-8)
    assert pieces.certificate.converged
    assert pieces.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-7)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_threads", [1, 2])
def test_the_same_bits_twice(loss, n_threads):
    X, _ = sample(300, 5, seed=6)
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
    one, other = (fit(loss, X, y, n_threads=n_threads, random_state=3) for _ in range(2))
    for name in ("coef_", "intercept_", "dual_coef_", "duals"):
        assert np.array_equal(getattr(one, name), getattr(other, name)), name
    assert one.certificate == other.certificate


@pytest.mark.parametrize("loss", LOSSES)
def test_several_classes_are_single_problems(loss):
    X, _ = sample(200, 4, seed=7)
    labels = np.digitize(X[:, 0] + 0.4 * X[:, 1], [-0.6, 0.6])
    model = fit(loss, X, labels, tol=1e-11)
    assert len(model.certificate.parts) == 3 and model.certificate.converged
    for k in range(3):
        best, f = optimum(loss, X, np.where(labels == k, 1, -1), "regularized")
        assert model.certificate.parts[k].objective == pytest.approx(best, rel=1e-9)
        np.testing.assert_allclose(model.decision_function(X)[:, k], f, atol=1e-3)


@pytest.mark.parametrize("loss, bias", [(loss, bias) for loss in LOSSES for bias in biases(loss)])
@pytest.mark.parametrize("case", ["plain", "mean", "variance"])
def test_weights_are_repetitions(loss, bias, case):
    if not taken(loss, CASES[case]):
        pytest.skip("no variance beside a logistic loss")
    X, y = sample(50, 4, seed=8)
    weight = np.random.default_rng(1).integers(0, 4, 50)
    weight[:2] = 1
    rows = np.repeat(np.arange(50), weight)
    a = fit(loss, X, y, sample_weight=weight, bias=bias, tol=1e-11, **CASES[case])
    b = fit(loss, X[rows], y[rows], bias=bias, tol=1e-11, **CASES[case])
    best, _ = optimum(loss, X, y, bias, weight=weight.astype(float), **CASES[case])
    assert a.certificate.converged and b.certificate.converged
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-10)
    assert a.certificate.objective == pytest.approx(best, rel=1e-9)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), atol=1e-4)
    assert (a.duals[0][weight == 0] == 0).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("tol", [1e-3, 1e-8])
def test_a_start_from_another_weight(loss, tol):
    """Certified as ever, and never worse than the start."""
    X, y = sample(300, 6, seed=9)
    for given in ({}, {"a": 1.0}, {"v": 2.0}):
        if not taken(loss, given):
            continue
        start = fit(loss, X, y, C=1.0, tol=tol, **given)
        for C in (0.5, 1.3, 20.0):
            warm = fit(loss, X, y, C=C, tol=tol, warm_start=start, **given)
            held = objective(loss, X, y, start.coef_[0], start.intercept_[0], "regularized", C=C, **given)
            assert warm.certificate.converged
            assert warm.certificate.objective <= held * (1 + 1e-12)
            cold = fit(loss, X, y, C=C, tol=tol, **given)
            assert warm.certificate.lower_bound <= cold.certificate.objective * (1 + 1e-12)
            assert cold.certificate.lower_bound <= warm.certificate.objective * (1 + 1e-12)
            np.testing.assert_allclose(X.T @ warm.dual_coef_[0], warm.coef_[0], rtol=0, atol=1e-10)
        same = fit(loss, X, y, C=1.0, tol=tol, warm_start=start, **given)
        assert same.certificate.objective <= start.certificate.objective * (1 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_callback_ends_it_and_a_limit_does(loss):
    X, y = sample(300, 6, seed=10)
    best = fit(loss, X, y, tol=1e-13).certificate.objective
    for given in ({"callback": lambda state: True}, {"max_iter": 1}, {"time_limit": 0}):
        with pytest.warns(mdlearn.ConvergenceWarning):
            early = fit(loss, X, y, tol=1e-16, **given)
        assert early.certificate.lower_bound <= best * (1 + 1e-12) <= early.certificate.objective * (1 + 2e-12)


def test_what_it_refuses():
    X, y = sample()
    for name, given, told in (
        ("svm", {"kernel": "rbf"}, "it needs the rows themselves"),
        ("svm", {"bias": "free"}, "it cannot keep the equality constraint of bias='free'"),
        ("svm", {"C": np.inf}, "it takes no loss of the kind 'constraint'"),
        ("svm", {"C": 0.0}, "it needs one loss a row"),
        (TwoHinges, {}, "it needs one loss a row"),
        ("lssvm", {"bias": "none"}, "it (needs one loss a row|takes no loss of the kind)"),
        (OBJECTIVES["logistic"], {"v": 1.0}, "it takes no variance term beside a logistic loss"),
    ):
        with pytest.raises(ValueError, match=f"solver 'hybrid' cannot take this problem: .*{told}"):
            mdlearn.fit(name, X, y, solver="hybrid", **given)
    heavy = np.append(np.ones(len(y) - 1), 1e12)  # as many rows of the same kind
    with pytest.raises(ValueError, match="times a row's weight is beyond 1e"):
        mdlearn.fit("svm", 10.0 * X, y, solver="hybrid", sample_weight=heavy)
    with pytest.raises(ValueError, match="no option 'sweeps'"):
        mdlearn.fit("svm", X, y, solver="hybrid", solver_options={"sweeps": 3})


def test_a_variance_over_many_dense_columns_goes_elsewhere(monkeypatch):
    X, y = sample(30, 12, seed=11)
    monkeypatch.setattr(solver, "VARIANCE_COLUMNS", 11)
    monkeypatch.setattr(sweeps, "VARIANCE_COLUMNS", 11)
    with pytest.raises(ValueError, match="it takes a variance term over at most 11 dense columns"):
        mdlearn.fit("ldm", X, y, solver="hybrid")
    assert mdlearn.fit("ldm", X, y).solver == "interior"
    assert mdlearn.fit("svm", X, y).solver == "hybrid"


@pytest.mark.parametrize("weight, limit", [(1e3, 1e12), (1e5, 1e9)])
@pytest.mark.parametrize("share", [0.2, 0.6, 0.99, 1.01, 3.0])
def test_it_refuses_a_row_that_weighs_too_much(weight, limit, share, rng):
    """By its repetitions and its length, however little the others weigh."""
    X, counts = rng.standard_normal((60, 4)), rng.integers(1, 6, 60).astype(float)
    counts[7] = 9.0
    X[7] *= np.sqrt(share * limit / (weight * counts[7] * np.sum(X[7] ** 2)))
    y = np.where(np.arange(60) % 2, 1.0, -1.0)
    columns = (Column(y, counts, 0.0, 0.0, (HingeTerm(weight),)),)
    refusal = solver.Hybrid().refusal(MarginForm(LinearFeatures(DenseRows(X)), columns, "regularized"))
    assert (refusal is not None) == (share > 1)
