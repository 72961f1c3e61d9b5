"""Terms of coefficients over row blocks: groups, matrices, limits, against plain NumPy, SciPy and fits in memory."""

from __future__ import annotations

import numpy as np
import pytest
from given_losses import LOGISTIC
from pairwise import pairs_first
from scipy.optimize import linprog, minimize

import mdlearn
from mdlearn.extend import HingeTerm, LimitTerm, LogisticTerm, NormTerm, RowTerms, Terms, first_differences

D = 6
SUMS = np.array([[1.0, 1.0, 1.0, 1.0, 1.0, 1.0], [1.0, -1.0, 0.0, 0.0, 2.0, 0.0]])
LOSSES = {
    "squared hinge": (HingeTerm(0.6, power=2),),
    "band": (HingeTerm(0.6, power=2), HingeTerm(0.3, -1, threshold=2.0, power=2)),
    "logistic": (LogisticTerm(0.9),),
    "given": LOGISTIC.terms(1.0),
    "hinge": (HingeTerm(0.7),),
    "band of hinges": (HingeTerm(0.6), HingeTerm(0.4, -1, threshold=2.0)),
}
TERMS = {
    "groups": (NormTerm([8.0, 4.0, 9.0], [0, 0, 1, 1, 2, 2]),),
    "total variation": (NormTerm(6.0, matrix=first_differences), NormTerm(2.0)),
    "nonnegative": (LimitTerm(lower=0.0),),
    "bounds beside a norm": (LimitTerm(-0.2, 0.1), NormTerm(2.0)),
    "sums": (LimitTerm(upper=[0.1, 0.5], matrix=SUMS),),
    "equation": (LimitTerm(0.5, 0.5, matrix=SUMS[:1]),),
    "zero excluded": (LimitTerm(lower=0.1, upper=2.0),),
    "monotone beside a norm": (LimitTerm(lower=0.0, matrix=first_differences), NormTerm(3.0)),
}
RESTS = {
    "ridge": {},
    "variance and mean": {"variance": 20.0, "mean": 3.0},
    "no ridge": {"ridge": 0.0},
    "variance alone": {"ridge": 0.0, "variance": 20.0},
}


def objective_of(loss, terms, task="classification", **rest):
    class WithTerms(mdlearn.Objective):
        name = "with_terms"

        def terms(self, params, total):
            return Terms(loss=loss, coefficient_terms=terms, **rest)

    WithTerms.task = task
    return WithTerms


def rows(seed=0, m=300, k=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, D)) * np.exp(0.4 * rng.standard_normal(D)) + 0.3
    f = X @ rng.standard_normal(D) + rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k)), f, np.arange(m) % 3 + 0.5


def cut(*arrays):
    m = arrays[0].shape[0]
    return [tuple(one[i:j] for one in arrays) for i, j in ((0, 90), (90, 91), (91, 200), (200, m))]


def lengths_of(term, w):
    K = np.eye(D) if term.matrix is None else term.matrix(D).toarray() if callable(term.matrix) else term.matrix
    return K @ w


def value_of(loss, terms, X, s, c, target, w, b, bias, ridge=1.0, variance=0.0, mean=0.0):
    """The declared objective, from the coefficients alone; infinite beyond the limits."""
    z = s * (X @ w + b) - target
    average = c @ z / c.sum()
    found = 0.5 * ridge * (w @ w + (b * b if bias == "regularized" else 0.0)) - mean * average
    found += variance * (c @ (z - average) ** 2) / c.sum() + sum(one.value(z, c) for one in loss)
    for term in terms:
        v = lengths_of(term, w)
        if isinstance(term, LimitTerm):
            low, high = term.sides(v.shape[0])
            rounding = 1e-13 * (np.abs(v).max() + 1.0)
            found += 0.0 if (v >= low - rounding).all() and (v <= high + rounding).all() else np.inf
        else:
            labels = term.labels(v.shape[0])
            sizes = [np.linalg.norm(v[labels == g]) for g in range(labels.max() + 1)]
            found += term.weights(len(sizes)) @ sizes
    return found


