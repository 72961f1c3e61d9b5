"""Validation of y: labels of classes, of which some may be unknown or several true, and targets of a regression."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from mdlearn._solvers import reading
from mdlearn.data.rows.arrays import first_word_in_array
from mdlearn.data.rows.rows import steps

WIDE_LABELS = {**dict.fromkeys("?bBhHiIlq", np.dtype(np.int64)), **dict.fromkeys("efd", np.dtype(np.float64))}
"""Types of labels, as NumPy's characters, of which one pass over a wider type tells whether there are two."""
SORTED_LABELS = 1 << 16
"""Labels that are sorted at once: texts take a second per million."""
LONG_TEXT = 8
"""Characters from which texts are sorted without their repetitions: 60 to 20,000 of 8 to 27 characters, 3 to 200 of
them different, take 0.8 to 0.2 of the time of a sort of all, those of up to 4 characters 0.6 to 3 times as long."""
LARGEST_TARGET = 1e150
"""Targets beyond this have squares near the largest number."""
FEWEST_ROWS_OF_REGRESSION = 40
"""Rows from which on fractions that are nearly all different are no labels."""


def _check_label_shape(y: Any, n_rows: int, what: str) -> np.ndarray:
    """Validate the shape of y, returned as 1-D array: TypeError or ValueError unless each row of X has one label."""
    if y is None:
        raise TypeError(f"y is None; give one {what} per row of X")
    given = _label_array(y, f"one {what} for every row")
    if given.ndim != 1:
        raise ValueError(f"y has {given.ndim} dimension(s); give a 1-D array with one {what} per row")
    if given.shape[0] != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {given.shape[0]} {what}s; give one {what} per row")
    return given


def _label_array(y: Any, needed: str) -> np.ndarray:
    """Return y as an array, of any shape, in validation; ValueError for masked entries and unequal lengths.

    NumPy's variable-width strings are given as objects: `searchsorted` mistakes those of another array.
    """
    if isinstance(y, np.ma.MaskedArray) and np.ma.is_masked(y):
        raise ValueError(f"y has masked entries; give {needed}")
    try:
        found = np.asarray(y.to_numpy() if hasattr(y, "to_numpy") and not isinstance(y, np.ndarray) else y)
    except ValueError:
        raise ValueError(f"y holds sequences of different lengths; give {needed}") from None
    return found.astype(object) if found.dtype.kind == "T" else found


def check_no_missing_label(y: np.ndarray, what: str) -> None:
    """Validate y: raise ValueError where it has a missing or infinite label or number; it names the row."""
    if y.dtype.kind == "O":
        there = np.array([not _is_missing_label(one) for one in y.tolist()], dtype=bool)
    elif y.dtype.kind in "mM":
        there = ~np.isnat(y)
    elif y.dtype.kind == "f":
        there = np.isfinite(y)
    else:
        return
    if not there.all():
        row = int(there.argmin())
        kind = "NaN or infinity" if y.dtype.kind == "f" else "missing values"
        raise ValueError(f"y contains {kind} in row {row}; give a {what} for every row")


def _is_missing_label(label: Any) -> bool:
    """Whether a label is missing in the validation of y: None, NaN, NaT or NA."""
    try:
        return label is None or bool(label != label)
    except TypeError:  # pandas' NA has no truth value
        return True


