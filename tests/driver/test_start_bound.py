"""The bound of w = 0, which a certificate never falls below: when a pass over the rows is spent on it."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.forms.problem import ColumnProblem


def data(shift=0.0):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(80) + shift > 0, 1, -1)


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("weights", [(0.0, 0.0), (10.0, 3.0), (0.0, 500.0)], ids=str)
def test_it_is_not_above_what_is_known_without_rows(weights, kernel, bias, monkeypatch):
    found = []
    certify = ColumnProblem.certify

    def looked_at(self, point, tol):
        solution = certify(self, point, tol)
        found.append((self.bound_at_start(), self.highest_bound_at_start()))
        return solution

    for name in ("certify", "certify_best", "certify_as_is"):
        monkeypatch.setattr(ColumnProblem, name, looked_at)
    X, y = data()
    mdlearn.fit("ldm", X, y, kernel=kernel, bias=bias, lambda1=weights[0], lambda2=weights[1], tol=1e-3)
    assert found and all(bound <= highest for bound, highest in found)


@pytest.mark.parametrize(("mean", "passes"), [(1.0, 0), (1e4, 1)])
def test_a_pass_is_spent_on_it_only_where_it_could_be_the_better_one(mean, passes, monkeypatch):
    """A bound above 0 is above that of w = 0; where the mean pulls far, the optimum is below 0."""
    asked, bound = [], ColumnProblem.bound_at_start
    monkeypatch.setattr(ColumnProblem, "bound_at_start", lambda self: asked.append(1) or bound(self))
    X, y = data()
    model = mdlearn.fit("ldm", X, y, lambda1=1.0, lambda2=mean, tol=1e-6)
    assert (model.certificate.lower_bound > 0) == (passes == 0)
    assert len(asked) == passes
