"""Weights relative to C m in fits, grids and estimators, and the two names of the weight of lsvm."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import mdlearn
from mdlearn import relative

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 3))
Y = np.where(X[:, 0] + RNG.standard_normal(60) > 0, "yes", "no")


def test_it_is_a_value():
    one = relative(1 / 256)
    assert one == relative(1 / 256) and hash(one) == hash(relative(1 / 256)) and one != relative(0.5)
    assert relative(0) < one < relative(np.float32(0.5)) and sorted([relative(1), one]) == [one, relative(1)]
    assert eval(repr(one), {"relative": relative}) == one and eval(repr(relative(1 / 3))) == relative(1 / 3)
    assert pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one
    with pytest.raises(AttributeError):
        one.ratio = 2.0


@pytest.mark.parametrize("ratio", [-1.0, np.nan, np.inf, "1", None, True])
def test_what_is_no_ratio(ratio):
    with pytest.raises((TypeError, ValueError), match=r"^ratio needs to be a number"):
        relative(ratio)


@pytest.mark.parametrize("weight", [None, RNG.integers(0, 4, 60), RNG.exponential(1.0, 60)])
def test_it_stands_for_a_number(weight, tmp_path):
    m = 60.0 if weight is None else float(np.sum(weight))
    settings = {"C": 3.0, "sample_weight": weight, "tol": 1e-10}
    model = mdlearn.fit("ldm", X, Y, lambda1=relative(1 / 64), lambda2=relative(1 / 512), **settings)
    plain = mdlearn.fit("ldm", X, Y, lambda1=3.0 * m / 64, lambda2=3.0 * m / 512, **settings)
    assert model.params == pytest.approx(plain.params, rel=1e-14)
    assert {type(value) for value in model.params.values()} == {float}
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    model.save(tmp_path / "model.npz")
    assert mdlearn.load(tmp_path / "model.npz").params == model.params
    default = mdlearn.fit("ldm", X, Y, lambda1=relative(1 / 256), **settings)
    assert default.params == mdlearn.fit("ldm", X, Y, **settings).params


def test_instances_and_blocks():
    from mdlearn.objectives.ldm import LDM

    model = mdlearn.fit(LDM(lambda1=relative(0.25)), X, Y, C=2.0)
    assert model.params["lambda1"] == pytest.approx(0.25 * 2.0 * 60)
    blocks = [(X[:30], Y[:30]), (X[30:], Y[30:])]
    assert mdlearn.fit("ldm", blocks, None, C=2.0, lambda1=relative(0.25)).params == model.params


def test_grids_of_paths_and_selection():
    grid = {"C": [1.0, 4.0], "lambda1": [relative(0), relative(1 / 64)]}
    path = mdlearn.fit_path("ldm", X, Y, grid)
    assert [model.params["lambda1"] for model in path] == pytest.approx([0.0, 60 / 64, 0.0, 4 * 60 / 64])
    assert path.points[1] == {"C": 1.0, "lambda1": relative(1 / 64)}
    found = mdlearn.select("ldm", X, Y, grid, cv=3)
    assert found.points == path.points and found.best_params in found.points
    best = found.best_params
    assert found.model.params["lambda1"] == pytest.approx(best["lambda1"].ratio * best["C"] * 60)
    # The default grid around a given one.
    assert len(mdlearn.fit_path("ldm", X, Y, None, lambda1=relative(0.1)).points) == 9


def test_folds_have_weights_of_their_own():
    """Relative to the training rows, as the default is."""
    folds = [(np.arange(20), np.arange(20, 60)), (np.arange(40, 60), np.arange(40))]
    ours = mdlearn.cross_validate("ldm", X, Y, cv=folds, scoring="auc", lambda1=relative(1 / 8))
    theirs = mdlearn.cross_validate("ldm", X, Y, cv=folds, scoring="auc", lambda1=20.0 / 8)
    np.testing.assert_array_equal(ours.scores, theirs.scores)


def test_searches_of_scikit_learn():
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV

    from mdlearn.sklearn import LDMClassifier, MarginClassifier

    estimator = LDMClassifier(lambda1=relative(1 / 16))
    assert clone(estimator).lambda1 == relative(1 / 16) and "relative(0.0625)" in repr(estimator)
    search = GridSearchCV(estimator, {"C": [1, 4], "lambda1": [relative(0), relative(1 / 64)]}, cv=3).fit(X, Y)
    best = search.best_params_
    held = search.best_estimator_.model_.params
    assert held["lambda1"] == pytest.approx(best["lambda1"].ratio * best["C"] * 60)
    any_one = GridSearchCV(MarginClassifier("ldm"), {"params__lambda1": [relative(1 / 64), relative(0.5)]}, cv=2)
    assert any_one.fit(X, Y).best_params_["params__lambda1"] in (relative(1 / 64), relative(0.5))


@pytest.mark.parametrize(
    ("objective", "given", "told"),
    [
        ("ldm", {"C": relative(1)}, "^C of objective 'ldm' cannot be relative to C m; give a number$"),
        ("mdlm", {"lambda1": relative(1)}, "^lambda1 of objective 'mdlm' cannot be relative to C m; give a number$"),
        ("l3svm", {"loss": relative(1)}, "^loss of objective 'l3svm' cannot be relative to C m; give a number$"),
        ("ldm", {"C": np.inf, "lambda1": relative(1)}, "^lambda1 needs to be a finite number >= 0; got inf$"),
        ("svm", {"kernel": "rbf", "gamma": relative(1)}, "^gamma needs to be a number"),
    ],
)
def test_what_cannot_be_relative(objective, given, told):
    with pytest.raises((ValueError, TypeError), match=told):
        mdlearn.fit(objective, X, Y, **given)


# ---------------------------------------------------------------- C of lsvm


def test_one_grid_fits_all_hinge_objectives():
    for objective in ("svm", "ldm", "lsvm"):
        path = mdlearn.fit_path(objective, X, Y, {"C": [0.1, 10.0]})
        assert [point["C"] for point in path.points] == [0.1, 10.0]
        found = mdlearn.select(objective, X, Y, {"C": [0.1, 10.0]}, cv=2)
        assert found.best_params["C"] in (0.1, 10.0)
    assert [model.params["nu"] for model in path] == [0.1, 10.0]
    named = mdlearn.fit("lsvm", X, Y, nu=10.0)
    assert path[1].params == named.params
    assert path[1].certificate.objective == pytest.approx(named.certificate.objective, rel=1e-9)


def test_one_of_the_two_names():
    from mdlearn.objectives.lsvm import LSVM
    from mdlearn.sklearn import LSVMClassifier

    told = "^C and nu are one parameter of objective 'lsvm'; give one of the two$"
    for wrong in (lambda: mdlearn.fit("lsvm", X, Y, C=1.0, nu=1.0), lambda: LSVMClassifier(C=1.0, nu=1.0).fit(X, Y)):
        with pytest.raises(ValueError, match=told):
            wrong()
    with pytest.raises(ValueError, match=r"^C needs to be a number > 0; got 0.0$"):
        mdlearn.fit("lsvm", X, Y, C=0.0)
    assert mdlearn.fit(LSVM(nu=3.0), X, Y, C=2.0).params["nu"] == 2.0
    assert LSVMClassifier(C=2.0).fit(X, Y).model_.params["nu"] == 2.0
    assert LSVMClassifier().fit(X, Y).model_.params["nu"] == 1.0
