"""Data of the L3-SVM paper: columns of unit standard deviation, and the given training and test parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn_papers.l3.machines import Size
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, unit_deviation
from mdlearn_papers.studies import Settings

SIZES: dict[str, Size] = {
    "svmguide1": Size(100, 3089, 3089, 3089, 3089, 20),
    "ijcnn1": Size(100, 3000, 49990, 10000, 5000, 10),
    "usps": Size(80, 1500, 7291, 7291, 2000, 10),
    "mnist": Size(90, 1500, 10000, 10000, 2000, 0),
}
"""By set: the paper's number of clusters, and how many rows are used."""
QUICK = Size(10, 300, 300, 300, 300, 5)
LABELS = {"svmguide1": "SVMGUIDE1", "ijcnn1": "IJCNN1", "usps": "USPS", "mnist": "MNIST"}


def dense(X: Any) -> np.ndarray:
    """Rows as float64, sparse ones written out."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)


def prepared(sets: Sets, name: str) -> Parts:
    """Training and test part, columns divided by their standard deviation over the training rows (not centred).

    Raises
    ------
    ValueError
        When the set has no training part.
    """
    found = sets.get(name)
    if not found.train:
        raise ValueError(f"data set {name} needs a training and a test part; give the file of the test part, too")
    X, X_test = dense(found.X[: found.train]), dense(found.X[found.train :])
    return Parts(
        unit_deviation(X, X, centred=False),
        found.y[: found.train],
        unit_deviation(X_test, X, centred=False),
        found.y[found.train :],
    )


def size_of(name: str, settings: Settings) -> Size:
    """How much of a set is used."""
    return QUICK if settings.quick else SIZES[name]
