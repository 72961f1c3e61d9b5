"""Statistics of margins, the bound of Gao and Zhou, and what SPEC's errata say about the printed forms."""

import itertools
import math
import re
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mdlearn import margins


@pytest.fixture
def rng():
    return np.random.default_rng(20)


# Statistics


def test_statistics_of_a_small_sample():
    z = [2.0, -1.0, 0.5, 0.5]
    assert margins.mean(z) == 0.5
    assert margins.variance(z) == pytest.approx((1.5**2 + 1.5**2) / 4)
    assert margins.minimum(z) == -1.0
    assert margins.top_p(z, 1) == -1.0
    assert margins.top_p(z, 3) == 0.0
    assert margins.top_p(z, 4) == 0.5
    assert margins.top_p(z, 1.5) == pytest.approx((-1 + 0.25) / 1.5)
    values, share = margins.cumulative_curve(z)
    assert_array_equal(values, [-1, 0.5, 2])
    assert_array_equal(share, [0.25, 0.75, 1])


def test_variance_survives_a_large_common_offset(rng):
    z = rng.standard_normal(1000)
    assert_allclose(margins.variance(z + 1e8), margins.variance(z), rtol=1e-6)


@pytest.mark.parametrize(
    "statistic",
    [
        margins.mean,
        margins.variance,
        margins.minimum,
        lambda z, w=None: margins.top_p(z, 7, w),
        lambda z, w=None: margins.top_p(z, 2.5, w),
        lambda z, w=None: np.concatenate(margins.cumulative_curve(z, w)),
        lambda z, w=None: margins.gao_zhou_bound(z, 10, 0.05, sample_weight=w),
        lambda z, w=None: margins.gao_zhou_bound(z, 10, 0.05, 0.4, w),
    ],
    ids=["mean", "variance", "minimum", "top 7", "top 2.5", "curve", "bound", "bound at theta"],
)
def test_weights_are_repetitions(statistic, rng):
    z = np.concatenate([rng.uniform(-0.5, 1, 12), [-1.0, 0.25, 0.25]])
    # The smallest margin has weight 0: it must not be seen.
    counts = np.concatenate([rng.integers(1, 4, 12), [0, 2, 1]])
    assert_allclose(statistic(z, counts), statistic(np.repeat(z, counts)), rtol=1e-13)
    # The example is one where ignoring the weights shows.
    seen = np.resize(statistic(z, counts), np.size(statistic(z)))
    assert np.max(np.abs(seen - statistic(z))) > 1e-3


def test_float32_margins_are_accumulated_in_float64():
    z = np.full(100_000, 0.1, dtype=np.float32)
    assert margins.mean(z) == pytest.approx(float(np.float32(0.1)), rel=1e-12)


# Decomposition


def classes(rng):
    X = rng.standard_normal((40, 3)) + [1, 0, -2]
    y = np.where(rng.random(40) < 0.3, 1, -1)
    return X, y, rng.standard_normal(3)


def test_decomposition_gives_mean_and_variance_of_the_margins(rng):
    X, y, w = classes(rng)
    z = y * (X @ w)
    parts = margins.decomposition(X, y, w[None, :])
    assert_allclose([parts.mean, parts.mean_from_classes], z.mean(), rtol=1e-12)
    assert_allclose([parts.variance, parts.variance_from_classes], z.var(), rtol=1e-12)
    assert parts.variance_from_classes == parts.within + parts.between
    assert_allclose(parts.mean_pos, X[y > 0].mean(0))
    assert_allclose(parts.covariance_neg, np.cov(X[y < 0].T, bias=True))
    assert (parts.n_pos, parts.n_neg) == ((y > 0).sum(), (y < 0).sum())


def test_printed_2_12_is_wrong_and_the_corrected_form_right(rng):
    """Erratum M1: per class, variance about the common mean; N+ N-^2 / N^2 for the positive class."""
    X, y, w = classes(rng)
    parts = margins.decomposition(X, y, w)
    n_pos, n_neg, n = parts.n_pos, parts.n_neg, len(y)
    z = y * (X @ w)
    shift = float(w @ (parts.mean_pos + parts.mean_neg)) ** 2
    own_spread = n_pos * float(w @ parts.covariance_pos @ w)
    about_common_mean = np.sum((z[y > 0] - z.mean()) ** 2)
    right = own_spread + n_pos * n_neg**2 / n**2 * shift
    printed = own_spread + n_pos**2 * n_neg / n**2 * shift
    assert right == pytest.approx(about_common_mean, rel=1e-12)
    assert abs(printed - about_common_mean) > 0.1 * about_common_mean


