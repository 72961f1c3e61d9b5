"""The LSVM fixed point against the published code, its theory, and the optimum; formulas from the paper, not from here.

The paper's u are the multipliers, gamma is minus the intercept, and nu/2 is the weight of the squared hinge.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from smw_paper import STEP, Band, after, dense, quadratic, sample, svml
from watching import watched

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.fixed_point import SMW

# ---------------------------------------------------------------- the published method


@pytest.mark.parametrize("nu", [1 / 150, 0.1, 1.0])
def test_iterates_are_those_of_the_published_code(nu):
    X, y = sample()
    engine, seen = watched(SMW)
    after(50, X, y, nu=nu, solver=engine)
    for k in (1, 2, 3, 10, 50):
        it, _, w, gamma, u = svml(X, y, nu, k)
        assert len(seen) >= it
        point = seen[it - 1]
        np.testing.assert_allclose(point.coef, w, atol=1e-10)
        assert point.intercept == pytest.approx(-gamma, abs=1e-10)
        np.testing.assert_allclose(y * point.alpha, u, atol=1e-10)
        np.testing.assert_allclose(point.beta[0], np.maximum(u, 0), atol=1e-10)


def test_the_sign_of_gamma_is_the_listings():
    """Some copies flip it: w stays (the flip turns one axis of (w, gamma) round), but the classifier goes wrong."""
    X, y = sample(seed=1)
    model = mdlearn.fit("lsvm", X, y, solver="smw", nu=1 / 150, solver_options=STEP)
    *_, w, gamma, _ = svml(X, y, 1 / 150, 100)
    *_, flipped, wrong, _ = svml(X, y, 1 / 150, 100, sign=1.0)
    np.testing.assert_allclose(flipped, w, atol=1e-10)
    assert wrong == pytest.approx(-gamma, rel=1e-6) and abs(gamma) > 0.05
    np.testing.assert_allclose(model.decision_function(X), X @ w - gamma, atol=1e-9)
    assert np.abs(model.decision_function(X) - (X @ flipped - wrong)).max() > 0.1


def test_the_published_end_is_a_normal_end():
    X, y = sample(seed=2)
    X, nu = 3 * X, 1 / 150  # the package's default: 1 / m
    model = mdlearn.fit("lsvm", X, y, solver="smw", nu=nu, solver_options=STEP)  # warnings are errors here
    it, step, *_ = svml(X, y, nu, 100)
    assert model.n_iter == it < 100 and step <= 1e-5 < svml(X, y, nu, it - 1)[1]
    assert it > 2
    # Here the step is still long after 100 iterations: an end all the same.
    crawling = {"nu": 500.0, "solver": "smw", "solver_options": STEP}
    for given in ({}, {"max_iter": 100}, {"max_iter": 1000}):
        model = mdlearn.fit("lsvm", 5 * X, y, **crawling, **given)
        assert model.n_iter == svml(5 * X, y, 500.0, 100)[0] == 100 and not model.certificate.converged
    with pytest.warns(mdlearn.ConvergenceWarning, match="'smw' stopped at relative gap .*published end"):
        mdlearn.fit("lsvm", 5 * X, y, tol=1e-6, **crawling)
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 99 reached"):
        mdlearn.fit("lsvm", 5 * X, y, max_iter=99, **crawling)


def test_a_loose_tol_does_not_shorten_the_published_run():
    X, y = sample(seed=2)
    model = mdlearn.fit("lsvm", X, y, solver="smw", nu=1 / 150, solver_options=STEP)
    loose = mdlearn.fit("lsvm", X, y, solver="smw", nu=1 / 150, solver_options=STEP, tol=1e6)
    assert loose.n_iter == model.n_iter and loose.certificate.converged
    np.testing.assert_array_equal(loose.coef_, model.coef_)


@pytest.mark.parametrize("kernel, bias", [("rbf", "none"), ("rbf", "regularized"), ("poly", "regularized")])
def test_kernels(kernel, bias):
    X, y = sample(60, seed=3)
    nu = 0.7
    iterates = dense(quadratic(X, y, nu, kernel, bias), 1.9 / nu, 30)
    for k in (1, 5, 30):
        model = after(k, X, y, nu=nu, kernel=kernel, bias=bias)
        np.testing.assert_allclose(y * model.dual_coef_[0], iterates[model.n_iter], atol=1e-10)
        assert model.n_iter == k or np.linalg.norm(iterates[model.n_iter] - iterates[model.n_iter - 1]) <= 1e-5


def test_the_published_kernel_form_keeps_its_column_inside_the_kernel():
    """K(G, G') with G = [A -e]: the kernel on rows [x, -1], no bias, no separate gamma."""
    X, y = sample(60, seed=4)
    G = np.hstack([X, -np.ones((60, 1))])
    settings = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0}
    model = after(8, G, y, nu=0.05, bias="none", **settings)
    assert model.n_iter == 8
    u = dense(np.eye(60) / 0.05 + np.outer(y, y) * (G @ G.T) ** 2, 1.9 / 0.05, 8)[-1]
    np.testing.assert_allclose(model.decision_function(G), (G @ G.T) ** 2 @ (y * u), atol=1e-9)
    np.testing.assert_array_equal(model.intercept_, [0.0])


