"""Claims of Newton steps on squared residuals whose targets differ by row, which no linear system of `direct` takes."""

from __future__ import annotations

import numpy as np

import mdlearn
from mdlearn.extend import HingeTerm, RowTerms, Terms


class Tolerances(mdlearn.Objective):
    """Squared residuals beyond a tolerance of each row."""

    name = "tolerances"
    summary = "for tests"
    task = "regression"

    def terms(self, params, total):
        return Terms(loss=tuple(HingeTerm(1.0, side=side, threshold=0.0, power=2) for side in (1, -1)))

    def row_terms(self, data, params):
        width = np.linspace(0.1, 1.0, data.counts.shape[0])
        return RowTerms(shifts=np.array([-width, width]))


def test_newton_claims_what_one_system_does_not_solve():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 20))
    model = mdlearn.fit(Tolerances, X, X[:, 0] + rng.standard_normal(300), tol=1e-9)
    assert model.solver_claims["newton"] is not None
    assert model.solver == min(
        (name for name, claim in model.solver_claims.items() if claim is not None), key=model.solver_claims.get
    )
    assert model.certificate.converged
