"""Folds: stratified, whole units, balanced, and the same whatever the order of rows and however weights are written."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import KFold, StratifiedKFold

import mdlearn
from mdlearn.data.validation import check_data, validate_regression
from mdlearn.selection.folds import fold_units, make_folds


def sample(m=60, seed=0, classes=3):
    rng = np.random.default_rng(seed)
    X = np.round(rng.standard_normal((m, 3)), 1)
    return X, rng.choice(list("abcdef"[:classes]), m, p=np.arange(1, classes + 1) / np.arange(1, classes + 1).sum())


def folds_of(X, y, w=None, cv=5, seed=0, square=False):
    data = check_data(X, y, w, None, square=square)
    weights = np.ones(len(y)) if w is None else np.asarray(w, dtype=float)
    return make_folds(cv, X, y, data, weights[data.rows], square, seed)


def named(folds, names):
    """Which named rows are held out, fold by fold."""
    return [sorted(set(np.asarray(names)[test].tolist())) for _, test in folds]


def test_every_row_is_held_out_once_and_classes_are_spread():
    X, y = sample(97)
    folds = folds_of(X, y)
    assert sorted(np.concatenate([test for _, test in folds])) == list(range(97))
    for train, test in folds:
        assert sorted(np.concatenate([train, test])) == list(range(97))
    for label in "abc":
        held = [int((y[test] == label).sum()) for _, test in folds]
        assert max(held) - min(held) <= 2  # units of some rows
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 3


def test_distinct_rows_are_balanced_as_well_as_can_be():
    y = np.repeat([0, 1, 2], [23, 12, 6])
    X = np.random.default_rng(1).standard_normal((41, 2))
    folds = folds_of(X, y)
    for k in range(3):
        held = [int((y[test] == k).sum()) for _, test in folds]
        assert max(held) - min(held) <= 1
    sizes = [len(test) for _, test in folds]
    assert max(sizes) - min(sizes) <= 1


def as_kind(X, kind):
    """X as a matrix of the kind; a Gram matrix tells rows apart as X does."""
    if kind == "gram":
        return np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    return {"dense": np.asarray, "sparse": sp.csr_matrix, "float32": np.float32}[kind](X)


@pytest.mark.parametrize("kind", ["dense", "sparse", "gram", "float32"])
def test_identical_rows_are_in_one_fold_whatever_their_labels(kind):
    X, y = sample(80)
    X = X.round(0) + 0.0  # few distinct rows
    fold = np.empty(80, dtype=int)
    for j, (_, test) in enumerate(folds_of(as_kind(X, kind), y, cv=4, square=kind == "gram")):
        fold[test] = j
    seen, labels = {}, {}
    for row, label, j in zip(X.tolist(), y, fold):
        assert seen.setdefault(tuple(row), j) == j
        labels.setdefault(tuple(row), set()).add(label)
    assert len(seen) < 50 and max(map(len, labels.values())) == 3
    held = np.array([[(y[fold == j] == label).sum() for label in "abc"] for j in range(4)])
    heaviest = max(np.unique(X, axis=0, return_counts=True)[1])
    assert (held.max(axis=0) - held.min(axis=0)).max() <= heaviest


def test_labels_that_contradict_each_other_are_not_learnt_the_wrong_way_round():
    """Every value has each label once: held-out rows are right half of the time, not never."""
    X = np.repeat(np.random.default_rng(0).standard_normal((40, 2)), 2, axis=0)
    y = np.tile([0, 1], 40)
    found = mdlearn.cross_validate("svm", X, y, kernel="rbf", gamma=100.0, C=10.0)
    assert found.mean == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("kind", ["dense", "sparse", "gram", "float32"])
def test_the_order_of_rows_does_not_matter(kind):
    X, y = sample(50)
    order = np.random.default_rng(3).permutation(50)
    if kind == "gram":
        G = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        one, other = folds_of(G, y, square=True), folds_of(G[np.ix_(order, order)], y[order], square=True)
    else:
        make = {"dense": np.asarray, "sparse": sp.csr_matrix, "float32": np.float32}[kind]
        one, other = folds_of(make(X), y), folds_of(make(X[order]), y[order])
    assert named(one, np.arange(50)) == named(other, order)


@pytest.mark.parametrize("square", [False, True])
def test_a_weight_is_a_repetition(square):
    X, y = sample(40)
    w = np.random.default_rng(4).integers(0, 4, 40)
    many = np.random.default_rng(5).permutation(np.repeat(np.arange(40), w))
    if square:
        X = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        one, other = folds_of(X, y, w, square=True), folds_of(X[np.ix_(many, many)], y[many], square=True)
    else:
        one, other = folds_of(X, y, w), folds_of(X[many], y[many])
    assert named(one, np.arange(40)) == named(other, many)
    held = [int(w[test].sum()) for _, test in one]
    assert max(held) - min(held) <= 4
    assert all((w[test] > 0).all() and (w[train] > 0).all() for train, test in one)


def test_the_seed_draws_the_folds():
    X, y = sample()
    assert named(folds_of(X, y), np.arange(60)) == named(folds_of(X, y, seed=0), np.arange(60))
    assert named(folds_of(X, y), np.arange(60)) != named(folds_of(X, y, seed=1), np.arange(60))


def test_regression_has_plain_folds():
    X, _ = sample(40)
    y = X[:, 0].round(0)
    data = validate_regression(X, y, None, None, square=False)
    units = fold_units(data, np.ones(40), False)
    assert len(units.codes) == len({(*row, t) for row, t in zip(X.tolist(), y)})
    folds = make_folds(4, X, y, data, np.ones(40), False, 0)
    sizes = [len(test) for _, test in folds]
    assert sum(sizes) == 40 and max(sizes) - min(sizes) <= 2


@pytest.mark.parametrize("seed", range(12))
def test_rows_of_a_gram_matrix_that_look_alike(seed):
    """On a grid of few numbers most rows have the same values, in another order."""
    rng = np.random.default_rng(seed)
    X, y, w = rng.standard_normal((40, 2 + seed % 2)).round(0), rng.integers(0, 2, 40), rng.integers(0, 4, 40)
    many = rng.permutation(np.repeat(np.arange(40), w))
    _, names = np.unique(np.column_stack([X + 0.0, y]), axis=0, return_inverse=True)
    for G in (X @ X.T, np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))):
        one, other = folds_of(G, y, w, 3, square=True), folds_of(G[np.ix_(many, many)], y[many], cv=3, square=True)
        assert named(one, names.reshape(-1)) == named(other, names.reshape(-1)[many])


def test_mirror_images_in_a_gram_matrix_end():
    """Rows that nothing tells apart: some order is taken."""
    for G in (np.eye(6) + 0.5, np.ones((6, 6)) + np.diag(np.arange(6.0))):
        folds = folds_of(G, [0, 1] * 3, cv=3, square=True)
        assert sorted(np.concatenate([test for _, test in folds])) == list(range(6))


# ---------------------------------------------------------------- the caller's folds


@pytest.mark.parametrize("splitter", [KFold(4), StratifiedKFold(3, shuffle=True, random_state=2)])
def test_splitters_of_scikit_learn(splitter):
    X, y = sample()
    for (train, test), (own, held) in zip(splitter.split(X, y), folds_of(X, y, cv=splitter), strict=True):
        np.testing.assert_array_equal(train, own)
        np.testing.assert_array_equal(test, held)


def test_pairs_may_be_masks_lists_and_generators():
    X, y = sample()
    half = np.arange(60) < 30
    pairs = [(half, ~half), ([*range(30, 60)], range(30))]
    for cv in (pairs, tuple(pairs), iter(pairs)):
        folds = folds_of(X, y, cv=cv)
        np.testing.assert_array_equal(folds[0][1], np.arange(30, 60))
        np.testing.assert_array_equal(folds[1][1], np.arange(30))


def test_rows_of_weight_0_are_in_no_fold():
    X, y = sample()
    w = np.ones(60)
    w[::2] = 0
    ((train, test),) = folds_of(X, y, w, cv=[(np.arange(40), np.arange(30, 60))])
    np.testing.assert_array_equal(train, np.arange(1, 40, 2))
    np.testing.assert_array_equal(test, np.arange(31, 60, 2))


@pytest.mark.parametrize(
    "cv, match",
    [
        (1, "cv needs to be an integer >= 2"),
        (2.5, "cv needs to be an integer"),
        (100, "there are 12 distinct rows"),
        ("five", "'five' is unknown"),
        (None, "cv needs to be an integer"),
        (StratifiedKFold, r"cv needs a splitter, not its class; got StratifiedKFold, give StratifiedKFold\(\)"),
        ([], "no folds"),
        ([1, 2], "entry 0 is 1"),
        ([([0, 1], [2], [3])], "entry 0"),
        ([(np.ones(5, dtype=bool), [1])], r"mask of shape \(5,\)"),
        ([([0.5, 1.5], [1])], "training part of fold 0 needs"),
        ([(range(10), [12])], "test part of fold 0 names row 12"),
        ([(range(10), [-1])], "names row -1"),
        ([(range(12), [])], "test part of fold 0 has no row"),
        ([([0, 1, 2], [3])], "fold 0 has no training row of class 'b'"),
    ],
)
def test_errors(cv, match):
    X, y = np.arange(12.0)[:, None], np.repeat(["a", "b"], 6)
    with pytest.raises((ValueError, TypeError), match=match):
        folds_of(X, y, cv=cv)


def test_a_class_of_one_row_cannot_be_held_out():
    with pytest.raises(ValueError, match=r"fold \d has no training row of class 'c'"):
        folds_of(np.arange(9.0)[:, None], np.array([*"aaaabbbb", "c"]), cv=3)
