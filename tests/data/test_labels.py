"""Labels as they are read: sorted classes, and the class of each row."""

import numpy as np
import pytest

from mdlearn.data.labels import check_labels, check_some_labels

NAMES = ["iris virginica", "iris setosa", "\U0001f33c iris", "\uffff", "iris setosa ", ""]


@pytest.mark.parametrize("length", [4, 8, 20])
def test_texts_are_sorted_by_code_points(length):
    y = np.array(NAMES)[np.arange(40) % len(NAMES)].astype(f"U{length}")
    classes, codes = check_labels(y, len(y))
    wanted, places = np.unique(y, return_inverse=True)
    assert classes.dtype == y.dtype and classes.tolist() == wanted.tolist()
    assert np.array_equal(codes, places)


def texts_of_variable_width(y, **missing):
    """Labels as NumPy's variable-width strings; skips where these are not known."""
    if not hasattr(np, "dtypes") or not hasattr(np.dtypes, "StringDType"):
        pytest.skip("NumPy has no variable-width strings")
    return np.array(y, dtype=object).astype(np.dtypes.StringDType(**missing))


def test_long_texts_of_variable_width():
    """Those of more than 15 bytes lie outside their array."""
    y = [f"class {k} of a long name" for k in (2, 0, 1, 0, 2)]
    classes, codes = check_labels(texts_of_variable_width(y), len(y))
    assert classes.tolist() == sorted(set(y)) and codes.tolist() == [2, 0, 1, 0, 2]
    some, places = check_some_labels(texts_of_variable_width([*y, np.nan], na_object=np.nan), len(y) + 1)
    assert some.tolist() == classes.tolist() and places.tolist() == [2, 0, 1, 0, 2, -1]


@pytest.mark.parametrize("missing", [None, np.nan])
def test_missing_texts_of_variable_width_are_no_labels(missing):
    y = texts_of_variable_width(["one", "two", missing], na_object=missing)
    with pytest.raises(ValueError, match="y contains missing values in row 2; give a label for every row"):
        check_labels(y, len(y))
