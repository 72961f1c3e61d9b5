"""The model and fit's contract: attributes, shapes, parameters, frames, verbosity, the signature."""

from __future__ import annotations

import numpy as np
import pytest
from model_cases import BIASES, data
from reference import scale_gamma

import mdlearn

ATTRIBUTES = (
    *("classes_", "n_features_in_", "params", "solver", "n_iter", "history", "certificate"),
    *("support_", "n_support_", "intercept_", "dual_coef_", "duals"),
)


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
    from mdlearn.plugins.registry import registry

    cls = registry().objectives["ldm"]
    assert issubclass(cls, mdlearn.Objective)
    for objective, more in ((cls, {"C": 2.0}), (cls(C=2.0), {})):
        model = mdlearn.fit(objective, X, y, **more)
        assert model.coef_.tobytes() == by_name.coef_.tobytes() and model.params == by_name.params


# ---------------------------------------------------------------- frames


@pytest.mark.extras
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


@pytest.mark.extras
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


@pytest.mark.extras
def test_frame_with_other_columns_at_prediction():
    pandas = pytest.importorskip("pandas")
    X, y = data()
    model = mdlearn.fit("ldm", pandas.DataFrame(X, columns=list("abcd")), y)
    with pytest.raises(ValueError, match=r"column|feature"):
        model.predict(pandas.DataFrame(X, columns=list("abce")))
    with pytest.raises(ValueError, match=r"column|feature"):
        model.predict(pandas.DataFrame(X[:, [1, 0, 2, 3]], columns=list("bacd")))


# ---------------------------------------------------------------- verbosity, the signature


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
