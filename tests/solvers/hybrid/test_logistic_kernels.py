"""Compiled loops over logistic losses by themselves: slopes, line searches and Newton steps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import cython_blas, cython_lapack
from scipy.optimize import brentq
from scipy.special import expit, xlogy

from mdlearn._solvers import logistic

SYRK, POSV = cython_blas.__pyx_capi__["dsyrk"], cython_lapack.__pyx_capi__["dposv"]
LIMITS = 1e-11, 1e-3, 0.3, 0.1, 1e-14
"""Of a step: rounding, the least bend along a free bias, shares of its slope that are left, and of its balance."""


@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_a_logistic_step_tells_what_its_multipliers_prove(bias):
    rng = np.random.default_rng(4)
    k, n, sharpness = 60, 5, 1.5
    y = rng.choice([-1.0, 1.0], k)
    B = np.hstack([y[:, None] * rng.standard_normal((k, n - 1)), y[:, None]])
    ridge, fixed, caps = np.ones(n), 0.1 * rng.standard_normal(n), rng.uniform(0.1, 2.0, k)
    if bias == "free":
        ridge[-1] = 0.0
    w, z, alpha, u, bends = np.zeros(n), np.zeros(k), np.zeros(k), np.empty(k), np.empty(k)
    loss = logistic.slopes(z, caps, sharpness, 1.0, u, bends)
    room = logistic.Work(np.empty((n, n)), np.empty((k, n)), np.empty((4, k)), SYRK, POSV)
    for _ in range(8):
        beta = np.empty(k)
        loss, lower = logistic.newton_step(
            B, ridge, fixed, caps, sharpness, 1.0, w, z, u, bends, alpha, beta, room, loss, *LIMITS
        )
        np.testing.assert_allclose(z, B @ w, rtol=0, atol=1e-11)
        assert loss == pytest.approx(caps @ np.logaddexp(0.0, sharpness * (1.0 - z)) / sharpness, rel=1e-12)
        p, pushed = beta / caps, B.T @ beta + fixed
        assert (p >= 0).all() and (p <= 1).all()
        if bias == "free":
            assert abs(pushed[-1]) <= 1e-12 * beta.sum()
            pushed = pushed[:-1]
        entropy = caps @ (xlogy(p, p) + xlogy(1.0 - p, 1.0 - p))
        assert lower == pytest.approx(beta.sum() - entropy / sharpness - 0.5 * pushed @ pushed, rel=1e-11)
        objective = 0.5 * ridge @ w**2 - fixed @ w + loss
        assert lower <= objective + 1e-12 * abs(objective)
    assert objective - lower <= 1e-11 * abs(objective)


@pytest.mark.parametrize("sharpness", [1.0, 5.0, 50.0])
def test_no_logistic_step_goes_up(sharpness):
    """Few rows of one class: a full step takes the others through their kinks at once, to where no loss bends."""
    rng = np.random.default_rng(5)
    k, n, caps = 200, 4, np.full(200, 10.0)
    y = np.where(np.arange(k) < 6, 1.0, -1.0)
    B = np.hstack([y[:, None] * 0.5 * rng.standard_normal((k, n - 1)), y[:, None]])
    ridge, fixed = np.array([1.0, 1.0, 1.0, 0.0]), np.zeros(n)
    w, z, alpha, u, bends = np.zeros(n), np.zeros(k), np.zeros(k), np.empty(k), np.empty(k)
    loss, before = logistic.slopes(z, caps, sharpness, 1.0, u, bends), np.inf
    room = logistic.Work(np.empty((n, n)), np.empty((k, n)), np.empty((4, k)), SYRK, POSV)
    for _ in range(40):
        objective = 0.5 * ridge @ w**2 + loss
        assert objective <= before * (1 + 1e-12)
        before, beta = objective, np.empty(k)
        loss, lower = logistic.newton_step(
            B, ridge, fixed, caps, sharpness, 1.0, w, z, u, bends, alpha, beta, room, loss, *LIMITS
        )
        if objective - lower <= 1e-10 * objective:
            break
    assert objective - lower <= 1e-10 * objective


@pytest.mark.parametrize("sharpness", [0.5, 1.0, 20.0])
@pytest.mark.parametrize("weights", ["equal", "mixed"])
def test_slopes_of_the_logistic_loss(sharpness, weights):
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(0, 3, 3000), [800.0, -800.0, 1.0, 0.0, -0.0, 1e4, -1e4]])
    c = np.ones(len(z)) if weights == "equal" else np.repeat(rng.choice([0.0, 0.3, 2.0, 1e-9], 31), 97)
    u, bends = np.empty_like(z), np.empty_like(z)
    t = sharpness * (1.0 - z)
    loss = logistic.slopes(z, c, sharpness, 1.0, u, bends)
    np.testing.assert_allclose(u, c * expit(t), rtol=1e-14, atol=0)
    np.testing.assert_allclose(bends, sharpness * c * expit(t) * expit(-t), rtol=1e-13, atol=0)
    expected = c @ np.logaddexp(0.0, t) / sharpness
    assert loss == pytest.approx(expected, rel=1e-13)
    assert logistic.loss(z, c, sharpness, 1.0) == loss


@pytest.mark.parametrize("margin", [800.0, -800.0])
def test_margins_far_out(margin):
    z, c, u, bends = np.full(2500, margin), np.full(2500, 0.5), np.empty(2500), np.empty(2500)
    loss = logistic.slopes(z, c, 1.0, 0.0, u, bends)
    assert np.isfinite([loss, *u, *bends]).all()
    assert loss == pytest.approx(1250.0 * max(-margin, 0.0), abs=1e-300)
    assert (u == (0.5 if margin < 0 else 0.5 * np.exp(-800.0))).all() and (bends <= 1e-300).all()


@pytest.mark.parametrize("close", [1e-1, 1e-12])
def test_the_minimum_along_a_line_of_logistic_losses(close):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        z, dz, c = rng.normal(0, 3, 60), rng.standard_normal(60), rng.uniform(0, 2, 60)
        bend, sharpness = 10.0 ** (seed % 5 - 3), 10.0 ** (seed % 3 - 1)
        u = c * expit(sharpness * (1.0 - z))

        def slope(t, z=z, dz=dz, c=c, u=u, bend=bend, sharpness=sharpness):
            return -2.0 + t * bend + (u - c * expit(sharpness * (1.0 - z - t * dz))) @ dz

        t = logistic.minimum(z, dz, c, sharpness, 1.0, u, -2.0, bend, close)
        assert abs(slope(t)) <= 2.0 * close + 1e-11
        far = 1.0
        while slope(far) < 0:
            far *= 2.0
        assert close > 1e-6 or t == pytest.approx(brentq(slope, 0.0, far, xtol=1e-15, rtol=1e-14), rel=1e-7)
    assert logistic.minimum(z, dz, c, 1.0, 1.0, u, 0.0, 1.0, close) == np.inf
    assert logistic.minimum(z, 0 * dz, c, 1.0, 1.0, u, -1.0, 0.0, close) > 1e30


@pytest.mark.parametrize("m", [1, 15, 16, 17, 1003])
@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 1e3])
def test_sums_over_rows_are_those_of_plain_functions(m, size):
    """Whatever number of rows is left beside whole vectors, and however far margins are."""
    rng = np.random.default_rng(m)
    z, c, u, bends = size * rng.standard_normal(m), rng.uniform(0.0, 3.0, m), np.empty(m), np.empty(m)
    c[:: max(2, m // 3)] = 0.0
    t = 1.7 * (0.3 - z)
    value = math.fsum(c * np.logaddexp(0.0, t)) / 1.7
    assert logistic.slopes(z, c, 1.7, 0.3, u, bends) == pytest.approx(value, rel=1e-14)
    assert logistic.loss(z, c, 1.7, 0.3) == pytest.approx(value, rel=1e-14)
    np.testing.assert_allclose(u, c * expit(t), rtol=2e-15, atol=1e-300)
    np.testing.assert_allclose(bends, 1.7 * c * expit(t) * expit(-t), rtol=5e-15, atol=1e-300)
    p = np.divide(u, c, out=np.zeros(m), where=c > 0)
    assert logistic.entropy(u, c) == pytest.approx(math.fsum(c * (xlogy(p, p) + xlogy(1 - p, 1 - p))), rel=1e-14)


def test_what_is_no_number_stays_none():
    u, bends = np.empty(20), np.empty(20)
    for place in (0, 19):
        z = np.zeros(20)
        z[place] = np.nan
        assert np.isnan(logistic.slopes(z, np.ones(20), 1.0, 0.0, u, bends)) and np.isnan(u[place])
        assert np.isnan(logistic.loss(z, np.ones(20), 1.0, 0.0))
    z[19] = -np.inf
    assert logistic.loss(z, np.ones(20), 1.0, 0.0) == np.inf


def test_lengths_do_not_hang_on_rounding_where_the_far_end_is_flat():
    """From a flat end a Newton step leads back to 0, give or take rounding, which differs for repeated rows."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, dz = rng.integers(1, 5, 20), rng.uniform(20, 80, 20)
        bend, lengths = 0.2 * 18.5 * float(n @ dz), []
        for chosen, count in ((np.arange(20), n.astype(float)), (np.repeat(np.arange(20), n), np.ones(n.sum()))):
            u, d = 18.5 * count * expit(5.0), dz[chosen]
            z = np.zeros(len(d))
            lengths.append(logistic.minimum(z, d, 18.5 * count, 5.0, 1.0, u, -float(u @ d), bend, 0.1))
        assert lengths[0] == pytest.approx(lengths[1], rel=1e-9)


# ---------------------------------------------------------------- arguments
