"""KM-OMD: the optimum over gamma found by other means, the certificate, the threshold, the two ends."""

import warnings

import numpy as np
import pytest
from mdlearn_baselines.kmomd import KMOMD
from scipy.optimize import minimize

import mdlearn
from mdlearn.testing import parametrize_with_checks

GAMMA = 0.5


@parametrize_with_checks(["kmomd", KMOMD(lam=0.6), KMOMD(lam=1.0)])
def test_conformance(objective, check):
    check(objective)


def sample(m=30, shift=0.0):
    """Two classes that overlap (or, with a shift, do not), and repetition counts, one of them 0."""
    rng = np.random.default_rng(3)
    y = np.where(rng.random(m) < 0.6, 1, -1)
    X = rng.standard_normal((m, 3)) + np.outer(y, [0.4 + shift, 0.0, 0.2])
    counts = rng.integers(1, 4, m).astype(float)
    counts[5] = 0.0
    return X, y, counts


def gram(X, kernel):
    """Inner products, straight from the definition."""
    return X @ X.T if kernel == "linear" else np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def settings(kernel):
    return {"kernel": kernel, **({"gamma": GAMMA} if kernel == "rbf" else {})}


def printed(gamma, K, lam, counts):
    """(1 - lam) gamma' K gamma + lam sum gamma^2 / c, over rows of weight > 0, and its gradient."""
    value = (1 - lam) * gamma @ K @ gamma + lam * (gamma**2 / counts).sum()
    return value, 2 * (1 - lam) * K @ gamma + 2 * lam * gamma / counts


def optimum(K, y, counts, lam):
    """SLSQP over gamma >= 0 with sum 1 in each class, in units of the value at equal weights."""
    start = np.where(y > 0, 1.0 / (y > 0).sum(), 1.0 / (y < 0).sum())
    scale = 1.0 / printed(start, K, lam, counts)[0]
    sums = [
        {"type": "eq", "fun": lambda g, s=s: g[y == s].sum() - 1, "jac": lambda g, s=s: 1.0 * (y == s)} for s in (-1, 1)
    ]
    found = minimize(
        lambda g: tuple(scale * v for v in printed(g, K, lam, counts)),
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0, None)] * len(y),
        constraints=sums,
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    assert found.success
    return found.x, found.fun / scale


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("lam", [0.02, 0.5, 0.9, 1.0])
def test_the_optimum(lam, kernel):
    X, y, counts = sample()
    used = counts > 0
    K = np.outer(y, y)[np.ix_(used, used)] * gram(X[used], kernel)
    gamma, value = optimum(K, y[used], counts[used], lam)
    model = mdlearn.fit(
        "kmomd", X, y, sample_weight=counts, lam=lam, tol=1e-13 if kernel == "linear" else 1e-10, **settings(kernel)
    )
    held = y * model.dual_coef_[0]
    certificate = model.certificate
    assert certificate.objective == pytest.approx(value, rel=1e-8)
    assert certificate.lower_bound <= value * (1 + 1e-8) and certificate.converged
    assert certificate.kind == ("closed form" if lam == 1.0 else "duality gap")
    assert printed(held[used], K, lam, counts[used])[0] == pytest.approx(certificate.objective, rel=1e-12)
    assert held[used] == pytest.approx(gamma, abs=1e-4) and held[~used] == 0
    assert held.min() >= 0 and [held[y == s].sum() for s in (-1, 1)] == pytest.approx([1, 1], rel=1e-12)
    assert model.duals[0] == pytest.approx(held)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_gradient_is_least_where_gamma_is_positive(kernel):
    X, y, _ = sample()
    K, one = np.outer(y, y) * gram(X, kernel), np.ones(len(y))
    model = mdlearn.fit("kmomd", X, y, lam=0.3, tol=1e-14 if kernel == "linear" else 1e-11, **settings(kernel))
    gamma = y * model.dual_coef_[0]
    slope = printed(gamma, K, 0.3, one)[1]
    for side in (-1, 1):
        least = slope[y == side].min()
        assert slope[(y == side) & (gamma > 1e-9)] == pytest.approx(least, abs=1e-9)


