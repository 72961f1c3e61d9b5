"""predict_proba against its definition, for scores of any size, and where it does not exist."""

from __future__ import annotations

from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest
from smooth_reference import overlapping

import mdlearn
from mdlearn.model.class_decisions import class_probabilities

SCORES = (0.0, 1e-20, -1e-20, 0.3, -2.0, 36.0, -36.0, 40.0, -745.0, 745.0, -1e4, 1e4, -1e300, 1e300)


def three_classes(m=120):
    X, _ = overlapping(m)
    return X, np.digitize(X[:, 0] + 0.7 * np.random.default_rng(2).standard_normal(m), [-0.5, 0.5])


def exact(scores):
    """sigma(f_k) over their sum, with 50 digits and nearly any exponent."""
    with localcontext(Context(prec=50, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])):
        sigma = [1 / (1 + (-Decimal(float(f))).exp()) for f in scores]
        return [float(s / sum(sigma)) for s in sigma]


def test_two_classes():
    f = np.array(SCORES)
    p = class_probabilities(f)
    for row, score in zip(p, f):
        np.testing.assert_allclose(row, exact([-score, score]), rtol=1e-13, atol=1e-300)


def test_several_classes():
    rng = np.random.default_rng(0)
    rows = [rng.choice(SCORES[:-4], 3) for _ in range(200)] + [[-1e4, -1e4 - 1, -2e4], [-800.0, -801.0, -900.0]]
    f = np.array(rows)
    p = class_probabilities(f)
    for row, scores in zip(p, f):
        np.testing.assert_allclose(row, exact(scores), rtol=1e-11, atol=1e-300)
    huge = class_probabilities(np.array([[-1e300, -2e300, -1e300], [1e300, 0.0, -1e300]]))
    np.testing.assert_allclose(huge, [[0.5, 0.0, 0.5], [2 / 3, 1 / 3, 0.0]])
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)
    assert np.isfinite(p).all()


@pytest.mark.parametrize("scale", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("name", ["l2lr", "mlr"])
def test_it_agrees_with_predict(name, k, scale):
    X, y = three_classes() if k == 3 else overlapping()
    model = mdlearn.fit(name, X, y)
    Z = scale * np.vstack([X, np.zeros((1, X.shape[1]))])
    p, f = model.predict_proba(Z), model.decision_function(Z)
    assert p.shape == (len(Z), k)
    np.testing.assert_array_equal(p, class_probabilities(f))
    chosen = np.searchsorted(model.classes_, model.predict(Z))
    assert (p[np.arange(len(Z)), chosen] == p.max(axis=1)).all(), "no class is more probable than the predicted one"
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-14)


def test_it_is_saved(tmp_path):
    X, y = three_classes()
    model = mdlearn.fit("mlr", X, y)
    model.save(tmp_path / "m.npz")
    again = mdlearn.load(tmp_path / "m.npz")
    assert again.probabilities is True
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    svm = mdlearn.fit("svm", X, y)
    svm.save(tmp_path / "s.npz")
    assert mdlearn.load(tmp_path / "s.npz").probabilities is False


def test_where_it_does_not_exist():
    X, y = three_classes()
    svm = mdlearn.fit("svm", X, y)
    assert not hasattr(svm, "predict_proba")
    with pytest.raises(AttributeError, match=r"^predict_proba does not exist: scores of 'svm' are no probabilities$"):
        svm.predict_proba(X)
    pairs = mdlearn.fit("l2lr", X, y, multiclass="ovo")
    assert not hasattr(pairs, "predict_proba")
    with pytest.raises(AttributeError, match=r"one score per class; this model has 'ovo'$"):
        pairs.predict_proba(X)
    two = mdlearn.fit("l2lr", X, y > 0, multiclass="ovo")
    assert two.predict_proba(X).shape == (len(X), 2), "two classes have one score, whatever `multiclass`"
    model = mdlearn.fit("l2lr", X, y)
    with pytest.raises(ValueError, match="the model needs 4 columns"):
        model.predict_proba(X[:, :2])


def test_the_largest_probability_is_that_of_the_prediction_where_rounding_ties():
    f = np.array([[40.0, 50.0, -1.0], [800.0, 700.0, 900.0], [-2.0, -1.0, -1.0]])
    P = class_probabilities(f)
    np.testing.assert_array_equal(P.argmax(axis=1), f.argmax(axis=1))
    np.testing.assert_allclose(P.sum(axis=1), 1.0, atol=1e-15)
    np.testing.assert_array_equal(class_probabilities(np.array([0.0, -1e-20, 1e-20])).argmax(axis=1), [1, 0, 1])
