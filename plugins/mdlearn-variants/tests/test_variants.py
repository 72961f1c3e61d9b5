"""Promises of every objective, and properties that set the convex variants apart."""

import numpy as np
import pytest
from mdlearn_variants import CCCP, HuberVariance, MSVMAv, PinballLDM, RampLDM, mdlearn_objectives
from scipy.optimize import minimize

import mdlearn
from mdlearn.testing import check_solver, parametrize_with_checks

OBJECTIVES = mdlearn_objectives()
OTHERS = [RampLDM(C=3.0, s=0.5, lambda1=5.0), PinballLDM(tau=1.0), HuberVariance(lambda1=2.0)]


@parametrize_with_checks([*OBJECTIVES, *OTHERS, MSVMAv(lambda1=0.0, lambda2=1.0)])
def test_conformance(objective, check):
    check(objective)


def test_the_engine():
    check_solver(CCCP, [RampLDM])


def test_registered():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "mdlearn-variants"]
    assert record.objectives == tuple(one.name for one in OBJECTIVES)
    assert (record.solvers, record.state) == (("cccp",), "ok")


# ---------------------------------------------------------------- costs


@pytest.mark.parametrize("name", ["fuzzy_svm", "cost_ldm"])
def test_costs_go_by_label_in_every_way_of_several_classes(sample, name):
    X, _, numbers, _, _ = sample(0, m=60)
    y = np.array(["c", "a", "b"])[np.digitize(numbers, [0.5, 1.5])]
    given = {"b": 5.0, "c": 0.5}
    by_row = np.array([given.get(label, 1.0) for label in y])
    for way in ("ovr", "ovo"):
        by_class = mdlearn.fit(name, X, y, multiclass=way, class_costs=given)
        same = mdlearn.fit(name, X, y, multiclass=way, costs=by_row)
        assert np.array_equal(by_class.decision_function(X), same.decision_function(X))
        assert not np.allclose(same.decision_function(X), mdlearn.fit(name, X, y, multiclass=way).decision_function(X))


def test_costs_are_weights_for_the_svm_and_not_for_the_ldm(sample):
    X, y, _, counts, _ = sample(1, m=60)
    for name, plain, equal in (("fuzzy_svm", "svm", True), ("cost_ldm", "ldm", False)):
        given = {} if equal else {"lambda1": 5.0, "lambda2": 1.0}
        costly = mdlearn.fit(name, X, y, costs=counts, tol=1e-11, **given)
        weighted = mdlearn.fit(plain, X, y, sample_weight=counts, tol=1e-11, **given)
        assert np.allclose(costly.decision_function(X), weighted.decision_function(X), atol=1e-4) == equal


def test_costs_in_files_and_of_a_wrong_kind(sample, tmp_path):
    X, y, _, counts, _ = sample(2)
    model = mdlearn.fit("cost_ldm", X, y, costs=counts, class_costs={-1: 2, np.int64(1): 3.0})
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert again.params["class_costs"] == [[-1, 2.0], [1, 3.0]] and np.array_equal(again.params["costs"], counts)
    with pytest.raises(ValueError, match="costs needs to be numbers >= 0; the smallest is -1"):
        mdlearn.fit("cost_ldm", X, y, costs=-np.ones(len(y)))
    with pytest.raises(ValueError, match=r"costs needs one number per row of X, shape \(14,\); got shape \(3,\)"):
        mdlearn.fit("cost_ldm", X, y, costs=np.ones(3))
    with pytest.raises(TypeError, match="class_costs needs to be a mapping from labels to numbers >= 0; got float"):
        mdlearn.fit("cost_ldm", X, y, class_costs=2.0)
    with pytest.raises(ValueError, match=r"class_costs\[1\] needs to be .*>= 0"):
        mdlearn.fit("cost_ldm", X, y, class_costs={1: -2.0})


@pytest.mark.parametrize("name", ["fuzzy_svm", "cost_ldm"])
def test_costs_over_row_blocks(sample, name):
    X, y, _, counts, _ = sample(1, m=60)
    given = {"costs": np.linspace(0.0, 3.0, 60), "class_costs": {1: 0.4}, "tol": 1e-9}
    blocks = [(X[part], y[part], counts[part]) for part in (slice(0, 25), slice(25, 60))]
    streamed = mdlearn.fit(name, blocks, None, **given).certificate
    whole = mdlearn.fit(name, X, y, sample_weight=counts, **given).certificate
    assert streamed.converged and streamed.objective == pytest.approx(whole.objective, rel=2e-9)
    assert streamed.lower_bound <= whole.objective * (1.0 + 1e-13)


