"""Penalties and linear constraints of coefficients, beside hinges: against linear and quadratic programs of SciPy."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.extend import (
    HingeTerm,
    LimitTerm,
    LogisticTerm,
    NormTerm,
    Parameter,
    RowTerms,
    Terms,
    first_differences,
    row_values,
)
from mdlearn.forms.penalised.blocks import CoefficientBlocks

AGREES = 1e-7
SEEDS = [pytest.param(range(3), id="3"), pytest.param(range(3, 20), id="20", marks=pytest.mark.slow)]


def objective_of(**declared):
    """Class of an objective with these Terms."""

    class Declared(mdlearn.Objective):
        name = "declared"
        summary = formula = "terms of the coefficients"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of nothing")}
        multiclass = ("ovr", "joint")

        def terms(self, params, total):
            return Terms(**declared)

    return Declared


def rows(seed, m=None, d=None):
    rng = np.random.default_rng(seed)
    m, d = m or int(rng.integers(12, 30)), d or int(rng.integers(3, 7))
    X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-0.5, 0.5, d)
    y = np.where(X @ rng.standard_normal(d) + rng.standard_normal(m) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return rng, X, y


def least_hinge_program(X, y, lam, C, bias):
    """Smallest lam |w|_1 + C sum max(0, 1 - z), by HiGHS: w is a difference of two numbers >= 0."""
    m, d = X.shape
    A = np.hstack([-y[:, None] * X, y[:, None] * X, -y[:, None], -np.eye(m)])
    cost = np.concatenate([np.full(2 * d, lam), [0.0], np.full(m, C)])
    free = (None, None) if bias != "none" else (0.0, 0.0)
    found = linprog(cost, A, -np.ones(m), bounds=[(0, None)] * (2 * d) + [free] + [(0, None)] * m, method="highs-ds")
    assert found.status == 0
    return found.fun


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("way", ["penalty", "term"])
@pytest.mark.parametrize("seeds", SEEDS)
def test_the_l1_svm_is_a_linear_program(bias, way, seeds):
    for seed in seeds:
        rng, X, y = rows(seed)
        lam, C = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-1, 2)
        own = {"penalty": lam} if way == "penalty" else {"coefficient_terms": (NormTerm(lam),)}
        task = objective_of(loss=(HingeTerm(C),), ridge=0.0, **own)
        told = mdlearn.fit(task, X, y, bias=bias, tol=1e-9).certificate
        least = least_hinge_program(X, y, lam, C, bias)
        assert told.converged
        assert abs(told.objective - least) <= AGREES * least
        assert told.lower_bound <= least * (1.0 + 1e-12)


def matrix_of(term, d):
    if term.matrix is None:
        return np.eye(d)
    given = term.matrix(d) if callable(term.matrix) else term.matrix
    return given.toarray() if hasattr(given, "toarray") else np.asarray(given)


class QuadraticProgram:
    """1/2 u'Qu + c'u over A u <= b, u = (w, bias, slacks of the hinges, lengths of K w): what a fit minimises."""

    def __init__(self, X, y, C, terms, bias, ridge, variance, mean):
        m, d = X.shape
        Z = np.hstack([y[:, None] * X, y[:, None]])
        norms = [(term, matrix_of(term, d)) for term in terms if isinstance(term, NormTerm)]
        n = d + 1 + m + sum(K.shape[0] for _, K in norms)
        self.Q, self.c = np.zeros((n, n)), np.zeros(n)
        centred = Z - Z.mean(axis=0)
        self.Q[: d + 1, : d + 1] = 2.0 * variance / m * centred.T @ centred
        self.Q[range(d), range(d)] += ridge
        self.Q[d, d] += ridge if bias == "regularized" else 0.0
        self.c[: d + 1] = -mean * Z.mean(axis=0)
        self.c[d + 1 : d + 1 + m] = C
        left, right = [], []

        def add(block, at, rest, limit):
            row = np.zeros((block.shape[0], n))
            row[:, : block.shape[1]] = block
            if at is not None:
                row[np.arange(block.shape[0]), at + np.arange(block.shape[0])] = rest
            left.append(row)
            right.append(np.broadcast_to(limit, block.shape[:1]))

        add(-Z, d + 1, -1.0, -1.0)
        add(np.zeros((m, 0)), d + 1, -1.0, 0.0)
        start = d + 1 + m
        for term, K in norms:
            self.c[start : start + K.shape[0]] = term.weight
            add(K, start, -1.0, 0.0)
            add(-K, start, -1.0, 0.0)
            start += K.shape[0]
        for term in terms:
            if isinstance(term, LimitTerm):
                K = matrix_of(term, d)
                for side, limit in ((1.0, term.upper), (-1.0, term.lower)):
                    if np.isfinite(limit).all():
                        add(side * K, None, 0.0, side * np.asarray(limit))
        self.A, self.b = np.vstack(left), np.concatenate(right)
        self.fixed = bias == "none"
        self.place, self.d = n, d

    def least(self):
        """Smallest value, by sequential quadratic programming with exact derivatives, from a feasible point."""
        bounds = [(None, None)] * self.place
        bounds[self.d] = (0.0, 0.0) if self.fixed else (None, None)
        start = linprog(np.append(np.zeros(self.d + 1), self.c[self.d + 1 :]), self.A, self.b, bounds=bounds).x
        cons = {"type": "ineq", "fun": lambda u: self.b - self.A @ u, "jac": lambda u: -self.A}
        for _ in range(3):
            found = minimize(
                lambda u: 0.5 * u @ self.Q @ u + self.c @ u,
                start,
                jac=lambda u: self.Q @ u + self.c,
                bounds=bounds,
                constraints=[cons],
                method="SLSQP",
                options={"ftol": 1e-15, "maxiter": 500},
            )
            start = found.x
        assert (self.A @ start - self.b).max() < 1e-8
        return found.fun


def few_limits(rng, d):
    A = rng.standard_normal((3, d))
    return LimitTerm(upper=A @ rng.standard_normal(d), matrix=A)


KINDS = {
    "elastic net": lambda rng, d: (NormTerm(10.0 ** rng.uniform(-1, 1)),),
    "total variation": lambda rng, d: (NormTerm(10.0 ** rng.uniform(-1, 1), matrix=first_differences),),
    "nonnegative": lambda rng, d: (LimitTerm(lower=0.0),),
    "bounds": lambda rng, d: (LimitTerm(-0.2, np.abs(rng.standard_normal(d))),),
    "monotone": lambda rng, d: (LimitTerm(lower=0.0, matrix=first_differences),),
    "A w <= b": lambda rng, d: (few_limits(rng, d),),
    "equation": lambda rng, d: (LimitTerm(1.0, 1.0, matrix=np.ones((1, d))), NormTerm(0.1)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", SEEDS)
def test_terms_of_the_coefficients_are_quadratic_programs(kind, seeds):
    for seed in seeds:
        rng, X, y = rows(100 + seed)
        d, bias = X.shape[1], ("none", "regularized", "free")[seed % 3]
        terms, C = KINDS[kind](rng, d), 10.0 ** rng.uniform(-1, 1)
        # Without a squared norm, the variance is what bends the objective.
        ridge, variance, mean = (1.0, 0.0, 0.0) if seed % 2 else (0.0, 1.0, 0.1 * C)
        task = objective_of(loss=(HingeTerm(C),), ridge=ridge, variance=variance, mean=mean, coefficient_terms=terms)
        model = mdlearn.fit(task, X, y, bias=bias, tol=1e-9)
        told = model.certificate
        least = QuadraticProgram(X, y, C, terms, bias, ridge, variance, mean).least()
        scale = max(abs(least), 0.01 * C * len(y))
        assert told.converged
        assert abs(told.objective - least) <= AGREES * scale
        for term in terms:
            if isinstance(term, LimitTerm):
                v = matrix_of(term, d) @ model.coef_.ravel()
                assert (v >= np.asarray(term.lower) - 1e-12).all()
                assert (v <= np.asarray(term.upper) + 1e-12).all()


@pytest.mark.parametrize("seeds", SEEDS)
def test_groups_have_the_bound_of_their_dual_norm(seeds):
    """min_w 1/2 |w|^2 + P(w) - g'w is -1/2 sum of (|g_j| - lam)^2 over groups whose slopes are longer than lam."""
    exact = []
    for seed in seeds:
        rng, X, y = rows(200 + seed, d=6)
        groups, lam, C = np.array([0, 0, 1, 1, 1, 2]), 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-1, 1)
        task = objective_of(loss=(HingeTerm(C),), coefficient_terms=(NormTerm(lam, groups),))
        model = mdlearn.fit(task, X, y, bias="none", tol=1e-11)
        w, beta = model.coef_.ravel(), np.clip(model.duals.ravel(), 0.0, C)
        lengths = np.array([np.linalg.norm(w[groups == j]) for j in range(3)])
        objective = 0.5 * w @ w + lam * lengths.sum() + C * np.maximum(0.0, 1.0 - y * (X @ w)).sum()
        g = X.T @ (y * beta)
        slopes = np.array([np.linalg.norm(g[groups == j]) for j in range(3)])
        bound = beta.sum() - 0.5 * (np.maximum(slopes - lam, 0.0) ** 2).sum()
        assert model.certificate.objective == pytest.approx(objective, rel=1e-12)
        assert objective - bound <= AGREES * objective
        left_out = lengths[slopes < lam * (1.0 - 1e-6)]
        assert (left_out <= 1e-8).all()
        exact += (left_out == 0.0).tolist()
    assert np.mean(exact) > 0.8, "most groups that are left out are exactly 0"


