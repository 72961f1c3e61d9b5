"""Synthetic data: distributions against their formulas, labels by their rules, seeds, refusals."""

import math

import numpy as np
import pytest
from dataset_cases import within, within_moments
from numpy.testing import assert_allclose, assert_array_equal

import mdlearn
from mdlearn import datasets

GENERATORS = {
    "ndc": lambda seed: datasets.ndc(50, 3, random_state=seed),
    "checkerboard": lambda seed: datasets.checkerboard(50, random_state=seed),
    "xor": lambda seed: datasets.xor(50, random_state=seed),
    "swiss_roll": lambda seed: datasets.swiss_roll(50, noise=0.1, random_state=seed),
    "two_gaussians": lambda seed: datasets.two_gaussians(50, random_state=seed),
    "add_noise": lambda seed: (datasets.add_noise(np.arange(150.0).reshape(50, 3), 2.0, seed), np.ones(50)),
}

LABELLED = [name for name in GENERATORS if name != "add_noise"]


# Seeds


@pytest.mark.parametrize("name", GENERATORS)
def test_a_seed_fixes_the_bits(name):
    make = GENERATORS[name]
    X, y = make(7)
    again, labels = make(7)
    assert X.tobytes() == again.tobytes() and y.tobytes() == labels.tobytes()
    assert_array_equal(make(None)[0], make(0)[0])
    assert_array_equal(make(np.random.default_rng(3))[0], make(np.random.default_rng(3))[0])
    for other in (8, 2**40, np.random.default_rng(7)):
        assert not np.array_equal(X, make(other)[0])


@pytest.mark.parametrize("name", GENERATORS)
def test_a_generator_moves_on(name):
    rng = np.random.default_rng(1)
    assert not np.array_equal(GENERATORS[name](rng)[0], GENERATORS[name](rng)[0])


@pytest.mark.parametrize("name", GENERATORS)
def test_global_random_numbers_are_left_alone(name):
    before = np.random.get_state()  # noqa: NPY002
    first, _ = GENERATORS[name](None)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2] == after[2] and np.array_equal(before[1], after[1])
    np.random.random(3)  # noqa: NPY002
    assert_array_equal(first, GENERATORS[name](None)[0])


def test_functions_do_not_share_random_numbers():
    X, _ = datasets.two_gaussians(4000, means=[[0], [0]], scales=[[1], [1]])
    noise = datasets.add_noise(X, 1.0) - X
    board = datasets.checkerboard(4000)[0][:, :1]
    blobs, _ = datasets.xor(4000)
    rest = blobs[:, :1] - np.sign(blobs[:, :1])
    columns = np.hstack([X, noise, board, rest])
    within(np.corrcoef(columns.T)[np.triu_indices(4, 1)], 0, 1 / math.sqrt(4000))


@pytest.mark.parametrize("name", LABELLED)
def test_types(name):
    X, y = GENERATORS[name](0)
    assert X.dtype == y.dtype == np.float64
    assert X.ndim == 2 and y.shape == X.shape[:1] and set(y) == {-1.0, 1.0}


# Shapes


@pytest.mark.parametrize("size", [2, 4, 5])
def test_checkerboard(size):
    X, y = datasets.checkerboard(20_000, size, random_state=1)
    assert X.min() >= 0 and X.max() < size
    fields = np.zeros((size, size))
    for (a, b), label in zip(X, y):
        i, j = int(a), int(b)
        assert label == (1 if (i + j) % 2 == 0 else -1)
        fields[i, j] += 1
    p = 1 / size**2
    within(fields / 20_000, p, math.sqrt(p * (1 - p) / 20_000))
    within((X - np.floor(X)).var(axis=0), 1 / 12, 1 / math.sqrt(180 * 20_000))
    assert datasets.checkerboard()[0].shape == (1000, 2) and datasets.checkerboard()[0].max() > 3.9


