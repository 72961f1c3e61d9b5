"""Validation of input by scikit-learn; wrong entries of X are told as `mdlearn.fit` tells them: with row and column."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import validate_data

from mdlearn.data.rows.arrays import check_rows


def validated_sklearn_input(estimator: Any, X: Any, *y: Any, **given: Any) -> Any:
    """Return what scikit-learn's `validate_data` returns; where an entry of X is wrong, the error names its place."""
    try:
        return validate_data(estimator, X, *y, **given)
    except (TypeError, ValueError) as error:
        told = _sklearn_entry_fault(X)
        if told is None:
            raise
        raise (TypeError(f"{told} ({error})") if isinstance(error, TypeError) else ValueError(told)) from None


def _sklearn_entry_fault(X: Any) -> str | None:
    """Fault of an entry of scikit-learn's input, with its place; None where something else is wrong."""
    try:
        check_rows(X)
    except (TypeError, ValueError) as error:
        return str(error) if " in row " in str(error) else None
    return None