def test_decomposition_takes_weights_bias_and_any_labels(rng):
    X, y, w = classes(rng)
    counts = rng.integers(0, 4, len(y))
    labels = np.where(y > 0, "yes", "no")
    parts = margins.decomposition(X, labels, w, counts, intercept=[0.7])
    z = np.repeat(y * (X @ w + 0.7), counts)
    assert_allclose([parts.mean, parts.mean_from_classes], z.mean(), rtol=1e-12)
    assert_allclose([parts.variance, parts.variance_from_classes], z.var(), rtol=1e-12)
    repeated = margins.decomposition(np.repeat(X, counts, 0), np.repeat(y, counts), w, intercept=0.7)
    assert_allclose(parts.covariance_pos, repeated.covariance_pos, rtol=1e-12)
    assert abs(parts.between - margins.decomposition(X, labels, w, counts).between) > 1e-3


# Gao & Zhou


def literal_bound(z, size, delta, theta):
    """SPEC section 5, one term after the other, in plain Python."""
    m = len(z)
    mean = sum(z) / m
    mu = 144 * math.log(m) * math.log(2 * size) / theta**2 + math.log(2 * size / delta)
    below = sum(1 for value in z if value < theta) / m
    above = sum(1 for value in z if value > 2 * theta / 3) / m
    bound = m**-50 + below + m ** (-2 / (1 - mean**2 + theta / 9))
    return bound + 3 * math.sqrt(mu) / m**1.5 + 7 * mu / (3 * m) + math.sqrt(3 * mu * below * above / m)


@pytest.mark.parametrize("theta", [0.05, 0.25, 0.3, 0.375, 1.0])
def test_gao_zhou_at_a_given_theta(theta):
    # 0.25 is a margin itself and 0.375 is 3/2 of it: the strict inequalities matter there.
    z = [-0.5, 0.1, 0.25, 0.25, 0.4, 0.7, 1.0]
    assert margins.gao_zhou_bound(z, 3, 0.05, theta) == pytest.approx(literal_bound(z, 3, 0.05, theta), rel=1e-13)


def test_gao_zhou_takes_the_best_of_a_grid():
    z, grid = [0.1, 0.2, 0.4, 0.9, 1.0, -1.0], [0.2, 0.5, 0.9]
    expected = min(literal_bound(z, 7, 0.1, theta) for theta in grid)
    assert margins.gao_zhou_bound(z, 7, 0.1, grid) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("scale", [1, 10**4, 10**6, 10**9])
def test_gao_zhou_infimum_is_the_lowest_point_of_a_fine_grid(scale, rng):
    """With many rows the best theta lies inside (0, 1), where one of the two shares jumps."""
    z = np.round(rng.uniform(-0.2, 1, 30), 2)
    weights = rng.integers(1, 5, 30) * scale
    grid = np.unique(np.concatenate([np.linspace(1e-3, 1, 20001), z[z > 0], 1.5 * z[(z > 0) & (z < 2 / 3)]]))
    lowest = margins.gao_zhou_bound(z, 4, 0.01, grid, weights)
    infimum = margins.gao_zhou_bound(z, 4, 0.01, sample_weight=weights)
    assert infimum <= lowest * (1 + 1e-12)
    assert infimum == pytest.approx(lowest, rel=1e-5)
    if scale >= 10**6:
        assert infimum < 1 and infimum < 0.9 * margins.gao_zhou_bound(z, 4, 0.01, 1.0, weights), (
            "the example must have its best theta inside"
        )


def test_gao_zhou_grows_with_confidence_and_base_class(rng):
    z = rng.uniform(-0.2, 1, 50)
    bounds = [margins.gao_zhou_bound(z, 10, delta) for delta in (0.5, 0.1, 1e-3, 1e-9)]
    assert all(a < b for a, b in itertools.pairwise(bounds))
    bounds = [margins.gao_zhou_bound(z, size, 0.1) for size in (1, 2, 100, 2**2000)]
    assert all(a < b for a, b in itertools.pairwise(bounds))


# Errors

