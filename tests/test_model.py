"""The model: attributes, shapes, rules of prediction, margins, coefficients that reproduce the decision values."""

from __future__ import annotations

import numpy as np
import pytest
from judging import signs
from reference import gram, scale_gamma

import mdlearn

BIASES = ("none", "regularized", "free")
ATTRIBUTES = (
    *("classes_", "n_features_in_", "params", "solver", "n_iter", "history", "certificate"),
    *("support_", "n_support_", "intercept_", "dual_coef_", "duals"),
)


def data(classes=2, m=90, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.argmax(X[:, :classes] + 0.8 * rng.standard_normal((m, classes)), axis=1)


# ---------------------------------------------------------------- attributes and shapes


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed", "callable"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("objective", ["ldm", "svm"])
def test_shapes(objective, classes, kernel, bias):
    X, y = data(classes)
    given = X @ X.T if kernel == "precomputed" else X
    function = (lambda A, B: np.asarray(A) @ np.asarray(B).T + 1.0) if kernel == "callable" else kernel
    model = mdlearn.fit(objective, given, y, kernel=function, bias=bias)
    rows = 1 if classes == 2 else classes
    for name in ATTRIBUTES:
        assert hasattr(model, name), name
    np.testing.assert_array_equal(model.classes_, np.arange(classes))
    assert model.n_features_in_ == given.shape[1]
    assert model.dual_coef_.shape == (rows, 90) and model.duals.shape == (rows, 90)
    assert model.intercept_.shape == (rows,)
    f = model.decision_function(given[:7])
    assert f.shape == ((7,) if classes == 2 else (7, classes)) and f.dtype == np.float64
    assert model.predict(given[:7]).shape == (7,)
    if bias == "none":
        assert (model.intercept_ == 0).all()
    if kernel == "linear":
        assert model.coef_.shape == (rows, 4)
    else:
        assert not hasattr(model, "coef_")
        with pytest.raises(AttributeError, match="coef_"):
            getattr(model, "coef_")  # noqa: B009
    assert model.solver in mdlearn.list_solvers()
    assert model.n_iter >= 1 and len(model.history) >= 1
    assert model.params["C"] == 1.0 and (("lambda1" in model.params) == (objective == "ldm"))
    assert len(model.certificate.parts) == (0 if classes == 2 else classes)
    assert model.certificate.kind == "duality gap" and model.certificate.converged
    assert isinstance(repr(model), str) and isinstance(model, mdlearn.Model)
    assert isinstance(model.certificate, mdlearn.Certificate)


def test_params_hold_the_defaults():
    X, y = data()
    params = mdlearn.fit("ldm", X, y, kernel="poly").params
    assert params["C"] == 1.0 and params["degree"] == 3 and params["coef0"] == 0
    assert params["lambda1"] == 90 / 256 and params["lambda2"] == 90 / 1024
    assert params["gamma"] == "scale" or params["gamma"] == pytest.approx(scale_gamma(X), rel=1e-12)
    assert mdlearn.fit("svm", X, y, C=3).params["C"] == 3


def test_parameters_may_be_numpy_scalars_and_integers():
    X, y = data()
    a = mdlearn.fit(
        "ldm", X, y, C=np.float32(2), lambda1=np.int64(1), lambda2=0, tol=np.float64(1e-8), max_iter=np.int32(500)
    )
    b = mdlearn.fit("ldm", X, y, C=2.0, lambda1=1.0, lambda2=0.0, tol=1e-8, max_iter=500)
    assert a.coef_.tobytes() == b.coef_.tobytes()


def test_objective_and_solver_by_class_and_instance():
    X, y = data()
    by_name = mdlearn.fit("ldm", X, y, C=2.0)
    from mdlearn.plugins.manager import registry

    cls = registry().objectives["ldm"]
    assert issubclass(cls, mdlearn.Objective)
    for objective, more in ((cls, {"C": 2.0}), (cls(C=2.0), {})):
        model = mdlearn.fit(objective, X, y, **more)
        assert model.coef_.tobytes() == by_name.coef_.tobytes() and model.params == by_name.params


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


def test_score_of_an_unseen_label_is_wrong_not_an_error():
    X, y = data()
    model = mdlearn.fit("ldm", X, y)
    other = y.copy()
    other[:9] = 5
    assert model.score(X, other) == pytest.approx(np.mean(model.predict(X) == other))


# ---------------------------------------------------------------- coefficients


@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("solver", ["auto", "cd", "interior"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_dual_coefficients_of_a_linear_model(bias, classes, solver, tol):
    """f(x) = sum alpha_i <x_i, x> + intercept, at any tolerance (the contract states no exception)."""
    X, y = data(classes)
    model = mdlearn.fit("ldm", X, y, bias=bias, solver=solver, tol=tol, C=5.0)
    fresh = np.random.default_rng(9).standard_normal((50, 4))
    f = np.atleast_2d(model.decision_function(fresh).T)
    np.testing.assert_allclose(model.dual_coef_ @ (X @ fresh.T) + model.intercept_[:, None], f, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(model.coef_ @ fresh.T + model.intercept_[:, None], f, rtol=1e-12, atol=1e-12)
    if bias == "regularized":  # the constant feature: its weight is sum alpha_i
        np.testing.assert_allclose(model.dual_coef_.sum(axis=1), model.intercept_, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "precomputed", "callable"])
def test_dual_coefficients_of_a_kernel_model(kernel, classes, bias):
    X, y = data(classes)
    fresh = np.random.default_rng(9).standard_normal((50, 4))
    settings = {"kernel": kernel, "bias": bias, "tol": 1e-9}
    if kernel in ("rbf", "poly"):
        settings["gamma"] = 0.3
    if kernel == "poly":
        settings |= {"degree": 2, "coef0": 1.0}
    if kernel == "callable":
        settings["kernel"] = lambda A, B: gram(A, B, "rbf", 0.2, dtype=np.float64)
        between = gram(X, fresh, "rbf", 0.2, dtype=np.float64)
    elif kernel == "precomputed":
        between = X @ fresh.T
    else:
        between = gram(X, fresh, kernel, 0.3, 2, 1.0, dtype=np.float64)
    model = mdlearn.fit("ldm", X @ X.T if kernel == "precomputed" else X, y, **settings)
    f = np.atleast_2d(model.decision_function(between.T if kernel == "precomputed" else fresh).T)
    np.testing.assert_allclose(model.dual_coef_ @ between + model.intercept_[:, None], f, rtol=1e-9, atol=1e-9)
    if bias == "regularized":
        np.testing.assert_allclose(model.dual_coef_.sum(axis=1), model.intercept_, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_dual_coefficients_follow_from_the_multipliers(kernel, bias):
    """SPEC 2: alpha_i = c_i y_i [lambda2 / m - (4 lambda1 / m)(z_i - mean z)] + y_i beta_i at the optimum."""
    X, y = data()
    weight = np.random.default_rng(3).exponential(1.0, 90)
    C, lambda1, lambda2 = 2.0, 1.5, 0.4
    model = mdlearn.fit(
        "ldm", X, y, sample_weight=weight, kernel=kernel, bias=bias, C=C, lambda1=lambda1, lambda2=lambda2, tol=1e-13
    )
    target = signs(y, model.classes_)[:, 0]
    z, m = target * model.decision_function(X), weight.sum()
    mean = weight @ z / m
    beta = model.duals[0]
    expected = target * (beta + weight * (lambda2 / m - 4 * lambda1 / m * (z - mean)))
    np.testing.assert_allclose(model.dual_coef_[0], expected, rtol=1e-5, atol=1e-6)
    # Complementary slackness, the other half of the optimality conditions.
    np.testing.assert_allclose(beta[z < 1 - 1e-4], (C * weight)[z < 1 - 1e-4], rtol=1e-6)
    assert (beta[z > 1 + 1e-4] <= 1e-6).all()
    if bias == "free":
        assert model.dual_coef_[0].sum() == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("bias", BIASES)
def test_multipliers_stay_in_their_box(bias, kernel, classes, tol):
    X, y = data(classes)
    weight = np.random.default_rng(4).exponential(1.0, 90)
    weight[::7] = 0.0
    model = mdlearn.fit("ldm", X, y, sample_weight=weight, kernel=kernel, bias=bias, C=0.7, tol=tol)
    assert (model.duals >= 0).all() and (model.duals <= 0.7 * weight * (1 + 1e-14)).all()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("objective", ["ldm", "svm"])
def test_support(objective, kernel, classes):
    X, y = data(classes)
    model = mdlearn.fit(objective, X, y, kernel=kernel, tol=1e-8)
    support = model.support_
    assert np.issubdtype(support.dtype, np.integer) and (np.diff(support) > 0).all()
    np.testing.assert_array_equal(support, np.flatnonzero((model.dual_coef_ != 0).any(axis=0)))
    assert np.sum(model.n_support_) == len(support)
    np.testing.assert_array_equal(model.n_support_, [np.sum(y[support] == k) for k in range(classes)])
    if objective == "svm" and classes == 2:
        z = signs(y, model.classes_)[:, 0] * model.decision_function(X)
        assert len(support) < 90, "an SVM on easy rows is sparse"
        assert np.isin(np.flatnonzero(z < 1 - 1e-3), support).all(), "rows inside the margin are support vectors"


# ---------------------------------------------------------------- frames


def test_pandas_frame():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(90) + 1000)
    series = pandas.Series(np.where(y == 1, "yes", "no"), index=frame.index)
    weight = pandas.Series(np.arange(90) % 3 + 1.0, index=frame.index)
    model = mdlearn.fit("ldm", frame, series, sample_weight=weight)
    plain = mdlearn.fit("ldm", X, np.where(y == 1, "yes", "no"), sample_weight=np.arange(90) % 3 + 1.0)
    assert list(model.feature_names_in_) == ["a", "b", "c", "d"] and model.n_features_in_ == 4
    # A frame's rows lie column by column and are used as they lie, so the last bits may differ.
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-10)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(
        model.margins(frame, series), plain.margins(X, series.to_numpy()), rtol=1e-10, atol=1e-10
    )
    assert model.score(frame, series, sample_weight=weight) == plain.score(
        X, series.to_numpy(), sample_weight=weight.to_numpy()
    )
    assert not hasattr(plain, "feature_names_in_")


def test_pandas_columns_of_mixed_numbers_and_categories():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    frame = pandas.DataFrame({"i": np.round(9 * X[:, 0]).astype(int), "f": X[:, 1], "b": X[:, 2] > 0})
    model = mdlearn.fit("ldm", frame, pandas.Categorical(np.where(y == 1, "yes", "no")))
    plain = mdlearn.fit("ldm", frame.astype(float).to_numpy(), np.where(y == 1, "yes", "no"))
    assert model.coef_.tobytes() == plain.coef_.tobytes() and list(model.classes_) == ["no", "yes"]
    with pytest.raises((ValueError, TypeError)):
        mdlearn.fit("ldm", frame.assign(s="word"), y)
    with pytest.raises((ValueError, TypeError)):
        mdlearn.fit("ldm", frame.assign(f=np.where(np.arange(90) == 3, np.nan, X[:, 1])), y)


def test_frame_with_other_columns_at_prediction():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    model = mdlearn.fit("ldm", pandas.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match=r"column|feature"):
        model.predict(pandas.DataFrame(X, columns=list("abce")))
    with pytest.raises(ValueError, match=r"column|feature"):
        model.predict(pandas.DataFrame(X[:, [1, 0, 2, 3]], columns=list("bacd")))


# ---------------------------------------------------------------- prediction in blocks, verbosity


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_prediction_does_not_depend_on_the_other_rows(kernel):
    X, y = data()
    model = mdlearn.fit("ldm", X, y, kernel=kernel)
    many = np.random.default_rng(5).standard_normal((20_000, 4))
    f = model.decision_function(many)
    for row in (0, 1, 4095, 4096, 19_999):
        assert f[row] == pytest.approx(model.decision_function(many[row : row + 1])[0], rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_quiet_by_default_and_talkative_on_request(kernel, capfd):
    X, y = data()
    mdlearn.fit("ldm", X, y, kernel=kernel)
    assert capfd.readouterr() == ("", "")
    mdlearn.fit("ldm", X, y, kernel=kernel, verbose=1)
    out, err = capfd.readouterr()
    assert out + err != ""


def test_signature_of_fit():
    """The arguments of the contract, in its words; what is not due yet does not exist."""
    import inspect

    parameters = inspect.signature(mdlearn.fit).parameters
    names = list(parameters)
    assert names[:3] == ["objective", "X", "y"]
    expected = {
        "solver": "auto",
        "solver_options": None,
        "kernel": "linear",
        "bias": None,
        "multiclass": "auto",
        "sample_weight": None,
        "class_weight": None,
        "tol": 1e-6,
        "max_iter": None,
        "time_limit": None,
        "random_state": None,
        "callback": None,
        "verbose": 0,
    }
    for name, default in expected.items():
        assert parameters[name].default == default and parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
