"""Problems that are the same on paper: what one fit proves holds for the other, and the decision values agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from properties import KERNELS, attempt, examples, problems, samples

ROUNDING = 1e-9
SOME = st.sampled_from(["auto", "cd", "interior"])
STRONG = ["ldm", "odm", "svm", "lssvm", "lsldm", "lsvm"]
"""Objectives with 1/2 |w|^2: an excess of e over the optimum leaves w within sqrt(2 e) of it."""
ALL = [*STRONG, "uldm", "mdlm", "l2lr", "mlr"]


def rounding(model, X):
    """What float64 does to a kernel model's objective: coefficients of a Gram matrix near singularity are long."""
    if model.kernel.name == "linear":
        return 0.0
    largest = np.abs(X).max() if model.kernel.name == "precomputed" else diagonal(model.kernel, X)
    return 1e-14 * largest * float(np.abs(model.dual_coef_).sum()) ** 2


def diagonal(kernel, X):
    """Largest k(x, x)."""
    if kernel.name == "rbf":
        return 1.0
    p = kernel.params
    return float(((np.abs(p["gamma"]) * (X * X).sum(axis=1) + p["coef0"]) ** p["degree"]).max())


def agree(a, b, X, times=1.0):
    """Two certificates of one problem, the second's values in units `times` those of the first."""
    if a is None or b is None:
        assert a is None and b is None, f"only one of two equal problems is refused: {a!r}, {b!r}"
        return
    one, two = a.certificate, b.certificate
    slack = 1e-30 + sum(rounding(model, X) for model in (a, b))
    for p, q in zip(one.parts or (one,), two.parts or (two,)):
        scale = slack + ROUNDING * max(abs(p.objective), abs(q.objective / times))
        assert p.lower_bound <= q.objective / times + scale, f"{a!r} {p} against {b!r} {q}"
        assert q.lower_bound / times <= p.objective + scale, f"{b!r} {q} against {a!r} {p}"


def close(a, b, other):
    """Coefficients of strongly convex problems differ by no more than the proved excess allows."""
    if a is None or b is None or a.kernel.name != "linear":
        return
    parts = [(m.certificate.parts or (m.certificate,)) for m in (a, b)]
    for j, (p, q) in enumerate(zip(*parts)):
        left = np.sqrt(2 * max(0.0, p.objective - p.lower_bound)) + np.sqrt(2 * max(0.0, q.objective - q.lower_bound))
        rest = 1e-7 * (np.abs(a.coef_[j]).max() + np.sqrt(abs(p.objective)))
        assert np.linalg.norm(a.coef_[j] - other(b.coef_[j])) <= left + rest, f"{a!r} {b!r}"


@pytest.mark.slow
@examples(80)
@given(samples(classes=(2, 3), weights=["counts"]), KERNELS, problems(STRONG), SOME)
def test_weights_are_repetition(sample, kernel, problem, solver):
    name, settings = problem
    assume(len(np.unique(sample.X[sample.weight > 0])) > 1 or kernel.get("gamma") != "scale")
    settings = {**settings, **kernel, "tol": 1e-9, "solver": solver}
    weighted = attempt(name, sample, **settings)
    rows = np.repeat(np.arange(len(sample.y)), sample.weight)
    repeated = attempt(name, replace(sample, X=sample.X[rows], y=sample.y[rows], weight=None), **settings)
    agree(weighted, repeated, sample.X)
    close(weighted, repeated, lambda w: w)
    kept = sample.weight > 0
    dropped = attempt(name, replace(sample, X=sample.X[kept], y=sample.y[kept], weight=sample.weight[kept]), **settings)
    if weighted is not None and dropped is not None:
        # The same numbers; a solution of zeros alone keeps their signs only where it is of all rows.
        assert np.array_equal(weighted.dual_coef_[:, kept], dropped.dual_coef_), "rows of weight 0 are absent"
        assert not weighted.dual_coef_[:, ~kept].any() and not weighted.duals[..., ~kept].any()


@pytest.mark.slow
@examples(80)
@given(samples(classes=(2, 3)), problems(ALL), st.randoms(use_true_random=False))
def test_rows_and_columns_in_any_order(sample, problem, random):
    name, settings = problem
    assume(name != "uldm" or sample.y.max() == 1)
    settings["tol"] = 1e-9
    one = attempt(name, sample, **settings)
    rows, columns = list(range(len(sample.y))), list(range(sample.X.shape[1]))
    random.shuffle(rows)
    random.shuffle(columns)
    weight = None if sample.weight is None else sample.weight[rows]
    two = attempt(name, replace(sample, X=sample.X[rows][:, columns], y=sample.y[rows], weight=weight), **settings)
    agree(one, two, sample.X)
    if name in STRONG:
        close(one, two, lambda w: w[np.argsort(columns)])


