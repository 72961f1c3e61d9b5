"""One decomposition for a grid of quadratic problems, against single fits and their certificates."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.certificates.certified_solution import certify
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.leastsquares import LSLDM, LSSVM
from mdlearn.objectives.uldm import ULDM
from mdlearn.solvers.quadratic.spectrum import spectrum_of, suits_spectrum

GRIDS = {
    "uldm": (ULDM, [{"C": 10.0**k, "lambda0": v} for k in range(-7, 2, 2) for v in (0.0, 1.0, 30.0)]),
    "lssvm": (LSSVM, [{"C": 10.0**k} for k in range(-3, 4)]),
    "lsldm": (
        LSLDM,
        [{"C": C, "lambda1": a, "lambda2": v} for C in (0.0, 1.0) for a in (0.0, 2.0) for v in (1.0, 9.0)],
    ),
}


def decomposed(form, columns):
    work = spectrum_of(form, columns)
    while True:
        try:
            next(work)
        except StopIteration as done:
            return done.value


def sample(m=70, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * 10.0 ** rng.uniform(-1, 1, d) + 0.5
    return X, np.where(X[:, 0] + rng.standard_normal(m) > 0.8, 1.0, -1.0), rng.uniform(0.2, 3.0, m)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("name", GRIDS)
def test_every_point_of_a_grid_is_that_of_a_single_fit(name, bias):
    X, y, counts = sample()
    make, grid = GRIDS[name]
    grid = [given for given in grid if bias != "free" or given.get("lambda0", 1.0) > 0]
    features = LinearFeatures(DenseRows(X))
    forms = []
    for given in grid:
        terms = make(**given).terms(given, float(counts.sum()))
        column = Column(y, counts, terms.variance, terms.mean, terms.loss)
        forms.append(MarginForm(features, (column,), bias, terms.ridge, terms.unit))
    spectrum = decomposed(forms[0], [form.columns[0] for form in forms])
    for form, given in zip(forms, grid):
        _, solution = certify(form, form.columns[0], spectrum.point(form, form.columns[0]), 1e-10)
        model = mdlearn.fit(name, X, y, sample_weight=counts, solver="direct", bias=bias, tol=1e-10, **given)
        assert solution.certificate.converged, given
        assert solution.certificate.objective == pytest.approx(model.certificate.objective, rel=1e-9, abs=1e-12)
        # A gap of 1e-10 is one of 1e-5 in f; both are far closer.
        scale = np.abs(model.decision_function(X)).max()
        np.testing.assert_allclose(
            X @ solution.coef + solution.intercept, model.decision_function(X), atol=1e-7 * scale
        )


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_a_tiny_ridge_and_unequal_ones(bias):
    """Beyond 1e10 the eigenvalues come from the rows; columns can have ridges of their own."""
    X, y, counts = sample(seed=1)
    features = LinearFeatures(DenseRows(X), np.linspace(0.2, 5.0, X.shape[1]))
    columns = [Column(y, counts, 0.5 / C, 1.0 / C, ()) for C in (1e-2, 1e-6, 1e-11)]
    form = MarginForm(features, tuple(columns), bias)
    spectrum = decomposed(form, columns)
    for column in columns:
        assert certify(form, column, spectrum.point(form, column), 1e-10)[1].certificate.gap <= 1e-10


def test_what_a_spectrum_cannot_solve():
    X, y, counts = sample()
    pair, half = (HingeTerm(1.0, 1, 1.0, 2), HingeTerm(1.0, -1, 1.0, 2)), (HingeTerm(1.0, 1, 1.0, 2),)
    right, rows = Column(y, counts, 1.0, 1.0, pair), LinearFeatures(DenseRows(X))
    bare, targets = Column(y, counts, 0.0, 0.0, ()), Column(y, counts, 1.0, 1.0, pair, offset=y)
    assert suits_spectrum(MarginForm(rows, (right,), "free"), right)
    for column in (Column(y, counts, 1.0, 1.0, half), targets):
        assert not suits_spectrum(MarginForm(rows, (column,), "none"), column)
    assert not suits_spectrum(MarginForm(rows, (bare,), "free"), bare), "nothing holds the intercept"
    assert not suits_spectrum(MarginForm(rows, (right,), "none", 0.0), right), "there is no squared norm"
