"""Labels as they are read: sorted classes, and the class of each row."""

import numpy as np
import pytest

import mdlearn
from mdlearn.data.labels import check_labels, check_some_labels
from mdlearn.extend import HingeTerm, Terms
from mdlearn.model.task import READERS

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


Y_OF_TASKS = {
    "labels": [0, 1, 1, 0],
    "numbers": [0.5, 1.0, -2.0, 3.0],
    "none": None,
    "some labels": [0, -1, 1, 0],
    "indicators": [[0, 1], [1, 1], [0, 0], [1, 0]],
}


@pytest.mark.parametrize("weight", [None, [1.0, 2.0, 0.0, 1.0], [1.0, 2.0, 1.0, 1.0]], ids=str)
@pytest.mark.parametrize("y", Y_OF_TASKS)
def test_nobody_writes_to_data(y, weight):
    if y == "some labels" and weight is not None:
        weight = [1.0, 2.0, 3.0, 0.0]
    given = None if Y_OF_TASKS[y] is None else np.array(Y_OF_TASKS[y])
    data = READERS[y](np.arange(8.0).reshape(4, 2), given, weight, None, square=False)
    for name in ("codes", "counts", "rows", "targets", "indicators"):
        values = getattr(data, name)
        assert values is None or not values.flags.writeable
    assert given is None or given.flags.writeable


@pytest.mark.parametrize("name", ["counts", "codes"])
@pytest.mark.parametrize("blocks", [False, True], ids=["rows", "blocks"])
def test_an_objective_that_writes_to_data_is_told_so(name, blocks):
    class Writes(mdlearn.Objective):
        name = "writes"
        summary = "for tests"

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(1.0),))

        def row_terms(self, data, params):
            getattr(data, name)[:2] = 1

        def needs_all_rows(self, params):
            return ""

    X, y = np.arange(16.0).reshape(8, 2), np.arange(8) % 2
    with pytest.raises(ValueError, match="read-only") as caught:
        mdlearn.fit(Writes, *(([(X, y)], None) if blocks else (X, y)))
    assert caught.value.__notes__ == ["(raised in Writes.row_terms: objective 'writes')"]
