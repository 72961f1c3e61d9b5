"""Bad rows, labels and weights: one clear sentence, of the right type, before any long work."""

from __future__ import annotations

import numpy as np
import pytest
from error_cases import INF, NAN, X, Y, refuse

import mdlearn


def changed(array, place, value):
    copy = np.array(array, dtype=float)
    copy[place] = value
    return copy


# ---------------------------------------------------------------- X


NOT_FINITE = "^X contains NaN or infinity in row [0-9]+, column [0-9]; remove or impute such values first"
NO_NUMBERS = "^X holds values that are not numbers.*; encode them as numbers first"
BAD_X = {
    "nan": (changed(X, (3, 1), NAN), ValueError, NOT_FINITE),
    "inf": (changed(X, (3, 1), INF), ValueError, NOT_FINITE),
    "minus inf": (changed(X, (0, 0), -INF), ValueError, NOT_FINITE),
    "nan in the last row": (changed(X, (11, 2), NAN), ValueError, NOT_FINITE),
    "1-D": (X[:, 0], ValueError, r"^X has 1 dimension.*give a 2-D array of shape"),
    "3-D": (X[:, :, None], ValueError, r"^X has 3 dimension.*give a 2-D array of shape"),
    "0-D": (np.float64(3.0), ValueError, r"^X has 0 dimension.*give a 2-D array of shape"),
    "no rows": (np.zeros((0, 3)), ValueError, "^X has 0 rows; give at least one$"),
    "no columns": (np.zeros((12, 0)), ValueError, "^X has 0 columns; give at least one feature"),
    "complex": (X + 0j, None, "^X holds complex numbers; give real ones"),
    "strings": (X.astype(str), None, "^X has dtype .U32; give real numbers"),
    "words": (np.full((12, 3), "word"), None, "^X has dtype .U4; give real numbers"),
    "objects": (np.array([[1.0, "a", 2.0]] * 12, dtype=object), None, NO_NUMBERS),
    "none inside": (np.array([[1.0, None, 2.0]] * 12, dtype=object), None, NOT_FINITE),
    "ragged": ([[1.0, 2.0], [3.0]] * 6, None, "^X is not a rectangular array; give rows of equal length"),
    "dates": (np.full((12, 3), np.datetime64("2020-01-01")), None, r"^X has dtype datetime64\[D\]; give real numbers"),
    "None": (None, None, r"^X has 0 dimension.*give a 2-D array of shape"),
    "a dict": ({"a": [1, 2]}, None, r"^X is a dict, not an array of shape \(rows, columns\)$"),
}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", BAD_X)
def test_bad_rows(name, kernel):
    data, kind, sentence = BAD_X[name]
    labels = Y[: len(data)] if name == "no rows" else Y
    refuse(kind, sentence, data=data, labels=labels, kernel=kernel)


# ---------------------------------------------------------------- y


BAD_Y = {
    "too short": (Y[:-1], ValueError, "^X has 12 rows but y has 11 labels; give one label per row"),
    "too long": (np.append(Y, 1), ValueError, "^X has 12 rows but y has 13 labels; give one"),
    "one class": (
        np.ones(12),
        ValueError,
        r"^y has one class with positive weight \(1\.0\); .* needs at least two classes",
    ),
    "one string": (
        np.full(12, "only"),
        ValueError,
        r"^y has one class with positive weight \('only'\); .* needs at least two",
    ),
    "empty": (np.array([]), ValueError, "^X has 12 rows but y has 0 labels; give one label per row"),
    "nan": (changed(Y, 2, NAN), ValueError, "^y contains NaN or infinity in row 2; give a label for every row"),
    "inf": (changed(Y, 2, INF), ValueError, "^y contains NaN or infinity in row 2; give a label for every row"),
    "missing string": (
        np.array(["a", None] * 6, dtype=object),
        None,
        "^y contains missing values in row 1; give a label for every row",
    ),
    "mixed types": (
        np.array(["a", 1] * 6, dtype=object),
        None,
        r"^y mixes labels of types \['int', 'str'\]; use one type",
    ),
    "2-D": (np.column_stack([Y, Y]), ValueError, r"^y has 2 dimension.*give a 1-D array with one label per row"),
    "0-D": (1, ValueError, r"^y has 0 dimension.*give a 1-D array with one label per row"),
    "complex": (Y + 0j, None, "^y holds complex numbers; give real numbers, strings or booleans"),
    "None": (None, None, "^y is None; give one label per row of X"),
}


