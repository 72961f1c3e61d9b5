"""The method of multipliers behind sparse problems: derivatives, line search, optimum, awkward rows."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize_scalar
from sparse_cases import planted

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.certified_solution import certify, certify_best
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.matrix_free_augmented_lagrangian import MatrixFreeAugmentedLagrangian
from mdlearn.solvers.interior_point.solver import Interior

LOSSES = {
    "hinge": (HingeTerm(0.7),),
    "squared hinge": (HingeTerm(0.4, power=2),),
    "band": (HingeTerm(0.5, threshold=0.8), HingeTerm(0.3, side=-1, threshold=1.6)),
    "mixed": (HingeTerm(0.5), HingeTerm(0.2, side=-1, threshold=1.5, power=2)),
}


def problem(loss, bias, variance=30.0, m=120, d=60, seed=0):
    X, labels = planted(m, d, 6, seed)
    counts = np.random.default_rng(seed).integers(1, 4, m).astype(float)
    column = Column(labels.astype(float), counts, variance, 0.4, LOSSES[loss])
    return MarginForm(LinearFeatures(CsrRows(sp.csr_matrix(X))), (column,), bias), column


def start(form, column, scale=0.0, seed=5):
    rng = np.random.default_rng(seed)
    beta = np.where(np.isinf(column.caps), 1.0, column.caps) * rng.random(column.caps.shape) * scale
    return MatrixFreeAugmentedLagrangian(form, column, beta, scale * rng.standard_normal(form.features.width), scale)


def smoothed(solver, element):
    """Half ridge, variance, mean and the envelope of every term."""
    c, width = solver.column, solver.width
    z = c.y * solver.decision(element)
    value = 0.5 * (solver.ridge * (element - solver.anchor) ** 2).sum()
    value += c.variance * ((c.counts @ (z - c.counts @ z / c.total) ** 2) / c.total) - c.mean * (c.counts @ z) / c.total
    for t, term in enumerate(c.terms):
        # By duality the envelope is max over the box of its concave dual in beta.
        gain = term.side * (term.threshold - z)
        cap, soft, old = c.caps[t], c.softness[t], solver.centre[t]
        beta = np.clip((width * old + gain) / (width + soft), 0.0, cap)
        value += (beta * gain - 0.5 * soft * beta**2 - 0.5 * width * (beta - old) ** 2).sum()
    return value


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("loss", LOSSES)
def test_gradient_and_line_search_of_the_smoothed_problem(loss, bias):
    form, column = problem(loss, bias)
    solver = start(form, column, scale=0.5)
    g = solver.gradient(solver.multipliers(solver.z))
    rng = np.random.default_rng(1)
    for _ in range(3):
        p = rng.standard_normal(solver.element.shape[0])
        p *= -np.sign(p @ g)
        numeric = (smoothed(solver, solver.element + 1e-6 * p) - smoothed(solver, solver.element - 1e-6 * p)) / 2e-6
        assert numeric == pytest.approx(p @ g, rel=1e-5)
        t = solver.length(p, column.y * solver.decision(p))
        best = minimize_scalar(lambda s, p=p: smoothed(solver, solver.element + s * p), bracket=(0, t), tol=1e-12)
        assert smoothed(solver, solver.element + t * p) <= best.fun + 1e-12 * abs(best.fun)


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("variance", [0.0, 30.0, 3000.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_reaches_the_optimum_from_nothing(loss, variance, bias):
    form, column = problem(loss, bias, variance)
    reports = [r for r in start(form, column).run() if r is not None]
    best = min(reports, key=lambda r: abs(r.objective - r.lower_bound))
    certificate = certify_best(form, column, best.point, 1e-10, None, False).certificate
    dense = MarginForm(LinearFeatures(DenseRows(form.features.rows.block(slice(None)))), (column,), bias)
    steps = (r for r in Interior().iterate(dense, column, None, {}, np.random.default_rng(0)) if isinstance(r, Report))
    exact = min(r.objective for r in itertools.islice(steps, 60))
    assert certificate.converged
    assert certificate.objective == pytest.approx(exact, rel=1e-9)


def long_rows(seed, m=260, blocks=12, width=16, near=3):
    """Rows of some blocks each, with entries of the size of 100, and few on the wrong side."""
    rng = np.random.default_rng(seed)
    centres = rng.uniform(20, 140, (blocks, width))
    X = np.round(centres[rng.integers(blocks, size=m)] + rng.normal(0, 12, (m, width)))
    away = np.linalg.norm(X[:, None] - centres, axis=2)
    A = np.zeros((m, blocks, width))
    for i, own in enumerate(np.argsort(away, axis=1)[:, :near]):
        A[i, own] = np.multiply.outer(away[i, own].min() / away[i, own] / near, X[i])
    f = X @ rng.standard_normal(width) + rng.normal(0, 20, m)
    return sp.csr_matrix(A.reshape(m, -1)), np.where(f > np.median(f), 1.0, -1.0)


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_the_end_of_a_step_has_multipliers_whose_coefficients_are_as_good(bias, monkeypatch):
    monkeypatch.setattr("mdlearn.solvers.common.matrix_free_augmented_lagrangian.FACTORED_COLUMNS", 100)
    rows, y = long_rows(0)
    column = Column(y, np.ones(y.shape[0]), 0.0, 0.0, (HingeTerm(0.2),))
    form = MarginForm(LinearFeatures(CsrRows(rows)), (column,), bias)
    solver, ends, last, width = start(form, column), [], None, math.inf
    for report in solver.run():
        if last is not None and solver.width < width:
            own = certify(form, column, last.point, 1e-6)[1].certificate
            ends.append((last.objective - last.lower_bound, own.objective - own.lower_bound))
        last, width = (last if report is None else report), solver.width
    told = [(gap, own) for gap, own in ends if 1e-9 < gap / last.objective < 1e-4]  # rounding shows in smaller ones
    assert len(told) >= 2 and all(own <= 2.001 * gap for gap, own in told)


def test_it_takes_more_rows_on_a_slope_than_it_factors(monkeypatch):
    monkeypatch.setattr("mdlearn.solvers.common.matrix_free_augmented_lagrangian.DIRECT", 5)
    form, column = problem("band", "regularized")
    reports = [r for r in start(form, column).run() if r is not None]
    assert min(r.objective - r.lower_bound for r in reports) <= 1e-9 * abs(reports[-1].objective)


def nearly_repeated(seed):
    """Sparse rows in groups that differ by 1e-6, some with the other label: sweeps alone crawl on them."""
    X, y = planted(700, 900, 10, seed)
    rng = np.random.default_rng(seed)
    pick = rng.integers(0, 700, 2600)
    rows = X[pick].copy()
    rows.data *= 1 + 1e-6 * rng.standard_normal(rows.nnz)
    return rows, np.where(rng.random(2600) < 0.05, -y[pick], y[pick])


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("lambda1", [0.0, 1.0, 2600 / 16, 16.0 * 2600])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_rows_that_nearly_repeat(C, lambda1, bias):
    rows, y = nearly_repeated(0)
    settings = {"C": C, "lambda1": lambda1, "lambda2": 0.0 if lambda1 == 0 else 0.5, "bias": bias}
    model = mdlearn.fit("ldm", rows, y, solver="cd", tol=1e-7, **settings)
    assert model.certificate.converged
    exact = mdlearn.fit("ldm", rows.toarray(), y, solver="interior", tol=1e-7, **settings).certificate
    assert model.certificate.objective <= exact.objective + 2e-7 * abs(exact.objective)
    assert exact.objective <= model.certificate.objective + 2e-7 * abs(exact.objective)


def awkward(seed):
    """Few sparse rows: empty ones, repeated ones, columns and rows of very different size, weights of 0, any C."""
    rng = np.random.default_rng(seed)
    m, d = int(rng.integers(12, 200)), int(rng.integers(3, 300))
    entries = int(rng.integers(1, min(d, 12) + 1))
    A = np.zeros((m, d))
    for i in range(m):
        chosen = rng.choice(d, size=rng.integers(0, entries + 1), replace=False)
        A[i, chosen] = rng.standard_normal(len(chosen))
    bias = str(rng.choice(["none", "regularized", "free"]))
    if rng.random() < 0.3 and bias != "free":
        A = A * 10.0 ** rng.integers(-2, 3, d)
    if rng.random() < 0.3:
        A = A[rng.integers(0, m, m)]
    y = np.where(A @ rng.standard_normal(d) + rng.standard_normal(m) * rng.choice([0, 0.3, 3]) > 0.2, 1, -1)
    y[0], y[1] = 1, -1
    weight = rng.integers(0, 4, m).astype(float) if rng.random() < 0.4 else np.ones(m)
    weight[:2] = 1
    C, total = float(10.0 ** rng.uniform(-3, 3)), weight.sum()
    lambda1 = float(rng.choice([0, 1e-3, 1, total / 16, total / 4, 16 * total]))
    lambda2 = 0.0 if lambda1 == 0 and bias == "free" else float(rng.choice([0, min(0.5, 0.1 * C * total)]))
    return A, y, weight, {"C": C, "lambda1": lambda1, "lambda2": lambda2, "bias": bias}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(80))
def test_awkward_rows(seed, monkeypatch):
    monkeypatch.setattr("mdlearn.solvers.coordinate_descent.solver.GRAM_ROWS", 10)  # sweeps over few rows too
    A, y, weight, settings = awkward(seed)
    model = mdlearn.fit("ldm", sp.csr_matrix(A), y, sample_weight=weight, solver="cd", **settings)
    exact = mdlearn.fit("ldm", A, y, sample_weight=weight, solver="interior", tol=1e-7, **settings).certificate
    scale = max(abs(exact.objective), 0.01 * settings["C"] * weight.sum())
    assert model.certificate.converged
    assert abs(model.certificate.objective - exact.objective) <= 1.2e-6 * scale
