"""Weights mean repetition: integer weights equal repeated rows, zero drops a row, fractions follow the formula."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from judging import assert_optimal
from pairwise import pairs_first
from two_hinges import TwoHinges

import mdlearn

BIASES = ("none", "regularized", "free")
KERNELS = {
    "linear": {"kernel": "linear"},
    "rbf": {"kernel": "rbf", "gamma": 0.5},
    "rbf-scale": {"kernel": "rbf", "gamma": "scale"},
}


def problem(classes, m=60, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.argmax(X[:, :classes] + rng.standard_normal((m, classes)), axis=1)
    return X, y, rng.integers(0, 5, m)


def close(a, b):
    """To 1e-6 max(1, |f|), entry by entry."""
    difference = np.abs(a - b) / np.maximum(1.0, np.abs(b))
    assert difference.max() <= 1e-6, f"decision values differ by {difference.max():.3g}"


OBJECTIVES = {
    "ldm, defaults": ("ldm", {}),
    "ldm": ("ldm", {"C": 3.0, "lambda1": 1.5, "lambda2": 0.5}),
    "ldm, no variance": ("ldm", {"C": 0.8, "lambda1": 0.0, "lambda2": 0.2}),
    "svm": ("svm", {"C": 2.0}),
}


@pytest.mark.parametrize(*pairs_first(kernel=[*KERNELS], bias=BIASES, classes=[2, 3], given=[*OBJECTIVES]))
def test_integer_weights_equal_repeated_rows(kernel, bias, classes, given):
    X, y, counts = problem(classes)
    objective, more = OBJECTIVES[given]
    settings = {**KERNELS[kernel], "bias": bias, "tol": 1e-12, **more}
    weighted = mdlearn.fit(objective, X, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit(objective, np.repeat(X, counts, axis=0), np.repeat(y, counts), **settings)
    assert weighted.certificate.gap <= 1e-11 and repeated.certificate.gap <= 1e-11
    fresh = np.random.default_rng(1).standard_normal((40, 4))
    for rows in (X, fresh):
        close(weighted.decision_function(rows), repeated.decision_function(rows))
    assert weighted.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-10)
    assert {k: v for k, v in weighted.params.items() if k != "gamma"} == pytest.approx(
        {k: v for k, v in repeated.params.items() if k != "gamma"}
    )


@pytest.mark.parametrize("solver", ["cd", "interior"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_repetition_in_each_engine(solver, bias):
    X, y, counts = problem(2, seed=3)
    settings = {"solver": solver, "bias": bias, "C": 2.0, "lambda1": 0.5, "lambda2": 0.1, "tol": 1e-12}
    weighted = mdlearn.fit("ldm", X, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit("ldm", np.repeat(X, counts, axis=0), np.repeat(y, counts), **settings)
    close(weighted.decision_function(X), repeated.decision_function(X))


@pytest.mark.parametrize("bias", BIASES)
def test_repetition_of_a_precomputed_kernel(bias):
    X, y, counts = problem(2, seed=4)
    G = X @ X.T
    rows = np.repeat(np.arange(len(y)), counts)
    settings = {"kernel": "precomputed", "bias": bias, "C": 2.0, "lambda1": 0.5, "lambda2": 0.1, "tol": 1e-12}
    weighted = mdlearn.fit("ldm", G, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit("ldm", G[np.ix_(rows, rows)], y[rows], **settings)
    close(weighted.decision_function(G), repeated.decision_function(G[:, rows]))
    linear = mdlearn.fit("ldm", X, y, sample_weight=counts, **{**settings, "kernel": "linear"})
    close(weighted.decision_function(G), linear.decision_function(X))


def test_huge_and_tiny_counts():
    """A weight of 1000 on one row is 1000 rows; all weights times 7 is not the same problem, but a repeated one."""
    X, y, _ = problem(2, m=30, seed=5)
    counts = np.ones(30, dtype=int)
    counts[3] = 1000
    settings = {"C": 0.5, "lambda1": 0.5, "lambda2": 0.2, "bias": "free", "tol": 1e-12}
    weighted = mdlearn.fit("ldm", X, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit("ldm", np.repeat(X, counts, axis=0), np.repeat(y, counts), **settings)
    close(weighted.decision_function(X), repeated.decision_function(X))
    seven = mdlearn.fit("ldm", X, y, sample_weight=np.full(30, 7), **settings)
    tiled = mdlearn.fit("ldm", np.tile(X, (7, 1)), np.tile(y, 7), **settings)
    close(seven.decision_function(X), tiled.decision_function(X))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", KERNELS)
def test_weight_zero_is_a_dropped_row(kernel, classes):
    X, y, counts = problem(classes, seed=6)
    kept = counts > 0
    assert 0 < kept.sum() < len(y)
    X = X.copy()
    X[~kept] *= 50.0  # would move gamma="scale", the mean and the variance if it were looked at
    settings = {**KERNELS[kernel], "tol": 1e-12}
    weighted = mdlearn.fit("ldm", X, y, sample_weight=counts, **settings)
    dropped = mdlearn.fit("ldm", X[kept], y[kept], sample_weight=counts[kept], **settings)
    close(weighted.decision_function(X), dropped.decision_function(X))
    assert weighted.dual_coef_.shape[1] == len(y)
    assert (weighted.dual_coef_[:, ~kept] == 0).all() and (weighted.duals[:, ~kept] == 0).all()
    assert not np.isin(weighted.support_, np.flatnonzero(~kept)).any()
    np.testing.assert_array_equal(weighted.dual_coef_[:, kept], dropped.dual_coef_)
    assert weighted.certificate.objective == dropped.certificate.objective


def test_class_of_weight_zero_only():
    """A class whose rows all have weight 0 is not there at all."""
    X, y, _ = problem(3, seed=7)
    weight = (y != 1).astype(float)
    model = mdlearn.fit("ldm", X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.classes_, [0, 2])
    assert model.decision_function(X).shape == (len(y),)


@pytest.mark.slow
@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_fractional_weights_follow_the_formula(kernel, bias, factor):
    X, y, _ = problem(2, m=40, seed=8)
    y = np.where(y == 1, 1, -1)
    weight = np.random.default_rng(9).exponential(1.0, 40) * factor
    settings = {**KERNELS[kernel], "bias": bias, "C": 1.2, "lambda1": 0.6, "lambda2": 0.3}
    model = mdlearn.fit("ldm", X, y, sample_weight=weight, tol=1e-11, **settings)
    assert_optimal(model, X, y, settings, weight)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_class_weight_multiplies_sample_weight(classes, kernel):
    X, y, counts = problem(classes, seed=10)
    factors = {0: 2.0, 1: 0.5, 2: 3.0}
    if classes == 2:
        del factors[2]
    settings = {**KERNELS[kernel], "tol": 1e-12}
    product = mdlearn.fit("ldm", X, y, sample_weight=counts * np.array([factors[k] for k in y]), **settings)
    both = mdlearn.fit("ldm", X, y, sample_weight=counts, class_weight=factors, **settings)
    close(both.decision_function(X), product.decision_function(X))
    assert both.params["lambda1"] == pytest.approx(product.params["lambda1"], rel=1e-14)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("classes", [2, 3])
def test_balanced_class_weight(classes, weighted):
    """sum(w) / (k * weighted count of the class)."""
    X, y, counts = problem(classes, seed=11)
    w = counts.astype(float) if weighted else np.ones(len(y))
    per_class = np.array([w[y == k].sum() for k in range(classes)])
    factors = w.sum() / (classes * per_class)
    explicit = mdlearn.fit("ldm", X, y, sample_weight=w * factors[y], tol=1e-12)
    given = {"sample_weight": counts} if weighted else {}
    balanced = mdlearn.fit("ldm", X, y, class_weight="balanced", tol=1e-12, **given)
    close(balanced.decision_function(X), explicit.decision_function(X))


@pytest.mark.parametrize("objective", ["lssvm", "ldm", "svm"])
def test_balanced_counts_no_class_of_weight_zero(objective):
    """The repeated rows have no such class: neither have the weighted ones, in `classes_` and in k."""
    X, y, counts = problem(3, seed=15)
    counts = np.where(y == 1, 0, counts)
    rows = np.repeat(np.arange(len(y)), counts)
    settings = {"class_weight": "balanced", "tol": 1e-12}
    weighted = mdlearn.fit(objective, X, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit(objective, X[rows], y[rows], **settings)
    blocks = [(X[:31], y[:31], counts[:31]), (X[31:], y[31:], counts[31:])]
    streamed = mdlearn.fit(objective, blocks, None, class_weight="balanced", tol=1e-10)
    for model in (weighted, streamed):
        np.testing.assert_array_equal(model.classes_, repeated.classes_)
        assert model.certificate.objective == pytest.approx(repeated.certificate.objective, rel=1e-9)
    close(weighted.decision_function(X), repeated.decision_function(X))


def test_fractions_are_labels_where_each_is_repeated():
    """Numbers that nearly all differ are targets; 45 rows of weight 3 are 135 rows with 45 labels."""
    rng = np.random.default_rng(16)
    X, y = rng.standard_normal((45, 3)), 0.5 + np.arange(45)
    settings = {"tol": 1e-3}
    repeated = mdlearn.fit("lssvm", np.repeat(X, 3, axis=0), np.repeat(y, 3), **settings)
    weighted = mdlearn.fit("lssvm", X, y, sample_weight=np.full(45, 3), **settings)
    np.testing.assert_array_equal(weighted.classes_, repeated.classes_)
    with pytest.raises(ValueError, match="targets of regression"):
        mdlearn.fit("lssvm", X, y)


@pytest.mark.parametrize("kernel", ["poly", "precomputed", "callable"])
def test_auto_chooses_by_the_rows_and_not_by_how_often_they_are_repeated(kernel):
    """Two long rows, repeated often, in front: the choice depends on the typical length of a row, by weight."""
    rng = np.random.default_rng(17)
    X = rng.standard_normal((40, 3))
    X[:2] *= 30.0
    y, counts = np.arange(40) % 2, np.r_[60, 60, np.ones(38, dtype=int)]
    rows = np.repeat(np.arange(40), counts)
    G = (0.3 * X @ X.T + 1.0) ** 3
    given = {
        "poly": (X, X[rows], {"kernel": "poly", "gamma": 0.3, "coef0": 1.0, "degree": 3}),
        "precomputed": (G, G[np.ix_(rows, rows)], {"kernel": "precomputed"}),
        "callable": (X, X[rows], {"kernel": lambda A, B: (0.3 * A @ B.T + 1.0) ** 3}),
    }
    few, many, settings = given[kernel]
    for C in 10.0 ** np.arange(-8, 3):
        for order in (slice(None), slice(None, None, -1)):
            weighted = mdlearn.fit("svm", few, y, sample_weight=counts, C=C, tol=1e9, **settings)
            there = many[order][:, order] if kernel == "precomputed" else many[order]
            assert mdlearn.fit("svm", there, y[rows][order], C=C, tol=1e9, **settings).solver == weighted.solver


def test_auto_chooses_by_the_weights_of_sparse_rows():
    """The same for explicit rows, whose lengths say whether sweeps crawl."""
    rng = np.random.default_rng(17)
    X = sp.random(60, 600, density=0.05, random_state=rng, format="csr")
    X = (sp.diags_array(np.r_[100.0, 100.0, np.ones(58)]) @ X).tocsr()
    y, counts = np.arange(60) % 2, np.r_[200, 200, np.ones(58, dtype=int)]
    rows, chosen = np.repeat(np.arange(60), counts), set()
    for C in 10.0 ** np.arange(-4, 4):
        weighted = mdlearn.fit(TwoHinges, X, y, sample_weight=counts, C=C, tol=1e9)
        assert mdlearn.fit(TwoHinges, X[rows], y[rows], C=C, tol=1e9).solver == weighted.solver
        chosen.add(weighted.solver)
    assert len(chosen) == 2


def test_class_weight_with_string_labels_and_partial_mapping():
    X, y, _ = problem(2, seed=12)
    labels = np.where(y == 1, "pos", "neg")
    a = mdlearn.fit("svm", X, labels, class_weight={"pos": 4}, tol=1e-12)
    b = mdlearn.fit("svm", X, y, sample_weight=np.where(y == 1, 4.0, 1.0), tol=1e-12)
    close(a.decision_function(X), b.decision_function(X))


def test_class_weight_zero_drops_the_class():
    X, y, _ = problem(3, seed=13)
    model = mdlearn.fit("ldm", X, y, class_weight={1: 0})
    np.testing.assert_array_equal(model.classes_, [0, 2])


def test_score_counts_rows_by_weight():
    X, y, counts = problem(3, seed=14)
    model = mdlearn.fit("ldm", X, y)
    assert model.score(X, y, sample_weight=counts) == pytest.approx(
        model.score(np.repeat(X, counts, axis=0), np.repeat(y, counts)), rel=1e-12
    )