def hinges(z):
    return np.maximum(0.0, 1.0 - z)


def test_weights_are_repetitions():
    rng, X, y = rows(1)
    weight = rng.integers(0, 4, len(y)).astype(float)
    weight[:2] = 1.0
    task = objective_of(loss=(HingeTerm(1.0),), variance=1.0, coefficient_terms=(NormTerm(1.0), LimitTerm(lower=-0.1)))
    once = mdlearn.fit(task, X, y, sample_weight=weight, tol=1e-10)
    each = np.repeat(np.arange(len(y)), weight.astype(int))
    repeated = mdlearn.fit(task, X[each], y[each], tol=1e-10)
    assert once.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-9)


def test_classes_as_one_problem_share_the_length_of_a_feature():
    """The value of sum_j |W_j| and hinges of three classes, and no change of W that lowers it."""
    rng, X, _ = rows(2, m=40, d=4)
    y = rng.integers(0, 3, 40)
    lam = 2.0
    for own in ({"penalty": lam}, {"coefficient_terms": (NormTerm(lam),)}):
        task = objective_of(loss=(HingeTerm(1.0),), **own)
        model = mdlearn.fit(task, X, y, multiclass="joint", bias="none", tol=1e-10)
        Y = np.where(y[:, None] == np.arange(3), 1.0, -1.0)

        def value(W, Y=Y):
            return 0.5 * (W**2).sum() + lam * np.linalg.norm(W, axis=1).sum() + hinges(Y * (X @ W)).sum()

        W = model.coef_.T
        assert model.certificate.converged
        assert model.certificate.objective == pytest.approx(value(W), rel=1e-12)
        for _ in range(200):
            step = rng.standard_normal(W.shape) * 10.0 ** rng.uniform(-6, 0)
            assert value(W + step) >= model.certificate.lower_bound * (1.0 - 1e-12)
            assert value(W + step) >= value(W) * (1.0 - 1e-9)


