"""Validation of input, once, at the door: X (in `arrays`), y (in `labels`), weights and plain numbers."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.labels import (
    check_classes,
    check_label_indicators,
    check_labels,
    check_no_targets,
    check_some_labels,
    check_targets,
)
from mdlearn.data.rows.arrays import check_rows, first_word_in_array, selected_rows
from mdlearn.data.rows.object_rows import ObjectRows
from mdlearn.data.rows.rows import DenseRows, Rows
from mdlearn.errors import did_you_mean
from mdlearn.numerics.frozen_init import READ_ONLY, quick_init
from mdlearn.numerics.lazy_property import kept

SIGNS_OF_CODES = np.array([-1.0, 1.0])
"""Signs of the rows of two classes."""


@quick_init
@dataclass(frozen=True)
class Data:
    """Data for training after validation; rows of weight zero are gone, and `rows` has the numbers of those left.

    Nobody can write to its arrays: code of plugins reads them, and certificates are made of them.

    Attributes
    ----------
    X : Rows of shape (m, d)
        Rows of positive weight. With a precomputed kernel, the (m, m) Gram matrix.
    codes : ndarray of shape (m,), intp
        Index of each row's class in `classes`; -1 where it is unknown, 0 where a row has several labels.
    counts : ndarray of shape (m,), float64
        Sample weight times class weight: how often a row counts.
    classes : ndarray of shape (k,)
        Sorted labels, k >= 2; none for regression and for rows without labels, where all codes are 0.
    rows : ndarray of shape (m,), intp
        Position of each row in the caller's X.
    n_given : int
        Number of the caller's rows.
    names : tuple of str, or None
        Column names of a data frame.
    targets : ndarray of shape (m,), float64, or None
        Numbers to be met, for regression.
    indicators : ndarray of shape (m, k), bool, or None
        Which of the labels in `classes` each row has, where it may have several.
    partial : bool
        Whether labels may be unknown.
    """

    X: Rows
    codes: np.ndarray = field(metadata=READ_ONLY)
    counts: np.ndarray = field(metadata=READ_ONLY)
    classes: np.ndarray
    rows: np.ndarray = field(metadata=READ_ONLY)
    n_given: int
    names: tuple[str, ...] | None
    targets: np.ndarray | None = field(default=None, metadata=READ_ONLY)
    indicators: np.ndarray | None = field(default=None, metadata=READ_ONLY)
    partial: bool = False

    @kept
    def total(self) -> float:
        """m: the sum of all counts."""
        return float(self.counts.sum())

    @property
    def several(self) -> bool:
        """Whether each class, or label, has a binary problem of its own; two classes share one."""
        return self.indicators is not None or self.classes.shape[0] > 2

    def first_signs(self) -> np.ndarray:
        """Signs of the only binary problem, or of the first of several."""
        if self.targets is not None:
            return np.ones(self.targets.shape[0])
        if self.indicators is not None or self.partial:
            return self.signs()[0]
        if self.classes.shape[0] == 2:
            return SIGNS_OF_CODES.take(self.codes)
        return np.where(self.codes == 0, 1.0, -1.0)

    def signs(self, *, unknown: float | None = None) -> list[np.ndarray]:
        """Signs of the binary problems: of the second class, of each of several against the rest; else ones.

        Parameters
        ----------
        unknown : float, optional
            What stands in the place of a sign where the label is unknown.

        Raises
        ------
        TypeError
            Where labels may be unknown, and nothing stands for a sign there.
        """
        if self.targets is not None:
            return [np.ones(self.targets.shape[0])]
        if self.indicators is not None:
            return [np.where(has, 1.0, -1.0) for has in self.indicators.T]
        if self.partial and unknown is None:
            raise TypeError("rows of unknown labels have no sign; an objective of such rows writes its form by codes")
        k = self.classes.shape[0]
        found = [np.where(self.codes == positive, 1.0, -1.0) for positive in ([1] if k == 2 else range(max(k, 1)))]
        return found if unknown is None else [np.where(self.codes < 0, unknown, y) for y in found]

    def truth(self) -> np.ndarray:
        """Return y as it was read: numbers, labels (any where unknown), 0 and 1 of each label, or ones without y."""
        if self.targets is not None:
            return self.targets
        if self.indicators is not None:
            return self.indicators.astype(np.intp)
        return self.classes[self.codes] if self.classes.shape[0] else np.ones(self.codes.shape[0])

    def class_counts(self, rows: np.ndarray) -> np.ndarray:
        """Return how many of some rows are of each class, or have each label; all in one number without classes."""
        if self.indicators is not None:
            return self.indicators[rows].sum(axis=0)
        codes = self.codes.take(rows)
        return np.bincount(codes[codes >= 0] if self.partial else codes, minlength=max(self.classes.shape[0], 1))


def validated_column_names(X: Any) -> tuple[str, ...] | None:
    """Column names of an input X in validation, where it is a pandas or polars frame and all are strings, else None."""
    columns = getattr(X, "columns", None)
    if columns is None:
        return None
    names = tuple(columns)
    return names if all(isinstance(name, str) for name in names) else None


def check_weights(sample_weight: Any, n_rows: int) -> np.ndarray:
    """Validate sample weights: return them as float64 counts; None means one each.

    ValueError for a wrong length, NaN, infinity, a negative weight, or no positive weight.
    """
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        if np.asarray(sample_weight).dtype.kind == "c":
            raise TypeError
        w = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        found = first_word_in_array(sample_weight)
        at = "" if found is None else f" in row {found}"
        raise TypeError(f"sample_weight holds values that are not real numbers{at}; give one number per row") from None
    if w.ndim == 0:
        w = np.full(n_rows, float(w))
    if w.shape != (n_rows,):
        raise ValueError(f"sample_weight has shape {w.shape}; give one number per row, shape ({n_rows},)")
    finite = np.isfinite(w)
    if not finite.all():
        row = int(finite.argmin())
        raise ValueError(f"sample_weight contains NaN or infinity in row {row}; give finite numbers >= 0")
    if (w < 0).any():
        row = int(w.argmin())
        raise ValueError(
            f"sample_weight contains the negative value {w[row]:g} in row {row}; weights count repetitions, give >= 0"
        )
    if not (w > 0).any():
        raise ValueError("sample_weight is zero everywhere; at least one row per class needs a positive weight")
    return w


def validate_class_factors(
    class_weight: Any, classes: np.ndarray, codes: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Validate `class_weight`, a mapping or 'balanced': return the factor of each class for sample weights.

    'balanced' is sum(w) / (k * weighted count of the class), where k counts the classes of positive weight.
    """
    k = classes.shape[0]
    if class_weight is None:
        return np.ones(k)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            hint = did_you_mean(class_weight, ["balanced"])
            raise ValueError(
                f"class_weight {class_weight!r} is unknown; give 'balanced' or a mapping label -> factor{hint}"
            )
        per_class = np.bincount(codes, weights=weights, minlength=k)
        there = per_class > 0
        return np.divide(weights.sum(), np.count_nonzero(there) * per_class, out=np.ones(k), where=there)
    if not hasattr(class_weight, "items"):
        raise TypeError("class_weight needs to be 'balanced' or a mapping label -> factor")
    known = {label: position for position, label in enumerate(classes.tolist())}
    factors = np.ones(k)
    for label, given in class_weight.items():
        factor = _scalar_to_validate(given)
        if label not in known:
            raise ValueError(f"class_weight names the label {label!r}, which is not in y; labels: {list(known)}")
        if not isinstance(factor, numbers.Real) or not math.isfinite(factor) or factor < 0:
            raise ValueError(f"class_weight of label {label!r} is {factor!r}; give a finite number >= 0")
        factors[known[label]] = float(factor)
    return factors


