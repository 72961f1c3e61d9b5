"""Rows of a data set as the papers prepare them: scaled, complete, and split into training and test part."""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Parts:
    """Training and test rows with their labels."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def generator(seed: int, data: str, repeat: int) -> np.random.Generator:
    """Random numbers of one split of one set: the same for all methods and all tables of a paper."""
    return np.random.default_rng([seed, zlib.crc32(data.encode()), repeat])


def complete(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows without missing values."""
    kept = ~np.isnan(np.asarray(X, dtype=np.float64)).any(axis=1)
    return X[kept], y[kept]


def at_random(X: Any, y: np.ndarray, n_train: int, rng: np.random.Generator) -> Parts:
    """`n_train` rows drawn at random for training, the others for testing.

    Raises
    ------
    ValueError
        When no draw of a hundred has two classes in the training part.
    """
    for _ in range(100):
        order = rng.permutation(y.shape[0])
        train, test = np.sort(order[:n_train]), np.sort(order[n_train:])
        if np.unique(y[train]).shape[0] > 1:
            return taken(X, y, train, test)
    raise ValueError(f"no draw of {n_train} rows has two classes")


def taken(X: Any, y: np.ndarray, train: np.ndarray, test: np.ndarray) -> Parts:
    """Given rows."""
    return Parts(X[train], y[train], X[test], y[test])


def unit_range(X: np.ndarray) -> np.ndarray:
    """Columns in [0, 1], constant ones 0, by the least and largest value of all rows that are given.

    The papers scale a whole data set before they split it.
    """
    X = np.asarray(X, dtype=np.float64)
    low, high = X.min(axis=0), X.max(axis=0)
    return np.divide(X - low, high - low, out=np.zeros_like(X), where=high > low)


def unit_deviation(X: np.ndarray, like: np.ndarray, centred: bool = True) -> np.ndarray:
    """Columns divided by the standard deviation that they have in `like` (0 counts as 1), less the mean if asked."""
    like = np.asarray(like, dtype=np.float64)
    spread = like.std(axis=0)
    shift = like.mean(axis=0) if centred else 0.0
    return np.asarray((np.asarray(X, dtype=np.float64) - shift) / np.where(spread > 0, spread, 1.0))


def mean_distance(X: np.ndarray) -> float:
    """Average Euclidean distance of all pairs of two rows (LDM paper: the unit of widths of the RBF kernel)."""
    squares = np.einsum("ij,ij->i", X, X)
    apart = np.sqrt(np.maximum(squares[:, None] + squares - 2.0 * (X @ X.T), 0.0))
    m = X.shape[0]
    return float((apart.sum() - np.trace(apart)) / (m * (m - 1)))


def stratified_folds(y: np.ndarray, n_folds: int, rng: np.random.Generator) -> list[tuple[np.ndarray, np.ndarray]]:
    """Pairs (train, test) of row numbers: rows of every class dealt out in random order, whatever their values.

    The folds of `mdlearn.select` keep equal rows of one label together. The papers know no such rule, and on sets of
    few distinct rows it matters.
    """
    order = rng.permutation(y.shape[0])
    order = order[np.argsort(y[order], kind="stable")]
    fold = np.empty(y.shape[0], dtype=np.intp)
    fold[order] = np.arange(y.shape[0]) % n_folds
    return [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(n_folds)]
