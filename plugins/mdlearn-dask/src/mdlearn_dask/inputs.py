"""From Dask's collections to delayed blocks (X, y) or (X, y, weight)."""

import dask
from dask.delayed import Delayed


def known(X):
    """Whether X is a Dask array, a Dask data frame, or a list of delayed blocks."""
    if isinstance(X, list | tuple):
        return bool(X) and all(isinstance(one, Delayed) for one in X)
    return dask.is_dask_collection(X) and hasattr(X, "to_delayed")


def delayed_blocks(X, y, weight):
    """Delayed tuples, one per block of rows.

    Parameters
    ----------
    X : dask array of shape (m, d), dask data frame, or list of Delayed
        A list holds blocks (X, y) or (X, y, weight) as they are; y and weight are then None.
    y : dask array or series of shape (m,), str, array-like or None
        A text names the column of a data frame.
    weight : dask array or series of shape (m,), array-like or None

    Returns
    -------
    list of Delayed

    Raises
    ------
    TypeError, ValueError
        For another kind of X, or y and weight that do not go with it.
    """
    if not known(X):
        raise TypeError(f"X needs to be a Dask array, a Dask data frame or a list of delayed blocks; got {_kind(X)}")
    if isinstance(X, list | tuple):
        if y is not None or weight is not None:
            raise ValueError("delayed blocks are (X, y) or (X, y, weight) themselves; give neither y nor weights")
        return list(X)
    if isinstance(y, str):
        X, y = _apart(X, y)
    if y is None:
        raise ValueError("y is None; give labels, a Dask array or series with the blocks of X")
    parts = [_parts(_rows_of(X))]
    for name, column in (("y", y), ("weight", weight)):
        if column is None:
            continue
        parts.append(_parts(_beside(X, column, name)))
        if len(parts[-1]) != len(parts[0]):
            raise ValueError(f"X has {len(parts[0])} blocks and {name} has {len(parts[-1])}; cut both alike")
    together = dask.delayed(_tuple, pure=True)
    return [together(*block) for block in zip(*parts, strict=True)]


def _apart(frame, name):
    if name not in list(getattr(frame, "columns", [])):
        raise ValueError(f"X has no column {name!r}; y as a text names a column of a data frame")
    return frame.drop(columns=name), frame[name]


def _rows_of(X):
    """X with all its columns in one block."""
    if getattr(X, "ndim", None) != 2:
        raise ValueError(f"X has {getattr(X, 'ndim', 0)} dimension(s); give rows of numbers, shape (m, d)")
    chunked = hasattr(X, "chunks")
    return X.rechunk({1: -1}) if chunked and len(X.chunks[1]) > 1 else X


def _beside(X, column, name):
    """Labels or weights in the blocks of X."""
    if dask.is_dask_collection(column):
        cut = hasattr(column, "chunks") and hasattr(X, "chunks")
        same = cut and (column.chunks[0] == X.chunks[0] or any(n != n for n in (*column.chunks[0], *X.chunks[0])))
        return column.rechunk((X.chunks[0],)) if cut and not same and column.shape[0] == X.shape[0] else column
    if not hasattr(X, "chunks"):
        raise TypeError(f"{name} needs to be a Dask series beside a Dask data frame; got {_kind(column)}")
    import numpy as np
    from dask.array import from_array

    values = np.asarray(column)
    if values.shape != X.shape[:1]:
        raise ValueError(f"X has {X.shape[0]} rows but {name} has shape {values.shape}")
    return from_array(values, chunks=(X.chunks[0],))


def _parts(collection):
    found = collection.to_delayed()
    return list(found.ravel() if hasattr(found, "ravel") else found)


def _tuple(*block):
    return block


def _kind(value):
    return type(value).__name__
