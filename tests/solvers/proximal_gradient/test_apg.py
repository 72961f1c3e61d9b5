"""The engine apg: its pieces against their definitions, Algorithm 1 as printed, batches, and problems of others."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from mdlm_paper import PAPER, algorithm1, fit_paper, gradient, optimum, sample, signs_of, smooth
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn._solvers import apg as kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import check_data
from mdlearn.forms.joint import decision_composite
from mdlearn.forms.joint.margin_composite import MarginComposite
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.proximal_gradient.solver import published_batch_smoothness, published_steps


def composite(bias="none", k=3, loss=None, weights=None, **given):
    """MarginComposite of an MDLM, or of another loss."""
    X, y = sample(k)
    data = check_data(X, y, weights, None, square=False)
    p = {**PAPER, **given}
    terms = loss or (LogisticTerm(1.0 / data.total, p["alpha"], 1.0),)
    columns = tuple(Column(s, data.counts, p["lambda1"], p["lambda2"], terms) for s in signs_of(y).T)
    form = MarginForm(LinearFeatures(data.X), columns, bias, float(p["ridge"] > 0), 1.0, p["beta"], True)
    return MarginComposite(form, columns), X, y, p


# ---------------------------------------------------------------- values, gradients, prox

LOSSES = {
    "logistic": None,
    "squared hinge": (HingeTerm(0.3, power=2),),
    "band and logistic": (
        HingeTerm(0.3, threshold=0.5, power=2),
        HingeTerm(0.2, side=-1, threshold=0.8, power=2),
        LogisticTerm(0.1, 3.0, 0.2),
    ),
}


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_value_gradient_and_product(loss, bias):
    """Against the columns' own values, and differences of these."""
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    problem, X, _, _ = composite(bias, loss=loss, weights=weights, ridge=1.0)
    rng = np.random.default_rng(0)
    W, V = rng.standard_normal(problem.shape), rng.standard_normal(problem.shape)

    def value(W):
        f = X @ W[:5] + (W[5] if bias != "none" else 0.0)
        total = sum(c.distribution_value(c.y * f[:, j]) for j, c in enumerate(problem.columns))
        return total + 0.5 * (W**2).sum() - (0.5 * (W[5] ** 2).sum() if bias == "free" else 0.0)

    look, h = problem.at(W), 1e-5
    assert problem.smooth(look) == pytest.approx(value(W), rel=1e-12)
    slope = (value(W + h * V) - value(W - h * V)) / (2 * h)
    assert (problem.slope(look) * V).sum() == pytest.approx(slope, rel=1e-7)
    change = problem.slope(problem.at(W + h * V)) - problem.slope(problem.at(W - h * V))
    assert problem.product(look)(V) == pytest.approx(change / (2 * h), abs=1e-5)
    assert problem.lipschitz() >= (problem.product(look)(V) * V).sum() / (V**2).sum()


def test_the_gradient_of_the_specification():
    problem, X, y, p = composite()
    W = np.random.default_rng(0).standard_normal(problem.shape)
    assert problem.at(W).gradient == pytest.approx(gradient(W, 0.0, X, signs_of(y), p, np.ones(60))[0], abs=1e-14)


def test_margins_far_out_cost_what_they_cost():
    """M9: the loss is positive everywhere; and no overflow on either side."""
    F, signs, ones = np.array([[1e4, -1e4, 3.0]]), np.ones((1, 3), np.int8), np.ones((1, 3))
    terms = np.tile([1.0, 1.0, 1.0, 1.0, 5.0], (1, 3, 1))
    found = F.copy()
    assert kernel.slopes(found, signs, ones, terms, np.zeros((3, 3))) == pytest.approx(10001.0 + 0.2 * np.exp(-10.0))
    assert found[0] == pytest.approx([0.0, -1.0, -1.0 / (1.0 + np.exp(10.0))])
    with pytest.raises(ValueError, match="columns"):
        kernel.slopes(F, signs, np.ones((1, 2)), terms, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="one length per row"):
        kernel.shrink(F.copy(), np.ones(2))


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_prox_by_brute_force(bias):
    """M2: the threshold is beta step, not half of it; rows of W, and of the intercepts only where regularized."""
    problem, *_ = composite(bias, beta=0.7)
    V = np.random.default_rng(1).standard_normal(problem.shape)
    found = problem.prox(V, 0.9)
    for j, (v, w) in enumerate(zip(V, found)):
        beta = 0.0 if bias == "free" and j == 5 else 0.7

        def cost(x, v=v, beta=beta):
            return 0.5 * ((x - v) ** 2).sum() + 0.9 * beta * np.linalg.norm(x)

        brute = minimize(cost, v, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000})
        assert cost(w) <= brute.fun + 1e-13 and w == pytest.approx(brute.x, abs=1e-6)


