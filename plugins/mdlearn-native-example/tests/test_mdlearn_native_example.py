"""The objective is registered, keeps every promise of an objective, and has the value that its formula says."""

import mdlearn
import numpy as np
import pytest
from mdlearn.testing import parametrize_with_checks


def test_registered():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "mdlearn-native-example"]
    assert (record.objectives, record.state, record.error) == (("native_example",), "ok", None)
    assert "native_example" in mdlearn.list_objectives()


@parametrize_with_checks(["native_example"])
def test_conformance(objective, check):
    check(objective)


@pytest.mark.parametrize("solver", ["auto", "asgd"])
def test_the_value_is_that_of_the_formula(solver):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    y = X[:, 0] + rng.standard_normal(200) > 0
    tol = 1e-10 if solver == "auto" else 1.0
    model = mdlearn.fit("native_example", X, y, C=0.1, h=0.4, bias="none", solver=solver, tol=tol)
    w = model.coef_[0]
    z = np.where(y, 1, -1) * (X @ w)
    loss = np.where(z < 0.6, 0.8 - z, np.maximum(0, 1 - z) ** 2 / 0.8)
    assert model.certificate.objective == pytest.approx(0.5 * w @ w + 0.1 * np.sum(loss), rel=1e-9)
    assert model.certificate.converged
