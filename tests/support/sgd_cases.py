"""Losses, problems, the objective by its formula and Algorithm 2 line by line, for the tests of asgd and sgd."""

from __future__ import annotations

import sys

import numpy as np
from scipy import sparse

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.stochastic import task as sgd_task

HINGE = (HingeTerm(2.0),)
SQUARED_HINGE = (HingeTerm(0.7, power=2),)
BAND = (HingeTerm(0.5, threshold=0.5, power=2), HingeTerm(1.5, side=-1, threshold=1.5, power=2))
MIXED = (HingeTerm(1.0, threshold=0.3), HingeTerm(0.25, side=-1, threshold=0.8), HingeTerm(0.4, power=2))
LOSSES = {"hinge": HINGE, "squared hinge": SQUARED_HINGE, "band": BAND, "mixed": MIXED, "none": ()}
NEVER = sys.maxsize


def points(m=60, d=4, seed=0, noise=0.7):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.where(X[:, 0] - 0.4 * X[:, 1] + noise * rng.standard_normal(m) > 0.2, 1, -1)


def task_of(X, y, terms, variance=0.0, mean=0.0, bias="none", counts=None, by_row=None):
    rows = CsrRows(X) if sparse.issparse(X) else DenseRows(X)
    counts = np.ones(len(y)) if counts is None else np.asarray(counts, dtype=float)
    column = Column(np.asarray(y, dtype=float), counts, variance, mean, terms, by_row=by_row)
    return sgd_task.StochasticTask(MarginForm(LinearFeatures(rows), (column,), bias), column)


def g(w, X, y, counts, terms, variance, mean, by_row=None):
    """The objective by its formula, in extended precision; a bias is a column of ones in X."""
    X, w, c = (np.asarray(a, dtype=np.longdouble) for a in (X, w, counts))
    z, m = y * (X @ w), c.sum()
    average = c @ z / m
    own = [(1.0, 0.0)] * len(terms) if by_row is None else zip(by_row.weights, by_row.shifts)
    loss = sum(
        t.weight * ((c * q) @ np.maximum(0, t.side * (t.threshold + s - z)) ** t.power) for t, (q, s) in zip(terms, own)
    )
    return w @ w / 2 + variance * (c @ (z - average) ** 2) / m - mean * average + loss


def with_ones(X, bias):
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    return np.hstack([X, np.full((len(X), 1), 1.0 if bias == "regularized" else 0.0)])


def step_scale(terms, counts, by_row=None):
    """m C with the largest weight of a term in any row, or 1 without a loss."""
    most = [1.0] * len(terms) if by_row is None else by_row.weights.max(axis=1)
    return np.sum(counts) * max((t.weight * own for t, own in zip(terms, most)), default=0.0) or 1.0


def transcription(X, y, terms, variance, mean, counts, eta0, t0, i, j):
    """Algorithm 2, dense, line by line, on g / (m C); returns the last iterate and the average."""
    m, scale = np.sum(counts), step_scale(terms, counts)
    w, average = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, (a, b) in enumerate(zip(i, j), start=1):
        r_a, r_b = y[a] * X[a], y[b] * X[b]
        z = r_a @ w
        gradient = 2 * variance * (r_a * z - r_a * (r_b @ w)) + w - mean * r_a
        for term in terms:
            excess = term.side * (term.threshold - z)
            if excess > 0:
                slope = 1.0 if term.power == 1 else 2.0 * excess
                gradient = gradient - m * term.weight * slope * term.side * r_a
        w = w - eta0 * (1 + eta0 * t / scale) ** -0.75 * gradient / scale
        average = average + (w - average) / max(1, t - t0)
    return w, average


def near(actual, wanted):
    np.testing.assert_allclose(actual, wanted, rtol=0, atol=1e-12 * np.abs(wanted).max())


KINDS = {
    "dense": lambda X: X,
    "Fortran": np.asfortranarray,
    "strided": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "CSR": sparse.csr_matrix,
}