def check_data(X: Any, y: Any, sample_weight: Any, class_weight: Any, *, square: bool) -> Data:
    """Validate the input of a classification, once; `square` says that X is a precomputed Gram matrix."""
    plain = type(X) is np.ndarray and not square
    names, A = (None, check_rows(X)) if plain else _validate_input_rows(X, square)
    m = A.shape[0]
    classes, codes = check_labels(y, m)
    if sample_weight is None and class_weight is None:
        if classes.shape[0] != 2:
            check_classes(classes, partial(np.bincount, codes), m)
            _validate_two_classes(classes)
        rows, ones = np.arange(m), np.empty(m)
        ones.fill(1.0)
        data = Data(_rows_of_positive_weight(A, rows, True) if square else A, codes, ones, classes, rows, m, names)
        vars(data)["total"] = float(m)
        return data
    weights = check_weights(sample_weight, m)
    check_classes(classes, partial(np.bincount, codes, weights=weights, minlength=classes.shape[0]), m)
    counts = weights * validate_class_factors(class_weight, classes, codes, weights)[codes]
    rows = np.flatnonzero(counts > 0)
    present = np.flatnonzero(np.bincount(codes[rows]))
    if not rows.shape[0]:
        raise ValueError("sample_weight times class_weight is zero everywhere; each class needs rows that count")
    _validate_two_classes(classes[present])
    codes = np.searchsorted(present, codes[rows])
    return Data(_rows_of_positive_weight(A, rows, square), codes, counts[rows], classes[present], rows, m, names)