def test_costs_of_rows_beside_a_penalty_are_a_linear_program():
    class Costs(mdlearn.Objective):
        name = "costs"
        summary = formula = "costs of rows beside an L1 penalty"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(params["C"]),), ridge=0.0, penalty=1.0)

        def row_terms(self, data, params):
            return RowTerms(weights=row_values(data, costs, "costs"))

    rng, X, y = rows(3)
    costs = rng.uniform(0.0, 3.0, len(y))
    told = mdlearn.fit(Costs(C=2.0), X, y, bias="free", tol=1e-9).certificate
    assert told.converged
    assert told.objective == pytest.approx(least_hinge_program(X, y, 1.0, 2.0 * costs, "free"), rel=AGREES)


def test_regression_by_absolute_residuals_with_an_l1_penalty_is_a_linear_program():
    class Absolute(mdlearn.Objective):
        name = "absolute"
        summary = formula = "sum |f - y| + |w|_1"
        parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss")}
        task = "regression"

        def terms(self, params, total):
            sides = HingeTerm(params["C"], threshold=0.0), HingeTerm(params["C"], side=-1, threshold=0.0)
            return Terms(loss=sides, ridge=0.0, penalty=1.0)

    rng, X, _ = rows(4)
    m, d = X.shape
    y = X @ rng.standard_normal(d) + rng.standard_normal(m)
    A = np.block([[X, -X, -np.eye(m)], [-X, X, -np.eye(m)]])
    found = linprog(np.ones(2 * d + m), A, np.append(y, -y), method="highs-ds")
    told = mdlearn.fit(Absolute, X, y, bias="none", tol=1e-9).certificate
    assert told.converged
    assert told.objective == pytest.approx(found.fun, rel=AGREES)


