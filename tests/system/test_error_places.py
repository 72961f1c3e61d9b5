"""Errors about data name the row and the column: by number, in a data frame by name."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import mdlearn

pd = pytest.importorskip("pandas")

pytestmark = pytest.mark.extras

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 3)), np.arange(12) % 2


def spoilt(value, row=7, column=1):
    A = X.copy()
    A[row, column] = value
    return A


def frame(A):
    return pd.DataFrame(A, columns=["length", "width", "age"])


def objects(value):
    made = frame(X).astype(object)
    made.loc[7, "width"] = value
    return made


BAD_X = {
    "nan": (spoilt(np.nan), "X contains NaN or infinity in row 7, column 1; remove or impute"),
    "infinity, sparse": (sparse.csr_matrix(spoilt(np.inf)), "X contains NaN or infinity in row 7, column 1; remove"),
    "nan, frame": (frame(spoilt(np.nan)), "X contains NaN or infinity in row 7, column 'width'; remove or impute"),
    "large": (
        frame(spoilt(1e200)),
        "X holds numbers of size 1e[+]200 in row 7, column 'width', whose squares overflow",
    ),
    "masked": (np.ma.masked_invalid(spoilt(np.nan)), "X has masked entries in row 7, column 1; remove or impute"),
    "a word": (
        objects("tall"),
        "X holds values that are not numbers in row 7, column 'width' [(]'tall'[)]; encode them",
    ),
    "a list with a word": (
        [[1.0, 2.0], [3.0, "tall"], [0.0, 1.0]] * 4,
        "X has dtype <U32; give real numbers, not 'tall' in row 1, column 1",
    ),
    "rows of different lengths": (
        [[1.0, 2.0], [3.0, 4.0], [0.0]] * 4,
        "X is not a rectangular array; give rows of equal length; row 2 has 1 entries, the one before 2$",
    ),
    "NA": (objects(pd.NA), "X contains missing values in row 7, column 'width'; remove or impute such values first"),
    "NaT": (objects(pd.NaT), "X contains missing values in row 7, column 'width'; remove or impute such values first"),
}


@pytest.mark.parametrize("name", BAD_X)
@pytest.mark.parametrize("where", ["fit", "predict", "blocks"])
def test_rows(where, name):
    data, told = BAD_X[name]
    with pytest.raises((ValueError, TypeError), match=("^block 1: " if where == "blocks" else "^") + told):
        if where == "fit":
            mdlearn.fit("svm", data, Y)
        elif where == "predict":
            mdlearn.fit("svm", X, Y).predict(data)
        else:
            mdlearn.fit("svm", [(X, Y), (data, Y)], None)


@pytest.mark.parametrize("name", ["nan", "infinity, sparse", "nan, frame", "a word", "NA", "NaT", "a list with a word"])
@pytest.mark.parametrize("method", ["fit", "predict", "partial_fit"])
def test_rows_of_estimators(method, name):
    """scikit-learn's validation comes first there, and says neither row nor column."""
    from mdlearn.sklearn import SVMClassifier

    data, told = BAD_X[name]
    good = frame(X) if hasattr(data, "columns") else X
    with pytest.raises((ValueError, TypeError), match=told):
        if method == "fit":
            SVMClassifier().fit(data, Y)
        elif method == "predict":
            SVMClassifier().fit(good, Y).predict(data)
        else:
            SVMClassifier(solver="asgd").partial_fit(data, Y, classes=[0, 1])


def test_gram_matrices():
    K = X @ X.T
    K[3, 8] += 1.0
    with pytest.raises(ValueError, match=r"is not symmetric; give K with .*, which row 3, column 8 is not$"):
        mdlearn.fit("svm", K, Y, kernel="precomputed")


def test_many_rows():
    """The first of several, beyond the first block of rows."""
    A = np.zeros((400_000, 3))
    A[399_990, 2] = A[399_995, 0] = np.nan
    with pytest.raises(ValueError, match="in row 399990, column 2;"):
        mdlearn.fit("svm", A, np.arange(400_000) % 2)


BAD_WEIGHT = {
    "negative": (-2.0, "sample_weight contains the negative value -2 in row 5; weights count repetitions, give >= 0"),
    "nan": (np.nan, "sample_weight contains NaN or infinity in row 5; give finite numbers >= 0"),
}


@pytest.mark.parametrize("name", BAD_WEIGHT)
def test_weights(name):
    value, told = BAD_WEIGHT[name]
    weight = np.ones(12)
    weight[5] = value
    with pytest.raises(ValueError, match=f"^{told}$"):
        mdlearn.fit("svm", X, Y, sample_weight=weight)


def test_words_among_weights():
    with pytest.raises(TypeError, match=r"^sample_weight holds values that are not real numbers in row 5; give one"):
        mdlearn.fit("svm", X, Y, sample_weight=[1.0] * 5 + ["two"] + [1.0] * 6)


def test_labels_of_two_types():
    with pytest.raises(TypeError, match=r"^y mixes labels of types \['int', 'str'\]; use one type: row 2 has another"):
        mdlearn.fit("svm", X, np.array(["a", "b", 1] * 4, dtype=object))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_missing_labels(missing):
    labels = np.array(["a", "b"] * 6, dtype=object)
    labels[4] = missing
    with pytest.raises(ValueError, match=r"^y contains missing values in row 4; give a label for every row$"):
        mdlearn.fit("svm", X, labels)


@pytest.mark.parametrize(
    "labels", [pd.to_datetime(["2020-01-01", None] * 6), np.array(["2020-01-01", "NaT"] * 6, "M8[D]")]
)
def test_missing_dates(labels):
    with pytest.raises(ValueError, match=r"^y contains missing values in row 1; give a label for every row$"):
        mdlearn.fit("svm", X, labels)


def test_labels_that_the_model_never_saw():
    """Accuracy would count them as wrong without a word."""
    model, strange = mdlearn.fit("svm", X, Y), np.where(np.arange(12) == 3, 5, Y)
    told = r"^y holds the label 5 in row 3, which the model does not know; \[0, 1\]$"
    for judge in (model.score, model.margins):
        with pytest.raises(ValueError, match=told):
            judge(X, strange)
    with pytest.raises(ValueError, match=told):
        mdlearn.fit_path("svm", X, Y, {"C": [1.0, 2.0]}).score(X, strange)
    assert model.score(X, Y) == np.mean(model.predict(X) == Y)


def test_columns_that_are_spelt_otherwise():
    model = mdlearn.fit("svm", frame(X), Y)
    with pytest.raises(
        ValueError, match=r"the model was fitted on \['length', 'width', 'age'\]; did you mean 'width'[?]$"
    ):
        model.predict(frame(X).rename(columns={"width": "widht"}))