def test_xor():
    corners, labels = datasets.xor(403, noise=0.0, random_state=1)
    assert_array_equal(np.abs(corners), np.ones((403, 2)))
    assert_array_equal(labels > 0, (corners[:, 0] > 0) ^ (corners[:, 1] > 0))
    assert sorted(np.unique(corners, axis=0, return_counts=True)[1]) == [100, 101, 101, 101]
    X, y = datasets.xor(40_000, noise=0.1, random_state=2)
    assert_array_equal(y, -np.sign(X[:, 0] * X[:, 1]))
    within_moments(X - np.sign(X), [0, 0], 0.01 * np.eye(2))
    assert datasets.xor()[0].shape == (400, 2)
    # Random order: no label predicts the next.
    within(np.mean(y[1:] * y[:-1]), 0, 1 / math.sqrt(40_000))


def test_swiss_roll():
    X, y = datasets.swiss_roll(20_001, random_state=1)
    assert (y < 0).sum() == 10_001
    t = np.hypot(*X.T)
    assert 1.5 * math.pi <= t.min() and t.max() <= 4.5 * math.pi
    within(t.mean(), 3 * math.pi, 3 * math.pi / math.sqrt(12 * 20_001))
    within(t.var(), (3 * math.pi) ** 2 / 12, (3 * math.pi) ** 2 / math.sqrt(180 * 20_001))
    sheet = t[:, None] * np.column_stack([np.cos(t), np.sin(t)])
    assert_allclose(X, -y[:, None] * sheet, atol=1e-9)
    noisy, same = datasets.swiss_roll(20_001, noise=0.2, random_state=1)
    assert_array_equal(y, same)
    within_moments(noisy - X, [0, 0], 0.04 * np.eye(2))
    assert datasets.swiss_roll()[0].shape == (400, 2)


def test_swiss_roll_is_scikit_learns():
    sklearn = pytest.importorskip("sklearn.datasets")
    theirs, t = sklearn.make_swiss_roll(2000, random_state=0)
    assert_allclose(np.hypot(theirs[:, 0], theirs[:, 2]), t)
    X, y = datasets.swiss_roll(4000, random_state=0)
    ours = X[y < 0]
    gaps = np.sqrt(((theirs[:, None, [0, 2]] - ours) ** 2).sum(axis=2).min(axis=1))
    assert gaps.max() < 0.5, "the first sheet is the cross-section of theirs"


def test_two_gaussians():
    X, y = datasets.two_gaussians(40_001, random_state=1)
    assert (y < 0).sum() == 20_001
    within_moments(X[y < 0], [5, 5], np.diag([9.0, 1.0]))
    within_moments(X[y > 0], [7, 7], np.eye(2))
    Z, labels = datasets.two_gaussians(9, means=[[1, 2, 3], [4, 5, 6]], scales=np.zeros((2, 3)))
    assert_array_equal(Z, np.where(labels[:, None] < 0, [1, 2, 3], [4, 5, 6]))


@pytest.mark.parametrize(("mean", "printed"), [(7, 0.864), (8, 0.949), (9, 0.985)])
def test_two_gaussians_are_those_of_the_table(mean, printed):
    # Lines through both clouds in every direction, cut where it is best: the accuracy that the table prints.
    X, y = datasets.two_gaussians(20_000, means=[[5, 5], [mean, mean]], random_state=1)
    best = 0.0
    for angle in np.linspace(0, math.pi / 2, 46):
        order = np.argsort(X @ [math.cos(angle), math.sin(angle)])
        best = max(best, (10_000 + np.cumsum(-y[order]).max()) / 20_000)
    assert best == pytest.approx(printed, abs=0.005)


# Noise


@pytest.mark.parametrize("snr", [0.5, 10.0])
def test_noise_has_the_ratio_asked_for(snr):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40_000, 3)) * [1e-3, 1.0, 1e4] + [5.0, 0.0, -1e5]
    before = X.copy()
    noise = datasets.add_noise(X, snr, 2) - X
    assert_array_equal(X, before)
    power = X.var(axis=0) / snr
    within(noise.mean(axis=0), 0, np.sqrt(power / 40_000))
    within(noise.var(axis=0), power, power * math.sqrt(2 / 40_000))
    within((noise**4).mean(axis=0) / power**2, 3, math.sqrt(96 / 40_000))
    within(np.corrcoef(np.hstack([noise, X]).T)[:3] - np.eye(3, 6), 0, 1 / math.sqrt(40_000))