@pytest.mark.parametrize("term", [HingeTerm(1.0), HingeTerm(1.0, power=2), LogisticTerm(1.0)], ids=str)
def test_bounds_hold_however_early_a_fit_ends(term):
    """Bounds never exceed a value at feasible coefficients, and w = 0 is never beaten by the answer."""
    _rng, X, y = rows(5)
    task = objective_of(loss=(term,), coefficient_terms=(NormTerm(0.5, matrix=first_differences), LimitTerm(-0.3, 0.3)))
    best = mdlearn.fit(task, X, y, bias="free", tol=1e-10).certificate
    for most in range(1, 8):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
            told = mdlearn.fit(task, X, y, bias="free", tol=1e-13, max_iter=most).certificate
        assert told.lower_bound <= best.objective * (1.0 + 1e-12)
        assert told.objective >= best.lower_bound * (1.0 - 1e-12)


def test_float32_rows_keep_bounds_and_zeros():
    _, X, y = rows(6)
    terms = NormTerm(3.0), LimitTerm(lower=0.0)
    task = objective_of(loss=(HingeTerm(1.0),), coefficient_terms=terms)
    single = mdlearn.fit(task, X.astype(np.float32), y, tol=1e-5)
    double = mdlearn.fit(task, X, y, tol=1e-10)
    assert single.coef_.dtype == np.float32
    assert (single.coef_ >= 0).all()
    assert ((single.coef_ == 0) == (double.coef_ == 0)).all()
    assert single.certificate.objective == pytest.approx(double.certificate.objective, rel=1e-5)


def test_sparse_rows_warm_starts_and_files_have_the_same_answer(tmp_path):
    _, X, y = rows(7)
    task = objective_of(loss=(HingeTerm(1.0),), penalty=0.5)
    model = mdlearn.fit(task, X, y, tol=1e-10)
    other = mdlearn.fit(task, csr_matrix(X), y, tol=1e-10, warm_start=model)
    assert other.certificate.objective == pytest.approx(model.certificate.objective, rel=1e-9)
    assert other.n_iter <= model.n_iter
    model.save(tmp_path / "model.mdl")
    assert np.array_equal(mdlearn.load(tmp_path / "model.mdl").decision_function(X), model.decision_function(X))


