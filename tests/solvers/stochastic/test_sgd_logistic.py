"""asgd and sgd on logistic losses: expected steps, a dense transcription, and what the certificate says."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
from scipy import sparse
from scipy.special import expit
from smooth_reference import LOGISTIC, formula, overlapping

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.objectives.logistic import averaged_logistic_loss
from mdlearn.solvers.stochastic import task as sgd_task

NEVER = sys.maxsize
LOSSES = {"l2lr": (1.0, 0.0), "mlr": (5.0, 1.0), "sharp": (300.0, 0.5)}


def task_of(X, y, terms, v, a, bias, counts):
    rows = CsrRows(X) if sparse.issparse(X) else DenseRows(X)
    column = Column(np.asarray(y, dtype=float), counts, v, a, terms)
    return sgd_task.StochasticTask(MarginForm(LinearFeatures(rows), (column,), bias), column)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_expected_step_is_the_full_gradient(loss, bias, weighted):
    """Enumeration of all pairs, against the gradient of the printed formula."""
    X, y = overlapping(7, 3, seed=4)
    counts = np.array([1.0, 0.5, 3.0, 0.25, 1.0, 2.0, 0.1]) if weighted else np.ones(7)
    (alpha, threshold), lam, v, a, eta0 = LOSSES[loss], 0.05, 0.8, 0.3, 0.2
    terms = averaged_logistic_loss(lam, counts.sum(), alpha, threshold)
    # In units of the form, divided by m C: the weight of the loss becomes 1, as in the average of the formula.
    task = task_of(X, y, terms.loss, v / terms.unit, a / terms.unit, bias, counts)
    w = np.array([0.7, -0.4, 0.2, 0.3 if bias == "regularized" else 0.0])
    expected = np.zeros(4)
    for i, j in itertools.product(range(7), repeat=2):
        track = task.start(eta0, NEVER)
        track.u[:4] = w
        task.run(track, np.array([i]), np.array([j]))
        step = (w - track.current()[:4]) / (eta0 * (1 + eta0 / task.scale) ** -0.75)
        expected += counts[i] * counts[j] / counts.sum() ** 2 * step
    u = w if bias == "regularized" else w[:3]
    gradient = formula(u, X, y, bias, lam=lam, alpha=alpha, threshold=threshold, v=v, a=a, weight=counts)[1]
    np.testing.assert_allclose(expected[: len(u)], gradient, atol=1e-12)
    assert np.abs(gradient).max() > 1e-3 and (bias == "regularized" or expected[3] == 0.0)


@pytest.mark.parametrize("kind", ["dense", "CSR"])
@pytest.mark.parametrize("loss", LOSSES)
def test_iterates_equal_a_dense_transcription(loss, kind):
    X, y = overlapping(40, 5, seed=2)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0.0
    (alpha, threshold), weight, v, eta0 = LOSSES[loss], 0.3, 0.9, 0.11
    terms = (LogisticTerm(weight, alpha, threshold), HingeTerm(0.1, -1, 1.5, 2))
    i, j = np.random.default_rng(3).integers(0, 40, (2, 300))
    task = task_of(sparse.csr_matrix(X) if kind == "CSR" else X, y, terms, v, 0.4, "none", np.ones(40))
    track = task.start(eta0, 50)
    task.run(track, i, j)
    scale, w, average = 40 * weight, np.zeros(5), np.zeros(5)
    for t, (p, q) in enumerate(zip(i, j), start=1):
        z, other = y[p] * X[p] @ w, y[q] * X[q] @ w
        slope = 2 * v * (z - other) - 0.4 - 40 * weight * expit(-alpha * (z - threshold))
        slope += 40 * 0.1 * 2 * max(0.0, z - 1.5)
        w = w - eta0 * (1 + eta0 * t / scale) ** -0.75 * (slope * y[p] * X[p] + w) / scale
        average = average + (w - average) / max(1, t - 50)
    np.testing.assert_allclose(track.current()[:5], average, atol=1e-12 * np.abs(average).max())


@pytest.mark.parametrize("name", ["l2lr", "mlr"])
@pytest.mark.parametrize("solver", ["asgd", "sgd"])
def test_a_fit_and_its_certificate(solver, name):
    X, y = overlapping(500, 6)
    settings = {"bias": "regularized", "lam": 1e-2}
    best = mdlearn.fit(name, X, y, tol=1e-12, **settings).certificate.objective
    loss = LOGISTIC if name == "l2lr" else {"alpha": 5.0, "threshold": 1.0}
    excess = []
    for epochs in (2, 60):
        model = mdlearn.fit(name, X, y, solver=solver, solver_options={"epochs": epochs}, **settings)
        u = np.append(model.coef_[0], model.intercept_[0])
        held = formula(u, X, y, "regularized", lam=1e-2, **loss)[0]
        certificate = model.certificate
        assert certificate.objective == pytest.approx(held, rel=1e-12)
        assert certificate.lower_bound <= best <= certificate.objective
        bounds = [state.lower_bound for state in model.history]
        assert all(later >= earlier for earlier, later in itertools.pairwise(bounds)), "a bound never falls"
        excess.append(certificate.objective - best)
    assert excess[1] < 0.5 * excess[0] and certificate.gap < 0.05
