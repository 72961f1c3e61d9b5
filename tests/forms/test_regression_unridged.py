"""Regression without the squared norm: linear programs against their own formula, and smooth losses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from regression_cases import Rounded, Tube, sample
from scipy.optimize import linprog, minimize
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.validation import validate_regression
from mdlearn.forms.certificates import without_ridge
from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.margin import Column, MarginForm

BIASES = ["none", "regularized", "free"]


class Bare(Tube):
    """C max(0, |f - y| - epsilon) + k (f - y)^2, with variance and mean, and nothing else."""

    def terms(self, params, total):
        return replace(super().terms(params, total), ridge=0.0)


class Loose(Rounded):
    def terms(self, params, total):
        return replace(super().terms(params, total), ridge=0.0)


def columns(X, bias):
    return X if bias == "none" else np.column_stack([X, np.ones(X.shape[0])])


def program(F, y, counts, C, a, epsilon):
    """The primal program with a slack per row: its value, or None where it is unbounded."""
    n, d = F.shape
    cost = np.concatenate([-a * counts @ F / counts.sum(), C * counts])
    A = np.block([[F, -np.eye(n)], [-F, -np.eye(n)]])
    bounds = [(None, None)] * d + [(0, None)] * n
    found = linprog(cost, A_ub=A, b_ub=np.concatenate([y + epsilon, epsilon - y]), bounds=bounds)
    return None if found.status == 3 else found.fun + a * counts @ y / counts.sum()


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("given", [{"epsilon": 0.0}, {"C": 0.3}, {"a": 3.0}, {"C": 2.0, "a": 10.0}], ids=str)
def test_linear_programs(given, bias):
    for seed, far in enumerate((0.0, 1e4, -1e-3)):
        X, y, counts = sample(40, 3, seed)
        X, y, used = X * 10.0 ** np.arange(3), y + far, counts > 0
        model = mdlearn.fit(Bare(**given), X, y, sample_weight=counts, bias=bias, tol=1e-9)
        p, told = model.params, model.certificate
        want = program(columns(X, bias)[used], y[used], counts[used], p["C"], p["a"], p["epsilon"])
        assert model.solver == "linprog" and told.converged
        assert told.objective == pytest.approx(want, rel=1e-8)
        z = model.predict(X) - y
        value = p["C"] * counts @ np.maximum(0.0, np.abs(z) - p["epsilon"]) - p["a"] * counts @ z / counts.sum()
        assert told.objective == pytest.approx(value, rel=1e-9) and told.lower_bound <= want * (1 + 1e-9)


def test_kinds_of_rows_and_weights():
    X, y, counts = sample(40, 3)
    model = mdlearn.fit(Bare(), X, y, sample_weight=counts, bias="free")
    repeated = mdlearn.fit(
        Bare(), np.repeat(X, counts.astype(int), axis=0), np.repeat(y, counts.astype(int)), bias="free"
    )
    for other in (
        repeated,
        mdlearn.fit(Bare(), csr_matrix(X), y, sample_weight=counts, bias="free"),
        mdlearn.fit(Bare(), X.astype(np.float32), y, sample_weight=counts, bias="free"),
    ):
        assert other.certificate.objective == pytest.approx(model.certificate.objective, rel=2e-6)


def test_means_that_outweigh_the_loss():
    X, y, _ = sample()
    assert program(X, y, np.ones(50), 1.0, 1e5, 0.2) is None
    with pytest.raises(ValueError, match="without a squared norm the objective is unbounded below"):
        mdlearn.fit(Bare(a=1e5), X, y, bias="none")
    with pytest.raises(ValueError, match="with bias='free' the objective is unbounded below"):
        mdlearn.fit(Bare(a=1e5), X, y, bias="free")


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("v", [0.0, 20.0])
def test_least_squares(v, bias):
    X, y, counts = sample()
    model = mdlearn.fit(Bare(C=0.0, k=0.7, v=v, a=4.0), X, y, sample_weight=counts, bias=bias, tol=1e-11)
    F, total = columns(X, bias), counts.sum()
    C, mean = F - counts @ F / total, counts @ F / total
    A = 1.4 * F.T @ (counts[:, None] * F) + 2 * v / total * C.T @ (counts[:, None] * C)
    w = np.linalg.solve(A, 1.4 * F.T @ (counts * y) + 2 * v / total * C.T @ (counts * y) + 4.0 * mean)
    z = F @ w - y
    want = 0.7 * counts @ z**2 + v * counts @ (z - counts @ z / total) ** 2 / total - 4.0 * counts @ z / total
    assert model.certificate.converged and model.certificate.objective == pytest.approx(want, rel=1e-11)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("v", [0.0, 20.0])
def test_smooth_losses(v, bias):
    X, y, counts = sample()
    model = mdlearn.fit(Loose(v=v), X, y, sample_weight=counts, bias=bias, tol=1e-11)
    F = columns(X, bias)

    def value(w):
        z = F @ w - y
        spread = counts @ (z - counts @ z / counts.sum()) ** 2 / counts.sum()
        return 2.0 * counts @ (np.sqrt(1 + z * z) - 1) + v * spread

    want = minimize(value, np.zeros(F.shape[1]), method="BFGS", options={"gtol": 1e-8}).fun
    assert model.certificate.converged and model.certificate.objective == pytest.approx(want, rel=1e-8)


@pytest.mark.parametrize("bias", ["none", "free"])
@pytest.mark.parametrize("v", [0.0, 3.0])
def test_no_bound_is_above_the_optimum(v, bias, monkeypatch):
    """At random multipliers, also where these cannot be corrected: alpha = 0 then says that no loss is negative."""
    X, y, counts = sample(30, 3)
    data = validate_regression(X, y, counts, None, square=False)
    loss = Rounded().terms({"C": 2.0, "v": v}, data.total).loss
    column = Column(np.ones(data.codes.shape[0]), data.counts, v, 0.0, loss, offset=data.targets)
    form = MarginForm(LinearFeatures(data.X), (column,), bias, ridge=0.0)
    best = mdlearn.fit(Loose(v=v), X, y, sample_weight=counts, bias=bias, tol=1e-12).certificate.objective
    rng, shape = np.random.default_rng(3), column.caps.shape
    for narrow in (500, 1):
        monkeypatch.setattr(without_ridge, "CORRECTED_COLUMNS", narrow)
        bounds = [
            feasible_dual(
                form, column, 2.0 * column.counts * rng.random(shape), size * rng.standard_normal(shape[1])
            ).lower
            for size in (0.0, 0.1, 10.0)
        ]
        assert all(np.isfinite(bounds)) and max(bounds) <= best * (1 + 1e-12)
        if narrow == 1:
            assert bounds == pytest.approx([0.0] * 3, abs=1e-9)