def test_constraints_without_a_point_are_told():
    _, X, y = rows(8, d=3)
    limits = LimitTerm(lower=1.0), LimitTerm(upper=2.0, matrix=np.ones((1, 3)))
    with pytest.raises(ValueError, match="the constraints on the coefficients contradict each other"):
        mdlearn.fit(objective_of(loss=(HingeTerm(1.0),), coefficient_terms=limits), X, y)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: NormTerm(-1.0), "a NormTerm needs finite weights >= 0; got -1.0"),
        (lambda: LimitTerm(2.0, 1.0), "a LimitTerm needs lower <= upper; got 2.0 and 1.0"),
        (lambda: LimitTerm(np.nan), "a LimitTerm needs limits that are numbers"),
        (lambda: LimitTerm(np.zeros(2), np.zeros(3)), "a LimitTerm has 2 lower and 3 upper limits"),
        (lambda: LimitTerm(lower=np.zeros(4)), "a LimitTerm over 3 numbers needs one limit or 3; got 4"),
        (lambda: NormTerm(1.0, groups=[0, 1]), "a NormTerm over 3 numbers needs as many groups; got 2"),
        (lambda: NormTerm([1.0, 2.0]), "a NormTerm of 3 groups needs one weight or 3; got 2"),
        (lambda: NormTerm(1.0, matrix=np.ones((1, 4))), "the matrix of a NormTerm needs finite numbers in 3 columns"),
    ],
)
def test_wrong_terms_of_the_coefficients_are_told(make, told):
    _, X, y = rows(9, d=3)
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(objective_of(loss=(HingeTerm(1.0),), coefficient_terms=(make(),)), X, y)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"kernel": "rbf"}, "its terms of the coefficients need a weight vector"),
        ({"solver": "interior"}, "it knows no penalty on coefficients"),
        ({"solver": "apg"}, "it knows no penalty but that of the lengths"),
    ],
)
def test_what_cannot_take_terms_of_the_coefficients_says_so(more, told):
    _, X, y = rows(10)
    with pytest.raises(ValueError, match=told):
        mdlearn.fit(objective_of(loss=(HingeTerm(1.0),), coefficient_terms=(NormTerm(1.0),)), X, y, **more)


def test_constraints_of_infinite_weight_are_refused():
    _, X, y = rows(11)
    with pytest.raises(ValueError, match="no loss of the kind 'constraint'"):
        mdlearn.fit(objective_of(loss=(HingeTerm(np.inf),), coefficient_terms=(NormTerm(1.0),)), X, y)


def test_terms_of_another_type_are_told():
    _, X, y = rows(12)
    with pytest.raises(TypeError, match="a tuple of NormTerm and LimitTerm is needed"):
        mdlearn.fit(objective_of(loss=(HingeTerm(1.0),), coefficient_terms=(HingeTerm(1.0),)), X, y)


@pytest.mark.parametrize("limits", ["nonnegative beside sums given twice", "bounds beside sums"])
def test_coefficients_are_repaired_to_within_all_limits(limits):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        d = int(rng.integers(2, 26))
        terms = LimitTerm(lower=0.0), LimitTerm(upper=0.2, matrix=np.ones((2, d)))
        if limits == "bounds beside sums":
            terms = (
                LimitTerm(-0.03, 0.02),
                LimitTerm(upper=[0.02, 0.1], matrix=rng.integers(-1, 2, (2, d)).astype(float)),
            )
        blocks = CoefficientBlocks(terms, np.zeros(d), (d, 1), d)
        w = blocks.repaired(rng.standard_normal(d) * 10.0 ** rng.uniform(-3, 1))
        # A bound of 0 has no rounding: a step from w = 0 would leave it however short it is.
        assert (w >= terms[0].lower).all() and (w <= terms[0].upper).all()
        assert (terms[1].matrix @ w <= np.asarray(terms[1].upper) * (1.0 + 1e-14) + 1e-16).all()
