"""An engine of a plugin over row blocks: what it says that it takes is all that the library asks."""

from __future__ import annotations

import numpy as np
import pytest
from documents import EXAMPLES

import mdlearn

NAMESPACE: dict = {"__name__": __name__}
exec(EXAMPLES["blocks"], NAMESPACE)
Subgradient = NAMESPACE["Subgradient"]


def source(killed_after=None):
    X, y = mdlearn.datasets.two_gaussians(600, random_state=0)

    def blocks():
        for i in range(0, 600, 100):
            if killed_after is not None:
                killed_after.append(i)
                if len(killed_after) > 40:
                    raise KeyboardInterrupt
            yield X[i : i + 100], y[i : i + 100]

    return X, y, blocks


def quiet(*arguments, **settings):
    with pytest.warns(mdlearn.ConvergenceWarning):
        return mdlearn.fit(*arguments, **settings)


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_it_is_certified_as_any_other(bias):
    X, y, blocks = source()
    best = mdlearn.fit("svm", X, y, C=0.01, bias=bias, tol=1e-10).certificate
    model = mdlearn.fit("svm", blocks, None, C=0.01, bias=bias, solver=Subgradient)
    assert model.solver == "subgradient" and model.n_iter == 30
    certificate = model.certificate
    assert certificate.lower_bound <= best.objective * (1 + 1e-12)
    assert best.lower_bound * (1 - 1e-12) <= certificate.objective < 0.9 * 0.01 * 600
    z = y * model.decision_function(X)
    value = 0.5 * (model.coef_**2).sum() + 0.01 * np.maximum(0, 1 - z).sum()
    value += 0.5 * model.intercept_[0] ** 2 if bias == "regularized" else 0.0
    assert value == pytest.approx(certificate.objective, rel=1e-12)
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 2 reached"):
        assert mdlearn.fit("svm", blocks, None, C=0.01, solver=Subgradient, max_iter=2, tol=1e-9).n_iter == 2


def test_a_killed_run_goes_on_to_the_same_bits(tmp_path):
    _, _, blocks = source()
    whole = mdlearn.fit("svm", blocks, None, C=0.01, solver=Subgradient)
    _, _, mortal = source([])
    path = tmp_path / "fit.npz"
    with pytest.raises(KeyboardInterrupt):
        mdlearn.fit("svm", mdlearn.RowBlocks(mortal, checkpoint=path), None, C=0.01, solver=Subgradient)
    again = mdlearn.fit("svm", mdlearn.RowBlocks(blocks, checkpoint=path), None, C=0.01, solver=Subgradient)
    assert np.array_equal(again.coef_, whole.coef_) and again.certificate == whole.certificate


def test_what_it_cannot_take_is_refused():
    _, _, blocks = source()
    with pytest.raises(ValueError, match="solver 'subgradient' cannot take this problem: it takes no loss of the kind"):
        mdlearn.fit("lsvm", blocks, None, solver=Subgradient)
    with pytest.raises(ValueError, match=r"row blocks need solver='newton' \(or 'auto'\), 'asgd' or 'sgd'; got 'cd'"):
        mdlearn.fit("svm", blocks, None, solver="cd")


def test_what_it_fell_short_of_is_told_as_in_memory():
    X, y, blocks = source()
    told = []
    for data in ((X, y), (blocks, None)):
        with pytest.warns(mdlearn.ConvergenceWarning) as caught:
            mdlearn.fit("svm", *data, C=0.01, solver="asgd", tol=1e-12)
        (sentence,) = {str(one.message) for one in caught}
        told.append(sentence[sentence.index("(") :])
    assert told[0] == told[1] == "(the method's published end); raise tol, change solver_options or use solver='auto'"
