"""Compiled sums of a native loss: as its functions say one by one, and bounds from margins that are looked up."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sysconfig

import numpy as np
import pytest
from scipy import LowLevelCallable
from scipy.special import expit, xlog1py, xlogy

from mdlearn._solvers import callbacks, native_losses
from mdlearn.forms import native
from mdlearn.forms.given import GivenLoss
from mdlearn.forms.native import NativeFunction

# The logistic loss; the hinge loss with its corner rounded over h = params[0], and the same of |z - 2| for z > 2;
# cosh, whose slopes have no bound, with its least value 1 at 0.
SOURCE = """
#include <math.h>
double logistic_value(double z, void *p) { return (z < 0.0 ? -z : 0.0) + log1p(exp(-fabs(z))); }
double logistic_slope(double z, void *p) { return -1.0 / (1.0 + exp(z)); }
double logistic_bend(double z, void *p) { double e = exp(-fabs(z)); return e / ((1.0 + e) * (1.0 + e)); }
double logistic_conjugate(double s, void *p) { return -s * log(-s) + (1.0 + s) * log1p(s); }
double rounded_value(double z, void *p) {
    double h = *(double *)p, s = fmax(1.0 - z, z - 2.0);
    return s <= 0.0 ? 0.0 : s < h ? s * s / (2.0 * h) : s - h / 2.0;
}
double rounded_slope(double z, void *p) {
    double h = *(double *)p, s = fmax(1.0 - z, z - 2.0);
    return s <= 0.0 ? 0.0 : (z < 1.5 ? -1.0 : 1.0) * (s < h ? s / h : 1.0);
}
double rounded_bend(double z, void *p) {
    double h = *(double *)p, s = fmax(1.0 - z, z - 2.0);
    return 0.0 < s && s < h ? 1.0 / h : 0.0;
}
double cosh_value(double z, void *p) { return cosh(z); }
double cosh_slope(double z, void *p) { return sinh(z); }
double cosh_bend(double z, void *p) { return cosh(z); }
"""
H = 0.25
CONJUGATES = {
    "logistic": lambda s: xlogy(-s, -s) + xlog1py(1.0 + s, s),
    "rounded": lambda s: np.where(s < 0, s, 2.0 * s) + 0.5 * H * s * s,
    "cosh": lambda s: s * np.arcsinh(s) - np.sqrt(1.0 + s * s),
}
SLOPES = {
    "logistic": lambda z: -expit(-z),
    "rounded": lambda z: np.clip((z - 1.0) / H, -1.0, 0.0) + np.clip((z - 2.0) / H, 0.0, 1.0),
    "cosh": np.sinh,
}
LOSSES = sorted(SLOPES)


@pytest.fixture(scope="module")
def loss(tmp_path_factory):
    """From a name to the loss of the source, with its compiled functions or with their NumPy equivalents."""
    folder = tmp_path_factory.mktemp("sums")
    compiler = (sysconfig.get_config_var("CC") or "cc").split()
    if shutil.which(compiler[0]) is None:
        pytest.skip("no C compiler")
    (folder / "loss.c").write_text(SOURCE)
    subprocess.run([*compiler, "-shared", "-fPIC", "-O1", "-o", "loss.so", "loss.c", "-lm"], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "loss.so"))

    def take(name, parts=("value", "slope", "bend"), wrapped=False):
        found = []
        for part in parts:
            function = library[f"{name}_{part}"]
            function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double, ctypes.c_void_p]
            one = NativeFunction(LowLevelCallable(function), [H])
            found.append(one.__call__ if wrapped else one)
        return GivenLoss(*found)

    return take


def rows(n=400):
    """Margins and counts, some of these 0."""
    rng = np.random.default_rng(3)
    return 3.0 * rng.standard_normal(n), rng.integers(0, 3, n).astype(np.float64)


@pytest.mark.parametrize("name", LOSSES)
def test_sums_are_those_of_the_functions(loss, name, monkeypatch):
    monkeypatch.setattr(native, "MARGINS_PER_CALL", 37)
    monkeypatch.setattr(native, "TABLE_ROWS", 1000)
    z, counts = rows()
    for ours, theirs in zip(loss(name).terms(0.7), loss(name, wrapped=True).terms(0.7)):
        assert ours.loss.sums is not None and theirs.loss.sums is None
        np.testing.assert_allclose(ours.value(z, counts), theirs.value(z, counts), rtol=1e-13)
        np.testing.assert_allclose(ours.slopes(z, counts), theirs.slopes(z, counts), rtol=1e-14)
        np.testing.assert_allclose(ours.curvatures(z, counts), theirs.curvatures(z, counts), rtol=1e-14)


def multipliers(term, name, z, counts):
    """Slopes of the margins, and multipliers that are those of no row: scaled, at both ends, of tiny and huge size."""
    own = np.maximum(-term.side * SLOPES[name](z), 0.0) * term.weight * counts
    caps = np.where(np.isfinite(term.caps(counts)) & (term.caps(counts) < 1e50), term.caps(counts), 1e3 * counts)
    yield from (own, 0.37 * own, 2.0**-7 * own, np.zeros_like(own), caps, 0.5 * caps, 1e-9 * caps, 1e-200 * counts)


@pytest.mark.parametrize("name", LOSSES)
def test_bounds_are_safe_and_as_near_as_rounding(loss, name):
    """Against the conjugate as a formula: never above it, and below it by rounding alone."""
    z, counts = rows()
    for term in loss(name).terms(0.7):
        lowest = term.loss.lowest if term.side < 0 else 0.0
        for beta in multipliers(term, name, z, counts):
            used = counts > 0
            factor = term.weight * counts[used]
            s = -term.side * beta[used] / factor
            parts = factor * (CONJUGATES[name](s) + lowest)
            size = float(np.abs(parts).sum() + np.abs(factor * lowest).sum() + beta.sum())
            found = term.bound(beta, counts)
            assert found <= -float(parts.sum()) + 4e-15 * size
            assert found >= -float(parts.sum()) - 2e-13 * size - 1e-25


def test_a_compiled_conjugate_is_called_and_made_good_where_it_fails(loss):
    """0 ln 0 is no number at both ends: margins are looked up there."""
    (term,) = loss("logistic", ("value", "slope", "bend", "conjugate")).terms(1.0)
    (without,) = loss("logistic").terms(1.0)
    beta, counts = np.array([0.0, 0.25, 0.5, 1.0]), np.ones(4)
    assert term.loss.sums.conjugate is not None and without.loss.sums.conjugate is None
    expected = -float(CONJUGATES["logistic"](-beta).sum())
    assert term.bound(beta, counts) == pytest.approx(expected, rel=1e-14)
    assert without.bound(beta, counts) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_estimates_are_bounds_but_for_some_digits(loss, name):
    z, counts = rows()
    for term in loss(name).terms(0.7):
        for beta in multipliers(term, name, z, counts):
            found, expected = term.estimated_bound(beta, counts), term.bound(beta, counts)
            assert found == pytest.approx(expected, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("n", [native.TABLE_ROWS, 1000])
def test_many_rows_are_read_from_polynomials(loss, name, n):
    """As the functions say but for some digits, near 0 and beyond: engines need no more."""
    z, counts = rows(n)
    z[:20] *= 30.0 if name != "cosh" else 2.0
    for ours, theirs in zip(loss(name).terms(0.7), loss(name, wrapped=True).terms(0.7)):
        size = float(np.abs(theirs.slopes(z, counts)).max())
        np.testing.assert_allclose(ours.slopes(z, counts), theirs.slopes(z, counts), rtol=1e-9, atol=1e-12 * size)
        np.testing.assert_allclose(ours.curvatures(z, counts), theirs.curvatures(z, counts), rtol=2e-5)
        np.testing.assert_allclose(ours.estimated_value(z, counts), theirs.value(z, counts), rtol=1e-13)
        assert (ours.slopes(z, counts) <= ours.caps(counts)).all()


@pytest.mark.parametrize("name", LOSSES)
def test_bounds_of_many_rows_are_safe_and_as_near_as_rounding(loss, name):
    """As of few rows, with margins that are looked for next to those of the polynomials."""
    z, counts = rows(2 * native.CONJUGATE_ROWS)
    for term in loss(name).terms(0.7):
        lowest = term.loss.lowest if term.side < 0 else 0.0
        for beta in multipliers(term, name, z, counts):
            used = counts > 0
            factor = term.weight * counts[used]
            parts = factor * (CONJUGATES[name](-term.side * beta[used] / factor) + lowest)
            size = float(np.abs(parts).sum() + np.abs(factor * lowest).sum() + beta.sum())
            found = term.bound(beta, counts)
            assert found <= -float(parts.sum()) + 4e-15 * size
            assert found >= -float(parts.sum()) - 2e-13 * size - 1e-25
            assert term.estimated_bound(beta, counts) == pytest.approx(found, rel=1e-8, abs=1e-8)


def test_tables_without_room_are_refused(loss):
    sums = loss("logistic").sums
    numbers = sums.value, sums.slope, sums.bend
    with pytest.raises(ValueError, match="six numbers"):
        native_losses.NearTable(np.zeros((3, 5)), np.zeros(4), 0.0, 1.0, *numbers)
    with pytest.raises(ValueError, match="six numbers"):
        native_losses.NearTable(np.zeros((3, 6)), np.zeros(3), 0.0, 1.0, *numbers)
    with pytest.raises(ValueError, match="seven numbers"):
        native_losses.ConjugateTable(sums.near, np.zeros((2, 4, 6)), 1.0, 0.5)


def test_slopes_between_two_knots_are_found_wherever_they_lie(loss):
    """One row per slope, next to and on the knots: every part of the table is entered."""
    (term,) = loss("logistic").terms(1.0)
    edges = np.linspace(0.0, 1.0, 4097)
    beta = np.unique(np.clip(np.concatenate([edges, np.nextafter(edges, 2.0), np.nextafter(edges, -1.0)]), 0.0, 1.0))
    for one in beta:
        found = term.bound(np.array([one]), np.ones(1))
        assert found == pytest.approx(-float(CONJUGATES["logistic"](-one)), rel=1e-12, abs=4e-13)


def test_a_table_without_room_is_refused():
    with pytest.raises(ValueError, match="seven numbers"):
        native_losses.SlopeTable(np.zeros((3, 6)), np.zeros(2, dtype=np.intp), 0.0, 1.0)
    with pytest.raises(ValueError, match="no knot"):
        native_losses.SlopeTable(np.zeros((3, 7)), np.array([0, 3], dtype=np.intp), 0.0, 1.0)


def test_lengths_that_differ_are_refused(loss):
    sums, two, three = loss("logistic").sums, np.ones(2), np.ones(3)
    calls = [
        lambda: callbacks.losses(sums.value, three, two, -1.0, 1.0, 0.0),
        lambda: callbacks.slopes(sums.slope, three, two, 1.0, 1, -1.0, 1.0, np.ones(3)),
        lambda: callbacks.slopes(sums.slope, three, three, 1.0, 1, -1.0, 1.0, np.ones(2)),
        lambda: callbacks.bends(sums.bend, None, three, two, 1.0, 1, -1.0, 1.0, np.ones(3)),
        lambda: callbacks.bends(sums.bend, None, three, three, 1.0, 1, -1.0, 1.0, np.ones(2)),
        lambda: native_losses.bound(sums.table, sums.value, sums.slope, None, three, two, 1.0, 1, 0.0),
        lambda: native_losses.estimate(sums.table, sums.value, sums.slope, three, two, 1.0, 1, 0.0),
        lambda: sums.near.losses(three, two, -1.0, 1.0, 0.0),
        lambda: sums.near.multipliers(three, two, 1.0, 1, -1.0, 1.0, 1.0, np.ones(3)),
        lambda: sums.near.multipliers(three, three, 1.0, 1, -1.0, 1.0, 1.0, np.ones(2)),
        lambda: sums.near.bends(three, two, 1.0, 1, False, -1.0, 1.0, np.ones(3)),
        lambda: sums.near.bends(three, three, 1.0, 1, True, -1.0, 1.0, np.ones(2)),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="differ in length"):
            call()
