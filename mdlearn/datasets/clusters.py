"""Clusters that are normally distributed: many (NDC), or two Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.data.validation import check_number
from mdlearn.datasets.common import (
    LARGEST_FLOAT,
    balanced_labels,
    checked_dataset_dtype,
    checked_dataset_matrix,
    dataset_generator,
    dataset_row_slices,
)


class NDC:
    """Normally distributed clusters: a distribution from which training and test sets are drawn.

    Musicant's generator (ndc.m, as in the LSVM paper). Centres are integer points of [-50, 50]^n; the class of a
    centre is its side of a random plane ``x @ w = gamma``. Points are normal around their centre, rounded to
    integers, and have its class, on whichever side of the plane they fall.

    Parameters
    ----------
    n : int
        Number of features.
    n_centers : int, default 20
        Number of clusters. With very few, all of them may have the same class.
    expand : float, default 10
        Standard deviations grow in proportion to it; larger is less separable.
    random_state : None, int or numpy Generator
        Seed of centres, covariances, shares and plane.

    Attributes
    ----------
    centers : ndarray of shape (n_centers, n)
        Means of the clusters, before points are rounded.
    roots : ndarray of shape (n_centers, n, n)
        ``roots[k].T @ roots[k]`` is the covariance of cluster k, before points are rounded.
    shares : ndarray of shape (n_centers,)
        Probability of each cluster.
    w, gamma : ndarray of shape (n,), float
        The plane.
    classes : ndarray of shape (n_centers,)
        Label of each cluster: the sign of ``centers @ w - gamma``, +1 for 0.

    Examples
    --------
    >>> from mdlearn.datasets import NDC
    >>> clusters = NDC(32, random_state=0)
    >>> X, y = clusters.sample(1000, random_state=0)
    >>> X_test, y_test = clusters.sample(10, random_state=1)
    >>> share = clusters.separability(X_test, y_test)
    """

    def __init__(self, n: int, *, n_centers: int = 20, expand: float = 10.0, random_state: Any = None) -> None:
        n = check_number(n, "n", low=1, integer=True)
        k = check_number(n_centers, "n_centers", low=1, integer=True)
        expand = check_number(expand, "expand", low=0, high=LARGEST_FLOAT)
        rng = dataset_generator(random_state, "ndc")
        self.centers = np.rint(rng.uniform(-50, 50, (k, n)))
        # 100 / 50 is the range of the centres over its half, as in ndc.m.
        self.roots = rng.random((k, n, n))
        self.roots *= expand * (100 / 50)
        shares = 1 - rng.random(k)  # in (0, 1]: they never sum to 0
        self.shares = shares / shares.sum()
        self.w = rng.uniform(-2, 2, n)
        self.gamma = float(rng.uniform(-5, 5))
        self.classes = self._sides(self.centers)

    def sample(self, m: int, random_state: Any, *, dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
        """Draw m points.

        Parameters
        ----------
        m : int
            Number of points.
        random_state : None, int or numpy Generator
            Seed of the points. It has no default: two draws with one seed begin with the same points.
        dtype : float64 or float32, default float64
            Type of X. The points are the same integers, as long as float32 can hold them (below 2^24).

        Returns
        -------
        X : ndarray of shape (m, n)
        y : ndarray of shape (m,), float64
        """
        m = check_number(m, "m", low=1, integer=True)
        dtype = checked_dataset_dtype(dtype)
        rng = dataset_generator(random_state, "ndc sample")
        n = self.w.shape[0]
        X, y = np.empty((m, n), dtype=dtype), np.empty(m)
        bounds = np.cumsum(self.shares)[:-1]
        for rows in dataset_row_slices(m, n):
            part = np.empty((rows.stop - rows.start, n))
            cluster = np.searchsorted(bounds, rng.random(part.shape[0]), side="right")
            rng.standard_normal(out=part)
            for k, (center, root) in enumerate(zip(self.centers, self.roots)):
                mine = np.flatnonzero(cluster == k)
                part[mine] = part[mine] @ root + center
            X[rows] = np.rint(part, out=part)
            y[rows] = self.classes[cluster]
        return X, y

    def separability(self, X: Any, y: Any) -> float:
        """Share of the points that lie on their class's side of the plane (0 counts as +1).

        Parameters
        ----------
        X : array-like of shape (m, n)
        y : array-like of shape (m,)
            Labels -1 and +1.

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If the shapes do not fit.
        """
        X, y = checked_dataset_matrix(X), np.asarray(y)
        if X.shape[1] != self.w.shape[0]:
            raise ValueError(f"X has {X.shape[1]} columns; the clusters have {self.w.shape[0]} features")
        if y.shape != (X.shape[0],):
            raise ValueError(f"y has shape {y.shape}; give one label per row of X, shape ({X.shape[0]},)")
        hits = sum(int((self._sides(X[rows]) == y[rows]).sum()) for rows in dataset_row_slices(*X.shape))
        return hits / X.shape[0]

    def _sides(self, X: np.ndarray) -> np.ndarray:
        """Side of the plane of each row: -1 or +1."""
        return np.where(X @ self.w >= self.gamma, 1.0, -1.0)


def ndc(
    m: int,
    n: int,
    *,
    n_centers: int = 20,
    expand: float = 10.0,
    random_state: Any = None,
    dtype: Any = np.float64,
) -> tuple[np.ndarray, np.ndarray]:
    """Draw m points in n dimensions from normally distributed clusters (Musicant's NDC).

    The same as ``NDC(n, ...).sample(m, random_state)``. Use `NDC` for a test set from the same clusters
    (``NDC(n, ...).sample(m_test, another_seed)``) and for the estimate of separability.

    Parameters
    ----------
    m, n : int
        Numbers of points and of features.
    n_centers : int, default 20
        Number of clusters. With very few, all points may have the same class.
    expand : float, default 10
        Standard deviations grow in proportion to it; larger is less separable.
    random_state : None, int or numpy Generator
        Seed of clusters and points.
    dtype : float64 or float32, default float64
        Type of X.

    Returns
    -------
    X : ndarray of shape (m, n)
        Integer values.
    y : ndarray of shape (m,), float64
        Labels -1 and +1.
    """
    m = check_number(m, "m", low=1, integer=True)
    dtype = checked_dataset_dtype(dtype)
    clusters = NDC(n, n_centers=n_centers, expand=expand, random_state=random_state)
    return clusters.sample(m, random_state, dtype=dtype)


def two_gaussians(
    m: int = 1000, *, means: Any = ((5, 5), (7, 7)), scales: Any = ((3, 1), (1, 1)), random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Two Gaussian clusters with independent features (MDLM paper, table 1).

    The table prints ``N([5,5], [3 0; 0 1])`` against ``N([c,c], [1 0; 0 1])`` with c = 7, 8, 9. Its accuracies are
    those of the best linear classifier if 3 is a standard deviation; if it were a variance, they would be higher
    (for c = 7: 0.89, where 0.86 is printed). Hence `scales`; the other reading is ``((3**0.5, 1), (1, 1))``.

    Parameters
    ----------
    m : int, default 1000
        Number of points; classes have equal numbers, up to one point.
    means : array-like of shape (2, d), default ((5, 5), (7, 7))
        Mean of class -1, mean of class +1.
    scales : array-like of shape (2, d), default ((3, 1), (1, 1))
        Standard deviations of the features in class -1 and in class +1.
    random_state : None, int or numpy Generator
        Seed.

    Returns
    -------
    X : ndarray of shape (m, d)
    y : ndarray of shape (m,)

    Raises
    ------
    ValueError
        If means and scales do not have one shape with two rows, or a scale is negative.
    """
    m = check_number(m, "m", low=1, integer=True)
    means, scales = checked_dataset_matrix(means, "means"), checked_dataset_matrix(scales, "scales")
    if means.shape[0] != 2 or scales.shape != means.shape:
        raise ValueError(f"means and scales need one shape (2, d); got {means.shape} and {scales.shape}")
    if (scales < 0).any():
        raise ValueError(f"scales are standard deviations and need to be >= 0; got {scales.min():g}")
    rng = dataset_generator(random_state, "two_gaussians")
    y = balanced_labels(m, rng)
    group = (y > 0).astype(np.intp)
    return means[group] + scales[group] * rng.standard_normal((m, means.shape[1])), y