# ---------------------------------------------------------------- theory


@pytest.mark.parametrize("share", [0.3, 1.0, 1.9])
def test_rate_of_convergence(share):
    """|Q(u+ - u*)| <= max_j |1 - alpha / (1/nu + lambda_j)| |Q(u - u*)|."""
    X, y = sample(80, 3, seed=5)
    nu = 0.1
    Q = quadratic(X, y, nu)
    best = y * mdlearn.fit("lsvm", X, y, nu=nu, solver="newton", tol=1e-14).dual_coef_[0]
    bound = np.abs(1 - share / nu / np.linalg.eigvalsh(Q)).max()
    assert bound < 1
    far = [np.linalg.norm(Q @ (y * after(k, X, y, share / nu, nu=nu).dual_coef_[0] - best)) for k in range(1, 20)]
    assert far[0] > 1e-3
    for now, then in itertools.pairwise(far):
        assert then <= bound * now + 1e-9


@pytest.mark.slow
def test_alpha_ends_below_2_over_nu():
    """The condition that the slides lost: beyond it the map is no contraction, and the iterates never settle."""
    X, y = sample(80, 3, seed=5)
    inside, beyond = (dense(quadratic(X, y, 0.1), alpha / 0.1, 500) for alpha in (1.95, 2.1))
    assert np.linalg.norm(inside[-1] - inside[-2]) < 1e-10 and np.linalg.norm(beyond[-1] - beyond[-2]) > 1e-3
    for alpha in (2.0 / 0.1, 21.0, 1e9):
        with pytest.raises(ValueError, match=r"alpha needs to be below 2/nu = 20, .*got .*leave it out for 1.9/nu"):
            mdlearn.fit("lsvm", X, y, nu=0.1, solver="smw", solver_options={"alpha": alpha})
    model = mdlearn.fit("lsvm", X, y, nu=0.1, solver="smw", solver_options={"alpha": 19.99}, max_iter=100_000)
    assert model.certificate.converged


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("nu", [0.01, 1.0])
def test_optimum(kernel, bias, nu):
    """The fixed-point identity for several alpha, the KKT conditions, and what the finite Newton engine finds."""
    X, y = sample(100, seed=6)
    model = mdlearn.fit("lsvm", X, y, nu=nu, kernel=kernel, bias=bias, solver="smw", tol=1e-12, max_iter=50_000)
    assert model.certificate.converged
    Q, u = quadratic(X, y, nu, kernel, bias), model.duals[0]
    slack = Q @ u - 1
    for alpha in (0.1, 1.0, 10.0):
        np.testing.assert_allclose(slack, np.maximum(slack - alpha * u, 0), atol=3e-5)
    z = y * model.decision_function(X)
    np.testing.assert_allclose(u, nu * np.maximum(1 - z, 0), atol=3e-5)
    np.testing.assert_allclose(z, Q @ u - u / nu, atol=1e-9)  # w is made of the multipliers
    best = mdlearn.fit("lsvm", X, y, nu=nu, kernel=kernel, bias=bias, solver="newton", tol=1e-12)
    np.testing.assert_allclose(z, y * best.decision_function(X), atol=1e-5)
    assert model.certificate.objective == pytest.approx(best.certificate.objective, rel=1e-11)


@pytest.mark.parametrize("shape, nu", [((40, 400), 0.05), ((60, 3), 1e5), ((400, 30), 0.01)])
def test_wide_steep_and_narrow(shape, nu):
    """Rows through their Gram matrix, through QR and through a small matrix: the same iteration."""
    X, y = sample(*shape, seed=7)
    Q = quadratic(X, y, nu)
    u = dense(Q, 1.9 / nu, 20)[-1]
    model = after(20, X, y, nu=nu)
    f = X @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(f, y * ((Q - np.eye(len(y)) / nu) @ u), rtol=1e-7, atol=1e-7 * np.abs(f).max())