Z = [0.1, 0.5, 0.9, -0.2, 0.3]
X2 = [[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]
Y2 = [1, -1, 1]
G2 = np.eye(2)


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: margins.mean([]), ValueError, "the array of margins is empty"),
        (lambda: margins.variance([1, np.nan]), ValueError, "the array of margins contains NaN or infinity"),
        (lambda: margins.minimum([[1.0]]), ValueError, "the array of margins has shape (1, 1)"),
        (lambda: margins.mean(["1", "2"]), TypeError, "the array of margins holds str"),
        (lambda: margins.mean([1j]), TypeError, "the array of margins holds complex128"),
        (lambda: margins.mean([[1], [1, 2]]), TypeError, "the array of margins cannot be read"),
        (lambda: margins.mean(Z, [1, 2]), ValueError, "sample_weight has shape (2,), but there are 5 rows"),
        (lambda: margins.mean(Z, [1, 2, -1, 1, 1]), ValueError, "sample_weight has a negative entry, -1"),
        (lambda: margins.mean(Z, np.zeros(5)), ValueError, "sample_weight is zero everywhere"),
        (lambda: margins.mean(Z, [1, 2, np.inf, 1, 1]), ValueError, "sample_weight contains NaN or infinity"),
        (lambda: margins.top_p(Z, 0), ValueError, "p=0 is not a count of rows in (0, m]; here m = 5"),
        (lambda: margins.top_p(Z, 6), ValueError, "p=6 is not a count"),
        (lambda: margins.top_p(Z, [1, 2]), ValueError, "p has shape (2,)"),
        (lambda: margins.decomposition(Z, Y2, [1, 1]), ValueError, "X has shape (5,)"),
        (lambda: margins.decomposition(X2, Y2, [1, 1, 1]), ValueError, "coef has shape (3,), but X has 2 columns"),
        (lambda: margins.decomposition(X2, Y2[:2], [1, 1]), ValueError, "y has shape (2,), but X has 3 rows"),
        (lambda: margins.decomposition(X2, [1, 1, 1], [1, 1]), ValueError, "y has 1 distinct labels"),
        (lambda: margins.decomposition(X2, Y2, [1, 1], [1, 0, 1]), ValueError, "y has 1 distinct labels"),
        (lambda: margins.decomposition(X2, Y2, [1, 1], intercept=[1, 2]), ValueError, "intercept has 2 numbers"),
        (lambda: margins.gao_zhou_bound([2.0, *Z], 2, 0.1), ValueError, "margins run from -0.2 to 2"),
        (lambda: margins.gao_zhou_bound(Z[1:], 2, 0.1), ValueError, "at least 5 rows"),
        (lambda: margins.gao_zhou_bound(Z, 0, 0.1), ValueError, "n_hypotheses=0"),
        (lambda: margins.gao_zhou_bound(Z, math.inf, 0.1), ValueError, "n_hypotheses contains NaN or infinity"),
        (lambda: margins.gao_zhou_bound(Z, 2, 0), ValueError, "delta=0.0"),
        (lambda: margins.gao_zhou_bound(Z, 2, 1.0), ValueError, "delta=1.0"),
        (lambda: margins.gao_zhou_bound(Z, 2, 0.1, 0), ValueError, "theta runs from 0 to 0"),
        (lambda: margins.gao_zhou_bound(Z, 2, 0.1, [0.5, 1.5]), ValueError, "theta runs from 0.5 to 1.5"),
        (lambda: margins.hessian_diagonal(X2, Y2, 1), ValueError, "G has shape (3, 2)"),
        (lambda: margins.hessian_diagonal([[1, 2], [3, 4]], [1, -1], 1), ValueError, "G is not symmetric"),
        (lambda: margins.hessian_diagonal(G2, Y2, 1), ValueError, "y has shape (3,), but G has 2 rows"),
        (lambda: margins.hessian_diagonal(G2, [1, -1], -1), ValueError, "lambda1=-1.0 is negative"),
        (lambda: margins.loo_error_bound([1, 0], [1], 1), ValueError, "h_diag has shape (1,), but beta has 2"),
        (lambda: margins.loo_error_bound([1, 0], [1, -1], 1), ValueError, "h_diag has a negative entry"),
        (lambda: margins.loo_error_bound([1, 2], [1, 1], 1), ValueError, "leaves its box"),
        (lambda: margins.loo_error_bound([1, -0.1], [1, 1], math.inf), ValueError, "leaves its box"),
        (lambda: margins.loo_error_bound([1, 0], [1, 1], -1), ValueError, "C=-1.0 is negative"),
        (lambda: margins.loo_error_bound([1, 0], [1, 1], 1, tol=1), ValueError, "tol=1.0"),
    ],
)
def test_errors_are_one_clear_sentence(call, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_margins_imports_nothing_but_numpy():
    code = "import sys, mdlearn.margins; print([p for p in ('scipy', 'matplotlib', 'sklearn') if p in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