def _validate_two_classes(classes: np.ndarray, among: str = "") -> None:
    """Validate classes: raise ValueError unless there are two whose rows count."""
    if classes.shape[0] < 2:
        found = ", ".join(repr(c) for c in classes.tolist())
        told = f"one class{among} with positive weight ({found})" if found else f"no class{among} with positive weight"
        raise ValueError(f"y has {told}; a classifier needs at least two classes")


def validate_regression(X: Any, y: Any, sample_weight: Any, class_weight: Any, *, square: bool) -> Data:
    """Validate the input of a regression, once; `square` says that X is a precomputed Gram matrix."""
    if class_weight is not None:
        raise ValueError(f"class_weight {class_weight!r} is for classifiers; regression has sample_weight")
    names, A = _validate_input_rows(X, square)
    m = A.shape[0]
    targets, counts = check_targets(y, m), check_weights(sample_weight, m)
    rows = np.flatnonzero(counts > 0)
    none = np.empty(0)
    codes = np.zeros(rows.shape[0], dtype=np.intp)
    return Data(_rows_of_positive_weight(A, rows, square), codes, counts[rows], none, rows, m, names, targets[rows])


def validate_partly_labelled(X: Any, y: Any, sample_weight: Any, class_weight: Any, *, square: bool) -> Data:
    """Validate the input of a semi-supervised task, once; `square` as for `check_data`.

    A class weight is for the rows that are known to be of the class.
    """
    names, A = _validate_input_rows(X, square)
    m = A.shape[0]
    classes, codes = check_some_labels(y, m)
    counts, known = check_weights(sample_weight, m), np.flatnonzero(codes >= 0)
    check_classes(classes, partial(np.bincount, codes[known], weights=counts[known], minlength=classes.shape[0]), m)
    counts[known] *= validate_class_factors(class_weight, classes, codes[known], counts[known])[codes[known]]
    rows = np.flatnonzero(counts > 0)
    codes = codes[rows]
    present = np.flatnonzero(np.bincount(codes[codes >= 0], minlength=1))
    _validate_two_classes(classes[present], " of known labels")
    codes = np.where(codes < 0, -1, np.searchsorted(present, codes))
    kept_rows = _rows_of_positive_weight(A, rows, square)
    return Data(kept_rows, codes, counts[rows], classes[present], rows, m, names, partial=True)


def validate_multi_label(X: Any, y: Any, sample_weight: Any, class_weight: Any, *, square: bool) -> Data:
    """Validate the input of a multi-label task, once: y is a matrix of 0 and 1; `square` as for `check_data`."""
    if class_weight is not None:
        raise ValueError(f"class_weight {class_weight!r} is for rows of one class each; rows have sample_weight")
    names, A = _validate_input_rows(X, square)
    m = A.shape[0]
    (labels, indicators), counts = check_label_indicators(y, m), check_weights(sample_weight, m)
    rows = np.flatnonzero(counts > 0)
    codes = np.zeros(rows.shape[0], dtype=np.intp)
    kept_rows = _rows_of_positive_weight(A, rows, square)
    return Data(kept_rows, codes, counts[rows], labels, rows, m, names, indicators=indicators[rows])


