"""C = inf (hard margin) on separable data, recognised where there is no such solution; C = 0."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from judging import engine_names, kernel_of, quiet_fit, recomputed, true_optimum
from reference import kernel_optimum, optimum
from scipy.optimize import linprog

import mdlearn
from mdlearn.forms.certificates.separability import RELATIVE_MARGIN

BIASES = ("none", "regularized", "free")
INF = float("inf")


def separable(m=40, d=3, seed=0, gap=0.3, offset=0.0):
    """Rows on both sides of a plane through `offset`, at least `gap` away from it."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(np.arange(m) % 3 == 0, 1, -1)
    X[:, 0] = y * (gap + np.abs(X[:, 0])) + offset
    return X, y


def judge(model, X, y, settings, weight=None, relative=1e-8):
    """Feasible, optimal, and certified: the upper value is taken at w / min z."""
    answer = true_optimum(X, y, settings, weight)
    scale = max(abs(answer.value), abs(answer.bound), 1e-300)
    z = y * model.decision_function(X)
    assert z.min() >= 1 - 1e-6
    held, _ = recomputed(model, X, y, settings, weight)
    c = model.certificate
    assert c.objective == pytest.approx(answer.value, abs=relative * scale)
    assert held == pytest.approx(answer.value, abs=max(relative, 4 * abs(1 - z.min())) * scale)
    assert c.lower_bound <= answer.value + 1e-10 * scale
    assert c.objective >= answer.bound - 1e-10 * scale
    assert c.gap == pytest.approx((c.objective - c.lower_bound) / max(abs(c.objective), abs(c.lower_bound)), abs=1e-15)
    return answer