def test_noise_keeps_types_and_constants():
    X = np.array([[1, 7], [2, 7], [3, 7]])
    X.setflags(write=False)
    noisy = datasets.add_noise(X, 4.0)
    assert noisy.dtype == np.float64
    assert_array_equal(noisy[:, 1], 7)
    assert (noisy[:, 0] != X[:, 0]).all()
    for given in (X, X.astype(np.float32), X.astype(float)):
        same = datasets.add_noise(given, math.inf)
        assert_array_equal(same, given)
        assert not np.shares_memory(same, given)
    assert datasets.add_noise(X.astype(np.float32), 4.0).dtype == np.float32
    assert_array_equal(datasets.add_noise(X.tolist(), 4.0), noisy)


# Wrong input


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: datasets.ndc(0, 2), ValueError, "m needs to be an integer >= 1; got 0"),
        (lambda: datasets.ndc(5.0, 2), TypeError, "m needs to be an integer"),
        (lambda: datasets.ndc(5, 0), ValueError, "n needs to be"),
        (lambda: datasets.ndc(5, 2, n_centers=0), ValueError, "n_centers needs to be"),
        (lambda: datasets.ndc(5, 2, expand=-1), ValueError, "expand needs to be"),
        (lambda: datasets.ndc(5, 2, expand=math.inf), ValueError, "expand needs to be .* finite"),
        (lambda: datasets.ndc(5, 2, dtype=int), ValueError, "dtype needs to be float64 or float32"),
        (lambda: datasets.ndc(5, 2, dtype="no type"), ValueError, "dtype needs to be"),
        (lambda: datasets.ndc(5, 2, dtype=None), ValueError, "dtype needs to be"),
        (lambda: datasets.ndc(5, 2, random_state=-1), ValueError, "random_state needs to be an integer >= 0"),
        (lambda: datasets.ndc(5, 2, random_state="a"), TypeError, "random_state needs to be an integer >= 0"),
        (lambda: datasets.NDC(2).sample(0, 1), ValueError, "m needs to be"),
        (lambda: datasets.NDC(2).separability([[1, 2, 3]], [1]), ValueError, "3 columns; the clusters have 2"),
        (lambda: datasets.NDC(2).separability([[1, 2]], [1, 1]), ValueError, "one label per row"),
        (lambda: datasets.checkerboard(size=1), ValueError, "size needs to be an integer >= 2"),
        (lambda: datasets.checkerboard(10, 2.5), TypeError, "size needs to be"),
        (lambda: datasets.xor(noise=-0.1), ValueError, "noise needs to be"),
        (lambda: datasets.swiss_roll(noise=math.nan), ValueError, "noise needs to be"),
        (lambda: datasets.two_gaussians(means=[[0, 0]]), ValueError, r"one shape \(2, d\)"),
        (lambda: datasets.two_gaussians(means=[[0], [1]]), ValueError, r"one shape \(2, d\)"),
        (lambda: datasets.two_gaussians(scales=[[1, 1], [1, -1]]), ValueError, "scales .* got -1"),
        (lambda: datasets.two_gaussians(means=[[0, math.nan], [1, 1]]), ValueError, "means .* NaN"),
        (lambda: datasets.add_noise([[1.0]], 0), ValueError, "snr needs to be a number > 0; got 0"),
        (lambda: datasets.add_noise([[1.0]], math.nan), ValueError, "snr needs to be"),
        (lambda: datasets.add_noise([1.0, 2.0], 1), ValueError, r"X needs .* shape \(2,\)"),
        (lambda: datasets.add_noise([[1.0, math.inf]], 1), ValueError, "X needs .* infinity"),
        (lambda: datasets.add_noise([["a"]], 1), TypeError, "X needs"),
        (lambda: datasets.add_noise([[1j]], 1), TypeError, "X needs"),
        (lambda: datasets.add_noise([[1], [1, 2]], 1), TypeError, "X needs"),
    ],
)
def test_wrong_input(call, error, match):
    with pytest.raises(error, match=match) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_sparse_rows_get_no_noise():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="dense"):
        datasets.add_noise(sparse.eye(3, format="csr"), 1.0)


def test_the_module_is_loaded_at_first_use():
    assert mdlearn.datasets is datasets
    assert sorted(datasets.__all__) == datasets.__all__
    assert all(callable(getattr(datasets, name)) for name in datasets.__all__)
