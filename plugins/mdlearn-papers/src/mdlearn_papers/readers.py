"""Files of data sets: NumPy archives, svmlight and CSV files, Raetsch's text files and MATLAB's."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn.extend import PACKED_ENDINGS, ReadingOptions, matrix_in, read_for_fit

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class RealSet:
    """Rows and labels as they are in the file.

    Attributes
    ----------
    X : ndarray or csr_matrix of shape (m, d)
        Missing values are NaN.
    y : ndarray of shape (m,)
    train : int
        Leading rows that are the training part; 0 where there is none.
    splits : tuple of (train, test)
        Row numbers of the splits that come with the data.
    codes : ndarray of shape (m, d') or None
        Nominal columns as integers, where the file has both forms.
    """

    X: Any
    y: np.ndarray
    train: int = 0
    splits: tuple[Split, ...] = ()
    codes: np.ndarray | None = None


def read(folder: Path, name: str) -> RealSet | None:
    """Read the files of a set; None where there are none.

    Parameters
    ----------
    folder : Path
        With ``NAME.npz``, ``NAME.mat``, ``NAME.csv`` or ``.tsv`` (labels in the last column), ``NAME.svm``,
        ``.svmlight`` or ``.libsvm`` (text may be packed: .gz, .bz2), a test part beside it as ``NAME.t.svm`` and so on;
        or ``NAME_train_data_1.asc``, ``NAME_train_labels_1.asc``, ``NAME_test_data_1.asc``, ``NAME_test_labels_1.asc``
        and so on, there or in a folder ``NAME``; these also under their original name, such as ``flare-solar`` for
        ``ida_flare_solar``.
    name : str

    Raises
    ------
    ValueError
        When a file is not of its kind.
    """
    for end, reader in READERS.items():
        for packed in ("", *PACKED_ENDINGS) if reader is _text else ("",):
            path = folder / f"{name}{end}{packed}"
            if path.is_file():
                return reader(path)
    original = name.removeprefix("ida_").replace("_", "-")
    for called in (name, original):
        for place in (folder, folder / name, folder / original):
            if (place / f"{called}_train_data_1.asc").is_file():
                return _realisations(place, called)
    return None


def _archive(path: Path) -> RealSet:
    """X and y, perhaps with splits; or training and test part, dense or CSR."""
    if not zipfile.is_zipfile(path):
        raise ValueError("it is no NumPy archive")
    with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
        held = {key: file[key] for key in file.files}
    if "y" in held:
        splits = tuple(zip(held["train_idx"], held["test_idx"])) if "train_idx" in held else ()
        return RealSet(_matrix(held), held["y"], 0, splits, held.get("X_codes"))
    X, X_test = (_matrix(held, part) for part in ("train", "test"))
    return _joined(X, X_test, held["y_train"], held["y_test"])


def _matrix(held: dict[str, np.ndarray], part: str = "") -> Any:
    X = matrix_in(held, part)
    if X is None:
        raise ValueError(
            f"it holds no rows{' called ' + part if part else ''}: neither X nor data, indices, indptr, shape"
        )
    return X


def _joined(X: Any, X_test: Any, y: np.ndarray, y_test: np.ndarray) -> RealSet:
    """Training part above the test part."""
    if isinstance(X, np.ndarray):
        whole: Any = np.vstack([X, X_test])
    else:
        from scipy.sparse import csr_matrix, vstack

        width = max(X.shape[1], X_test.shape[1])  # columns that one part never uses are not written
        whole = vstack([csr_matrix((A.data, A.indices, A.indptr), (A.shape[0], width)) for A in (X, X_test)], "csr")
    return RealSet(whole, np.concatenate([y, y_test]), y.shape[0])


def _text(path: Path) -> RealSet:
    """CSV or svmlight; a test part has ``.t`` before the end of its name."""
    table = read_for_fit(str(path), ReadingOptions())
    stem = path.name.split(".", 1)[0]
    besides = [path.with_name(f"{stem}.t{end}{packed}") for end in TEXT for packed in ("", *PACKED_ENDINGS)]
    beside = next((one for one in besides if one.is_file()), None)
    if beside is None:
        return RealSet(table.X, np.asarray(table.y))
    test = read_for_fit(str(beside), ReadingOptions())
    zero_based = [part.notes.get("zero_based", True) for part in (table, test)]
    # A part that never uses column 0 looks as if it counted from 1; both parts count alike.
    X, X_test = (_moved(part.X, any(zero_based) and not mine) for part, mine in zip((table, test), zero_based))
    return _joined(X, X_test, np.asarray(table.y), np.asarray(test.y))


def _moved(X: Any, by_one: bool) -> Any:
    """CSR rows with an empty column before the first one, if asked."""
    if not by_one:
        return X
    from scipy.sparse import csr_matrix

    return csr_matrix((X.data, X.indices + 1, X.indptr), (X.shape[0], X.shape[1] + 1))


def _matlab(path: Path) -> RealSet:
    """A matrix X or A with labels y or d."""
    from scipy.io import loadmat, matlab

    try:
        held = loadmat(path)
    except NotImplementedError:
        raise ValueError("it is of MATLAB's format 7.3, which is not read; save it with -v7") from None
    except (matlab.MatReadError, TypeError) as error:
        raise ValueError(f"it is damaged ({error})") from None
    for rows, labels in (("X", "y"), ("X", "Y"), ("A", "d")):
        if rows in held and labels in held:
            y = np.asarray(held[labels])
            X = held[rows]
            return RealSet(X.tocsr() if hasattr(X, "tocsr") else np.asarray(X), y.reshape(-1))
    raise ValueError(f"{path.name} holds neither X and y nor A and d")


def _realisations(folder: Path, name: str) -> RealSet:
    """Raetsch's text files: rows of training and test part of every realisation, one after the other."""

    def numbers(kind: str, i: int) -> np.ndarray:
        return np.loadtxt(folder / f"{name}_{kind}_{i}.asc", ndmin=2)

    found = [re.fullmatch(rf"{re.escape(name)}_train_data_(\d+)\.asc", path.name) for path in folder.iterdir()]
    order = sorted(int(match[1]) for match in found if match)
    known: dict[bytes, list[int]] = {}
    rows: list[np.ndarray] = []
    splits = []
    for i in order:
        used: dict[bytes, int] = {}
        both = []
        for part in ("train", "test"):
            place = []
            for row in np.hstack([numbers(f"{part}_data", i), numbers(f"{part}_labels", i)]) + 0.0:  # -0 is 0
                key = row.tobytes()
                same, n = known.setdefault(key, []), used.get(key, 0)
                if n == len(same):  # equal rows of one realisation are rows of their own
                    same.append(len(rows))
                    rows.append(row)
                used[key] = n + 1
                place.append(same[n])
            both.append(np.array(place))
        splits.append((both[0], both[1]))
    table = np.array(rows)
    return RealSet(table[:, :-1], table[:, -1], 0, tuple(splits))


TEXT = (".csv", ".tsv", ".svm", ".svmlight", ".libsvm")
READERS: dict[str, Callable[[Path], RealSet]] = {
    ".npz": _archive,
    ".mat": _matlab,
    **dict.fromkeys(TEXT, _text),
}