def test_settle_finds_the_best_intercepts():
    problem, *_ = composite("free", lambda1=0.0, lambda2=0.05)
    for size in (0.0, 1.0, 100.0):
        W = size * np.random.default_rng(2).standard_normal(problem.shape)
        look = problem.settle(W)
        assert np.array_equal(look.W[:5], W[:5])
        assert np.abs(look.gradient[5]).max() <= 1e-12
        for shift in (-0.1, 0.1):
            other = look.W.copy()
            other[5] += shift
            assert problem.objective(problem.at(other)) > problem.objective(look)


# ---------------------------------------------------------------- bounds

FLAT = {"beta": 0.05, "lambda1": 0.0, "lambda2": 0.02}
SETTINGS = [{"beta": 0.05}, FLAT, {"ridge": 0.2}, {"ridge": 0.2, "beta": 0.1}, {}]


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("point", SETTINGS, ids=str)
def test_no_record_has_a_bound_above_the_optimum(point, bias):
    X, y = sample(3)
    best, _ = optimum(X, y, bias, **point)
    for options in ({}, {"paper": True}, {"batch": 20}):
        model = fit_paper(X, y, bias=bias, solver="apg", solver_options=options, **point)
        records = model.history
        assert len(records) > 3 and [s.iteration for s in records] == list(range(1, len(records) + 1))
        assert all(s.lower_bound <= best + 1e-10 and s.objective >= best - 1e-10 for s in records)
        assert np.isfinite(model.certificate.lower_bound)


def test_kinds_of_proof():
    """The variance bends the objective in all directions, or it does not: then a dual point has to do."""
    X, y = sample(3)
    assert fit_paper(X, y, beta=0.05).certificate.kind == "residual"
    assert fit_paper(X, y, **FLAT).certificate.kind == "duality gap"
    wide = np.random.default_rng(0).standard_normal((30, 50))
    model = fit_paper(wide, np.arange(30) % 3, beta=0.2, tol=1e-12)
    assert model.certificate.kind == "duality gap" and model.certificate.converged


# ---------------------------------------------------------------- Algorithm 1, batches


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("l0", [1e-2, 1.0, 50.0])
def test_the_printed_algorithm(l0, k):
    """Fifty iterations of a literal transcription."""
    problem, X, y, p = composite(k=k, beta=0.05)
    W, objectives = algorithm1(X, signs_of(y), p, l0, 2.0, problem.lipschitz(), 50)
    reports = (report for report in published_steps(problem, l0, 2.0) if report is not None)
    taken = list(itertools.islice(reports, 50))
    assert [r.objective for r in taken] == pytest.approx(objectives, rel=1e-10)
    assert taken[-1].point.W == pytest.approx(W, abs=1e-10)


def test_the_printed_algorithm_converges():
    """With the cap, however small l0 is; the certificate stops it."""
    X, y = sample(3)
    best = fit_paper(X, y, beta=0.05, tol=1e-12)
    for options in ({"l0": 1e-6}, {"l0": 3.0, "sigma": 1.1}):
        model = fit_paper(X, y, beta=0.05, tol=1e-11, solver="apg", solver_options={"paper": True, **options})
        assert model.certificate.converged and model.coef_ == pytest.approx(best.coef_, abs=1e-5)


