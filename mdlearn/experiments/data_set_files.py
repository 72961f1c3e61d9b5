"""Data sets of a folder, and their fixed splits: rows capped, halves stratified, features scaled."""

from __future__ import annotations

import functools
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn.files.reading import ReadingOptions, read_for_fit
from mdlearn.files.tables import ENDINGS, PACKED_ENDINGS

TEXT = tuple(ENDINGS)
"""Ends of the names of CSV and svmlight files, packed or not."""


@dataclass(frozen=True, eq=False)
class DataSet:
    """Data set of an experiment: rows and labels of one file."""

    X: Any  # shape (m, d): as in the file; missing values of dense sets are NaN
    y: np.ndarray  # shape (m,)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, columns, classes."""
        return int(self.X.shape[0]), int(self.X.shape[1]), int(np.unique(self.y).shape[0])


@dataclass(frozen=True, eq=False)
class DataSetHalves:
    """Training and test part of an experiment's data set, features scaled."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def find_data_sets(folder: str) -> dict[str, Path]:
    """Find the files of an experiment's data sets in a folder: paths by name, sorted.

    `folder`: files ``NAME.npz``, CSV files ``NAME.csv`` or ``.tsv``, and svmlight files ``NAME.svm``, ``.svmlight`` or
    ``.libsvm``; text may be packed (.gz, .bz2). Raises ValueError when there is no such folder, or no such file in it,
    or two of one name.
    """
    root = Path(folder)
    if not root.is_dir():
        raise ValueError(f"there is no folder {folder}; give the one with the data sets")
    ends = (".npz", *(text + packed for text in TEXT for packed in ("", *PACKED_ENDINGS)))
    found: dict[str, Path] = {}
    for path in sorted(root.iterdir()):
        end = max((end for end in ends if path.name.endswith(end)), key=len, default="")
        name = path.name.removesuffix(end)
        if end and name in found:
            raise ValueError(f"{folder} has two files of the data set {name}: {found[name].name} and {path.name}")
        if end and name:
            found[name] = path
    if not found:
        raise ValueError(f"{folder} has no data sets: no file ends with {', '.join(('.npz', *TEXT))} (.gz, .bz2)")
    return found


@functools.lru_cache(maxsize=1)
def load_data_set(path: Path) -> DataSet:
    """Load one data set of an experiment from a file.

    An ``.npz`` file holds X and y; or data, indices, indptr, shape (CSR) and y; or the parts of a split, which become
    one set: X_train, y_train, X_test, y_test, or train_data, ..., y_train, test_data, ..., y_test. No pickles. Of a CSV
    file, the last column holds the labels. Raises ValueError when the file is not of this kind.
    """
    if path.suffix != ".npz":
        table = read_for_fit(str(path), ReadingOptions())
        return DataSet(table.X, np.asarray(table.y))
    try:
        with np.load(path, allow_pickle=False) as file:
            parts = [part for part in (_part_of_data_set(file, name) for name in PARTS) if part is not None]
    except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path.name} cannot be read as an archive of plain arrays: {error}") from None
    if not parts:
        raise ValueError(f"{path.name} holds neither X and y nor a CSR matrix (data, indices, indptr, shape) and y")
    for X, y in parts:
        _check_data_set(path.name, X, y)
    if len({(X.shape[1], isinstance(X, np.ndarray)) for X, _ in parts}) > 1:
        raise ValueError(f"{path.name} has parts of different columns, or one of them sparse; give both the same kind")
    X, y = parts[0]
    if len(parts) > 1:
        from scipy.sparse import issparse, vstack

        rows = [part[0] for part in parts]
        X = vstack(rows, format="csr") if issparse(X) else np.vstack(rows)
        y = np.concatenate([part[1] for part in parts])
    return DataSet(X, y)


def _check_data_set(name: str, X: Any, y: np.ndarray) -> None:
    """Raise ValueError unless a data set's X is a matrix of real numbers with one label per row."""
    if len(X.shape) != 2 or y.shape != X.shape[:1] or y.size == 0:
        raise ValueError(f"{name} has X of shape {X.shape} and y of shape {y.shape}; give rows and one label for each")
    if X.dtype.kind == "c" or y.dtype.kind == "c":
        raise ValueError(f"{name} holds complex numbers; give real ones")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError(f"{name} has NaN or infinity among its labels; give a label for every row")


