"""Compiled passes of the interior engine against their formulas in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from mdlearn._solvers import interior as kernel

M = 37


@pytest.fixture
def arrays():
    """Two terms; some entries without a weight, the second term without caps elsewhere."""
    rng = np.random.default_rng(0)
    caps = np.vstack([rng.choice([0.0, 0.5, 2.0], M), rng.choice([0.0, np.inf], M)])
    found = {name: rng.uniform(0.1, 1.0, (2, M)) for name in ("beta", "upper", "s", "xi", "softness")}
    found |= {name: rng.normal(size=(2, M)) for name in ("db", "ds", "dxi", "change")}
    return found | {
        "caps": caps,
        "sides": np.array([1.0, -1.0]),
        "kinks": rng.normal(size=(2, M)),
        "z": rng.normal(size=M),
        "used": caps > 0,
        "boxed": (caps > 0) & np.isfinite(caps),
    }


def whole(call, *args):
    """In two ranges of rows; their results."""
    return call(*args, 0, 20), call(*args, 20, M)


def path(g, **others):
    names = ("caps", "softness", "beta", "upper", "s", "xi", "db", "ds", "dxi")
    return kernel.Path(*({**g, **others}[name] for name in names))


def test_weights_of_a_step(arrays):
    g = arrays
    d, weight = np.full((2, M), np.nan), np.full(M, np.nan)
    first, last = whole(kernel.weigh, path(g), d, weight)
    stiffness = g["s"] / g["beta"] + g["softness"] + np.where(g["boxed"], g["xi"] / g["upper"], 0.0)
    expected = np.where(g["used"], 1 / stiffness, 0.0)
    np.testing.assert_allclose(d, expected, rtol=1e-14)
    np.testing.assert_allclose(weight, expected.sum(axis=0), rtol=1e-14)
    gap = (g["beta"] * g["s"])[g["used"]].sum() + (g["upper"] * g["xi"])[g["boxed"]].sum()
    assert first[0] + last[0] == pytest.approx(gap, rel=1e-13)
    assert max(first[1], last[1]) == pytest.approx(expected.sum(axis=0).max(), rel=1e-14)
    g["s"][:, 3], g["caps"][:, 3] = np.nan, 1.0
    assert np.isinf(kernel.weigh(path(g), d, weight, 0, M)[1])


def test_right_hand_side_of_a_step(arrays):
    g, centring = arrays, 0.07
    d, h, force = np.abs(arrays["change"]), np.empty((2, M)), np.empty(M)
    whole(kernel.forces, path(g), g["kinks"], g["sides"], g["z"], centring, d, h, force)
    a = g["sides"][:, None] * (g["z"] - g["kinks"])
    xi = np.where(g["boxed"], g["xi"], 0.0)
    c1 = centring - g["beta"] * g["s"] - g["db"] * g["ds"]
    c2 = centring - g["upper"] * xi + g["db"] * g["dxi"]
    rp = a + g["softness"] * g["beta"] + xi - g["s"]
    expected = np.where(g["used"], -rp + c1 / g["beta"] - np.where(g["boxed"], c2 / g["upper"], 0.0), 0.0)
    np.testing.assert_allclose(h, expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(force, g["sides"] @ (d * expected), rtol=1e-10, atol=1e-12)


def test_slacks_and_the_longest_step(arrays):
    g, centring = arrays, 0.07
    c1 = centring - g["beta"] * g["s"] - g["db"] * g["ds"]
    c2 = centring - g["upper"] * g["xi"] + g["db"] * g["dxi"]
    ds = (c1 - g["s"] * g["change"]) / g["beta"]
    dxi = (c2 + g["xi"] * g["change"]) / g["upper"]
    ratios = [-g["change"] / g["beta"], -ds / g["s"]]
    longest = max(r[g["used"]].max() for r in ratios)
    longest = max(longest, *(r[g["boxed"]].max() for r in (g["change"] / g["upper"], -dxi / g["xi"])))
    first, last = whole(kernel.slacks, path(g), centring, g["change"])
    assert max(first[0], last[0]) == pytest.approx(longest, rel=1e-13)
    assert max(first[1], last[1]) == np.abs(g["change"][g["used"]]).max()
    np.testing.assert_array_equal(g["db"][g["used"]], g["change"][g["used"]])
    np.testing.assert_allclose(g["ds"][g["used"]], ds[g["used"]], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(g["dxi"][g["boxed"]], dxi[g["boxed"]], rtol=1e-10, atol=1e-12)


def test_a_step_and_its_complementarity(arrays):
    g, step = arrays, 0.01
    values = [g[n].copy() for n in ("beta", "upper", "s", "xi")]
    moved = path(g, **dict(zip(("beta", "upper", "s", "xi"), values)))
    gap = sum(whole(kernel.ahead, moved, step))
    whole(kernel.advance, moved, step)
    used, boxed = g["used"], g["boxed"]
    for value, name, change, where in zip(
        values, ("beta", "upper", "s", "xi"), (g["db"], -g["db"], g["ds"], g["dxi"]), (used, boxed, used, boxed)
    ):
        np.testing.assert_allclose(value, np.where(where, g[name] + step * change, g[name]), rtol=1e-14)
    beta, upper, s, xi = values
    assert gap == pytest.approx((beta * s)[used].sum() + (upper * xi)[boxed].sum(), rel=1e-13)


def test_slopes_along_a_line(arrays):
    g, width, step, tiny = arrays, 0.6, 0.4, 1e-6
    caps = np.where(np.isfinite(g["caps"]), g["caps"], 1.5)
    change = np.random.default_rng(1).normal(size=M)

    def value(t):
        a = g["sides"][:, None] * (g["z"] + t * change - g["kinks"])
        return (caps * np.where(a < -width, -a, np.where(a < width, (width - a) ** 2 / (4 * width), 0.0))).sum()

    parts = whole(kernel.along, g["kinks"], g["sides"], caps, g["z"], change, step, width)
    slope, curvature = (sum(part[k] for part in parts) for k in (0, 1))
    assert slope == pytest.approx((value(step + tiny) - value(step - tiny)) / (2 * tiny), rel=1e-6)
    wide = 1e-4
    second = (value(step + wide) - 2 * value(step) + value(step - wide)) / wide**2
    assert curvature == pytest.approx(second, rel=1e-2)


@pytest.mark.parametrize("name", ["weigh", "ahead", "advance"])
def test_arrays_that_do_not_fit_are_refused(arrays, name):
    g = arrays
    with pytest.raises(ValueError, match="differ"):
        path(g, beta=g["beta"][:, :-1].copy())
    args = (g["ds"].copy(), np.empty(M)) if name == "weigh" else (0.5,)
    with pytest.raises(ValueError, match="rows"):
        getattr(kernel, name)(path(g), *args, 0, M + 1)
