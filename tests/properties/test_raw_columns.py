"""Columns as they come, of very different scales: fits converge, and what they prove holds in extended precision."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from two_hinges import TwoHinges

import mdlearn
import mdlearn.objectives
from mdlearn.forms.losses import LogisticTerm
from mdlearn.objectives.base import Parameter, Terms

SCALES = np.array([1e5, 2e4, 500.0, 60.0, 8.0, 1.0, 1.0, 1.0])


def raw(m=240, seed=0):
    """Positive columns of very different scales and a few of zeros and ones; labels of a plane with noise."""
    rng = np.random.default_rng(seed)
    X = SCALES * rng.gamma(1.0, 1.0, (m, SCALES.shape[0]))
    X[:, 5:] = rng.integers(0, 2, (m, 3))
    f = (X / SCALES) @ np.array([1.0, -1.0, 0.5, 1.0, -0.5, 1.0, -1.0, 0.5])
    return X, np.where(f + rng.normal(0, 1.0, m) > np.median(f), 1, -1)


def bounds(model, X, y, C):
    """Objective and lower bound of an l3svm with dot projections, from coefficients and multipliers, in long double."""
    X = X.astype(np.longdouble)
    near = ((X[:, None] - model.centers_) ** 2).sum(axis=2).argmin(axis=1)
    mu = X @ model.landmarks_.T.astype(np.longdouble)
    theta, b = model.coef_[0].astype(np.longdouble), np.longdouble(model.intercept_[0])
    W = model.folded_coef_[0].astype(np.longdouble)
    z = y * (np.einsum("ij,ij->i", X, W[near]) + b)
    m = X.shape[0]
    above = (theta**2).sum() / 2 + b**2 / 2 + np.longdouble(C) / m * np.maximum(0, 1 - z).sum()
    beta = np.clip(model.duals[0], 0, C / m).astype(np.longdouble)
    sums = np.zeros_like(theta)
    np.add.at(sums, near, (beta * y)[:, None] * mu)
    below = beta.sum() - (sums**2).sum() / 2 - (beta @ y) ** 2 / 2
    return float(above), float(below)


@pytest.mark.skipif(np.finfo(np.longdouble).eps > 1e-18, reason="long double has no more digits than double here")
@pytest.mark.parametrize("clusters, landmarks", [(3, None), (40, None), (3, 20)])
def test_l3svm_on_raw_columns(clusters, landmarks):
    """Few rows per cluster, or more landmarks than columns: projections of size 1e10 hide the small columns."""
    X, y = raw()
    model = mdlearn.fit("l3svm", X, y, n_clusters=clusters, n_landmarks=landmarks)
    above, below = bounds(model, X, y, 100.0)
    assert model.certificate.converged
    assert -1e-9 * above <= above - below <= 2e-6 * above
    assert model.certificate.objective == pytest.approx(above, rel=1e-9)
    # What predicts is what is certified.
    f = model.decision_function(X)
    hinge = np.maximum(0.0, 1.0 - y * f).mean()
    norm = (model.coef_**2).sum() + model.intercept_[0] ** 2
    assert 0.5 * norm + 100.0 * hinge == pytest.approx(model.certificate.objective, rel=1e-9)


def test_turned_coefficients_are_kept_and_shown(tmp_path):
    """Saved and loaded, by itself and after pickling: the same bits; coef_ belong to the landmarks that are shown."""
    X, y = raw()
    model = mdlearn.fit("l3svm", X, y, n_clusters=3)
    model.save(tmp_path / "m.npz")
    again = mdlearn.load(tmp_path / "m.npz")
    assert np.array_equal(again.decision_function(X), model.decision_function(X))
    assert np.array_equal(again.coef_, model.coef_)
    folded = model.coef_ @ model.landmarks_
    assert np.allclose(folded / SCALES**2, model.folded_coef_ / SCALES**2, rtol=0, atol=1e-9)
    warm = mdlearn.fit("l3svm", X, y, n_clusters=3, warm_start=again)
    assert warm.certificate.converged


@pytest.mark.slow
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
def test_auto_leaves_sweeps_where_they_crawl(bias):
    """Sparse rows with too few entries for matrices of their columns, so long that sweeps take for ever."""
    rng = np.random.default_rng(0)
    X, y = raw(640)
    wide = sp.csr_matrix(np.hstack([X, (rng.random((640, 520)) < 0.005) * 1.0]))
    model = mdlearn.fit(TwoHinges, wide, y, bias=bias)
    assert model.solver == "interior" and model.certificate.converged
    short = mdlearn.fit(TwoHinges, wide.multiply(1e-6).tocsr(), y, bias="none", max_iter=2, tol=1.0)
    assert short.solver == "cd"
    one = mdlearn.fit("svm", wide, y, bias=bias)
    assert one.solver == ("interior" if bias == "free" else "hybrid") and one.certificate.converged


def lowest(X, y, ridge, mean=Fraction(1, 8)):
    """Least value of Var(z) - mean mean(z) + ridge/2 |w|^2, in exact arithmetic: of mdlm where margins are large.

    z = K a with ridge a = mean / m - 2 / m (z - its mean), K the inner products of the signed rows.
    """
    R, m = [[Fraction(v) * int(s) for v in row] for row, s in zip(X.tolist(), y)], len(y)
    K = [[sum(a * b for a, b in zip(r, q)) for q in R] for r in R]
    means = [sum(column) / m for column in zip(*K)]
    A = [[ridge * (i == j) + Fraction(2, m) * (K[i][j] - means[j]) for j in range(m)] + [mean / m] for i in range(m)]
    for i in range(m):
        A[i] = [v / A[i][i] for v in A[i]]
        for k in range(m):
            if k != i:
                A[k] = [u - A[k][i] * v for u, v in zip(A[k], A[i])]
    z = [sum(K[i][j] * A[j][m] for j in range(m)) for i in range(m)]
    assert min(z) > 100  # where the logistic loss is exp(-500)
    return float(-mean * sum(z) / (2 * m))


@pytest.mark.parametrize("scales", [1.0, SCALES], ids=["alike", "raw"])
def test_mdlm_has_an_optimum_by_default(scales):
    """More columns than rows: all margins can be the same, and the mean carries them as far as the ridge lets it."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(6) % 2, 1, -1)
    X = rng.normal(size=(6, 8)) * scales
    with pytest.raises(ValueError, match="unbounded below"):
        mdlearn.fit("mdlm", X, y, ridge=0.0)
    for solver in ("auto", "apg"):
        model = mdlearn.fit("mdlm", X, y, bias="none", solver=solver)
        assert model.params["ridge"] == 1e-6 and model.certificate.converged
        want = lowest(X, y, Fraction(1e-6))
        assert model.certificate.objective == pytest.approx(want, rel=1e-6)
        assert model.certificate.lower_bound <= want + 1e-9 * abs(want)


