"""Landmarks for scikit-learn: similarities to them as a transformer, feature space of the L3-SVM for any estimator."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.rows import Rows
from mdlearn.data.validation import validate_regression
from mdlearn.numerics import memory
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.interruptible import finished
from mdlearn.objectives.l3svm import L3SVM
from mdlearn.sklearn.documents import documented_estimator
from mdlearn.sklearn.params import FLOATS, sklearn_seed
from mdlearn.sklearn.validation import validated_sklearn_input


@documented_estimator
class LandmarkTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformer of scikit-learn: projections of rows on landmarks, in the block of each row's cluster.

    With one cluster these are L columns mu(x, l); with K clusters K L columns, zero outside the block of the cluster
    that x belongs to. A linear classifier on them is an L3-SVM: the same `random_state` chooses the same centres and
    landmarks as in `L3SVMClassifier`.

    Parameters
    ----------
    %(own)s
    n_clusters : int, optional
        Number K of clusters; default 1, or as many as `centers` has.
    sparse_output : bool, default False
        Return CSR matrices: with many clusters nearly everything is zero.
    random_state : int, RandomState instance or None, default None
        None means 0.

    Attributes
    ----------
    %(attributes)s

    References
    ----------
    V. Zantedeschi, R. Emonet and M. Sebban, "L3-SVMs: landmarks-based linear local support vector machines", 2017.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from sklearn.pipeline import make_pipeline
    >>> from mdlearn.sklearn import LandmarkTransformer, LDMClassifier
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> features = LandmarkTransformer(n_landmarks=20, projection="rbf", sigma=0.5)
    >>> features.fit_transform(X).shape
    (200, 20)
    >>> bool(make_pipeline(features, LDMClassifier(C=10)).fit(X, y).score(X, y) > 0.9)
    True
    """

    n_landmarks: int | None = None
    landmark_selection: Any = "random"
    landmarks: Any = None
    projection: Any = "dot"
    sigma: float | None = None
    n_clusters: int | None = None
    clustering: Any = "kmeans"
    centers: Any = None
    membership: str = "hard"
    n_restarts: int = 1
    sparse_output: bool = False
    random_state: Any = None
    _objective: ClassVar[type[L3SVM]] = L3SVM

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LandmarkTransformer:
        """Choose landmarks and centres.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, d)
            Rows.
        y : None
            Not used.
        sample_weight : array-like of shape (m,), optional
            Repetition counts >= 0: an integer weight equals repeated rows.

        Returns
        -------
        LandmarkTransformer
            This one.

        Raises
        ------
        ValueError, TypeError
            For parameters out of range: one sentence that says what is needed.
        """
        asked = [n for n in (1, self.n_landmarks, self.n_clusters) if isinstance(n, (int, np.integer))]
        X = validated_sklearn_input(self, X, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=max(asked))
        data = validate_regression(X, np.zeros(X.shape[0]), sample_weight, None, square=False)
        task = L3SVM(**self._choices())
        params = task.complete(task.resolve(data.total), data)
        # The generator of the first problem of a fit: the same points as there.
        rng = np.random.default_rng([sklearn_seed(self.random_state), 0, 1])
        self._map = finished(task.place(data, params, rng)).straight
        return self

    def _choices(self) -> dict[str, Any]:
        """Parameters of the objective that are given; one cluster where nothing says how many."""
        own = {name: value for name, value in self.get_params().items() if name in L3SVM.parameters}
        given = {name: value for name, value in own.items() if value is not None}
        return given if "centers" in given else {"n_clusters": 1, **given}

    def transform(self, X: Any) -> Any:
        """Return the projections of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)

        Returns
        -------
        ndarray or CSR matrix of shape (n, K L)
            In the type of X, float32 or float64.

        Raises
        ------
        InsufficientMemory
            When the dense result would not fit; ``sparse_output=True`` may.
        """
        check_is_fitted(self)
        X = validated_sklearn_input(self, X, reset=False, accept_sparse="csr", dtype=FLOATS)
        rows = check_rows(X)
        if self.sparse_output:
            return self._made(rows).matrix().astype(rows.dtype, copy=False)
        size = 12.0 * rows.shape[0] * self._map.width
        memory.require(size, f"{self._map.width} features of {rows.shape[0]} rows", "set sparse_output=True")
        return self._made(rows).block(slice(None)).astype(rows.dtype, copy=False)

    def _made(self, rows: Rows) -> Rows:
        """Projections of rows; ValueError where they are beyond the type of the rows."""
        with overflow_errstate():
            made: Rows = self._map.features(rows)
        if not made.largest() <= float(np.finfo(rows.dtype).max):
            raise ValueError(f"projections of X overflow {rows.dtype}; scale the columns of X")
        return made

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    @property
    def landmarks_(self) -> np.ndarray:
        """Landmarks, shape (L, d)."""
        return self._map.landmarks

    @property
    def centers_(self) -> np.ndarray:
        """Centres of the clusters, shape (K, d)."""
        return self._map.centers

    @property
    def _n_features_out(self) -> int:
        return self._map.width