@pytest.mark.parametrize("name", ["one_class_svm", "one_class_ldm"])
def test_one_class_over_row_blocks(sample, name):
    X, _, _, counts, _ = sample(1, m=60)
    blocks = [(X[part], None, counts[part]) for part in (slice(0, 25), slice(25, 60))]
    streamed = mdlearn.fit(name, blocks, None, tol=1e-9)
    whole = mdlearn.fit(name, X, None, sample_weight=counts, tol=1e-9)
    assert streamed.certificate.converged and type(streamed) is type(whole)
    assert streamed.certificate.objective == pytest.approx(whole.certificate.objective, rel=2e-9)


# ---------------------------------------------------------------- quantiles and Huber


@pytest.mark.parametrize("lambda1", [0.0, 10.0])
@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_shares_below_and_above_the_quantile(sample, tau, lambda1):
    X, _, numbers, _, _ = sample(3, m=200)
    model = mdlearn.fit("quantile_variance", X, numbers, tau=tau, lambda1=lambda1, bias="free", tol=1e-12)
    away = numbers - model.predict(X)
    assert np.mean(away < -1e-6) <= tau + 1e-12 and np.mean(away > 1e-6) <= 1 - tau + 1e-12


def test_pinball_without_its_second_side_is_the_hinge(sample):
    X, y, _, counts, _ = sample(4, m=60)
    for name in ("svm", "ldm"):
        ours = mdlearn.fit(f"pinball_{name}", X, y, tau=0.0, sample_weight=counts, tol=1e-11)
        plain = mdlearn.fit(name, X, y, sample_weight=counts, tol=1e-11)
        assert ours.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-10)


def test_a_wide_huber_is_ridge_regression_and_a_narrow_one_ignores_outliers(sample):
    X, _, numbers, _, _ = sample(5, m=100)
    wide = mdlearn.fit("huber_variance", X, numbers, C=2.0, delta=1e6, bias="none", tol=1e-13)
    w = np.linalg.solve(np.eye(3) + 2.0 * X.T @ X, 2.0 * X.T @ numbers)
    assert wide.coef_[0] == pytest.approx(w, rel=1e-8)
    x = np.linspace(-3, 3, 100)[:, None]
    y = 2.0 * x[:, 0]
    y[:8] += 60.0
    narrow, wide = (mdlearn.fit("huber_variance", x, y, C=10.0, delta=delta).coef_[0, 0] for delta in (0.1, 1e6))
    assert abs(narrow - 2.0) < 0.2 < 1.0 < abs(wide - 2.0)


# ---------------------------------------------------------------- MSVMAv, groups, one class


def test_msvmav_in_closed_form_and_in_proportion(sample):
    X, y, _, counts, _ = sample(6, m=40)
    plain = mdlearn.fit("msvmav", X, y, sample_weight=counts, lambda1=0.0, lambda2=3.0, bias="none")
    assert plain.coef_[0] == pytest.approx(3.0 * (counts * y) @ X / counts.sum(), rel=1e-8)
    one, two = (mdlearn.fit("msvmav", X, y, lambda1=9.0, lambda2=a, tol=1e-13) for a in (1.0, 2.0))
    assert two.decision_function(X) == pytest.approx(2.0 * one.decision_function(X), abs=1e-5)


