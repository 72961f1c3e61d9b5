"""Products with the whole kernel matrix beside a variance: what follows from them, and how few a fit takes."""

from __future__ import annotations

import numpy as np
import pytest
from decomposition_cases import data, make_small

import mdlearn
from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.numerics import pivoted_cholesky
from mdlearn.solvers.decomposition import rounds, variance
from mdlearn.solvers.decomposition.solver import DecompositionReporter
from mdlearn.solvers.decomposition.variance import VarianceRounds


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Limits low enough that some hundred rows go through parts and working sets."""
    make_small(monkeypatch)


def rbf_matrix(X, gamma):
    squares = (X * X).sum(axis=1)
    return np.exp(-gamma * (squares[:, None] + squares - 2.0 * X @ X.T))


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("weights", [(0.25, 3.0), (175.0, 0.0)])
def test_decision_values_answer_to_the_last_product(weights, bias, monkeypatch):
    """f = G u + G r + L L'(p - kappa S f - r) + b: all of it from matrices written down here, after every round."""
    monkeypatch.setattr(pivoted_cholesky, "MOST_PIVOTS", 150)  # else the factor is all of the matrix
    X, y = data(m=300)
    G = rbf_matrix(X, 0.3) + (bias == "regularized")
    m, climb, checked = 300, VarianceRounds.climb_once, []
    kappa, mean = 4.0 * weights[0] / m, weights[1] / m
    references = {}

    def taken(self, rest, values):
        take(self, rest, values)
        references[id(self)] = rest

    def climbed(self):
        moved = yield from climb(self)
        if self.u.shape[0] == m:
            signs = self.column.y
            S = np.eye(m) - np.outer(signs, signs) / m
            L, r = self.factor, references[id(self)]
            known = G @ (self.u + r) + L @ (L.T @ (mean * signs - r))
            A = np.eye(m) + kappa * L @ L.T @ S
            f = np.linalg.solve(A, known)
            if bias == "free":
                # The bias that makes the dual coefficients sum to 0.
                one = np.linalg.solve(A, np.ones(m))
                f += one * (self.u + mean * signs - kappa * S @ f).sum() / (kappa * (S @ one).sum())
            np.testing.assert_allclose(self.f, f, atol=2e-5 * np.abs(f).max())
            checked.append(r.any())
        return moved

    take = VarianceRounds._take_rest
    monkeypatch.setattr(VarianceRounds, "_take_rest", taken)
    monkeypatch.setattr(VarianceRounds, "climb_once", climbed)
    given = {"C": 1.0, "bias": bias, "kernel": "rbf", "gamma": 0.3, "lambda1": weights[0], "lambda2": weights[1]}
    model = mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-6, **given)
    assert model.certificate.converged
    assert True in checked and False in checked


@pytest.mark.parametrize("kept", [0, 8000])
def test_a_report_is_asked_for_at_once_unless_values_are_kept(kept, monkeypatch):
    """A product over kept values costs a twentieth of one in double precision: it says first whether that will do."""
    X, y = data(m=700)
    monkeypatch.setattr(rounds, "KEPT_VALUES_ROWS", kept)
    monkeypatch.setattr(variance, "FALLEN_DOUBT", 0.0)  # nothing is expected of the next product
    seen, report = [], DecompositionReporter.report

    def reported(self):
        seen.append(self.rounds.exact is not None)
        return report(self)

    monkeypatch.setattr(DecompositionReporter, "report", reported)
    assert mdlearn.fit("ldm", X, y, kernel="rbf", solver="decomposition", tol=1e-4).certificate.converged
    assert all(seen) if kept else not seen[-1]


@pytest.mark.parametrize("C", [0.3, 3.0])
@pytest.mark.parametrize("lambda1", [0.25, 20.0])
def test_a_fit_takes_few_products(lambda1, C, monkeypatch):
    """One with all rows in single precision, or two, and that of the certificate: a round costs a tenth of one."""
    X, y = data(m=700)
    made, reports = [], []
    add, report = KernelTiles.add, DecompositionReporter.report

    def added(self, out, index, coef):
        if len(index) == self.n_rows == 700:
            made.append(index)
        return add(self, out, index, coef)

    def reported(self):
        reports.append(self)
        return report(self)

    monkeypatch.setattr(KernelTiles, "add", added)
    monkeypatch.setattr(DecompositionReporter, "report", reported)
    given = {"C": C, "kernel": "rbf", "gamma": 0.3, "lambda1": lambda1}
    told = mdlearn.fit("ldm", X, y, solver="decomposition", tol=1e-4, **given).certificate
    assert told.converged and told.gap <= 1e-4
    assert len(reports) == 1 and len(made) <= 2