# ---------------------------------------------------------------- weights, types, several terms


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_weights_are_repetitions_in_every_iterate_and_at_the_end(kernel):
    X, y = sample(50, seed=8)
    counts = np.random.default_rng(8).integers(0, 4, 50)
    long, labels = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    given = {"nu": 1.0, "kernel": "rbf", "gamma": 0.2} if kernel == "rbf" else {"nu": 0.02}
    for k in (1, 4, 1000):  # the last: the published end, whose step counts copies
        weighted, repeated = after(k, X, y, sample_weight=counts, **given), after(k, long, labels, **given)
        assert weighted.n_iter == repeated.n_iter
        np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-12)
        u = np.repeat(weighted.duals[0] / np.maximum(counts, 1), counts)
        np.testing.assert_allclose(u, repeated.duals[0], atol=1e-12)
    assert 4 < weighted.n_iter < 100
    fractions = mdlearn.fit("lsvm", X, y, sample_weight=counts + 0.5, solver="smw", tol=1e-10, **given)
    best = mdlearn.fit("lsvm", X, y, sample_weight=counts + 0.5, solver="newton", tol=1e-10, **given)
    np.testing.assert_allclose(fractions.decision_function(X), best.decision_function(X), atol=1e-4)


def test_rows_without_counts_are_absent():
    """Within a column too, where rows of other classes can have the count 0."""
    X, y = sample(40, seed=9)
    keep = np.arange(40) % 3 > 0
    terms = (HingeTerm(0.5, power=2),)

    def first(X, y, counts, k=12):
        form = MarginForm(LinearFeatures(DenseRows(X)), (Column(y, counts, 0.0, 0.0, terms),), "regularized")
        steps = SMW().iterate(form, form.columns[0], None, SMW().check_options(STEP), np.random.default_rng(0))
        return [report for report, _ in zip((r for r in steps if r is not None), range(k), strict=False)][-1]

    some, all_rows = first(X[keep], y[keep], np.ones(keep.sum())), first(X, y, keep.astype(float))
    np.testing.assert_allclose(all_rows.point.coef, some.point.coef, atol=1e-13)
    np.testing.assert_allclose(all_rows.point.beta[:, keep], some.point.beta, atol=1e-13)
    assert not all_rows.point.beta[:, ~keep].any() and not all_rows.point.alpha[~keep].any()
    assert all_rows.objective == pytest.approx(some.objective, rel=1e-13)


def test_types_and_layouts():
    X, y = sample(seed=10)
    model = after(20, X, y, nu=0.05)
    for other in (np.asfortranarray(X), sp.csr_matrix(X), sp.csc_matrix(X), X[:, ::-1].copy()[:, ::-1]):
        np.testing.assert_allclose(after(20, other, y, nu=0.05).coef_, model.coef_, atol=1e-12)
    single = after(20, X.astype(np.float32), y, nu=0.05)
    assert single.coef_.dtype == np.float32
    np.testing.assert_allclose(single.coef_, model.coef_, atol=1e-5)


def test_classes_in_threads_give_the_same_bits():
    X, _ = sample(120, seed=11)
    y = np.random.default_rng(11).integers(0, 3, 120)
    one, two = (mdlearn.fit("lsvm", X, y, nu=0.1, solver="smw", n_threads=n) for n in (1, 2))
    np.testing.assert_array_equal(one.coef_, two.coef_)
    best = mdlearn.fit("lsvm", X, y, nu=0.1, solver="newton")
    np.testing.assert_allclose(one.decision_function(X), best.decision_function(X), atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_terms_of_both_sides_stack(kernel):
    """H = (R; -R), e = (0.8; -1.5), nu = 2 (C; D): the iterates are those of the stacked problem."""
    X, y = sample(50, seed=12)
    nu = np.repeat([0.04, 0.1], 50)
    R = quadratic(X, y, np.inf, kernel)
    Q = np.diag(1 / nu) + np.block([[R, -R], [-R, R]])
    e = np.repeat([0.8, -1.5], 50)
    u = np.linalg.solve(Q, e)
    for _ in range(15):
        u = np.linalg.solve(Q, e + np.maximum(Q @ u - e - 1.9 / 0.1 * u, 0))
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter"):
        model = mdlearn.fit(Band, X, y, kernel=kernel, solver="smw", solver_options=STEP, max_iter=15)
    np.testing.assert_allclose(y * model.dual_coef_[0], u[:50] - u[50:], atol=1e-12)
    models = [mdlearn.fit(Band, X, y, kernel=kernel, solver=solver, tol=1e-11) for solver in ("smw", "interior")]
    np.testing.assert_allclose(*(model.decision_function(X) for model in models), atol=1e-5)
    with pytest.raises(ValueError, match=r"below 2/nu = 20,"):
        mdlearn.fit(Band, X, y, solver="smw", solver_options={"alpha": 30.0})  # 30 < 2 / 0.04, but not < 2 / 0.1
