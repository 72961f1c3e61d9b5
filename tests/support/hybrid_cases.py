"""What the tests of the hybrid engine share: an objective of one loss a row, its formula, and its optimum by others."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import reference
import smooth_reference
from newton_reference import minimum

import mdlearn
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column
from mdlearn.objectives.base import Parameter, Terms
from mdlearn.solvers.hybrid.loss_column import LossColumn, LossColumnParts
from mdlearn.solvers.hybrid.narrow import NarrowHinges, NarrowLogisticSteps

LOSSES = ("hinge", "squared", "logistic")
SHARP = 3.0
"""Sharpness of the logistic loss."""


class OneLoss(mdlearn.Objective):
    """One loss below the margin 1, with variance and mean."""

    name = "one loss"
    summary = "one loss a row, with margin variance and mean"
    formula = "1/2 |w|^2 + v Var(z) - a mean(z) + C sum loss(z)"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the loss"),
        "v": Parameter(0.0, "weight of the variance"),
        "a": Parameter(0.0, "weight of the mean"),
    }
    loss: ClassVar[str]

    def terms(self, params, total):
        C = params["C"]
        term = LogisticTerm(C, SHARP) if self.loss == "logistic" else HingeTerm(C, power=1 + (self.loss == "squared"))
        return Terms(params["v"], params["a"], (term,))


class Hinge(OneLoss):
    name, loss = "one hinge", "hinge"


class Squared(OneLoss):
    name, loss = "one squared hinge", "squared"


class Logistic(OneLoss):
    name, loss = "one logistic loss", "logistic"


OBJECTIVES = {"hinge": Hinge, "squared": Squared, "logistic": Logistic}


def sample(m=60, d=4, seed=0, noise=0.8):
    """Rows and labels -1 and 1 that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.where(X @ rng.standard_normal(d) + noise * rng.standard_normal(m) > 0.2, 1, -1)
    y[:2] = 1, -1
    return X, y


def optimum(loss, X, y, bias, C=1.0, v=0.0, a=0.0, weight=None):
    """(value, decision values) at the optimum, by code that shares nothing with the engine."""
    if loss == "hinge":
        found = reference.optimum(X, y, C=C, lambda1=v / 2, lambda2=a, bias=bias, weight=weight)
        assert found.gap <= 1e-12
        return found.value, X @ found.w.astype(float) + found.b
    if loss == "squared":
        value, f = minimum(X, y, bias, [(C, 1, 1.0)], v, a, weight)
        return value, f
    size = C * (len(y) if weight is None else float(np.sum(weight)))
    given = {"lam": 0.5 / size, "alpha": SHARP, "threshold": 1.0, "v": v / size, "a": a / size, "weight": weight}
    value, w, b = smooth_reference.optimum(X, y, bias, **given)
    return size * value, X @ w + b


def objective(loss, X, y, w, b, bias, C=1.0, v=0.0, a=0.0, weight=None):
    """The formula at coefficients."""
    c = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    z = y * (X @ w + b)
    mean = c @ z / c.sum()
    squares = w @ w + (b * b if bias == "regularized" else 0.0)
    short = np.maximum(0.0, 1.0 - z)
    each = {"hinge": short, "squared": short**2, "logistic": np.logaddexp(0.0, SHARP * (1.0 - z)) / SHARP}[loss]
    return 0.5 * squares + v * (c @ (z - mean) ** 2) / c.sum() - a * mean + C * (c @ each)


def entropy(p):
    """p ln p, 0 at 0."""
    return np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0)


def bound(loss, X, y, beta, bias, C=1.0, v=0.0, a=0.0, weight=None):
    """A lower bound of the optimum by weak duality from multipliers within their bounds; no free bias.

    In w of rows (x, 1) with the matrix A of norm and variance: sum_i bound_i(beta_i) - 1/2 (R'u)' A^-1 (R'u).
    """
    c = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    R = y[:, None] * (X if bias == "none" else np.hstack([X, np.ones((len(y), 1))]))
    centred = R - c @ R / c.sum()
    A = np.eye(R.shape[1]) + 2 * v / c.sum() * centred.T @ (c[:, None] * centred)
    caps = C * c
    assert (beta >= 0).all() and (loss == "squared" or (beta <= caps).all())
    gains = beta.copy()
    held = caps > 0
    if loss == "squared":
        gains[held] -= beta[held] ** 2 / (4 * caps[held])
    if loss == "logistic":
        p = beta[held] / caps[held]
        gains[held] -= caps[held] / SHARP * (entropy(p) + entropy(1 - p))
    pushed = R.T @ (beta + a * c / c.sum())
    return float(gains.sum() - 0.5 * pushed @ np.linalg.solve(A, pushed))


POWERS = {"hinge": 1, "squared": 2}


def column_of(kind, m, d, variance=0.0, mean=0.0, weight=0.7, seed=0, bias="regularized"):
    """A loss column with weights that differ, one of them 0, and its parts."""
    rng = np.random.default_rng(seed)
    X, counts = rng.standard_normal((m, d)) + 1.0, rng.uniform(0.5, 2.0, m)
    counts[3] = 0.0
    y = np.where(X[:, 0] + 0.7 * rng.standard_normal(m) > 1.0, 1.0, -1.0)
    term = LogisticTerm(weight, SHARP) if kind == "logistic" else HingeTerm(weight, power=POWERS[kind])
    column = Column(y, counts, variance, mean, (term,))
    rows = AffineRows(DenseRows(X), True)
    parts = LossColumnParts(rows, (X * X).sum(axis=1), bias, kind != "logistic")
    return LossColumn(column, rows, parts.squares, parts.stored), parts, np.hstack([X, np.ones((m, 1))])


def rare_and_heavy(large, weights):
    """Columns of which few rows have entries, and large ones, beside a few of all rows."""
    rng, m, rare = np.random.default_rng(0), 7200, 4
    X = np.zeros((m, rare))
    X[rng.permutation(m)[: 40 * rare], np.arange(40 * rare) % rare] = large
    X = np.hstack([X, rng.standard_normal((m, 3))])
    w = rng.standard_normal(rare + 3) * np.repeat([1.0 / large, 1.0], [rare, 3])
    y = np.where(X @ w + rng.standard_normal(m) > 0, 1.0, -1.0)
    column, rows = Column(y, np.ones(m), 0.0, 0.0, weights), AffineRows(DenseRows(X), True)
    parts = LossColumnParts(rows, (X * X).sum(axis=1), "regularized", isinstance(weights[0], HingeTerm))
    return LossColumn(column, rows, parts.squares, parts.stored), parts.narrow


def narrow_steps_of(problem, rows):
    """Steps of a narrow problem, on hinges or logistic losses, not begun."""
    logistic = problem.column.terms[0].kind == "logistic"
    return NarrowLogisticSteps(problem, rows, False) if logistic else NarrowHinges(problem, rows)