def validate_unlabelled(X: Any, y: Any, sample_weight: Any, class_weight: Any, *, square: bool) -> Data:
    """Validate the input of a task without labels, once: y is None, or ones; `square` as for `check_data`."""
    if class_weight is not None:
        raise ValueError(f"class_weight {class_weight!r} is for classifiers; rows without labels have sample_weight")
    names, A = _validate_input_rows(X, square)
    m = A.shape[0]
    check_no_targets(y, m)
    counts = check_weights(sample_weight, m)
    rows = np.flatnonzero(counts > 0)
    codes = np.zeros(rows.shape[0], dtype=np.intp)
    return Data(_rows_of_positive_weight(A, rows, square), codes, counts[rows], np.empty(0), rows, m, names)


def _validate_input_rows(X: Any, square: bool) -> tuple[tuple[str, ...] | None, Rows]:
    """Validate the input X: return column names and checked rows."""
    names = None if square else validated_column_names(X)
    A = X if isinstance(X, ObjectRows) else check_rows(X)
    if square and A.sparse:
        raise TypeError("a precomputed kernel needs a dense matrix; give X.toarray()")
    if square and A.shape[0] != A.shape[1]:
        raise ValueError(f"a precomputed kernel needs a square matrix of shape (m, m) at fit; X has shape {A.shape}")
    return names, A


def _rows_of_positive_weight(A: Rows, rows: np.ndarray, square: bool) -> Rows:
    """Rows of positive weight, kept by the validation; of a Gram matrix, which has to be symmetric, also columns."""
    if rows.shape[0] < A.shape[0]:
        A = DenseRows(A.X[np.ix_(rows, rows)]) if isinstance(A, DenseRows) and square else selected_rows(A, rows)
    if isinstance(A, DenseRows) and square:
        validate_precomputed_gram(A.X)
    return A


def validate_precomputed_gram(G: np.ndarray) -> None:
    """Validate a Gram matrix given as X: raise ValueError unless it is symmetric up to rounding."""
    scale = float(np.abs(np.diagonal(G)).max())
    # Products in float32 need not round (i, j) and (j, i) alike.
    rounding = max(1e-8, 8.0 * float(np.finfo(G.dtype).eps))
    for start in range(0, G.shape[0], 512):
        rows = slice(start, start + 512)
        for first in range(0, start + 1, 512):
            columns = slice(first, first + 512)
            apart = G[rows, columns] - G[columns, rows].T
            most = float(np.abs(apart, out=apart).max())
            if most > rounding * scale and most > rounding * float(np.abs(G[rows]).max()):
                i, j = np.unravel_index(int(apart.argmax()), apart.shape)
                raise ValueError(
                    "the precomputed kernel matrix is not symmetric; give K with K[i, j] = k(x_i, x_j), which row "
                    f"{start + int(i)}, column {first + int(j)} is not"
                )


def check_number(
    value: Any,
    name: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    strict: bool = False,
    integer: bool = False,
) -> Any:
    """Validate a number that the caller gave: return it as float (or int) if within its bounds, else raise an error.

    Raises
    ------
    TypeError, ValueError
        One sentence that names the parameter, its bounds and the value.
    """
    if not (type(value) is int or (type(value) is float and not integer)):  # the usual ones need no look at classes
        value, accepted = _scalar_to_validate(value), numbers.Integral if integer else numbers.Real
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, accepted):
            raise TypeError(f"{_text_of_number_validation(name, low, high, strict, integer)}; got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        wanted = _text_of_number_validation(name, low, high, strict, integer)
        raise ValueError(f"{wanted}; got a number too large for float64") from None
    if math.isnan(number) or number < low or number > high or (strict and number == low):
        raise ValueError(f"{_text_of_number_validation(name, low, high, strict, integer)}; got {value!r}")
    return int(number) if integer else number


def _scalar_to_validate(value: Any) -> Any:
    """Value whose validation is due: what an array without dimensions holds, anything else as it is."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _text_of_number_validation(name: str, low: float, high: float, strict: bool, integer: bool) -> str:
    """Text of a failed validation of a number: a number or an integer is needed, and its bounds."""
    bound = "" if low == -math.inf else f" {'>' if strict else '>='} {low:g}"
    if high < math.inf:
        below = float(f"{high:g}") > high  # such as the largest number below 1, which is written as 1
        bound += " and finite" if high >= np.finfo(float).max else f" and {'<' if below else '<='} {high:g}"
    return f"{name} needs to be {'an integer' if integer else 'a number'}{bound}"