def test_batches_have_the_gradient_as_their_mean():
    """All batches of 2 among 60 rows, with weights: the mean margin is that of all rows."""
    weights = np.random.default_rng(3).uniform(0.5, 2.0, 60)
    problem, *_ = composite("free", weights=weights, ridge=1.0)
    W = np.random.default_rng(0).standard_normal(problem.shape)
    pairs = list(itertools.combinations(range(60), 2))
    mean = sum(problem.sampled(W, np.array(pair)) for pair in pairs) / len(pairs)
    assert mean == pytest.approx(problem.slope(problem.at(W)), abs=1e-12)
    L = problem.lipschitz()
    assert (
        published_batch_smoothness(problem, L, 60) == pytest.approx(L)
        and published_batch_smoothness(problem, L, 1) > 2 * L
    )


def test_batches_end_with_their_epochs():
    X, y = sample(3)
    best = fit_paper(X, y, beta=0.05).certificate.objective

    def run(epochs, **more):
        return fit_paper(X, y, beta=0.05, solver="apg", solver_options={"batch": 10, "epochs": epochs}, **more)

    short, long = run(4), run(200)
    assert (short.n_iter, long.n_iter) == (4, 200)
    assert 0 < long.certificate.objective - best < 0.5 * (short.certificate.objective - best)
    assert np.array_equal(run(4).coef_, short.coef_)
    assert not np.array_equal(run(4, random_state=1).coef_, short.coef_)
    with pytest.warns(mdlearn.ConvergenceWarning, match="published end"):
        run(4, tol=1e-9)


# ---------------------------------------------------------------- the engine among others


def test_squared_terms_and_plain_columns():
    """The same forms that other engines take."""
    X, y = sample(2)
    for objective in ("lsvm", "lssvm", "mlr", "l2lr"):
        models = [mdlearn.fit(objective, X, y, solver=s, tol=1e-12) for s in ("apg", "auto")]
        # |w - w*|^2 <= 2 (P - D) over the weight of the squared norm, for either model.
        known = models[0].certificate.objective / models[0].params.get("lam", 1.0)
        assert models[0].coef_ == pytest.approx(models[1].coef_, abs=2.0 * np.sqrt(2e-12 * known))
        assert all(model.certificate.converged for model in models) and models[1].solver != "apg"


def test_refusals_and_options():
    X, y = sample(2)
    with pytest.raises(ValueError, match="no loss of the kind 'hinge'"):
        mdlearn.fit("svm", X, y, solver="apg")
    with pytest.raises(ValueError, match="one class at a time; give multiclass='ovr'"):
        fit_paper(*sample(3), solver="newton")
    with pytest.raises(ValueError, match="no penalty"):
        fit_paper(X, y, beta=0.1, solver="newton")
    for wrong in ({"l0": 0.0}, {"sigma": 1.0}, {"batch": 0}, {"epochs": 0}, {"paper": True, "batch": 3}, {"steps": 1}):
        with pytest.raises(ValueError, match="solver"):
            fit_paper(X, y, solver="apg", solver_options=wrong)
    for name, low in (("l0", 0), ("sigma", 1)):
        with pytest.raises(ValueError, match=f"solver option {name} needs to be a number > {low} and finite; got inf"):
            fit_paper(X, y, solver="apg", solver_options={"paper": True, name: np.inf})
    with pytest.raises(TypeError, match="paper"):
        fit_paper(X, y, solver="apg", solver_options={"paper": 1})


def test_limits_and_threads():
    X, y = sample(3, n=200, d=30)
    for limits in ({"time_limit": 0.0}, {"max_iter": 2}, {"callback": lambda state: state.iteration == 2}):
        with pytest.warns(mdlearn.ConvergenceWarning):
            model = fit_paper(X, y, beta=0.02, lambda1=0.1, tol=1e-12, **limits)
        assert not model.certificate.converged and model.predict(X).shape == (200,)
    runs = [fit_paper(X, y, beta=0.02, multiclass="ovr", n_threads=2).coef_ for _ in range(2)]
    assert np.array_equal(*runs)


def test_a_step_too_long_is_found_out(monkeypatch):
    """An estimate of L that is far too small is raised, and the fit converges."""
    X, y = sample(3)
    right = fit_paper(X, y, beta=0.05, tol=1e-12)
    whole = decision_composite.DecisionComposite.lipschitz
    monkeypatch.setattr(MarginComposite, "lipschitz", lambda self: 1e-3 * whole(self))
    wrong = fit_paper(X, y, beta=0.05, tol=1e-12)
    assert wrong.certificate.converged and wrong.coef_ == pytest.approx(right.coef_, abs=1e-6)