@pytest.mark.slow
@pytest.mark.parametrize("hyper", [(0.0, 0.0), (0.5, 0.0), (0.0, 0.2), (2.0, 0.7), (100.0, 1.0)], ids=str)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_hard_margin_ldm(kernel, bias, hyper):
    X, y = separable()
    shape = {"linear": {}, "rbf": {"gamma": 0.5}, "poly": {"gamma": 0.5, "degree": 3, "coef0": 1.0}}[kernel]
    settings = {"kernel": kernel, "bias": bias, "C": INF, "lambda1": hyper[0], "lambda2": hyper[1], **shape}
    model = mdlearn.fit("ldm", X, y, tol=1e-11, **settings)
    judge(model, X, y, settings)
    assert (model.duals >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hard_margin_svm_in_every_engine(kernel, bias, weighted):
    X, y = separable(seed=1)
    weight = np.random.default_rng(2).exponential(1.0, len(y)) if weighted else None
    settings = {"kernel": kernel, "bias": bias, "C": INF}
    if kernel == "rbf":
        settings["gamma"] = 0.7
    ran = []
    for solver in ("auto", *engine_names()):
        try:
            model = mdlearn.fit("svm", X, y, solver=solver, sample_weight=weight, tol=1e-11, **settings)
        except ValueError as error:
            assert solver != "auto" and "use one of" in str(error), f"{solver}: {error}"
            continue
        judge(model, X, y, settings, weight)
        ran.append(solver)
    assert len(ran) >= 2


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_hard_margin_is_the_limit_of_a_huge_cost(kernel):
    X, y = separable(seed=3)
    shape = {"gamma": 0.7} if kernel == "rbf" else {}
    given = {"kernel": kernel, "bias": "regularized", "lambda1": 0.3, "lambda2": 0.1, "tol": 1e-12, **shape}
    hard = mdlearn.fit("ldm", X, y, C=INF, **given)
    soft = mdlearn.fit("ldm", X, y, C=1e4 * max(1.0, hard.duals.max()), **given)
    np.testing.assert_allclose(hard.decision_function(X), soft.decision_function(X), rtol=1e-6, atol=1e-6)


def test_defaults_of_lambda_at_the_ends_of_C():
    """lambda1 = C m / 256, but 0 where C is 0 or inf."""
    X, y = separable()
    for C in (INF, 0.0):
        params = mdlearn.fit("ldm", X, y, C=C).params
        assert params["lambda1"] == 0 and params["lambda2"] == 0 and params["C"] == C


@pytest.mark.parametrize("gap", [1e-3, 1e-2, 1.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_separable_by_little(gap, scale):
    X, y = separable(m=30, d=2, seed=4, gap=gap)
    X = X * scale
    settings = {"bias": "free", "C": INF, "lambda1": 0.0, "lambda2": 0.0}
    model = quiet_fit("ldm", X, y, tol=1e-10, **settings)
    judge(model, X, y, settings)


def lp_margin(X, y, bias):
    """max t with z >= t over the box |w| <= 1 (rows scaled to 1): positive exactly when the rows are separable."""
    R = y[:, None] * (np.column_stack([X, np.ones(len(y))]) if bias != "none" else X)
    columns = np.abs(R).max(axis=0)
    R = R / np.where(columns > 0, columns, 1.0)
    found = linprog(
        np.append(np.zeros(R.shape[1]), -1.0),
        A_ub=np.column_stack([-R, np.ones(len(y))]),
        b_ub=np.zeros(len(y)),
        bounds=[(-1, 1)] * R.shape[1] + [(None, 1)],
    )
    return -found.fun


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(90))
def test_random_rows_against_a_linear_program(seed):
    """Separable or not, as the program says; then the optimum, or the error."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(2, 40)), int(rng.integers(1, 8))
    X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-3, 3)
    noise = 0.3 * np.abs(X).max() * rng.standard_normal(m) if seed % 2 else 0.0
    y = np.where(X @ rng.standard_normal(d) + noise >= 0, 1, -1)
    y[:2] = 1, -1
    bias = BIASES[seed % 3]
    lambda1 = float(rng.choice([0.0, 10.0 ** rng.uniform(-4, 3)]))
    settings = {"bias": bias, "C": INF, "lambda1": lambda1, "lambda2": 10.0 ** rng.uniform(-4, 1)}
    margin = lp_margin(X, y, bias)
    assert not 1e-10 < abs(margin) < 1e-5, "too close to call: change the seed"
    if margin > 1e-10:
        judge(mdlearn.fit("ldm", X, y, tol=1e-9, **settings), X, y, settings)
    else:
        with pytest.raises(ValueError, match="separ"):
            mdlearn.fit("ldm", X, y, **settings)


def test_needs_the_bias_to_be_separable():
    """A plane away from the origin: separable with a bias, not without."""
    X, y = separable(d=1, seed=5, offset=5.0)
    free = {"bias": "free", "C": INF}
    judge(mdlearn.fit("svm", X, y, tol=1e-11, **free), X, y, free)
    with pytest.raises(ValueError, match="separ"):
        mdlearn.fit("svm", X, y, bias="none", C=INF)


def inseparable(name):
    X, y = separable(m=30, seed=6)
    if name == "one conflicting duplicate":
        X, y = np.vstack([X, X[4]]), np.append(y, -y[4])
    elif name == "overlapping":
        y = np.where(np.random.default_rng(0).random(30) < 0.5, 1, -1)
        X, y = np.tile(X, (3, 1)) + 0.01, np.concatenate([y, -y, y])
    elif name == "barely":
        X = X[:, :1] * np.ones(1)
        X[y == 1] = np.maximum(X[y == 1], 0.5)
        X[y == -1] = np.minimum(X[y == -1], 0.5)
        X[0], X[1] = 0.5 - 1e-3, 0.5 + 1e-3  # row 0 is +1 and row 1 is -1, on the wrong sides by a thousandth
    elif name == "all rows equal":
        X = np.tile(X[:1], (30, 1))
    return X, y


@pytest.mark.parametrize("lambdas", [(0.0, 0.0), (0.5, 0.2)], ids=str)
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("one conflicting duplicate", "linear"),
        ("one conflicting duplicate", "rbf"),
        ("overlapping", "linear"),
        ("overlapping", "rbf"),
        ("barely", "linear"),  # by rbf, distinct rows are always separable
        ("all rows equal", "linear"),
        ("all rows equal", "rbf"),
    ],
)
def test_inseparable_data_is_recognised(name, kernel, bias, lambdas):
    X, y = inseparable(name)
    shape = {"gamma": 0.5} if kernel == "rbf" else {}
    with pytest.raises(ValueError, match="separ") as caught:
        mdlearn.fit("ldm", X, y, kernel=kernel, bias=bias, C=INF, lambda1=lambdas[0], lambda2=lambdas[1], **shape)
    assert "C" in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("solver", ["auto", "cd", "interior"])
def test_inseparable_data_is_recognised_by_each_engine(solver):
    X, y = inseparable("one conflicting duplicate")
    with pytest.raises(ValueError, match="separ"):
        mdlearn.fit("svm", X, y, bias="regularized", C=INF, solver=solver)


def test_a_zero_row_without_bias_is_inseparable():
    X, y = separable()
    X[7] = 0.0
    with pytest.raises(ValueError, match="separ"):
        mdlearn.fit("svm", X, y, bias="none", C=INF)
    with_one = np.column_stack([X, np.ones(len(y))])
    model = mdlearn.fit("svm", with_one, y, bias="none", C=INF, tol=1e-10)
    assert (y * model.decision_function(with_one)).min() > 1 - 1e-6


def test_one_class_of_three_is_inseparable_from_the_rest():
    X = np.array([[-2.0], [-1.5], [0.0], [0.2], [1.5], [2.0]])
    with pytest.raises(ValueError, match="separ"):
        mdlearn.fit("svm", X, [0, 0, 1, 1, 2, 2], C=INF, bias="free")


def test_separable_multiclass():
    rng = np.random.default_rng(7)
    centres = np.array([[0.0, 5.0], [5.0, -4.0], [-5.0, -4.0]])
    y = np.arange(45) % 3
    X = centres[y] + rng.uniform(-1, 1, (45, 2))
    model = mdlearn.fit("svm", X, y, C=INF, bias="free", tol=1e-11)
    total = sum(optimum(X, np.where(y == k, 1, -1), C=INF, bias="free").value for k in range(3))
    assert model.certificate.objective == pytest.approx(total, rel=1e-8)


def test_by_hand():
    """Rows -1 and 3 in one dimension, free bias: w = 1/2, b = -1/2, multipliers w^2 / 2 = 1/8 each."""
    model = mdlearn.fit("svm", [[-1.0], [3.0]], [0, 1], C=INF, bias="free", tol=1e-12)
    assert model.coef_[0, 0] == pytest.approx(0.5, rel=1e-8)
    assert model.intercept_[0] == pytest.approx(-0.5, rel=1e-8)
    np.testing.assert_allclose(model.duals, [[0.125, 0.125]], rtol=1e-6)
    assert model.certificate.objective == pytest.approx(0.125, rel=1e-10)


# ---------------------------------------------------------------- C = 0


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_loss_and_no_variance_is_the_mean_classifier(kernel, bias):
    """SPEC 7, MAMC: C = 0 and lambda1 = 0 give w = lambda2 / m sum_i y_i phi(x_i)."""
    X, y = separable(seed=8)
    settings = {"kernel": kernel, "bias": bias, "C": 0.0, "lambda1": 0.0, "lambda2": 3.0}
    if kernel == "rbf":
        settings["gamma"] = 0.5
    model = mdlearn.fit("ldm", X, y, tol=1e-12, **settings)
    np.testing.assert_allclose(model.dual_coef_[0], 3.0 * y / len(y), rtol=1e-9)
    G = kernel_of(X, settings)
    G = (X @ X.T if G is None else G).astype(float) + (1.0 if bias == "regularized" else 0.0)
    np.testing.assert_allclose(model.decision_function(X), G @ (3.0 * y / len(y)), rtol=1e-9, atol=1e-12)
    assert model.certificate.objective == pytest.approx(-4.5 * y @ G @ y / len(y) ** 2, rel=1e-10)
    assert (model.duals == 0).all() and model.certificate.converged


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_no_loss_with_variance(kernel, bias):
    X, y = separable(seed=9)
    settings = {"kernel": kernel, "bias": bias, "C": 0.0, "lambda1": 2.0, "lambda2": 1.0}
    if kernel == "rbf":
        settings["gamma"] = 0.5
    model = mdlearn.fit("ldm", X, y, tol=1e-12, **settings)
    parts = {"C": 0.0, "lambda1": 2.0, "lambda2": 1.0, "bias": bias}
    answer = optimum(X, y, **parts) if kernel == "linear" else kernel_optimum(kernel_of(X, settings), y, **parts)
    assert model.certificate.objective == pytest.approx(answer.value, rel=1e-9)
    np.testing.assert_allclose(y * model.decision_function(X), answer.margins.astype(float), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_nothing_to_minimise_but_the_norm(bias):
    """svm with C = 0: w = 0, objective 0, f = 0 everywhere, hence the second label."""
    X, y = separable()
    model = mdlearn.fit("svm", X, y, C=0.0, bias=bias)
    assert (model.coef_ == 0).all() and (model.intercept_ == 0).all()
    assert model.certificate.objective == 0 and model.certificate.gap == 0 and model.certificate.converged
    assert (model.predict(X) == 1).all()


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nothing_to_minimise_with_a_free_bias(kernel):
    """Every intercept is optimal: any finite one will do."""
    X, y = separable()
    model = mdlearn.fit("svm", X, y, C=0.0, bias="free", kernel=kernel)
    assert np.isfinite(model.intercept_).all() and (model.dual_coef_ == 0).all()
    assert model.certificate.objective == 0 and model.certificate.converged


def test_no_loss_with_a_free_bias_needs_equal_classes():
    X, y = separable(m=30)  # 10 against 20
    with pytest.raises(ValueError, match="lambda2"):
        mdlearn.fit("ldm", X, y, C=0.0, lambda1=0.0, lambda2=1.0, bias="free")
    balanced = np.where(np.arange(30) % 2 == 0, 1, -1)
    model = mdlearn.fit("ldm", X, balanced, C=0.0, lambda1=0.0, lambda2=1.0, bias="free", tol=1e-10)
    mean = (balanced[:, None] * X).mean(axis=0)
    np.testing.assert_allclose(model.coef_[0], mean, rtol=1e-8)
    assert model.certificate.objective == pytest.approx(-mean @ mean / 2, rel=1e-9)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("tol", [0.3, 1e-2])
def test_both_kinds_of_coefficients_say_the_same(tol, bias):
    """A point that is scaled until constraints hold takes its dual coefficients along."""
    rng = np.random.default_rng(1)
    for _ in range(5):
        X = rng.standard_normal((12, 5))
        y = np.where(X @ rng.standard_normal(5) > 0, 1.0, -1.0)
        model = mdlearn.fit("ldm", X, y, C=np.inf, lambda1=0.5, lambda2=0.5, bias=bias, tol=tol)
        np.testing.assert_allclose(model.dual_coef_ @ X, model.coef_, rtol=1e-9, atol=1e-9 * np.abs(model.coef_).max())
        assert (y * model.decision_function(X)).min() >= 1.0 - 1e-12


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("bias", ["regularized", "free"])
@pytest.mark.parametrize("seed", [1, 2, 3, 5])
def test_rows_that_rounding_hardly_tells_apart(seed, bias):
    """Weights are refused where repeated rows are, but for margins that are the limit itself: a gap moves these."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, 2))
    y, counts = np.where(rng.standard_normal(12) > 0, 1, -1), rng.integers(1, 4, 12)
    at, ends = np.repeat(np.arange(12), counts), set()
    for width in 10.0 ** np.arange(-9.0, -1.0, 0.5):
        G = np.exp(-width * ((X[:, None] - X[None]) ** 2).sum(axis=2))
        margins = []
        for K, labels, weight in ((G, y, counts), (G[np.ix_(at, at)], y[at], None)):
            try:
                model = mdlearn.fit("svm", K, labels, kernel="precomputed", C=np.inf, bias=bias, sample_weight=weight)
                margins.append((2.0 * model.certificate.objective) ** -0.5)
            except ValueError as error:
                assert "C=inf asks every margin to be at least 1" in str(error)
                margins.append(0.0)
        if min(margins) == 0.0 < max(margins):
            assert max(margins) < 1.2 * RELATIVE_MARGIN, width
        else:
            ends.add(margins[0] == 0.0)
    assert ends == {True, False}


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
def test_few_steps_refuse_nothing_that_more_steps_solve():
    """A linear program of an ill-conditioned Gram matrix said that rows with a margin of 5e-6 are not separable."""
    X = np.column_stack([np.random.default_rng(0).standard_normal((5, 6)), np.full(5, 1e5)])
    y, given = np.arange(5) % 2, {"kernel": "poly", "gamma": 1.5e-11, "degree": 2, "coef0": 1.0}
    given |= {"C": np.inf, "bias": "none", "lambda1": 100.0, "lambda2": 3.0}
    whole, *few = (mdlearn.fit("ldm", X, y, max_iter=n, **given) for n in (None, 2, 5))
    assert whole.certificate.gap < 1e-3
    assert all(model.certificate.objective >= whole.certificate.lower_bound for model in few)


@pytest.mark.parametrize("solver", ["interior", "cd"])
def test_an_engine_without_exponents_says_nothing_of_the_rows(solver):
    """Rows are separable whatever their unit is: what overflowed was the stiffness of a finish."""
    X, y = separable()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        model = mdlearn.fit("svm", 1e-153 * X, y, C=INF, bias="none", solver=solver)
    plain = mdlearn.fit("svm", X, y, C=INF, bias="none")
    certificate = model.certificate
    assert (
        certificate.lower_bound
        <= 1e306 * plain.certificate.objective * (1 + 1e-6)
        <= certificate.objective * (1 + 2e-6)
    )
