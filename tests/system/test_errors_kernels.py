"""Bad kernels and callables of the caller, numbers that overflow, bad rows at prediction."""

from __future__ import annotations

import numpy as np
import pytest
from error_cases import INF, NAN, CountingKernel, X, Y, one_sentence, refuse

import mdlearn

# ---------------------------------------------------------------- kernels given by the caller


SQUARE = "^a precomputed kernel needs a square matrix of shape .* X has shape "


def test_precomputed_kernel_has_to_be_square():
    refuse(ValueError, SQUARE + r"\(12, 5\)", data=X @ X[:5].T, kernel="precomputed")
    refuse(ValueError, SQUARE + r"\(12, 3\)", data=X, kernel="precomputed")


def test_precomputed_kernel_has_to_be_symmetric():
    refuse(
        ValueError,
        "^the precomputed kernel matrix is not symmetric; give K",
        data=np.arange(144.0).reshape(12, 12),
        kernel="precomputed",
    )


BAD_KERNELS = {
    "transposed": (
        lambda A, B: np.zeros((len(B), len(A) + 1)),
        r"shape \(12, 13\) for 12 and 12 rows; it needs to be \(12, 12\)",
    ),
    "a vector": (lambda A, B: np.zeros(len(A)), r"shape \(12,\) for 12 and 12 rows"),
    "a number": (lambda A, B: 1.0, r"shape \(\) for 12 and 12 rows"),
    "None": (lambda A, B: None, "values of dtype object; it needs to return real"),
    "nan": (lambda A, B: np.full((len(A), len(B)), NAN), "NaN or infinity; it needs to return finite"),
    "inf": (lambda A, B: np.full((len(A), len(B)), INF), "NaN or infinity; it needs to return finite"),
    "complex": (lambda A, B: np.full((len(A), len(B)), 1j), "values of dtype complex128; it needs to return real"),
    "strings": (lambda A, B: np.full((len(A), len(B)), "x"), "values of dtype .U1; it needs to return real"),
    "3-D": (lambda A, B: np.zeros((len(A), len(B), 1)), r"shape \(12, 12, 1\) for 12 and 12 rows"),
}


@pytest.mark.parametrize("name", BAD_KERNELS)
def test_callable_kernel_of_wrong_shape_or_values(name):
    kernel, sentence = BAD_KERNELS[name]
    refuse(None, "^the callable kernel returned " + sentence, kernel=kernel)


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
        one_sentence(error, "^the matrix of kernel 'precomputed' is not positive semidefinite")
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
        one_sentence(caught.value, f"^X has {width} columns; the model needs {needed} ")
    for bad, sentence in (
        (np.full((12, needed), NAN), "^X contains NaN or infinity"),
        (np.zeros(needed), "^X has 1 dimension.*give a 2-D array"),
        (np.full((12, needed), "x"), "^X has dtype .U1; give real numbers"),
        (None, "^X has 0 dimension.*give a 2-D array"),
    ):
        with pytest.raises((ValueError, TypeError)) as caught:
            METHODS[method](model, bad)
        one_sentence(caught.value, sentence)


def test_margins_and_score_check_their_labels():
    model = mdlearn.fit("ldm", X, Y)
    for call, labels, sentence in (
        (model.margins, Y[:-1], "^X has 12 rows but y has 11 labels"),
        (model.margins, np.full(12, 7), "^y holds the label 7 in row 0, which the model does not"),
        (model.score, Y[:-1], "^X has 12 rows but y has 11 labels"),
    ):
        with pytest.raises(ValueError) as caught:
            call(X, labels)
        one_sentence(caught.value, sentence)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_numbers_whose_squares_overflow(kernel):
    refuse(ValueError, "^X holds numbers .* squares overflow; scale the features", data=1e200 * X, kernel=kernel)


def test_a_polynomial_kernel_that_overflows():
    settings = {"kernel": "poly", "degree": 500, "gamma": 1.0}
    refuse(ValueError, "^values of the poly kernel overflow in row [0-9]+; scale", data=1e3 * X, **settings)
