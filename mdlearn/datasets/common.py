"""Common parts of the generators of data sets: random numbers, row blocks, checks of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.data.validation import check_number

# Entries of the largest temporary: 8 MB in float64.
ENTRIES_PER_BLOCK = 2**20
LARGEST_FLOAT = float(np.finfo(float).max)


def dataset_generator(random_state: Any, stream: str) -> np.random.Generator:
    """Random generator common to data sets: the caller's, or a new one for this seed and the stream of that name."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    seed = 0 if random_state is None else check_number(random_state, "random_state", low=0, integer=True)
    return np.random.default_rng([seed, *stream.encode()])


def dataset_row_slices(m: int, n: int) -> list[slice]:
    """Common slices of the m rows of a generated data set, with about `ENTRIES_PER_BLOCK` entries each."""
    step = max(1, ENTRIES_PER_BLOCK // max(1, n))
    return [slice(start, min(start + step, m)) for start in range(0, m, step)]


def balanced_labels(m: int, rng: np.random.Generator) -> np.ndarray:
    """Labels -1 and +1, common to generated data sets: in equal numbers, up to one, in random order."""
    return rng.permutation(np.where(np.arange(m) % 2 == 0, -1.0, 1.0))


def checked_dataset_dtype(dtype: Any) -> Any:
    """Common check of the type of a generated data set's numbers: float64 or float32, as a dtype."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if dtype is None or found not in (np.float64, np.float32):
        raise ValueError(f"dtype needs to be float64 or float32; got {dtype!r}")
    return found


def checked_dataset_matrix(values: Any, name: str = "X") -> np.ndarray:
    """Common check of a data set's matrix: finite numbers in two dimensions, float32 as it is, else float64."""
    wanted = f"{name} needs to be a dense two-dimensional array of finite numbers"
    try:
        array = np.asarray(values)
        if array.dtype != np.float32:
            array = array.astype(np.float64, casting="unsafe" if array.dtype.kind == "O" else "same_kind", copy=False)
    except (TypeError, ValueError):
        raise TypeError(f"{wanted}; got {type(values).__name__} that is not one") from None
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"{wanted}; got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{wanted}; got NaN or infinity")
    return array
