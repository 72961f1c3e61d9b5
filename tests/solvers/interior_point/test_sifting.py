"""The interior engine's start on rounded hinges, and its path over the rows that may still change sides."""

from __future__ import annotations

import numpy as np
import pytest
from draining import drain
from scipy.optimize import minimize
from sifting_cases import SHAPES, problem, whole

import mdlearn
from mdlearn.forms.certificates.certified_solution import certify
from mdlearn.forms.losses import HingeTerm
from mdlearn.solvers.base import Report
from mdlearn.solvers.common.primal_dual import PrimalDualOnRows
from mdlearn.solvers.interior_point import sifting
from mdlearn.solvers.interior_point.central_path import CentralPath
from mdlearn.solvers.interior_point.sifting import HuberProblem, HuberStart
from mdlearn.solvers.interior_point.solver import Interior

BIASES = ("none", "regularized", "free")


def rounded_value(form, column, width, element):
    """The objective with rounded hinges, written anew: value and gradient."""
    X = form.features.rows.X
    if form.bias != "none":
        X = np.hstack([X, np.ones((X.shape[0], 1))])
    R = column.y[:, None] * X
    ridge = np.ones(X.shape[1])
    if form.bias == "free":
        ridge[-1] = 0.0
    z = R @ element
    residual = z if column.offset is None else z - column.offset
    mean = column.counts @ residual / column.counts.sum()
    value = 0.5 * element @ (ridge * element) - column.mean * mean
    value += column.variance * (column.counts @ (residual - mean) ** 2) / column.counts.sum()
    slope = 2.0 * column.variance * column.counts * (residual - mean) / column.counts.sum()
    slope -= column.mean * column.counts / column.counts.sum()
    for term in column.terms:
        a = term.side * (residual - term.threshold)
        cap = term.weight * column.counts
        value += (cap * np.where(a < -width, -a, np.where(a < width, (width - a) ** 2 / (4 * width), 0.0))).sum()
        slope -= term.side * cap * np.clip(0.5 - a / (2 * width), 0.0, 1.0)
    return value, ridge * element + R.T @ slope


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("shape", SHAPES)
def test_newton_steps_reach_the_optimum_of_the_rounded_hinges(shape, bias):
    form, column = problem(shape, bias)
    state = whole(form, column)
    smoothed, width = HuberProblem(state), 0.4
    element = np.zeros(form.features.width + (bias != "none"))
    z = state.margins(element)
    for _ in range(30):
        smoothed._round_off(z, width)
        element, z, gain = drain(smoothed._step(element, z, width))[1]
        if gain < 1e-20:
            break
    found = minimize(
        lambda w: rounded_value(form, column, width, w), np.zeros_like(element), jac=True, method="BFGS",
        options={"gtol": 1e-9},
    )  # fmt: skip
    value, gradient = rounded_value(form, column, width, element)
    assert value <= found.fun * (1 + 1e-12)
    assert np.abs(gradient).max() <= 1e-8 * max(1.0, abs(value))
    np.testing.assert_allclose(element, found.x, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_places_on_the_central_path_meet_its_equations(shape):
    form, column = problem(shape)
    state = whole(form, column)
    path, element = CentralPath(state), np.linspace(-1.0, 1.0, form.features.width)
    mu = 0.03 * column.caps
    path.start_at(element, state.margins(element), mu)
    np.testing.assert_allclose(path.beta + path.upper, column.caps, rtol=1e-14)
    np.testing.assert_allclose(path.beta * path.s, mu, rtol=1e-12)
    np.testing.assert_allclose(path.upper * path.xi, mu, rtol=1e-12)
    np.testing.assert_allclose(path.s - path.xi, state.slopes(path.z), rtol=1e-9, atol=1e-12)
    assert path.complementarity() == pytest.approx(2 * mu.sum())


def test_a_rounded_hinge_and_the_central_path_agree_at_the_kink():
    # mu = cap width / 4: both multipliers are cap / 2 with the slope -cap / (2 width) there.
    form, column = problem("hinge", C=2.0)
    state, width, step = whole(form, column), 0.3, 1e-4
    path, slopes = CentralPath(state), []
    for shift in (-step, step):
        path.start_at(np.zeros(form.features.width), np.full_like(column.y, 1.0 + shift), 0.25 * width * column.caps)
        slopes.append(path.beta.copy())
    np.testing.assert_allclose((slopes[1] - slopes[0]) / (2 * step), -2.0 / (2 * width), rtol=1e-4)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_portion_has_the_gradient_of_the_whole(shape, bias):
    form, column = problem(shape, bias)
    state, rng = whole(form, column), np.random.default_rng(1)
    beta = rng.random(column.caps.shape) * column.caps
    rows = np.sort(rng.choice(column.y.shape[0], 90, replace=False))
    held = beta.copy()
    held[:, rows] = 0.0
    part = PrimalDualOnRows.of(state, rows, state.system.adjoint(state.multipliers(held)))
    element = rng.normal(size=form.features.width + (bias != "none"))
    np.testing.assert_allclose(part.residual(element, beta[:, rows]), state.residual(element, beta), rtol=1e-10)
    np.testing.assert_allclose(part.margins(element), state.margins(element)[rows], rtol=1e-12)
    # Solves with weights on those rows alone, against the dense matrix.
    D = rng.random(rows.shape[0])
    drain(part.system.factor(D))
    X = state.system.rows(rows)
    rhs = rng.normal(size=element.shape)
    np.testing.assert_allclose(part.system.solve(rhs), np.linalg.solve(state.system.Q + X.T @ (D[:, None] * X), rhs))


def small_limits(monkeypatch):
    for name, value in {"FEWEST_BAND_ROWS": 12, "PER_COLUMN": 1.2, "PAYS": 2, "SAMPLE_ROWS": 60}.items():
        monkeypatch.setattr(sifting, name, value)


def reports(form, column):
    """Everything the engine yields but its heartbeats, with the gaps."""
    for report in Interior().iterate(form, column, None, {}, np.random.default_rng(0)):
        if isinstance(report, Report):
            yield report, column.relative_gap(report.objective, report.lower_bound)


def proven(form, column):
    """The first certificate with a gap of 1e-9, and the number of reports before."""
    for i, (report, gap) in enumerate(reports(form, column)):
        if gap <= 1e-9:
            certificate = certify(form, column, report.point, 1e-9)[1].certificate
            if certificate.converged:
                return certificate, i
    raise AssertionError("no such gap")


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("C", [1e-3, 1.0, 300.0])
def test_the_same_optimum_with_and_without_the_start(shape, bias, C, monkeypatch):
    form, column = problem(shape, bias, seed=3, C=C)
    plain = proven(form, column)[0]
    small_limits(monkeypatch)
    assert drain(sifting.sifted_path(whole(form, column)))[1] is not None
    other = proven(form, column)[0]
    assert other.objective == pytest.approx(plain.objective, rel=2e-9)


def test_it_takes_fewer_looks_at_all_rows(monkeypatch):
    form, column = problem("hinge", m=2000, d=4)
    plain = proven(form, column)[1]
    small_limits(monkeypatch)
    assert proven(form, column)[1] < 0.6 * plain


def test_rows_on_the_wrong_side_join(monkeypatch):
    form, column = problem("hinge", m=600)
    state = whole(form, column)
    # A poor start with a narrow band: most rows at kinks of the optimum are not in work at first.
    element = np.full(form.features.width, 0.3)
    start = HuberStart(element, state.margins(element), 1e-3)
    path = sifting.SiftedPath(state, start, sifting._rows_to_sift(state, start, 40))
    first, rows = proven(form, column)[0].objective, path.rows.shape[0]
    for _ in range(12):
        drain(path.step())
    assert not path.alive or path.rows.shape[0] > rows
    small_limits(monkeypatch)
    monkeypatch.setattr(sifting, "WIDER", 0.1)
    assert proven(form, column)[0].objective == pytest.approx(first, rel=1e-8)


@pytest.mark.parametrize(
    "terms", [(HingeTerm(np.inf),), (HingeTerm(1.0, power=2),), (HingeTerm(1.0), HingeTerm(1.0, power=2, side=-1))]
)
def test_terms_without_a_box_go_the_whole_way(terms, monkeypatch):
    small_limits(monkeypatch)
    form, column = problem("hinge")
    column = type(column)(column.y, column.counts, 0.0, 0.0, terms)
    assert drain(sifting.sifted_path(whole(form, column)))[1] is None


def test_few_rows_go_the_whole_way():
    assert drain(sifting.sifted_path(whole(*problem("hinge"))))[1] is None


def test_a_start_that_fails_leaves_the_whole_path(monkeypatch):
    form, column = problem("hinge")
    small_limits(monkeypatch)
    monkeypatch.setattr("mdlearn.solvers.interior_point.sifting.MOST_NEWTON_STEPS", 1)
    assert drain(sifting.sifted_path(whole(form, column)))[1] is None
    assert proven(form, column)[0].converged


def test_rows_that_all_sit_at_one_margin(monkeypatch):
    # No band narrows: all rows of a class are the same.
    small_limits(monkeypatch)
    X = np.repeat([[1.0, 0.0], [-1.0, 0.5]], 150, axis=0)
    y = np.repeat([1, -1], 150)
    y[::7] *= -1
    model = mdlearn.fit("svm", X, y, solver="interior", tol=1e-9)
    assert model.certificate.converged


def test_a_large_fit_converges_and_agrees_with_coordinate_descent():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(9000, 3)).astype(np.float32)
    y = np.where(X @ [1.0, -2.0, 0.5] + rng.normal(size=9000) > 0, 1, -1)
    ours = mdlearn.fit("svm", X, y, C=0.5, solver="interior", tol=1e-6)
    other = mdlearn.fit("svm", X, y, C=0.5, solver="cd", tol=1e-6)
    assert ours.certificate.converged and ours.n_iter <= 8
    assert ours.certificate.objective == pytest.approx(other.certificate.objective, rel=2e-6)
