"""Extrapolated sweeps over sparse rows with a strong variance term: state, monotony and optimum, without the engine."""

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.data.features import LinearFeatures
from mdlearn.data.rows import CsrRows
from mdlearn.forms.certificate import dual
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.dual_centred import CentredDual

BIASES = ["none", "regularized", "free"]
BAND = (HingeTerm(0.2), HingeTerm(0.3, power=2, side=-1, threshold=1.4))


def rows(m=2500, d=300, seed=5):
    rng = np.random.default_rng(seed)
    X = sp.random(m, d, 0.03, format="csr", random_state=rng, data_rvs=rng.standard_normal)
    y = np.where(X @ rng.standard_normal(d) + 0.3 * rng.standard_normal(m) > 0.2, 1.0, -1.0)
    return X, y, rng.integers(0, 3, m).astype(float)


def stiff(bias, terms):
    X, y, counts = rows()
    column = Column(y, counts, 5.0 * counts.sum(), 3.0 * counts.sum(), terms)
    form = MarginForm(LinearFeatures(CsrRows(X)), (column,), bias)
    return form, column, CentredDual(form, column)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("terms", [(HingeTerm(0.2),), BAND], ids=["hinge", "band"])
def test_state_fits_the_multipliers_and_the_dual_value_rises(bias, terms, monkeypatch):
    monkeypatch.setattr("mdlearn.solvers.dual_centred.QUIET", 1.0)
    form, column, state = stiff(bias, terms)
    rng, last = np.random.default_rng(0), -np.inf
    for _ in range(15):
        list(state.sweep(state.movable, rng))
        assert state.quiet
        assert (state.beta >= 0).all() and (state.beta <= column.caps).all()
        assert not state.s[column.counts == 0].any()
        scale = np.abs(state.s).max()
        assert abs(state.s.sum()) <= 1e-9 * scale
        alpha = column.y * (column.sides @ state.beta + state.s + column.pull)
        assert np.allclose(state.coef(), form.features.rows.X.T @ alpha, rtol=0, atol=1e-8 * scale)
        if bias == "free":
            assert abs(alpha.sum()) <= 1e-8 * scale
        value = dual(form, column, state.beta, state.s)[0]
        assert value >= last - 1e-10 * abs(value)
        last = value


@pytest.mark.parametrize("bias", BIASES)
def test_gradient_vanishes_where_no_hinge_is_active(bias):
    X, y, counts = rows()
    counts += 1.0
    m = counts.sum()
    model = mdlearn.fit("ldm", X, y, sample_weight=counts, C=1.0, lambda1=16 * m, bias=bias, solver="cd", tol=1e-12)
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    z = y * (X @ w + b)
    pull = 4 * m / m * counts
    slope = y * (64 * counts * (z - counts @ z / m) - pull - counts * (z < 1))
    gradient, size = w + X.T @ slope, np.linalg.norm(X.T @ (y * pull))
    assert np.linalg.norm(gradient) <= 1e-4 * size
    if bias != "none":
        assert abs(slope.sum() + (b if bias == "regularized" else 0.0)) <= 1e-4 * size
