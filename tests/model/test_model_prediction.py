"""The model's rules of prediction, labels of all kinds, margins."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from judging import signs
from model_cases import BIASES, data
from reference import gram, scale_gamma

import mdlearn
from mdlearn.data.features.kernels import Kernel

# ---------------------------------------------------------------- prediction


def test_zero_is_the_second_label():
    X, y = data()
    labels = np.where(y == 1, "b", "a")
    nothing = mdlearn.fit("svm", X, labels, C=0.0, bias="none")
    assert (nothing.decision_function(X) == 0).all() and (nothing.predict(X) == "b").all()
    model = mdlearn.fit("svm", X, labels, bias="none")
    zero = np.zeros((1, 4))
    assert model.decision_function(zero)[0] == 0 and model.predict(zero)[0] == "b"
    assert model.predict(-zero)[0] == "b", "minus zero is zero"


def test_ties_go_to_the_first_class():
    X, y = data(3)
    model = mdlearn.fit("svm", X, np.array(["r", "g", "b"])[y], C=0.0, bias="none")
    assert (model.decision_function(X) == 0).all() and (model.predict(X) == "b").all()  # sorted: b, g, r


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_predict_follows_the_decision_values(classes):
    X, y = data(classes, d=5)
    model = mdlearn.fit("ldm", X, y, kernel="rbf")
    f = model.decision_function(X)
    expected = (f >= 0).astype(int) if classes == 2 else f.argmax(axis=1)
    np.testing.assert_array_equal(model.predict(X), model.classes_[expected])
    assert model.score(X, y) == pytest.approx(np.mean(model.predict(X) == y), abs=1e-15)


def test_larger_decision_values_speak_for_the_second_label():
    X = np.array([[-2.0], [-1.0], [1.0], [2.0]])
    model = mdlearn.fit("svm", X, ["low", "low", "zz", "zz"])
    assert model.coef_[0, 0] > 0 and (model.predict(X) == ["low", "low", "zz", "zz"]).all()
    turned = mdlearn.fit("svm", X, ["z", "z", "a", "a"])
    assert turned.coef_[0, 0] < 0


LABELS = {
    "strings": (["no", "yes"], "U"),
    "objects": (np.array(["no", "yes"], dtype=object), "UO"),
    "booleans": ([False, True], "b"),
    "floats": ([-0.5, 2.5], "f"),
    "integers": ([3, 7], "iu"),
    "unsigned": (np.array([0, 255], dtype=np.uint8), "u"),
    "minus one and one": ([-1, 1], "iu"),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels_of_all_kinds(name):
    values, kinds = LABELS[name]
    X, y = data()
    labels = np.asarray(values)[y]
    model = mdlearn.fit("ldm", X, labels)
    expected = mdlearn.fit("ldm", X, y)
    np.testing.assert_array_equal(model.classes_, np.asarray(values))
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted, np.asarray(values)[expected.predict(X)])
    assert predicted.dtype.kind in kinds
    assert model.score(X, labels) == expected.score(X, y)
    np.testing.assert_array_equal(model.margins(X, labels), expected.margins(X, y))


def test_labels_are_sorted():
    X, y = data(3)
    names = np.array(["zebra", "ant", "mole"])
    model = mdlearn.fit("ldm", X, names[y])
    assert list(model.classes_) == ["ant", "mole", "zebra"]
    plain = mdlearn.fit("ldm", X, y)
    np.testing.assert_allclose(
        model.decision_function(X), plain.decision_function(X)[:, [1, 2, 0]], rtol=1e-6, atol=1e-6
    )


# ---------------------------------------------------------------- margins


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_binary_margins(kernel, bias):
    X, y = data()
    model = mdlearn.fit("ldm", X, y, kernel=kernel, bias=bias)
    z = signs(y, model.classes_)[:, 0] * model.decision_function(X)
    np.testing.assert_array_equal(model.margins(X, y), z)
    if kernel == "linear":
        norm = np.linalg.norm(model.coef_)
    else:
        alpha, G = model.dual_coef_[0], gram(X, X, "rbf", scale_gamma(X)).astype(float)
        norm = np.sqrt(alpha @ G @ alpha)
    np.testing.assert_allclose(model.margins(X, y, normalized=True), z / norm, rtol=1e-9)


def test_multiclass_margins():
    """f_y - max of the others; per class, Y_ik f_k."""
    X, y = data(3)
    model = mdlearn.fit("ldm", X, np.array(["a", "b", "c"])[y])
    F = model.decision_function(X)
    own = F[np.arange(90), y]
    others = np.where(np.arange(3)[None, :] == y[:, None], -np.inf, F).max(axis=1)
    labels = np.array(["a", "b", "c"])[y]
    np.testing.assert_array_equal(model.margins(X, labels), own - others)
    per_class = model.margins(X, labels, per_class=True)
    np.testing.assert_array_equal(per_class, signs(labels, model.classes_) * F)
    right = model.predict(X) == labels
    assert ((model.margins(X, labels) > 0) == right)[np.abs(own - others) > 0].all()


def test_margins_of_a_part_of_the_labels():
    """New rows need not show every class."""
    X, y = data(3)
    model = mdlearn.fit("ldm", X, y)
    only = y == 2
    np.testing.assert_allclose(model.margins(X[only], y[only]), model.margins(X, y)[only], rtol=1e-12)
    assert model.score(X[only], y[only]) == np.mean(model.predict(X[only]) == 2)


def test_score_of_an_unseen_label_is_an_error():
    X, y = data()
    model = mdlearn.fit("ldm", X, y)
    other = y.copy()
    other[:9] = 5
    with pytest.raises(ValueError, match=r"y holds the label 5 in row 0, which the model does not know; \[0, 1\]"):
        model.score(X, other)


# ---------------------------------------------------------------- prediction in blocks


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_prediction_does_not_depend_on_the_other_rows(kernel):
    X, y = data()
    model = mdlearn.fit("ldm", X, y, kernel=kernel)
    many = np.random.default_rng(5).standard_normal((20_000, 4))
    f = model.decision_function(many)
    for row in (0, 1, 4095, 4096, 19_999):
        assert f[row] == pytest.approx(model.decision_function(many[row : row + 1])[0], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_support_rows_are_prepared_once(sparse, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = 3.0 + rng.standard_normal((300, 40)), rng.integers(0, 2, 300)
    if sparse:
        X[rng.random(X.shape) > 0.04] = 0.0
    form = scipy.sparse.csr_matrix if sparse else np.asarray
    model = mdlearn.fit("svm", form(X), y, kernel="rbf")
    one, asked = model.decision_function(form(X)), []
    squares, centred_copy = Kernel.squares, Kernel.centred_copy
    monkeypatch.setattr(Kernel, "squares", lambda *given: (asked.append(given[1].shape), squares(*given))[1])
    monkeypatch.setattr(Kernel, "centred_copy", lambda *given: (asked.append("copy"), centred_copy(*given))[1])
    few = model.decision_function(form(X[:7]))
    assert asked == [(7, 40)] and few == pytest.approx(one[:7], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("filled", [0.02, 0.5, 1.0])
@pytest.mark.parametrize("fitted", [np.asarray, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("asked", [np.asarray, scipy.sparse.csr_matrix])
def test_kernel_sums_of_dense_and_sparse_rows(fitted, asked, filled, monkeypatch):
    """Products are those of rows written out, wherever these are not mostly zeros."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((700, 60)) < filled, 2.0 + rng.standard_normal((700, 60)), 0.0)
    y, new = rng.integers(0, 3, 700), X[::3] + (X[::3] != 0)
    model = mdlearn.fit("lssvm", fitted(X), y, kernel="rbf", gamma=0.02)
    kinds, tile = set(), Kernel.tile
    monkeypatch.setattr(Kernel, "tile", lambda *given: (kinds.add((given[1].sparse, given[2].sparse)), tile(*given))[1])
    found = model.decision_function(asked(new))
    K = np.exp(-0.02 * np.square(new[:, None] - X[None]).sum(axis=2))
    np.testing.assert_allclose(found, K @ model.dual_coef_.T + model.intercept_, rtol=0, atol=1e-10)
    mostly_zeros = fitted is scipy.sparse.csr_matrix and filled < 0.05
    assert kinds == {(asked is scipy.sparse.csr_matrix, True) if mostly_zeros else (False, False)}