def test_several_classes_at_once_are_each_against_the_rest(sample):
    X, _, numbers, counts, _ = sample(7, m=60)
    y = np.digitize(numbers, [0.5, 1.5])
    for name, given in (("msvmav", {}), ("group_lasso_ldm", {"groups": [1, 1, 0], "C": 0.2})):
        given = {**given, "lambda1": 3.0, "lambda2": 1.0, "sample_weight": counts, "tol": 1e-13}
        joint = mdlearn.fit(name, X, y, **given).decision_function(X)
        for label in range(3):
            single = mdlearn.fit(name, X, y == label, **given).decision_function(X)
            assert joint[:, label] == pytest.approx(single, abs=1e-5)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("msvmav", {"lambda1": 1e5}),
        ("group_lasso_svm", {"C": 30.0, "groups": np.repeat([0, 1, 2], 4), "group": 100.0}),
        ("group_lasso_ldm", {"lambda1": 300.0, "groups": np.repeat([0, 1, 2], 4), "group": 30.0}),
    ],
)
def test_second_derivatives_spare_thousands_of_steps(name, given):
    """First-order steps alone take thousands on columns that are nearly the same."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((200, 1))
    X = 1.0 + common + 0.1 * rng.standard_normal((200, 12))
    y = np.where(common[:, 0] + 0.3 * rng.standard_normal(200) > 0, 1, -1)
    model = mdlearn.fit(name, X, y, tol=1e-12, **given)
    assert model.certificate.converged and model.n_iter < 300


def test_what_groups_and_biases_are_refused(sample):
    X, y, _, _, _ = sample(8)
    with pytest.raises(ValueError, match="groups needs a number for each of the 3 features; got 2"):
        mdlearn.fit("group_lasso_svm", X, y, groups=[0, 1])
    with pytest.raises(TypeError, match="groups needs to be a whole number for each feature; got an array of float64"):
        mdlearn.fit("group_lasso_svm", X, y, groups=[0.5, 1.0, 2.0])
    for name in ("group_lasso_ldm", "msvmav"):
        with pytest.raises(ValueError, match="a free bias has no square"):
            mdlearn.fit(name, X, y, bias="free")


@pytest.mark.parametrize("C", [0.02, 0.2])
def test_the_one_class_svm_of_the_paper(sample, C):
    """v = rho w solves 1/2 |v|^2 - rho + 1/(nu m) sum max(0, rho - v.x), with rho and nu from the multipliers."""
    X = sample(9, m=20)[0] + 1.5
    m, d = X.shape
    model = mdlearn.fit("one_class_svm", X, None, C=C, tol=1e-13)
    total = float(model.dual_coef_.sum())
    rho, nu = 1.0 / total, total / (C * m)
    weights = np.append(np.zeros(d + 1), np.full(m, 1.0 / (nu * m)))
    room = {"type": "ineq", "fun": lambda x: X @ x[:d] - x[d] + x[d + 1 :]}
    room["jac"] = lambda x: np.hstack([X, -np.ones((m, 1)), np.eye(m)])

    def paper(x):
        slope = np.concatenate([x[:d], [-1.0], np.zeros(m)]) + weights
        return 0.5 * x[:d] @ x[:d] - x[d] + weights @ x, slope

    bounds = [(None, None)] * (d + 1) + [(0, None)] * m
    found = minimize(paper, np.zeros(d + 1 + m), jac=True, bounds=bounds, constraints=room, method="SLSQP",
                     options={"ftol": 1e-15, "maxiter": 1000})  # fmt: skip
    v = rho * model.coef_[0]
    ours = 0.5 * v @ v - rho + np.maximum(0.0, rho - X @ v).sum() / (nu * m)
    assert ours == pytest.approx(found.fun, rel=1e-7) and v == pytest.approx(found.x[:d], abs=1e-4)


def test_outliers_of_one_class():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    strange = np.array([[6.0, 6.0], [-5.0, 5.0]])
    for name in ("one_class_svm", "one_class_ldm"):
        model = mdlearn.fit(name, X, None, C=0.05, kernel="rbf", gamma=0.3)
        assert 1.0 > model.score(X) > 0.5 and model.score(X) == (model.decision_function(X) >= 1 - 1e-6).mean()
        assert (model.predict(strange) == -1).all() and (model.margins(strange) < -0.9).all()


def test_one_class_has_no_free_bias(sample):
    for name in ("one_class_svm", "one_class_ldm"):
        with pytest.raises(ValueError, match="a free bias alone reaches the level on all rows"):
            mdlearn.fit(name, sample(0)[0], None, bias="free")


@pytest.mark.parametrize("name", ["one_class_svm", "one_class_ldm", "ordinal_svm", "ordinal_ldm", "rank_svm"])
def test_files_of_models_with_a_task_of_their_own(name, sample, tmp_path):
    X, _, numbers, counts, _ = sample(3)
    labels = np.array(["a", "b", "c"])[np.digitize(numbers, [0.5, 1.5])]
    y = {"o": None, "r": numbers}.get(name[0]) if name[1] != "r" else labels
    model = mdlearn.fit(name, X, y, sample_weight=counts)
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert type(again) is type(model) and again.task == model.task
    assert np.array_equal(again.predict(X), model.predict(X)) and again.score(X, y, counts) == model.score(X, y, counts)
    if name != "rank_svm":
        assert np.array_equal(again.margins(X, y, normalized=True), model.margins(X, y, normalized=True))


# ---------------------------------------------------------------- classes in an order


def test_an_order_is_learnt_with_one_function():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    y = np.digitize(X[:, 0], [-1.0, 0.2, 1.1])
    model = mdlearn.fit("ordinal_svm", X, y, C=10.0)
    scale = model.coef_[0, 0]
    assert model.thresholds_ / scale == pytest.approx([-1.0, 0.2, 1.1], abs=0.1)
    assert model.score(X, y) > -0.05 and (np.diff(model.thresholds_) >= 0).all()
    assert np.array_equal(model.predict(X), (X @ model.coef_[0] >= model.thresholds_[:, None]).sum(axis=0))
    assert ((model.margins(X, y) > 0) == (model.predict(X) == y)).all()
    # Multipliers by place, and coefficients over the rows of X.
    assert model.duals.shape == (1, 3, 300) and model.dual_coef_[0] @ X == pytest.approx(model.coef_[0], abs=1e-9)


def test_two_classes_in_an_order_are_the_svm_with_a_regularized_bias(sample):
    X, y, _, counts, _ = sample(4, m=60)
    ours = mdlearn.fit("ordinal_svm", X, y, sample_weight=counts, tol=1e-12)
    plain = mdlearn.fit("svm", X, y, sample_weight=counts, tol=1e-12)
    assert ours.certificate.objective == pytest.approx(plain.certificate.objective, rel=1e-10)
    assert ours.decision_function(X) - ours.thresholds_ == pytest.approx(plain.decision_function(X), abs=1e-4)


def test_starts_of_ordinal_fits(sample):
    X, _, numbers, _, _ = sample(5, m=60)
    y = np.digitize(numbers, [0.5, 1.5])
    first = mdlearn.fit("ordinal_ldm", X, y, C=0.1)
    warm = mdlearn.fit("ordinal_ldm", X, y, C=1.0, warm_start=first, tol=1e-10)
    (path,) = mdlearn.fit_path("ordinal_ldm", X, y, grid={"C": [0.1, 1.0]}, tol=1e-10)[1:]
    cold = mdlearn.fit("ordinal_ldm", X, y, C=1.0, tol=1e-10)
    for model in (warm, path):
        assert model.certificate.objective == pytest.approx(cold.certificate.objective, rel=1e-9)


# ---------------------------------------------------------------- rows in an order


def test_only_the_order_within_queries_counts(sample):
    X, _, numbers, counts, _ = sample(6, m=40)
    query = np.repeat([3, 8], 20)
    model = mdlearn.fit("rank_svm", X, numbers, sample_weight=counts, query=query, tol=1e-12)
    moved = np.exp(numbers) + 100.0 * (query == 3)
    same = mdlearn.fit("rank_svm", X, moved, sample_weight=counts, query=query, tol=1e-12)
    assert np.array_equal(same.coef_, model.coef_)
    assert model.dual_coef_[0] @ X == pytest.approx(model.coef_[0], abs=1e-9)
    assert abs(model.dual_coef_.sum()) < 1e-9 and model.score(X, numbers, query=query) > 0.7
    assert model.score(X, numbers, query=query) != model.score(X, numbers)


def test_what_cannot_be_ranked(sample):
    X, _, numbers, _, _ = sample(7)
    with pytest.raises(ValueError, match="no two rows of a query have different y"):
        mdlearn.fit("rank_svm", X, np.ones(14))
    with pytest.raises(ValueError, match="differences of rows have no bias; got bias='free'"):
        mdlearn.fit("rank_svm", X, numbers, bias="free")
    with pytest.raises(TypeError, match="a ranking has margins of pairs"):
        mdlearn.fit("rank_svm", X, numbers).margins(X, numbers)
