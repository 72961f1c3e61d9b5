"""Loader of the optional folder of real data: $MDLEARN_SHARED/data, else ../shared/data beside the project.

Sets are prepared in one way: training part where a split is fixed, complete rows, columns mapped to [0, 1] with
constant columns at 0. Nothing here is needed where the folder is absent: the tests that use it skip.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

SHARED = Path(os.environ.get("MDLEARN_SHARED") or Path(__file__).resolve().parents[3] / "shared")
FOLDER = SHARED / "data"
SPARSE = ("a9a", "ijcnn1")  # sparse sets with few enough columns to be made dense; the other one has 8315


def names():
    """Names of all sets in the folder; empty where it is absent."""
    return sorted(path.stem for path in FOLDER.glob("*.npz"))


def _raw(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        keys = set(file.files)
        if "train_data" in keys:
            rows, columns = (int(n) for n in file["train_shape"])
            X = np.zeros((rows, columns))
            indptr = file["train_indptr"]
            X[np.repeat(np.arange(rows), np.diff(indptr)), file["train_indices"]] = file["train_data"]
            return X, file["y_train"]
        if "X_train" in keys:
            return file["X_train"].astype(float), file["y_train"]
        X, y = file["X"].astype(float), file["y"]
        if "train_idx" in keys:  # realisation 1 of the fixed splits
            rows = file["train_idx"][0]
            return X[rows], y[rows]
        return X, y


def _labels(name):
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        return file["y_train"] if "y_train" in file.files else file["y"]


def is_binary(name):
    """Two labels in the whole file; sparse sets only if they are to be made dense."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        if "train_data" in file.files and name not in SPARSE:
            return False
    return len(np.unique(_labels(name))) == 2


def binary_names():
    return [name for name in names() if is_binary(name)]


def unit_columns(X):
    """Columns to [0, 1]; constant columns to 0."""
    low, high = X.min(axis=0), X.max(axis=0)
    return np.where(high > low, (X - low) / np.where(high > low, high - low, 1.0), 0.0)


def load(name):
    """Prepared (X, y); skips the running test when the folder, the rows or the second class are missing."""
    if not (FOLDER / f"{name}.npz").exists():
        pytest.skip(f"real data not found: {FOLDER / name}.npz (set MDLEARN_SHARED)")
    X, y = _raw(name)
    complete = np.isfinite(X).all(axis=1)
    X, y = X[complete], y[complete]
    if len(y) < 20:
        pytest.skip(f"{name}: {len(y)} complete rows, fewer than 20")
    if len(np.unique(y)) < 2:
        pytest.skip(f"{name}: one class among the complete rows")
    return unit_columns(X), y


def load_csr(name):
    """(X, y) of a set as CSR rows, training part, complete rows, as they are in the file."""
    if not (FOLDER / f"{name}.npz").exists():
        pytest.skip(f"real data not found: {FOLDER / name}.npz (set MDLEARN_SHARED)")
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        if "train_data" in file.files:
            parts = (file["train_data"].astype(float), file["train_indices"], file["train_indptr"])
            return sp.csr_matrix(parts, shape=tuple(file["train_shape"])), file["y_train"]
        X, y = file["X"].astype(float), file["y"]
    complete = np.isfinite(X).all(axis=1)
    return sp.csr_matrix(X[complete]), y[complete]