def test_no_gamma_falls_below_the_bound_however_early_the_fit_ends():
    X, y, counts = sample()
    used = counts > 0
    K = np.outer(y, y)[np.ix_(used, used)] * gram(X[used], "linear")
    value = optimum(K, y[used], counts[used], 0.1)[1]
    for solver in ("interior", "newton"):
        for steps in (1, 2, 4):
            with warnings.catch_warnings():  # newton may be at the optimum after four steps
                warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
                model = mdlearn.fit(
                    "kmomd", X, y, sample_weight=counts, lam=0.1, solver=solver, max_iter=steps, tol=0.0
                )
            certificate = model.certificate
            assert certificate.lower_bound <= value * (1 + 1e-9) <= certificate.objective * (1 + 2e-9)
            gap = (certificate.objective - certificate.lower_bound) / certificate.objective
            assert certificate.gap == pytest.approx(gap, abs=1e-12)


def test_the_history_is_in_units_of_the_printed_objective():
    X, y, counts = sample()
    model = mdlearn.fit("kmomd", X, y, sample_weight=counts, lam=0.1, tol=1e-12)
    last = model.history[-1]
    assert last.objective == pytest.approx(model.certificate.objective, rel=1e-9)
    for state in model.history:
        assert state.lower_bound <= model.certificate.objective * (1 + 1e-9) <= state.objective * (1 + 2e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_threshold_is_half_way_between_the_weighted_means(kernel):
    X, y, counts = sample()
    model = mdlearn.fit("kmomd", X, y, sample_weight=counts, lam=0.2, **settings(kernel))
    f, gamma = model.decision_function(X), np.abs(model.dual_coef_[0])
    ends = [gamma[y == side] @ f[y == side] for side in (-1, 1)]
    assert ends[0] == pytest.approx(-ends[1], rel=1e-9) and ends[1] > 0
    Z = X[:7] + 0.1
    K = Z @ X.T if kernel == "linear" else np.exp(-GAMMA * ((Z[:, None] - X[None]) ** 2).sum(axis=2))
    assert model.decision_function(Z) == pytest.approx(K @ model.dual_coef_[0] + model.intercept_[0], abs=1e-12)


def test_the_direction_is_that_of_an_svm_with_squared_hinges():
    X, y, counts = sample()
    lam = 0.1
    model = mdlearn.fit("kmomd", X, y, sample_weight=counts, lam=lam, tol=1e-14)
    svm = mdlearn.fit("lsvm", X, y, sample_weight=counts, nu=(1 - lam) / lam, bias="free", tol=1e-14)
    scale = np.abs(svm.dual_coef_[0]).sum() / 2
    assert scale * model.coef_[0] == pytest.approx(svm.coef_[0], abs=1e-7)
    assert model.certificate.objective == pytest.approx(2 * (1 - lam) / svm.certificate.objective, rel=1e-10)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_lam_0_is_the_hard_margin(kernel):
    X, y, _ = sample(shift=1.5)
    model = mdlearn.fit("kmomd", X, y, lam=0.0, tol=1e-12, **settings(kernel))
    svm = mdlearn.fit("svm", X, y, C=np.inf, bias="free", tol=1e-12, **settings(kernel))
    # 1/2 |w|^2 of the SVM, whose margin 1/|w| is half the distance of the hulls.
    assert model.certificate.objective == pytest.approx(2.0 / svm.certificate.objective, rel=1e-9)
    f, g = model.decision_function(X), svm.decision_function(X)
    assert f / np.abs(f).max() == pytest.approx(g / np.abs(g).max(), abs=1e-5)


def test_lam_0_says_that_hulls_intersect():
    X, y, _ = sample()
    for solver in ("auto", "interior"):
        with pytest.raises(ValueError, match=r"with lam=0 the solution is w=0: the convex hulls .* give lam > 0"):
            mdlearn.fit("kmomd", X, y, lam=0.0, solver=solver)
    same = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0], [2.0, 3.0]])
    with pytest.raises(ValueError, match="with lam=0 the solution is w=0"):
        mdlearn.fit("kmomd", same, [0, 1, 0, 1], lam=0.0)


