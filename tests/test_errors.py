"""Bad input: one clear sentence, of the right type, before any long work."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 3))
Y = np.array([1, -1] * 6)
NAN, INF = float("nan"), float("inf")


def changed(array, place, value):
    copy = np.array(array, dtype=float)
    copy[place] = value
    return copy


class CountingKernel:
    """A callable kernel that notes whether any work was begun."""

    def __init__(self):
        self.calls = 0

    def __call__(self, A, B):
        self.calls += 1
        return np.asarray(A) @ np.asarray(B).T


def one_sentence(error, *words):
    message = str(error)
    assert message.strip() and "\n" not in message and len(message) < 500
    assert message.count(". ") == 0, f"more than one sentence: {message}"
    for word in words:
        assert word.lower() in message.lower(), f"{word!r} is missing in: {message}"


def refuse(kind, words, objective="ldm", data=X, labels=Y, **settings):
    """The call fails with `kind`; no callback is reached."""
    reached = []
    settings.setdefault("callback", lambda state: reached.append(state))
    with pytest.raises((ValueError, TypeError) if kind is None else kind) as caught:
        mdlearn.fit(objective, data, labels, **settings)
    assert not reached
    one_sentence(caught.value, *words)
    return caught.value


# ---------------------------------------------------------------- X


BAD_X = {
    "nan": (changed(X, (3, 1), NAN), ValueError, ["X", "NaN"]),
    "inf": (changed(X, (3, 1), INF), ValueError, ["X", "inf"]),
    "minus inf": (changed(X, (0, 0), -INF), ValueError, ["X", "inf"]),
    "nan in the last row": (changed(X, (11, 2), NAN), ValueError, ["X", "NaN"]),
    "1-D": (X[:, 0], ValueError, ["X", "2-D"]),
    "3-D": (X[:, :, None], ValueError, ["X", "2-D"]),
    "0-D": (np.float64(3.0), ValueError, ["X"]),
    "no rows": (np.zeros((0, 3)), ValueError, ["X", "row"]),
    "no columns": (np.zeros((12, 0)), ValueError, ["X"]),
    "complex": (X + 0j, None, ["X", "complex"]),
    "strings": (X.astype(str), None, ["X"]),
    "words": (np.full((12, 3), "word"), None, ["X"]),
    "objects": (np.array([[1.0, "a", 2.0]] * 12, dtype=object), None, ["X"]),
    "none inside": (np.array([[1.0, None, 2.0]] * 12, dtype=object), None, ["X"]),
    "ragged": ([[1.0, 2.0], [3.0]] * 6, None, ["X"]),
    "dates": (np.full((12, 3), np.datetime64("2020-01-01")), None, ["X"]),
    "None": (None, None, ["X"]),
    "a dict": ({"a": [1, 2]}, None, ["X"]),
}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", BAD_X)
def test_bad_rows(name, kernel):
    data, kind, words = BAD_X[name]
    labels = Y[: len(data)] if name == "no rows" else Y
    refuse(kind, words, data=data, labels=labels, kernel=kernel)


# ---------------------------------------------------------------- y


BAD_Y = {
    "too short": (Y[:-1], ValueError, ["12", "11"]),
    "too long": (np.append(Y, 1), ValueError, ["12", "13"]),
    "one class": (np.ones(12), ValueError, ["class"]),
    "one string": (np.full(12, "only"), ValueError, ["class"]),
    "empty": (np.array([]), ValueError, ["12"]),
    "nan": (changed(Y, 2, NAN), ValueError, ["y", "NaN"]),
    "inf": (changed(Y, 2, INF), ValueError, ["y"]),
    "missing string": (np.array(["a", None] * 6, dtype=object), None, ["y"]),
    "mixed types": (np.array(["a", 1] * 6, dtype=object), None, ["y"]),
    "2-D": (np.column_stack([Y, Y]), ValueError, ["y", "1-D"]),
    "0-D": (1, ValueError, ["y"]),
    "complex": (Y + 0j, None, ["y"]),
    "None": (None, None, ["y"]),
}


@pytest.mark.parametrize("name", BAD_Y)
def test_bad_labels(name):
    labels, kind, words = BAD_Y[name]
    refuse(kind, words, labels=labels)


# ---------------------------------------------------------------- weights


BAD_WEIGHTS = {
    "negative": (changed(np.ones(12), 4, -1.0), ["weight", "negative"]),
    "minus a little": (changed(np.ones(12), 4, -1e-300), ["weight", "negative"]),
    "nan": (changed(np.ones(12), 4, NAN), ["weight", "NaN"]),
    "inf": (changed(np.ones(12), 4, INF), ["weight", "inf"]),
    "all zero": (np.zeros(12), ["weight", "zero"]),
    "too short": (np.ones(11), ["weight", "12"]),
    "too long": (np.ones(13), ["weight", "12"]),
    "2-D": (np.ones((12, 1)), ["weight"]),
    "words": (["a"] * 12, ["weight"]),
    "complex": (np.ones(12) + 1j, ["weight"]),
    "one class left": (np.where(Y > 0, 1.0, 0.0), ["class"]),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights(name):
    weight, words = BAD_WEIGHTS[name]
    refuse(None, words, sample_weight=weight)


BAD_CLASS_WEIGHTS = {
    "a word": "equal",
    "a number": 2.0,
    "negative": {1: -1.0},
    "nan": {1: NAN},
    "inf": {1: INF},
    "all zero": {1: 0.0, -1: 0.0},
    "one class left": {1: 0.0},
    "a word as factor": {1: "much"},
}


@pytest.mark.parametrize("name", BAD_CLASS_WEIGHTS)
def test_bad_class_weights(name):
    refuse(None, ["class"], class_weight=BAD_CLASS_WEIGHTS[name])


# ---------------------------------------------------------------- names


UNKNOWN = {
    "objective": ({"objective": "ldn"}, ["ldn", "ldm", "svm"]),
    "objective of another type": ({"objective": 3}, ["ldm", "svm"]),
    "solver": ({"solver": "smo"}, ["smo", "cd", "interior"]),
    "solver of another type": ({"solver": 3}, ["cd", "interior"]),
    "kernel": ({"kernel": "gauss"}, ["gauss", "linear", "rbf", "poly", "precomputed"]),
    "kernel of another type": ({"kernel": 3}, ["linear", "rbf", "poly", "precomputed"]),
    "bias": ({"bias": "augmented"}, ["augmented", "none", "regularized", "free"]),
    "bias of another type": ({"bias": True}, ["none", "regularized", "free"]),
    "multiclass": ({"multiclass": "one-vs-all"}, ["one-vs-all", "ovr"]),
    "an impossible multiclass": ({"multiclass": "crammer"}, ["crammer", "ovr", "fuzzy-min"]),
    "joint": ({"multiclass": "joint"}, ["joint", "ovr"]),
    "parameter": ({"lamda1": 1.0}, ["lamda1", "C", "lambda1", "lambda2"]),
    "a parameter of another objective": ({"objective": "svm", "lambda1": 1.0}, ["lambda1", "C"]),
    "a parameter of another family": ({"nu": 1.0}, ["nu", "C", "lambda1", "lambda2"]),
    "two unknown parameters": ({"foo": 1.0, "bar": 2.0}, ["foo", "C"]),
    "solver option": ({"solver": "cd", "solver_options": {"nonsense": 1}}, ["nonsense", "cd"]),
    "solver option of interior": ({"solver": "interior", "solver_options": {"nonsense": 1}}, ["nonsense", "interior"]),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_names_list_the_valid_ones(name):
    settings, words = UNKNOWN[name]
    refuse(None, words, **settings)


def test_solver_options_of_another_type():
    refuse(None, ["solver_options"], solver_options=3)
    refuse(None, ["solver_options"], solver_options="shrinking")


# ---------------------------------------------------------------- numbers


BAD_NUMBERS = {
    "C": [-1.0, NAN, -INF, "1", None, 1j, [1.0], True],
    "lambda1": [-1e-12, NAN, INF, "1", 1j, [1.0, 2.0]],
    "lambda2": [-1.0, NAN, INF, "1", 1j],
    "tol": [-1e-6, NAN, "1", None, 1j, -INF],
    "max_iter": [0, -1, NAN, 2.5, "10", INF],
    "time_limit": [-1.0, NAN, "10", 1j],
    "random_state": [-1, 2.5, "seed", NAN],
    "callback": [3, "stop"],
    "verbose": ["loud", -1],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in BAD_NUMBERS.items() for value in values])
def test_bad_values(name, value):
    work = CountingKernel()
    refuse(None, [name], kernel=work, **{name: value})
    assert work.calls == 0, "work was begun before the check"


@pytest.mark.parametrize(
    ("name", "value", "kernel"),
    [
        *[
            ("gamma", value, kernel)
            for value in (-1.0, 0.0, NAN, INF, "auto", "big", 1j, [1.0])
            for kernel in ("rbf", "poly")
        ],
        *[("degree", value, "poly") for value in (-1, 0, 2.5, NAN, "3", INF)],
        *[("coef0", value, "poly") for value in (NAN, INF, "1", 1j)],
    ],
)
def test_bad_kernel_parameters(name, value, kernel):
    refuse(None, [name], kernel=kernel, **{name: value})


def test_gamma_scale_of_constant_data():
    """Var X = 0: 1 / (d Var X) does not exist; either an error that names gamma or a finite number, never NaN."""
    for data in (np.full((12, 3), 2.0), np.zeros((12, 3))):
        try:
            model = mdlearn.fit("ldm", data, Y, kernel="rbf")
        except ValueError as error:
            one_sentence(error, "gamma")
        else:
            assert np.isfinite(model.decision_function(data)).all()


# ---------------------------------------------------------------- kernels given by the caller


def test_precomputed_kernel_has_to_be_square():
    refuse(ValueError, ["precomputed", "square"], data=X @ X[:5].T, kernel="precomputed")
    refuse(ValueError, ["precomputed"], data=X, kernel="precomputed")


def test_precomputed_kernel_has_to_be_symmetric():
    refuse(ValueError, ["symmetric"], data=RNG.standard_normal((12, 12)), kernel="precomputed")


BAD_KERNELS = {
    "transposed": lambda A, B: np.zeros((len(B), len(A) + 1)),
    "a vector": lambda A, B: np.zeros(len(A)),
    "a number": lambda A, B: 1.0,
    "None": lambda A, B: None,
    "nan": lambda A, B: np.full((len(A), len(B)), NAN),
    "inf": lambda A, B: np.full((len(A), len(B)), INF),
    "complex": lambda A, B: np.full((len(A), len(B)), 1j),
    "strings": lambda A, B: np.full((len(A), len(B)), "x"),
    "3-D": lambda A, B: np.zeros((len(A), len(B), 1)),
}


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_callable_kernel_of_wrong_shape_or_values(name):
    refuse(None, ["kernel"], kernel=BAD_KERNELS[name])


def test_an_error_inside_a_callable_kernel_comes_through():
    def broken(A, B):
        raise ZeroDivisionError("from the kernel")

    with pytest.raises(ZeroDivisionError, match="from the kernel"):
        mdlearn.fit("ldm", X, Y, kernel=broken)


def test_an_error_inside_a_callback_comes_through():
    def broken(state):
        raise ZeroDivisionError("from the callback")

    with pytest.raises(ZeroDivisionError, match="from the callback"):
        mdlearn.fit("ldm", X, Y, callback=broken)


@pytest.mark.parametrize("indefinite", [-np.eye(12), np.diag([1.0] * 11 + [-1.0])], ids=["negative", "one negative"])
def test_indefinite_kernel_gives_no_false_certificate(indefinite):
    """Not a kernel at all: an error, or at least no claim of convergence with a wrong bound."""
    try:
        model = mdlearn.fit("svm", indefinite, Y, kernel="precomputed", bias="none")
    except ValueError as error:
        one_sentence(error, "kernel")
        return
    except mdlearn.ConvergenceWarning:
        return
    alpha = model.dual_coef_[0]
    f = indefinite @ alpha
    value = alpha @ f / 2 + np.maximum(0, 1 - np.where(Y > 0, 1, -1) * f).sum()
    assert model.certificate.objective == pytest.approx(value, rel=1e-8)
    assert alpha @ f >= 0, "a certified answer with a negative |w|^2"


# ---------------------------------------------------------------- prediction


METHODS = {
    "predict": lambda model, data: model.predict(data),
    "decision_function": lambda model, data: model.decision_function(data),
    "margins": lambda model, data: model.margins(data, Y),
    "score": lambda model, data: model.score(data, Y),
}


@pytest.mark.parametrize(
    "kernel",
    ["linear", "rbf", "precomputed", CountingKernel()],
    ids=lambda k: getattr(k, "lower", lambda: "callable")(),
)
@pytest.mark.parametrize("method", METHODS)
def test_wrong_number_of_features_at_prediction(method, kernel):
    model = mdlearn.fit("ldm", X @ X.T if kernel == "precomputed" else X, Y, kernel=kernel)
    needed = 12 if kernel == "precomputed" else 3
    for width in (needed - 1, needed + 1):
        with pytest.raises(ValueError) as caught:
            METHODS[method](model, np.zeros((12, width)))
        one_sentence(caught.value, str(width), str(needed))
    for bad in (np.full((12, needed), NAN), np.zeros(needed), np.full((12, needed), "x"), None):
        with pytest.raises((ValueError, TypeError)) as caught:
            METHODS[method](model, bad)
        one_sentence(caught.value, "X")


def test_margins_and_score_check_their_labels():
    model = mdlearn.fit("ldm", X, Y)
    with pytest.raises(ValueError) as caught:
        model.margins(X, Y[:-1])
    one_sentence(caught.value, "12", "11")
    with pytest.raises(ValueError) as caught:
        model.margins(X, np.full(12, 7))
    one_sentence(caught.value, "7")
    with pytest.raises(ValueError):
        model.score(X, Y[:-1])


# ---------------------------------------------------------------- order of checks


@pytest.mark.parametrize(
    "bad",
    [
        {"C": -1.0},
        {"solver": "nope"},
        {"bias": "nope"},
        {"multiclass": "nope"},
        {"tol": NAN},
        {"sample_weight": np.full(12, NAN)},
        {"class_weight": "nope"},
        {"max_iter": 0},
        {"solver_options": {"nonsense": 1}},
        {"nonsense": 1},
        {"C": 1.0, "lambda1": 0.0, "lambda2": 1e9, "bias": "free", "sample_weight": np.where(Y > 0, 1.0, 2.0)},
    ],
    ids=lambda bad: next(iter(bad)) + str(len(bad)),
)
def test_nothing_is_computed_before_the_checks(bad):
    work = CountingKernel()
    with pytest.raises((ValueError, TypeError)):
        mdlearn.fit("ldm", X, Y, kernel=work, **bad)
    assert work.calls == 0


def test_arguments_of_fit_are_keywords():
    with pytest.raises(TypeError):
        mdlearn.fit("ldm", X, Y, "auto")
    with pytest.raises(TypeError):
        mdlearn.fit("ldm", X)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_numbers_whose_squares_overflow(kernel):
    refuse(ValueError, ["squares overflow", "scale the features"], data=1e200 * X, kernel=kernel)


def test_a_polynomial_kernel_that_overflows():
    settings = {"kernel": "poly", "degree": 500, "gamma": 1.0}
    refuse(ValueError, ["poly kernel overflow", "scale the features"], data=1e3 * X, **settings)