def test_mdlm_over_few_rows_of_many_raw_columns():
    """Beside so small a ridge, what the variance's multipliers add up to over the rows lacks the digits of margins."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(6) % 2, 1, -1)
    X = np.rint(256.0 * rng.normal(size=(6, 2300)) * 10.0 ** rng.uniform(-2, 2, 2300)) / 256.0  # few bits to sum
    want = lowest(X, y, Fraction(1e-6))
    for solver in ("auto", "apg"):
        model = mdlearn.fit("mdlm", X, y, bias="none", solver=solver)
        assert model.certificate.converged
        assert model.certificate.objective == pytest.approx(want, rel=1e-6)
        assert model.certificate.lower_bound <= want + 1e-9 * abs(want)
        assert np.abs(model.dual_coef_ @ X - model.coef_).max() <= 1e-9 * np.abs(model.coef_).max()


def test_the_estimator_has_the_defaults_of_fit():
    pytest.importorskip("sklearn")
    from mdlearn.objectives.mdlm import MDLM
    from mdlearn.sklearn import MDLMClassifier

    assert MDLMClassifier().get_params()["ridge"] == MDLM().resolve(10.0)["ridge"] == 1e-6


class Spread(mdlearn.Objective):
    name = "spread"
    summary = "logistic loss with margin variance"
    formula = "1/2 |w|^2 + v Var(z) + C sum ln(1 + exp(-z))"
    parameters: ClassVar = {"v": Parameter(1.0, "weight of the variance"), "C": Parameter(1.0, "weight of the loss")}

    def terms(self, params, total):
        return Terms(params["v"], 0.0, (LogisticTerm(params["C"]),))


def test_auto_takes_no_matrices_for_large_logistic_problems():
    """Steps of Newton's method would factor a matrix of 2600 columns each; the optimum is that of L-BFGS.

    One logistic term goes to an engine with conjugate gradients, a variance beside it to one without matrices at all.
    """
    rng = np.random.default_rng(0)
    X = sp.random(2700, 2600, density=0.004, format="csr", random_state=0)
    y = np.where(X @ rng.normal(size=2600) + 0.3 * rng.normal(size=2700) > 0, 1, -1)
    model = mdlearn.fit("l2lr", X, y, bias="none")
    assert model.solver == "hybrid" and model.certificate.converged
    assert mdlearn.fit(Spread, X, y, bias="none", max_iter=2, tol=1.0).solver == "apg"

    def value(w):
        z = y * (X @ w)
        slopes = -y / (1.0 + np.exp(z)) / len(y)
        return np.logaddexp(0.0, -z).mean() + 1e-3 * w @ w, X.T @ slopes + 2e-3 * w

    found = minimize(value, np.zeros(2600), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    assert model.certificate.objective == pytest.approx(found.fun, rel=1e-6)
    assert model.certificate.lower_bound <= found.fun * (1.0 + 1e-12)


@pytest.mark.parametrize("objective", sorted(cls.name for cls in mdlearn.objectives.mdlearn_objectives()))
@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_defaults_reach_tol_on_columns_as_they_come(name, objective):
    datasets = pytest.importorskip("sklearn.datasets")
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    certificate = mdlearn.fit(objective, X, y).certificate
    assert certificate.converged and certificate.gap <= 1e-6
