"""l2lr and mlr against their printed formulas, the limit of mlr, and rows on which there is no optimum."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from reference import optimum as svm_optimum
from scipy.special import expit
from smooth_reference import BIASES, LOGISTIC, formula, optimum, overlapping

import mdlearn

CASES = {
    "l2lr": ("l2lr", {}, LOGISTIC),
    "mlr": ("mlr", {}, {"alpha": 5.0, "threshold": 1.0}),
    "mlr, sharp": ("mlr", {"alpha": 60.0}, {"alpha": 60.0, "threshold": 1.0}),
}
NONE = "there is no optimum on these training rows"


def held(model, X, y, **given):
    u = model.coef_[0] if model.bias == "none" else np.append(model.coef_[0], model.intercept_[0])
    return formula(u, X, y, model.bias, **given)[0]


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("lam", [0.0, 1e-9, 1e-3, 1.0])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("case", CASES)
def test_the_optimum(case, bias, lam, weighted):
    X, y = overlapping()
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(y)) if weighted else None
    name, given, loss = CASES[case]
    settings = {"bias": bias, "tol": 1e-12, "solver": "newton", **given}
    model = mdlearn.fit(name, X, y, lam=lam, sample_weight=weight, **settings)
    best, w, b = optimum(X, y, bias, lam=lam, weight=weight, **loss)
    certificate = model.certificate
    assert certificate.gap <= 1e-12 and certificate.converged
    assert certificate.objective == pytest.approx(best, rel=1e-12)
    assert certificate.objective == pytest.approx(held(model, X, y, lam=lam, weight=weight, **loss), rel=1e-13)
    assert certificate.lower_bound <= best * (1 + 1e-14)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-6)
    assert model.intercept_[0] == pytest.approx(b, abs=1e-6)
    assert model.n_iter <= 12
    assert all(state.lower_bound <= best * (1 + 1e-14) for state in model.history), "every bound on the way is one"


def test_defaults():
    X, y = overlapping()
    for name, params in (("l2lr", {"lam": 1e-3}), ("mlr", {"alpha": 5.0, "lam": 1e-3})):
        model = mdlearn.fit(name, X, y)
        assert model.params == params and model.bias == "free" and model.multiclass == "ovr"


def test_without_a_norm_the_scores_of_logistic_regression_vanish():
    """Maximum likelihood: the expected sums of every column are the observed ones."""
    X, y = overlapping(400, 6, seed=3)
    model = mdlearn.fit("l2lr", X, y, lam=0, tol=1e-12)
    p = expit(model.decision_function(X))
    assert p.sum() == pytest.approx((y == 1).sum(), abs=1e-4)
    np.testing.assert_allclose(X.T @ p, X[y == 1].sum(axis=0), atol=1e-4)
    with pytest.raises(AttributeError, match="no combination of rows"):
        _ = model.dual_coef_


@pytest.mark.parametrize("bias", BIASES)
def test_mlr_tends_to_the_svm(bias):
    """The loss lies above the hinge by at most ln 2 / alpha, and so do the optima, in units of the average."""
    X, y = overlapping(80)
    lam = 2e-3
    C = 1 / (2 * lam * len(y))
    svm = svm_optimum(X, y, C=C, bias=bias)
    previous = np.inf
    for alpha in (1.0, 10.0, 100.0, 1e3, 1e5):
        model = mdlearn.fit("mlr", X, y, alpha=alpha, lam=lam, bias=bias, tol=1e-12)
        above = model.certificate.objective - 2 * lam * float(svm.value)
        assert -1e-12 <= above <= np.log(2) / alpha and above < previous
        previous = above
        assert model.certificate.converged and model.n_iter <= 60
    exact = mdlearn.fit("svm", X, y, C=C, bias=bias, tol=1e-12)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-2)


# ---------------------------------------------------------------- no optimum


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("name", ["l2lr", "mlr"])
def test_separable_rows_without_a_norm_are_refused(name, bias):
    X, _ = overlapping()
    y = np.where(X[:, 0] > (0.0 if bias == "none" else 0.3), 1, -1)
    with pytest.raises(ValueError, match=NONE):
        mdlearn.fit(name, X, y, lam=0, bias=bias)
    assert mdlearn.fit(name, X, y, lam=1e-9, bias=bias).certificate.converged
    y[np.argmax(np.abs(X[:, 0]))] *= -1
    model = mdlearn.fit(name, X, y, lam=0, bias=bias, tol=1e-9)
    assert model.certificate.converged, "one row on the wrong side, and there is an optimum"


@pytest.mark.parametrize("solver", ["newton", "apg"])
@pytest.mark.parametrize("name", ["l2lr", "mlr"])
def test_rows_that_separate_in_part_are_refused(name, solver):
    """A column that only one class has: its weight grows without end, while the other rows overlap."""
    X, y = overlapping()
    extra = np.zeros((len(y), 1))
    extra[np.flatnonzero(y == 1)[:5]] = 1.0
    for tol in (1e-3, 1e-6, 1e-12):
        with pytest.raises(ValueError, match=NONE):
            mdlearn.fit(name, np.hstack([X, extra]), y, lam=0, tol=tol, solver=solver)
    extra[np.flatnonzero(y == -1)[0]] = 1.0
    assert mdlearn.fit(name, np.hstack([X, extra]), y, lam=0, tol=1e-12, solver=solver).certificate.converged


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(5))
def test_bounds_rise_where_rows_separate_in_part(seed):
    """Multipliers of the rows that only one class has end at 0, and the others make up for them."""
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 3, (31, 2)) / 2.0, rng.integers(0, 2, 31)
    X = np.hstack([X, (rng.random((31, 2)) < 0.3) * y[:, None]])
    lower = 0.0
    for n in range(1, 12):
        found = mdlearn.fit("mlr", X, y, lam=0.0, alpha=0.18, bias="none", solver="apg", max_iter=n).certificate
        assert found.lower_bound >= lower * (1.0 - 1e-12) and found.lower_bound <= found.objective
        lower = max(lower, found.lower_bound)
    assert lower > 1.0, "without a correction 0 is all that is known"


def test_the_row_that_prevents_separation_must_have_a_weight():
    X, y = overlapping()
    y = np.where(X[:, 0] > 0, 1, -1)
    deep = np.argmax(np.abs(X[:, 0]))
    X, y = np.vstack([X, X[[deep]]]), np.append(y, -y[deep])
    assert mdlearn.fit("l2lr", X, y, lam=0).certificate.converged
    with pytest.raises(ValueError, match=NONE):
        mdlearn.fit("l2lr", X, y, lam=0, sample_weight=np.append(np.ones(len(y) - 1), 0.0))


def test_rows_of_zeros_do_not_hide_separation():
    """Without a bias their margin is 0 whatever w is; with one, they meet in b and the others still separate."""
    X, y = overlapping()
    y = np.where(X[:, 0] > 0, 1, -1)
    X, y = np.vstack([X, np.zeros((4, 4))]), np.append(y, [1, -1, 1, 1])
    for bias in ("none", "free"):
        with pytest.raises(ValueError, match=NONE):
            mdlearn.fit("l2lr", X, y, lam=0, bias=bias)


def test_more_columns_than_rows_without_a_norm():
    X, y = overlapping(20, 40)
    with pytest.raises(ValueError, match=NONE):
        mdlearn.fit("l2lr", X, y, lam=0)


@pytest.mark.parametrize("bias", ["none", "free"])
def test_dependent_columns_without_a_norm(bias):
    """Twins, a column of ones and one of zeros: the decision values are unique, and weights stay bounded."""
    X, y = overlapping()
    wide = np.hstack([X, X[:, :2], 3.0 * X[:, 2:3], np.zeros((len(y), 1))])
    if bias == "free":
        wide = np.hstack([wide, np.ones((len(y), 1))])
    plain = mdlearn.fit("l2lr", X, y, lam=0, bias=bias, tol=1e-12)
    model = mdlearn.fit("l2lr", wide, y, lam=0, bias=bias, tol=1e-12)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-12)
    np.testing.assert_allclose(model.decision_function(wide), plain.decision_function(X), atol=1e-6)
    assert np.linalg.norm(model.coef_) <= np.linalg.norm(plain.coef_) + abs(plain.intercept_[0])
    np.testing.assert_allclose(model.coef_[0, :2], model.coef_[0, 4:6], rtol=1e-4)
    assert model.coef_[0, 7] == 0.0


# ---------------------------------------------------------------- input


@pytest.mark.parametrize("lam", [0.0, 1e-3])
@pytest.mark.parametrize("name", ["l2lr", "mlr"])
def test_weights_are_repetitions(name, lam):
    X, y = overlapping(60)
    weight = np.random.default_rng(1).integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weight)
    settings = {"lam": lam, "tol": 1e-12, "solver": "newton"}
    a = mdlearn.fit(name, X, y, sample_weight=weight, **settings)
    b = mdlearn.fit(name, X[rows], y[rows], **settings)
    assert a.certificate.objective == pytest.approx(b.certificate.objective, rel=1e-13)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)


@pytest.mark.parametrize("lam", [0.0, 1e-3])
def test_csr_and_float32(lam):
    X, y = overlapping(300, 6)
    X[np.abs(X) < 0.5] = 0.0
    X = X.astype(np.float32).astype(float)
    dense = mdlearn.fit("l2lr", X, y, lam=lam, tol=1e-12)
    sparse = mdlearn.fit("l2lr", sp.csr_matrix(X), y, lam=lam, tol=1e-12)
    small = mdlearn.fit("l2lr", X.astype(np.float32), y, lam=lam)  # to a gap of 1e-6: three digits of coefficients
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=3e-6)  # of 1e-12: six digits, by other steps
    assert small.coef_.dtype == np.float32 and small.certificate.converged
    np.testing.assert_allclose(small.coef_, dense.coef_, atol=3e-3)


def test_several_classes():
    X, _ = overlapping(150)
    labels = np.digitize(X[:, 0] + 0.7 * np.random.default_rng(2).standard_normal(150), [-0.5, 0.5])
    model = mdlearn.fit("l2lr", X, labels, tol=1e-12)
    one = [mdlearn.fit("l2lr", X, np.where(labels == k, 1, -1), tol=1e-12) for k in range(3)]
    assert model.certificate.objective == pytest.approx(sum(m.certificate.objective for m in one), rel=1e-12)
    np.testing.assert_allclose(model.coef_, np.vstack([m.coef_ for m in one]), atol=1e-10)
    pairs = mdlearn.fit("l2lr", X, labels, multiclass="ovo", tol=1e-12)
    some = labels < 2
    np.testing.assert_allclose(pairs.coef_[0], mdlearn.fit("l2lr", X[some], labels[some], tol=1e-12).coef_[0])


def test_what_is_refused():
    X, y = overlapping()
    with pytest.raises(ValueError, match=r"'l2lr' is linear; got kernel='rbf'"):
        mdlearn.fit("l2lr", X, y, kernel="rbf")
    for name in ("cd", "interior", "direct"):
        with pytest.raises(ValueError, match=r"no loss of the kind 'logistic'; use one of .*newton"):
            mdlearn.fit("l2lr", X, y, solver=name)
    with pytest.raises(ValueError, match=r"it needs the squared norm in the objective; use one of .*newton"):
        mdlearn.fit("l2lr", X, y, lam=0, solver="asgd", bias="none")
    for given in ({"alpha": 0.0}, {"alpha": np.inf}, {"lam": -1.0}, {"lam": np.nan}):
        with pytest.raises(ValueError, match=f"^{next(iter(given))} needs to be"):
            mdlearn.fit("mlr", X, y, **given)
