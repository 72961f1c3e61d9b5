"""Normally distributed clusters: the recipe, the points, the shares, blocks and types."""

import math

import numpy as np
import pytest
from dataset_cases import within, within_moments
from numpy.testing import assert_allclose, assert_array_equal

from mdlearn import datasets
from mdlearn.datasets import common


def test_ndc_clusters_follow_the_recipe():
    n = 30
    clusters = datasets.NDC(n, n_centers=400, expand=3.0, random_state=1)
    assert clusters.centers.shape == (400, n) and clusters.roots.shape == (400, n, n)
    assert_array_equal(clusters.centers, np.round(clusters.centers))
    assert np.abs(clusters.centers).max() == 50
    within(clusters.centers.mean(), 0, 100 / math.sqrt(12 * 400 * n))
    within(clusters.centers.var(), 100**2 / 12, 100**2 / math.sqrt(180 * 400 * n))
    # Entries of a root: 3 U[0, 1] 100 / 50.
    assert clusters.roots.min() >= 0 and 5.99 < clusters.roots.max() <= 6
    within(clusters.roots.mean(), 3, 6 / math.sqrt(12 * clusters.roots.size))
    # Shares: uniform numbers over their sum.
    assert_allclose(clusters.shares.sum(), 1, rtol=1e-12)
    assert clusters.shares.min() > 0
    within(clusters.shares.var() / clusters.shares.mean() ** 2, 1 / 3, 0.5 / math.sqrt(400))
    expected = [1.0 if c @ clusters.w - clusters.gamma >= 0 else -1.0 for c in clusters.centers]
    assert_array_equal(clusters.classes, expected)
    planes = [datasets.NDC(2, n_centers=1, random_state=seed) for seed in range(300)]
    w, gamma = np.array([p.w for p in planes]), np.array([p.gamma for p in planes])
    assert np.abs(w).max() <= 2 and np.abs(gamma).max() <= 5
    within(w.var(), 16 / 12, 16 / math.sqrt(180 * w.size))
    within(gamma.var(), 100 / 12, 100 / math.sqrt(180 * gamma.size))
    within([w.mean(), gamma.mean()], 0, [4 / math.sqrt(12 * w.size), 10 / math.sqrt(12 * gamma.size)])


def test_a_centre_on_the_plane_has_class_one():
    clusters = datasets.NDC(2, n_centers=3, random_state=0)
    clusters.w, clusters.gamma = np.array([1.0, -1.0]), 0.0
    assert clusters.separability([[3, 3], [3, 3], [4, 3], [3, 4]], [1, 1, -1, -1]) == 0.75


def test_ndc_points_of_one_cluster():
    clusters = datasets.NDC(4, n_centers=1, random_state=2)
    X, y = clusters.sample(60_000, 5)
    assert_array_equal(X, np.round(X))
    assert set(y) == set(clusters.classes)
    # Rounding adds the variance of U[-1/2, 1/2].
    root = clusters.roots[0]
    within_moments(X, clusters.centers[0], root.T @ root + np.eye(4) / 12)
    # R'R, not RR': otherwise the line above would not tell.
    assert np.abs(root @ root.T - root.T @ root).max() > 0.1 * np.abs(root.T @ root).max()


def test_ndc_points_of_several_clusters():
    clusters = datasets.NDC(6, n_centers=5, expand=0.0, random_state=4)
    assert len({tuple(c) for c in clusters.centers}) == 5 and set(clusters.classes) == {-1.0, 1.0}
    X, y = clusters.sample(20_000, 9)
    mine = (X[:, None, :] == clusters.centers).all(axis=2)
    assert (mine.sum(axis=1) == 1).all(), "without spread every point is a centre"
    assert_array_equal(y, clusters.classes[mine.argmax(axis=1)])
    p = clusters.shares
    within(mine.mean(axis=0), p, np.sqrt(p * (1 - p) / 20_000))
    assert clusters.separability(X, y) == 1.0


def test_ndc_classes_have_the_shares_of_their_clusters():
    clusters = datasets.NDC(32, random_state=0)
    _, y = clusters.sample(20_000, 1)
    p = clusters.shares[clusters.classes > 0].sum()
    assert 0.1 < p < 0.9
    within((y > 0).mean(), p, math.sqrt(p * (1 - p) / 20_000))


def test_separability_counts_points_on_their_side_and_falls_with_expand():
    told = []
    for expand in (0.1, 1.0, 3.0, 10.0, 30.0):
        clusters = datasets.NDC(10, expand=expand, random_state=3)
        X, y = clusters.sample(5000, 3)
        told.append(clusters.separability(X, y))
        scores = (X * clusters.w).sum(axis=1) - clusters.gamma
        assert told[-1] == pytest.approx(np.mean((scores >= 0) == (y > 0)), abs=1e-12)
    assert told[0] > 0.99 and told[-1] < 0.9
    assert (np.diff(told) < 0).all(), told


def test_ndc_is_a_sample_of_its_clusters():
    X, y = datasets.ndc(300, 5, n_centers=7, expand=2.0, random_state=11)
    clusters = datasets.NDC(5, n_centers=7, expand=2.0, random_state=11)
    same, labels = clusters.sample(300, 11)
    assert_array_equal(X, same)
    assert_array_equal(y, labels)
    fresh, _ = clusters.sample(300, 12)
    assert not np.array_equal(X, fresh)
    with pytest.raises(TypeError, match="random_state"):
        clusters.sample(300)


def test_ndc_blocks(monkeypatch):
    monkeypatch.setattr(common, "ENTRIES_PER_BLOCK", 1000)
    clusters = datasets.NDC(4, n_centers=1, random_state=2)
    X, _ = clusters.sample(10_001, 5)
    within_moments(X, clusters.centers[0], clusters.roots[0].T @ clusters.roots[0] + np.eye(4) / 12)
    # 250 rows per block: no block repeats another.
    assert len({block.tobytes() for block in X[:10_000].reshape(40, -1)}) == 40
    shares = datasets.NDC(2, expand=20.0, random_state=1)
    Z, labels = shares.sample(3001, 2)
    monkeypatch.setattr(common, "ENTRIES_PER_BLOCK", 10)
    assert shares.separability(Z, labels) == np.mean((Z @ shares.w >= shares.gamma) == (labels > 0))


def test_ndc_in_float32_holds_the_same_points():
    X, y = datasets.ndc(200, 6, random_state=1)
    small, labels = datasets.ndc(200, 6, random_state=1, dtype="float32")
    assert small.dtype == np.float32 and labels.dtype == np.float64
    assert_array_equal(small, X)
    assert_array_equal(labels, y)
