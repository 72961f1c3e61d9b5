"""A folder of data sets: found by name, read once, and refused where they are not what the papers used."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from mdlearn_papers.catalogue import SOURCES
from mdlearn_papers.readers import RealSet, read


class Sets:
    """The data sets of a folder.

    Parameters
    ----------
    folder : str or None
        None, or a folder that does not exist when it is the default: only what scikit-learn brings is there.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = None if folder is None else Path(folder)
        self._read: dict[str, RealSet | None] = {}

    def get(self, name: str) -> RealSet:
        """Return a data set.

        Raises
        ------
        ValueError
            When it is missing, cannot be read or has another shape.
        """
        found = self._find(name)
        if found is None:
            raise ValueError(f"data set {name} is missing; see the list of names and files in the documentation")
        return found

    def has(self, name: str) -> bool:
        """Whether a data set is there; ValueError where its file is wrong."""
        return self._find(name) is not None

    def _find(self, name: str) -> RealSet | None:
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> RealSet | None:
        found = None
        if self.folder is not None and self.folder.is_dir():
            try:
                found = read(self.folder, name)
            except KeyError as error:
                raise ValueError(f"the file of data set {name} cannot be read: it has no array {error}") from None
            except (OSError, EOFError, ValueError, zipfile.BadZipFile, zlib.error) as error:
                raise ValueError(f"the file of data set {name} cannot be read: {error}") from None
        found = _bundled(name) if found is None else found
        if found is not None:
            check(name, found)
        return found


def check(name: str, found: RealSet) -> None:
    """ValueError unless a set has the rows, columns and classes of the one in the catalogue, and splits of its rows."""
    source = SOURCES[name]
    rows, columns = found.X.shape
    counts = tuple(sorted(np.unique(found.y, return_counts=True)[1].tolist()))
    if rows != source.rows or columns not in (source.columns, source.codes) or counts != source.counts:
        forms = f"{source.columns} columns" + (f" (or {source.codes} of codes)" if source.codes else "")
        raise ValueError(
            f"data set {name} has {rows} rows, {columns} columns and classes of {_told(counts)} rows, but the papers' "
            f"has {source.rows} rows, {forms} and classes of {_told(source.counts)} rows ({source.origin})"
        )
    if found.codes is not None and found.codes.shape != (rows, source.codes):
        raise ValueError(
            f"data set {name} has integer codes of shape {found.codes.shape}, but the papers' has {rows} rows and "
            f"{source.codes} columns of codes"
        )
    for part in (one for split in found.splits for one in split):
        if part.size == 0 or part.dtype.kind not in "iu" or part.min() < 0 or part.max() >= rows:
            raise ValueError(f"data set {name} has splits that name no rows, or others than 0 to {rows - 1}")
    if source.train and found.train not in (0, source.train):
        raise ValueError(f"data set {name} has {found.train} training rows, but the papers' has {source.train}")


def _told(counts: tuple[int, ...]) -> str:
    return ", ".join(map(str, counts))


def _bundled(name: str) -> RealSet | None:
    """What scikit-learn brings, where it is installed."""
    try:
        from sklearn.datasets import load_breast_cancer, load_iris
    except ImportError:
        return None
    if name == "iris":
        X, y = load_iris(return_X_y=True)
        return RealSet(X, y)
    if name == "wdbc":
        X, y = load_breast_cancer(return_X_y=True)
        return RealSet(X, np.where(y == 0, 1, -1))  # malignant is +1
    return None