def matrix_in(held: Mapping[str, np.ndarray], part: str = "") -> Any:
    """Matrix in the archive of an experiment's data set: dense or CSR rows; None where it has neither.

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


PARTS = ("", "train", "test")
"""A whole set, or its training and its test part, as in `matrix_in`."""


def _part_of_data_set(file: Any, name: str) -> tuple[Any, np.ndarray] | None:
    """X and y of one part of a data set's file; None where there are none."""
    labels = f"y_{name}" if name else "y"
    X = matrix_in(file, name) if labels in file else None
    return None if X is None else (X, file[labels])


def split_data_set(data: DataSet, seed: int, repeat: int, max_rows: int) -> DataSetHalves:
    """Split a data set of an experiment at random into halves with the same share of every class.

    The split depends on the set, `seed`, `repeat` and `max_rows` only. Of a set with more than `max_rows` rows, that
    many are drawn, each class in proportion (at least one row). In the training half features are scaled to [0, 1],
    constant ones to 0; the test half likewise. Sparse features are divided by their largest size, which keeps zeros.
    Missing values become the mean of the training half's column, or 0 where it has no other.
    """
    rng = np.random.default_rng([seed, repeat])
    m = data.y.shape[0]
    train: list[np.ndarray] = []
    test: list[np.ndarray] = []
    for label in np.unique(data.y):
        rows = rng.permutation(np.flatnonzero(data.y == label))
        rows = rows[: max(1, round(rows.shape[0] * min(1.0, max_rows / m)))]
        # Odd rows are shared out, lest many small classes make the halves unequal; a single row is for training.
        half = max(1, (rows.shape[0] + (len(train) + 1) % 2) // 2)
        train.append(rows[:half])
        test.append(rows[half:])
    first, second = np.sort(np.concatenate(train)), np.sort(np.concatenate(test))
    if second.shape[0] == 0:
        raise ValueError(f"{m} rows of {len(train)} classes leave none for the test half")
    X, X_test = scaled_data_set_halves(data.X[first], data.X[second])
    return DataSetHalves(X, data.y[first], X_test, data.y[second])


def scaled_data_set_halves(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Scale the features of both halves of a data set, as `split_data_set` says."""
    if hasattr(X, "tocsr"):
        return _scaled_sparse_data_set_halves(X, X_test)
    X, X_test = np.array(X, dtype=np.float64), np.array(X_test, dtype=np.float64)
    if np.isinf(X).any() or np.isinf(X_test).any():
        raise ValueError("X contains infinity; only NaN stands for a missing value")
    known = ~np.isnan(X)
    count = known.sum(axis=0)
    mean = np.divide(np.where(known, X, 0.0).sum(axis=0), count, out=np.zeros(X.shape[1]), where=count > 0)
    X, X_test = (np.where(np.isnan(A), mean, A) for A in (X, X_test))
    low, high = X.min(axis=0), X.max(axis=0)
    factor = np.divide(1.0, high - low, out=np.zeros(X.shape[1]), where=high > low)
    return (X - low) * factor, (X_test - low) * factor


def _scaled_sparse_data_set_halves(X: Any, X_test: Any) -> tuple[Any, Any]:
    """Sparse halves of a data set, columns divided by their largest absolute value in the training half."""
    from scipy.sparse import diags

    size = abs(X).max(axis=0).toarray().ravel().astype(np.float64)
    factor = diags(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0))
    return (X @ factor).tocsr(), (X_test @ factor).tocsr()