@pytest.mark.parametrize("name", BAD_Y)
def test_bad_labels(name):
    labels, kind, sentence = BAD_Y[name]
    refuse(kind, sentence, labels=labels)


# ---------------------------------------------------------------- weights


BAD_WEIGHTS = {
    "negative": (
        changed(np.ones(12), 4, -1.0),
        "^sample_weight contains the negative value -1 in row 4; weights count repetitions",
    ),
    "minus a little": (
        changed(np.ones(12), 4, -1e-300),
        "^sample_weight contains the negative value -1e-300 in row 4;",
    ),
    "nan": (changed(np.ones(12), 4, NAN), "^sample_weight contains NaN or infinity in row 4; give finite numbers >= 0"),
    "inf": (changed(np.ones(12), 4, INF), "^sample_weight contains NaN or infinity in row 4; give finite numbers >= 0"),
    "all zero": (np.zeros(12), "^sample_weight is zero everywhere; .* needs a positive weight"),
    "too short": (np.ones(11), r"^sample_weight has shape \(11,\); give one number per row, shape \(12,\)"),
    "too long": (np.ones(13), r"^sample_weight has shape \(13,\); give one number per row, shape \(12,\)"),
    "2-D": (np.ones((12, 1)), r"^sample_weight has shape \(12, 1\); give one number per row"),
    "words": (["a"] * 12, "^sample_weight holds values that are not real numbers in row 0; give one"),
    "complex": (np.ones(12) + 1j, "^sample_weight holds values that are not real numbers in row 0; give one"),
    "one class left": (
        np.where(Y > 0, 1.0, 0.0),
        r"^y has one class with positive weight \(1\); .* needs at least two classes",
    ),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", BAD_WEIGHTS)
def test_bad_weights(name):
    weight, sentence = BAD_WEIGHTS[name]
    refuse(None, sentence, sample_weight=weight)


BAD_CLASS_WEIGHTS = {
    "a word": ("equal", "^class_weight 'equal' is unknown; give 'balanced' or a mapping"),
    "a number": (2.0, "^class_weight needs to be 'balanced' or a mapping label -> factor"),
    "negative": ({1: -1.0}, r"^class_weight of label 1 is -1\.0; give a finite number >= 0"),
    "nan": ({1: NAN}, "^class_weight of label 1 is nan; give a finite number >= 0"),
    "inf": ({1: INF}, "^class_weight of label 1 is inf; give a finite number >= 0"),
    "all zero": (
        {1: 0.0, -1: 0.0},
        "^sample_weight times class_weight is zero everywhere; each class needs rows that count",
    ),
    "one class left": ({1: 0.0}, r"^y has one class with positive weight \(-1\); .* needs at least two classes"),
    "a word as factor": ({1: "much"}, "^class_weight of label 1 is 'much'; give a finite number >= 0"),
}


@pytest.mark.parametrize("name", BAD_CLASS_WEIGHTS)
def test_bad_class_weights(name):
    weight, sentence = BAD_CLASS_WEIGHTS[name]
    refuse(None, sentence, class_weight=weight)


def test_targets_of_regression_are_no_labels():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 2)), rng.standard_normal(60)
    with pytest.raises(ValueError, match="60 different numbers in 60 rows, which are targets of regression"):
        mdlearn.fit("svm", X, y)
    assert mdlearn.fit("svm", X, np.where(y > 0, 0.5, 1.5)).classes_.tolist() == [0.5, 1.5]
