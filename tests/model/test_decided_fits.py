"""tol="decisions": fits end where their labels are proven, not before and not much later."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.errors import ConvergenceWarning


def rows(m, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, 4))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(m) > 0, "b", "a")


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", ["svm", "ldm", "lsvm"])
def test_decisions_are_those_of_the_optimum_at_the_largest_gap_that_proves_them(name, kernel):
    X, y = rows(400, 1)
    exact = mdlearn.fit(name, X, y, kernel=kernel, tol=1e-11)
    model = mdlearn.fit(name, X, y, kernel=kernel, tol="decisions")
    certain = model.certified(X)
    assert certain.mean() >= 0.999 and model.certificate.converged
    assert (model.predict(X) == exact.predict(X))[certain].all()
    tol = model.certificate.tol
    assert 1e-9 <= tol < 1e-1
    if tol < 5e-3:  # ten times that gap was not enough, from the same start
        gaps = [10.0**-k for k in range(2, 10) if 10.0**-k > 5.0 * tol]
        before = None
        for gap in gaps:
            before = mdlearn.fit(name, X, y, kernel=kernel, tol=gap, warm_start=before)
        assert before.certified(X).mean() < 0.999


def test_rows_to_decide_and_several_classes():
    X, y = rows(300, 2)
    y = np.where(X[:, 1] > 1.0, "c", y)
    few = X[np.abs(mdlearn.fit("svm", X, y == "b").decision_function(X)) > 0.5][:20]
    model = mdlearn.fit("svm", X, y, tol="decisions", X_decide=few)
    assert model.certified(few).all()
    assert model.certificate.tol >= mdlearn.fit("svm", X, y, tol="decisions").certificate.tol


def test_what_cannot_be_decided_is_said():
    X, y = rows(60, 3)
    with pytest.raises(ValueError, match=r"tol='decisions' needs bounds.*free bias"):
        mdlearn.fit("svm", X, y, bias="free", tol="decisions")
    with pytest.raises(ValueError, match="X_decide are rows for tol='decisions'"):
        mdlearn.fit("svm", X, y, X_decide=X)
    for call in (mdlearn.select, mdlearn.cross_validate):
        given = ({"C": [1.0]},) if call is mdlearn.select else ()
        with pytest.raises(ValueError, match="single fits"):
            call("svm", X, y, *given, tol="decisions")
    with pytest.raises(ValueError, match="single fits"):
        mdlearn.fit("svm", lambda: iter([(X, y)]), None, tol="decisions")
    with pytest.raises(TypeError, match="did you mean 'decisions'"):
        mdlearn.fit("svm", X, y, tol="decision")
    on_the_boundary = mdlearn.fit("svm", X, y, tol=1e-12)
    w, b = on_the_boundary.coef_[0], on_the_boundary.intercept_[0]
    with pytest.warns(ConvergenceWarning, match="unproven decisions of 1 instead of 0.001"):
        model = mdlearn.fit("svm", X, y, tol="decisions", X_decide=(-b * w / (w @ w))[None])
    assert model.certificate.gap <= 1e-9


def test_estimators_take_it():
    from mdlearn.sklearn import SVMClassifier

    X, y = rows(200, 4)
    with pytest.raises(ValueError, match="single fits"):
        SVMClassifier(tol="decisions", solver="asgd").partial_fit(X, y, classes=["a", "b"])
    estimator = SVMClassifier(tol="decisions").fit(X, y)
    assert estimator.model_.certified(X).mean() >= 0.999
