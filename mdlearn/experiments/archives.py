"""Matrices in NumPy archives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def matrix_in(held: Mapping[str, np.ndarray], part: str = "") -> Any:
    """Dense or CSR rows of an archive; None where it has neither.

    Parameters
    ----------
    held : mapping of str to ndarray
        An open archive, or its arrays.
    part : str
        "train" for ``X_train`` or ``train_data``, ``train_indices``, ``train_indptr``, ``train_shape``; empty for names
        without it.

    Raises
    ------
    KeyError, ValueError
        When arrays of a CSR matrix are missing or contradict each other.
    """
    suffix, prefix = (f"_{part}", f"{part}_") if part else ("", "")
    if f"X{suffix}" in held:
        return held[f"X{suffix}"]
    if f"{prefix}data" not in held:
        return None
    from scipy.sparse import csr_matrix

    arrays = tuple(held[prefix + key] for key in ("data", "indices", "indptr"))
    X = csr_matrix(arrays, shape=tuple(np.atleast_1d(held[f"{prefix}shape"]).tolist()))
    # SciPy's compiled loops believe indices; those of a damaged file would lead them out of the arrays.
    X.check_format(full_check=True)
    return X