def test_lam_1_is_the_difference_of_the_means():
    X, y, counts = sample()
    model = mdlearn.fit("kmomd", X, y, sample_weight=counts, lam=1.0)
    means = [np.average(X[y == s], axis=0, weights=counts[y == s]) for s in (-1, 1)]
    assert model.coef_[0] == pytest.approx(means[1] - means[0], abs=1e-14)
    assert model.intercept_[0] == pytest.approx(-0.5 * (means[1] - means[0]) @ (means[0] + means[1]), abs=1e-14)
    totals = [counts[y == s].sum() for s in (-1, 1)]
    assert model.certificate.objective == pytest.approx(1 / totals[0] + 1 / totals[1], rel=1e-14)
    assert model.certificate.gap == 0.0


@pytest.mark.parametrize("lam", [0.05, 1.0])
def test_weights_are_repetitions(lam):
    X, y, counts = sample()
    times = counts.astype(int)
    weighted = mdlearn.fit("kmomd", X, y, sample_weight=counts, lam=lam, tol=1e-14)
    repeated = mdlearn.fit("kmomd", np.repeat(X, times, axis=0), np.repeat(y, times), lam=lam, tol=1e-14)
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-12)
    assert weighted.decision_function(X) == pytest.approx(repeated.decision_function(X), abs=1e-7)


@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "fuzzy-min"])
def test_more_than_two_classes(multiclass):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[y] + rng.standard_normal((60, 2))
    model = mdlearn.fit("kmomd", X, y, multiclass=multiclass, kernel="rbf")
    assert model.score(X, y) > 0.9 and model.certificate.converged and len(model.certificate.parts) == 3
    if multiclass == "ovr":
        alone = mdlearn.fit("kmomd", X, y == 2, kernel="rbf")
        assert model.decision_function(X)[:, 2] == pytest.approx(alone.decision_function(X), abs=1e-6)


def test_float32_and_sparse_rows():
    from scipy.sparse import csr_matrix

    X, y, counts = sample()
    wide = mdlearn.fit("kmomd", X.astype(np.float32).astype(float), y, sample_weight=counts)
    single = mdlearn.fit("kmomd", X.astype(np.float32), y, sample_weight=counts, tol=1e-5)
    assert single.coef_.dtype == single.dual_coef_.dtype == np.float32
    assert single.certificate.objective == pytest.approx(wide.certificate.objective, rel=1e-5)
    sparse = mdlearn.fit("kmomd", csr_matrix(X), y, sample_weight=counts, tol=1e-12)
    dense = mdlearn.fit("kmomd", X, y, sample_weight=counts, tol=1e-12)
    assert sparse.decision_function(X) == pytest.approx(dense.decision_function(X), abs=1e-6)


def test_it_can_be_saved_and_stopped(tmp_path):
    X, y, counts = sample()
    model = mdlearn.fit("kmomd", X, y, sample_weight=counts, kernel="rbf")
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate == model.certificate
    assert again.certificate.vouched_by == "mdlearn_baselines.kmomd.HullProblem"
    for kernel in ("linear", "rbf"):
        with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
            stopped = mdlearn.fit("kmomd", X, y, kernel=kernel, time_limit=0.0)
        assert not stopped.certificate.converged and np.isfinite(stopped.decision_function(X)).all()
        if kernel == "linear":  # gamma is what the certificate is of
            gamma, sign = stopped.duals.reshape(-1), np.where(y == stopped.classes_[1], 1.0, -1.0)
            value = 0.9 * np.sum((sign * gamma @ X) ** 2) + 0.1 * gamma @ gamma
            assert stopped.certificate.objective == pytest.approx(value, rel=1e-9)


def test_arguments():
    X, y, _ = sample()
    for bias in ("none", "regularized"):
        with pytest.raises(ValueError, match=f"'kmomd' has a threshold of its own; got bias='{bias}'"):
            mdlearn.fit("kmomd", X, y, bias=bias)
    for lam in (-0.1, 1.1):
        with pytest.raises(ValueError, match="lam needs to be"):
            mdlearn.fit("kmomd", X, y, lam=lam)
    for lam in (1e-15, 1 - 1e-15):
        assert np.isfinite(mdlearn.fit("kmomd", *sample(shift=1.5)[:2], lam=lam).coef_).all()