@examples(80)
@given(samples(), KERNELS, problems(ALL))
def test_labels_swapped(sample, kernel, problem):
    """f becomes -f: no bias is on one side."""
    name, settings = problem
    if name in STRONG:
        assume(np.ptp(sample.X[sample.counts > 0]) > 0 or kernel.get("gamma") != "scale")
        settings.update(kernel)
    settings["tol"] = 1e-9
    one, two = attempt(name, sample, **settings), attempt(name, replace(sample, y=1 - sample.y), **settings)
    agree(one, two, sample.X)
    if name in STRONG:
        close(one, two, lambda w: -w)


@pytest.mark.slow
@examples(80)
@given(samples(classes=(2, 3), scales=(1.0,)), problems(STRONG), st.integers(-12, 12))
def test_units_of_the_rows(sample, problem, power):
    """X in units of 1/s, weights of loss and distribution over s^2: w over s, everything over s^2 (without a bias)."""
    name, settings = problem
    s = 2.0**power
    settings.update(bias="none", tol=1e-9)
    one = attempt(name, sample, **settings)
    scaled = {key: v / s**2 if key in ("C", "lam", "nu", "lambda1", "lambda2") else v for key, v in settings.items()}
    two = attempt(name, replace(sample, X=sample.X * s), **scaled)
    agree(one, two, sample.X, s**-2)


@pytest.mark.slow
@examples(60)
@given(samples(classes=(2, 3)), problems(STRONG), st.sampled_from([1e-3, 0.3, 7.0, 1e4]))
def test_units_of_the_weights(sample, problem, t):
    """t times the weights at 1/t the weight of the loss: means are over the sum of the weights."""
    name, settings = problem
    settings["tol"] = 1e-9
    one = attempt(name, sample, **settings)
    scaled = {key: v / t if key in ("C", "nu") else v for key, v in settings.items()}
    two = attempt(name, replace(sample, weight=t * sample.counts), **scaled)
    agree(one, two, sample.X)
    close(one, two, lambda w: w)


@pytest.mark.slow
@examples(50)
@given(samples(classes=(2, 3), scales=(1.0,)), problems(STRONG))
def test_linear_kernel_in_three_spellings(sample, problem):
    """Explicit rows, poly of degree 1, and a Gram matrix, of whole numbers: then it is exact."""
    name, settings = problem
    sample, settings["tol"] = replace(sample, X=np.clip(np.round(3 * sample.X), -1000, 1000)), 1e-9
    rows = attempt(name, sample, **settings)
    agree(rows, attempt(name, sample, kernel="poly", degree=1, gamma=1.0, coef0=0.0, **settings), sample.X)
    gram = replace(sample, X=sample.X @ sample.X.T)
    agree(rows, attempt(name, gram, kernel="precomputed", **settings), gram.X)


@examples(50)
@given(samples(classes=(2, 3)), problems(ALL), st.integers(0, 3))
def test_special_cases_of_one_another(sample, problem, which):
    bias = problem[1]["bias"]
    C = problem[1].get("C", 1.0)
    pairs = [
        ("svm", {"C": C}, "ldm", {"C": C, "lambda1": 0.0, "lambda2": 0.0}),
        ("lssvm", {"C": min(C, 1e5)}, "lsldm", {"C": min(C, 1e5), "lambda1": 0.0, "lambda2": 0.0}),
        ("l3svm", {"C": min(C, 1e5) * sample.counts.sum(), "n_clusters": 1, "landmarks": np.eye(sample.X.shape[1])},
         "svm", {"C": min(C, 1e5)}),
        ("mlr", {"alpha": 5.0, "lam": 0.01}, "mdlm",
         {"alpha": 5.0, "lambda1": 0.0, "lambda2": 0.0, "ridge": 0.02, "multiclass": "ovr"}),
    ]  # fmt: skip
    one, given_one, two, given_two = pairs[which]
    settings = {"bias": bias, "tol": 1e-9}
    agree(attempt(one, sample, **given_one, **settings), attempt(two, sample, **given_two, **settings), sample.X)