def check_both_fits(streamed, held, tol):
    for one, other in ((held, streamed), (streamed, held)):
        assert one.certificate.converged and one.certificate.gap <= tol
        assert one.certificate.lower_bound <= other.certificate.objective * (1.0 + 1e-12)


@pytest.mark.parametrize(
    *pairs_first(loss=[*LOSSES], terms=[*TERMS], rest=[*RESTS], bias=["none", "regularized", "free"])
)
def test_the_answer_of_the_fit_in_memory(loss, terms, rest, bias):
    X, y, _, c = rows(len(loss) + len(terms))
    task, given = objective_of(LOSSES[loss], TERMS[terms], **RESTS[rest]), {"bias": bias, "tol": 1e-7}
    held = mdlearn.fit(task, X, y, sample_weight=c, **given)
    streamed = mdlearn.fit(task, cut(X, y, c), None, **given)
    check_both_fits(streamed, held, 1e-7)
    parts = streamed.coef_[0], float(streamed.intercept_[0])
    own = value_of(LOSSES[loss], TERMS[terms], X, 2.0 * y - 1.0, c, 0.0, *parts, bias, **RESTS[rest])
    assert streamed.certificate.objective == pytest.approx(own, rel=1e-11)
    assert streamed.solver == "newton"


@pytest.mark.parametrize("terms", ["nonnegative", "zero excluded", "sums", "equation"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_the_optimum_of_scipy(terms, task):
    X, y, f, c = rows(3, 60)
    loss = tuple(HingeTerm(0.4, side, power=2) for side in (1, -1))
    model = mdlearn.fit(
        objective_of(loss, TERMS[terms], task), cut(X, f if task == "regression" else y, c)[:1], None, tol=1e-10
    )
    s, target = (np.ones(60), f) if task == "regression" else (2.0 * y - 1.0, np.zeros(60))
    (limit,) = TERMS[terms]
    low, high = limit.sides(lengths_of(limit, np.zeros(D)).shape[0])
    limits = []
    for sign, side in ((1.0, low), (-1.0, high)):
        own = np.isfinite(side)
        limits.append(
            {"type": "ineq", "fun": lambda v, own=own, g=sign, e=side: g * (lengths_of(limit, v[:D]) - e)[own]}
        )
    if terms == "equation":
        limits = [{"type": "eq", "fun": lambda v: lengths_of(limit, v[:D]) - low}]

    def whole(v):
        return value_of(loss, (), X, s, c, target, v[:D], v[D], model.bias)

    best = minimize(
        whole, np.full(D + 1, 0.2), constraints=limits, method="SLSQP", options={"ftol": 1e-15, "maxiter": 500}
    )
    assert model.certificate.converged and model.certificate.lower_bound <= best.fun * (1.0 + 1e-9)
    assert model.certificate.objective == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize(*pairs_first(terms=[*TERMS], rest=[*RESTS], bias=["none", "regularized", "free"]))
def test_hinges_of_which_few_rows_may_be_gathered(terms, rest, bias):
    X, y, _, c = rows(len(terms))
    task, given = objective_of(LOSSES["hinge"], TERMS[terms], **RESTS[rest]), {"bias": bias, "tol": 1e-6}
    held = mdlearn.fit(task, X, y, sample_weight=c, **given)
    streamed = mdlearn.fit(task, mdlearn.RowBlocks(cut(X, y, c), held=60), None, **given)
    check_both_fits(streamed, held, 1e-6)
    parts = streamed.coef_[0], float(streamed.intercept_[0])
    own = value_of(LOSSES["hinge"], TERMS[terms], X, 2.0 * y - 1.0, c, 0.0, *parts, bias, **RESTS[rest])
    assert streamed.certificate.objective == pytest.approx(own, rel=1e-11)


@pytest.mark.parametrize("bias", ["none", "free"])
def test_the_optimum_of_a_linear_program(bias):
    """The 1-norm SVM: |w| is the sum of two parts >= 0."""
    X, y, _, c = rows(5, 120)
    task = objective_of((HingeTerm(0.7),), (NormTerm(4.0),), ridge=0.0)
    model = mdlearn.fit(task, cut(X, y, c), None, bias=bias, tol=1e-9)
    s, m, n = 2.0 * y - 1.0, 120, int(bias == "free")
    A = -np.hstack([s[:, None] * X, -s[:, None] * X, s[:, None] * np.ones((m, n)), np.eye(m)])
    cost = np.concatenate([np.full(2 * D, 4.0), np.zeros(n), 0.7 * c])
    best = linprog(cost, A, -np.ones(m), bounds=[(0, None)] * 2 * D + [(None, None)] * n + [(0, None)] * m).fun
    assert model.certificate.converged and model.certificate.lower_bound <= best * (1.0 + 1e-12)
    assert model.certificate.objective == pytest.approx(best, rel=1e-8)


@pytest.mark.parametrize("held", [None, 60])
@pytest.mark.parametrize("terms", ["groups", "nonnegative"])
def test_hinges_of_residuals_and_weights_of_rows(terms, held):
    X, _, f, c = rows(4)
    tube = (HingeTerm(0.7, threshold=-0.2), HingeTerm(0.7, -1, threshold=0.2))

    class Costly(objective_of(tube, TERMS[terms], "regression")):
        def row_terms(self, data, params):
            x = data.X.block(slice(None))[:, 0]
            return RowTerms(np.exp(0.3 * x), 0.1 * np.array([x, -x]))

        def needs_all_rows(self, params):
            return ""

    for bias in ("none", "free"):
        whole = mdlearn.fit(Costly, X, f, sample_weight=c, bias=bias, tol=1e-6)
        source = mdlearn.RowBlocks(cut(X, f, c), held=held)
        check_both_fits(mdlearn.fit(Costly, source, None, bias=bias, tol=1e-6), whole, 1e-6)


@pytest.mark.parametrize("terms", ["groups", "nonnegative", "monotone beside a norm"])
def test_one_score_per_class_and_classes_as_one_problem(terms):
    X, y, _, c = rows(k=3)
    for way, loss in (("ovr", "hinge"), ("ovr", "squared hinge"), ("joint", "hinge"), ("joint", "squared hinge")):
        task = objective_of(LOSSES[loss], TERMS[terms], variance=10.0)
        task.multiclass = ("ovr", "joint")
        given = {"multiclass": way, "tol": 1e-7, "class_weight": "balanced"}
        held = mdlearn.fit(task, X, y, sample_weight=c, **given)
        check_both_fits(mdlearn.fit(task, cut(X, y, c), None, **given), held, 1e-7)


@pytest.mark.parametrize("loss", ["band", "hinge"])
@pytest.mark.parametrize("terms", TERMS)
def test_a_weight_is_a_repetition(terms, loss):
    X, y, _, _ = rows()
    times, task = np.arange(300) % 4, objective_of(LOSSES[loss], TERMS[terms])
    weighted = mdlearn.fit(task, cut(X, y, times.astype(float)), None, tol=1e-9, bias="free")
    repeated = mdlearn.fit(task, cut(np.repeat(X, times, axis=0), np.repeat(y, times)), None, tol=1e-9, bias="free")
    check_both_fits(weighted, repeated, 1e-9)
    assert loss == "hinge" or np.allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_float32_coefficients_keep_their_limits():
    X, y, _, c = rows()
    for terms in ("nonnegative", "zero excluded", "groups"):
        task = objective_of(LOSSES["logistic"], TERMS[terms])
        model = mdlearn.fit(task, cut(X.astype(np.float32), y, c), None, tol=1e-5)
        assert model.certificate.converged and model.coef_.dtype == np.float32
        check_both_fits(model, mdlearn.fit(task, X.astype(np.float32), y, sample_weight=c, tol=1e-5), 1e-5)
        assert model.coef_.min() >= {"zero excluded": np.float32(0.1), "nonnegative": 0.0, "groups": -np.inf}[terms]


@pytest.mark.parametrize("terms", ["sums", "equation", "bounds beside a norm", "zero excluded"])
@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_float32_coefficients_beyond_a_limit_by_rounding_are_no_fault_of_the_blocks(terms, scale):
    for seed in range(4):
        X, y, _, c = rows(seed)
        X = (scale * X).astype(np.float32)
        task = objective_of(LOSSES["squared hinge"], TERMS[terms], variance=20.0)
        model = mdlearn.fit(task, cut(X, y, c), None, tol=1e-4)
        assert model.certificate.converged and model.coef_.dtype == np.float32
        held = mdlearn.fit(task, X.astype(float), y, sample_weight=c, tol=1e-6)
        assert model.certificate.objective == pytest.approx(held.certificate.objective, rel=2e-4)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("variance", [0.0, 20.0])
def test_a_regularized_bias_that_nothing_punishes_is_free(variance, terms):
    X, _, f, c = rows(3)
    loss = HingeTerm(0.6, power=2), HingeTerm(0.9, -1, power=2)
    task = objective_of(loss, TERMS[terms], "regression", ridge=0.0, variance=variance)
    one, other = (mdlearn.fit(task, cut(X, f + 20.0, c), None, tol=1e-8, bias=bias) for bias in ("regularized", "free"))
    check_both_fits(one, other, 1e-8)
    assert one.intercept_[0] == pytest.approx(other.intercept_[0], abs=1e-3)


def test_multipliers_far_larger_than_the_quadratic_allows():
    """A column without entries beside large ones: its bend is that of the ridge, and envelopes begin wide."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, f = 3e3 * rng.standard_normal((5, 3)) * (rng.random((5, 3)) < 0.4), rng.standard_normal(5)
        X[:, 0] = 0.0
        terms = LimitTerm(lower=0.0, matrix=first_differences), NormTerm(71.0)
        loss = HingeTerm(0.066, 1, power=2), HingeTerm(0.066, -1, power=2)
        task, given = objective_of(loss, terms, "regression", mean=0.03), {"bias": "regularized", "tol": 1e-7}
        held = mdlearn.fit(task, X, f, **given)
        check_both_fits(mdlearn.fit(task, [(X, f)], None, **given), held, 1e-7)


def test_nonnegative_coefficients_whose_sum_is_limited_twice():
    X, y, _, c = rows(5)
    terms = (LimitTerm(lower=0.0), LimitTerm(upper=0.1, matrix=np.ones((2, D))))
    task = objective_of(LOSSES["logistic"], terms)
    held = mdlearn.fit(task, X, y, sample_weight=c, tol=1e-7)
    check_both_fits(mdlearn.fit(task, cut(X, y, c), None, tol=1e-7), held, 1e-7)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("terms", ["groups", "zero excluded", "sums"])
def test_an_interrupted_fit_comes_to_the_same_bits(tmp_path, terms, loss):
    X, y, _, _ = rows()
    task = objective_of(LOSSES[loss], TERMS[terms])
    straight = mdlearn.fit(task, mdlearn.RowBlocks(cut(X, y), held=60), None, tol=1e-9)
    for most in (1, 2, 5, None):
        kept = mdlearn.RowBlocks(cut(X, y), checkpoint=tmp_path / "fit.npz", held=60)
        model = mdlearn.fit(task, kept, None, tol=1e-9, max_iter=most)
    assert model.certificate.converged and np.array_equal(model.coef_, straight.coef_)
    assert model.certificate.lower_bound == straight.certificate.lower_bound and model.n_iter == straight.n_iter


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
def test_where_no_time_is_left_the_limits_are_kept_and_nothing_is_claimed():
    X, y, _, _ = rows()
    model = mdlearn.fit(objective_of(LOSSES["logistic"], TERMS["zero excluded"]), cut(X, y), None, time_limit=0.0)
    assert not model.certificate.converged and (model.coef_ >= 0.1).all()


def test_limits_that_contradict_each_other():
    X, y, _, _ = rows()
    terms = (LimitTerm(lower=1.0), LimitTerm(upper=2.0, matrix=SUMS[:1]))
    with pytest.raises(ValueError, match="the constraints on the coefficients contradict each other; widen"):
        mdlearn.fit(objective_of(LOSSES["logistic"], terms), cut(X, y), None)