def check_labels(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Validate labels: return (sorted classes, class index of each row).

    TypeError or ValueError when y is missing, not one-dimensional, of another length than X, holds NaN or fewer than
    two labels.
    """
    plain = type(y) is np.ndarray and y.shape == (n_rows,) and y.dtype.kind != "T"
    labels: np.ndarray = y if plain else _check_label_shape(y, n_rows, "label")
    wide = WIDE_LABELS.get(labels.dtype.char)
    if n_rows and wide is not None:
        codes = np.empty(n_rows, dtype=np.intp)
        two = reading.two_labels(labels.astype(wide, copy=False), codes)
        if two is not None:
            return np.array(two, dtype=labels.dtype), codes
    if labels.dtype.kind == "c":
        raise TypeError("y holds complex numbers; give real numbers, strings or booleans")
    check_no_missing_label(labels, "label")
    if labels.dtype.kind == "O":
        kinds = {type(label) for label in labels.tolist()}
        if len(kinds) > 1 and not all(issubclass(kind, numbers.Real) for kind in kinds):
            row = next(i for i, label in enumerate(labels) if type(label) is not type(labels[0]))
            told = sorted(kind.__name__ for kind in kinds)
            raise TypeError(f"y mixes labels of types {told}; use one type: row {row} has another one than row 0")
        labels = np.array(labels.tolist())
    return _labels_to_codes(labels)


def check_some_labels(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Validate labels of which some are unknown: return (sorted classes, class index of each row, -1 where unknown).

    Errors are those of `check_labels`, and one for -1 among numbers with a fraction part where none is NaN.
    """
    classes, codes, floats = read_some_labels(y, n_rows)
    if floats and (codes >= 0).all() and (classes == -1.0).any():
        row = int((classes[codes] == -1.0).argmax())
        raise ValueError(
            f"y holds floats, -1 in row {row} and no NaN; give NaN where the label is unknown, or whole numbers"
        )
    return classes, codes


def read_some_labels(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray, bool]:
    """Validate labels of some rows among others: return what `check_some_labels` does, and whether y holds floats.

    Unknown is -1 among whole numbers, NaN among other numbers, and -1, NaN or None among objects.
    """
    labels = _check_label_shape(y, n_rows, "label (-1 where it is unknown)")
    if labels.dtype.kind == "O":
        unknown = np.array([_is_missing_label(one) or _is_minus_one_label(one) for one in labels.tolist()], dtype=bool)
    elif labels.dtype.kind == "f":
        unknown = np.isnan(labels)
    else:
        unknown = labels == -1 if labels.dtype.kind in "iu" else np.zeros(n_rows, dtype=bool)
    codes = np.full(n_rows, -1, dtype=np.intp)
    classes, codes[~unknown] = check_labels(labels[~unknown], int(np.count_nonzero(~unknown)))
    return classes, codes, labels.dtype.kind == "f"


def _is_minus_one_label(label: Any) -> bool:
    """Whether a label, an object, is the number that stands for unknown in the validation of y."""
    return isinstance(label, numbers.Real) and not isinstance(label, (bool, np.bool_)) and label == -1


def check_label_indicators(y: Any, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Validate a matrix that says which of several labels each row has: return (names of the columns, bool (m, k)).

    Names are those of a data frame whose columns are sorted strings; else the numbers of the columns. TypeError or
    ValueError when y is missing, has another shape than (m, k) with k >= 2, or holds anything but 0 and 1.
    """
    if y is None:
        raise TypeError("y is None; give a matrix with one row per row of X and a 1 for every label that it has")
    columns = list(getattr(y, "columns", []))
    given = y.toarray() if hasattr(y, "tocsr") else _label_array(y, "a matrix of 0 and 1")
    if given.ndim != 2 or given.shape[0] != n_rows or given.shape[1] < 2:
        raise ValueError(
            f"y has the shape {given.shape}; give a matrix of 0 and 1 with a row per row of X, {n_rows}, and a column "
            "for each of two or more labels"
        )
    if given.dtype.kind not in "buif":
        raise TypeError(f"y holds values of dtype {given.dtype}; give a matrix of 0 and 1")
    wrong = (given != 0) & (given != 1)
    if wrong.any():
        row, column = (int(place) for place in np.argwhere(wrong)[0])
        raise ValueError(
            f"y holds {given[row, column].item()!r} in row {row}, column {column}; give a matrix of 0 and 1"
        )
    named = all(isinstance(name, str) for name in columns) and columns == sorted(set(columns)) and columns
    return np.array(columns) if named else np.arange(given.shape[1]), given == 1


def _distinct_labels(labels: np.ndarray) -> np.ndarray:
    """Labels without repetitions, sorted."""
    if labels.dtype.kind == "U" and labels.itemsize >= LONG_TEXT * np.dtype("U1").itemsize:
        return np.array(sorted(set(labels.tolist())), dtype=labels.dtype)
    return np.unique(labels)


def _labels_to_codes(labels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Classes found in the validation of labels, sorted, and the class index of each row, in pieces."""
    parts = list(steps(labels.shape[0], SORTED_LABELS))
    found = [_distinct_labels(labels[part]) for part in parts] or [labels]
    classes = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
    codes = np.empty(labels.shape[0], dtype=np.intp)
    for part in parts:
        codes[part] = np.searchsorted(classes, labels[part])
    return classes, codes


def check_model_labels(labels: np.ndarray, codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Validate labels found by `check_labels` against a model's classes: return each row's class, or ValueError."""
    place = {label: i for i, label in enumerate(classes.tolist())}
    found = np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)[codes]
    if (found < 0).any():
        row = int((found < 0).argmax())
        strange = labels.tolist()[codes[row]]
        raise ValueError(f"y holds the label {strange!r} in row {row}, which the model does not know; {list(place)}")
    return found


def check_classes(classes: np.ndarray, weigh: Callable[[], np.ndarray], n_rows: int) -> None:
    """Validate classes: ValueError where labels are fractions that nearly all differ; `weigh` returns their weights."""
    if classes.dtype.kind != "f" or 2 * classes.shape[0] <= FEWEST_ROWS_OF_REGRESSION:
        return
    totals = weigh()
    named = classes[totals > 0]
    size = max(float(n_rows), float(totals.sum()))  # so that repeated rows are judged as weights are
    if 2 * named.shape[0] > max(size, FEWEST_ROWS_OF_REGRESSION) and (named != np.rint(named)).any():
        raise ValueError(
            f"y holds {named.shape[0]} different numbers in {n_rows} rows, which are targets of regression rather than "
            "labels of classes; give one label per class"
        )


def check_no_targets(y: Any, n_rows: int) -> None:
    """Check the y of rows without labels: None, or ones; ValueError for another number."""
    others = np.zeros(0, dtype=bool) if y is None else check_targets(y, n_rows) != 1.0
    if others.any():
        row = int(others.argmax())
        raise ValueError(f"y holds another number than 1 in row {row}; this objective takes rows alone, y=None or ones")


def check_targets(y: Any, n_rows: int) -> np.ndarray:
    """Validate the targets of a regression: return them as float64.

    TypeError or ValueError when y is missing, not one-dimensional, of another length than X, or holds anything but
    finite numbers.
    """
    given = _check_label_shape(y, n_rows, "number")
    check_no_missing_label(given, "finite number")
    try:
        if given.dtype.kind not in "buifO":
            raise TypeError
        targets = given.astype(np.float64)
    except (TypeError, ValueError):
        found = first_word_in_array(given)
        at = "" if found is None else f", row {found} does not hold one"
        raise TypeError(f"y holds values of dtype {given.dtype}; regression needs real numbers{at}") from None
    if targets.shape[0] and float(np.abs(targets).max()) > LARGEST_TARGET:
        row = int(np.abs(targets).argmax())
        raise ValueError(f"y holds {targets[row]:.3g} in row {row}, whose square overflows; scale the targets")
    return targets