def test_long_rows(monkeypatch):
    """Beyond NARROW columns there are no matrices of that size: Lanczos with products, a diagonal preconditioner."""
    X, y = sample(3, n=80, d=20)
    right = fit_paper(X, y, beta=0.05, tol=1e-12)
    monkeypatch.setattr(decision_composite, "MOMENT_COLUMNS", 3)
    for A in (X, csr_matrix(X)):
        other = fit_paper(A, y, beta=0.05, tol=1e-12)
        assert other.certificate.kind == "duality gap" and other.certificate.converged
        assert other.coef_ == pytest.approx(right.coef_, abs=1e-5)


def test_the_reference_has_the_gradient_it_says():
    """The optimum that tests compare with is no better than its own derivative."""
    X, y = sample(3)
    Y, p, ones = signs_of(y), {**PAPER, "ridge": 0.3}, np.ones(60)
    rng = np.random.default_rng(5)
    W, V, b = rng.standard_normal((5, 3)), rng.standard_normal((5, 3)), rng.standard_normal(3)
    change = smooth(W + 1e-6 * V, b, X, Y, p, ones) - smooth(W - 1e-6 * V, b, X, Y, p, ones)
    assert (gradient(W, b, X, Y, p, ones)[0] * V).sum() == pytest.approx(change / 2e-6, rel=1e-7)


@pytest.mark.parametrize("k", [2, 3])
def test_columns_that_depend_on_each_other(k):
    """Indicators of a category and a free bias: nothing but rounding points along the directions without curvature."""
    X, y = sample(k, n=58, d=4)
    Z = np.hstack([X, np.eye(3)[np.arange(58) % 3], 7.0 * X[:, :1]])
    model = fit_paper(Z, y, bias="free", solver="apg", tol=1e-10)
    independent = fit_paper(Z[:, :6], y, bias="free", solver="apg", tol=1e-10)
    assert model.certificate.converged and independent.certificate.converged
    assert model.certificate.objective == pytest.approx(independent.certificate.objective, rel=1e-9)
    assert np.abs(model.coef_).max() < 100.0


@pytest.mark.parametrize("seed", range(4))
def test_lines_that_end_at_a_kink_close_by(seed):
    """Eight points far from the origin, each many times: all losses are straight lines up to kinks a step away.

    There the second derivative is the ridge alone, and a Newton step of it is far too long.
    """
    rng = np.random.default_rng(seed)
    X = 10170.0 + 14.0 * rng.standard_normal((8, 11))
    X = X[rng.integers(0, 8, 56)]
    rng.standard_normal(11)
    along = X @ rng.standard_normal(11)
    y = np.where(along > np.median(along), 1, -1)
    given = {"lambda1": 0.0, "lambda2": 0.056, "ridge": 2.5e-4, "alpha": 0.1885, "bias": "regularized"}
    model = mdlearn.fit("mdlm", X, y, solver="apg", max_iter=1000, **given)
    assert model.certificate.converged and model.certificate.kind == "duality gap"
    other = mdlearn.fit("mdlm", X, y, solver="newton", **given)
    assert model.certificate.objective == pytest.approx(other.certificate.objective, rel=2e-6)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize(
    "params",
    [
        {"lambda1": 10.6, "lambda2": 1.0},
        {"lambda1": 10.6, "lambda2": 23.5, "alpha": 0.145, "ridge": 0.01},
    ],
)
def test_intercepts_of_many_classes_take_few_passes(params, monkeypatch):
    """Slopes of one column, beside the terms of all, end the Newton steps; what these leave there is not bisected.

    Of the variance, margins and their mean cancel where classes are very unequal: no step meets a column's own bar.
    """
    passes = [0]
    slopes = MarginComposite.slopes

    def counted(self, *given):
        passes[0] += 1
        return slopes(self, *given)

    monkeypatch.setattr(MarginComposite, "slopes", counted)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((3000, 5)), np.append(np.arange(152), 152 * rng.random(3000 - 152) ** 4).astype(int)
    mdlearn.fit("mdlm", X, y, max_iter=4, **params)
    assert passes[0] <= 45
