"""Landmark map: from a row to its landmark features in the blocks of its clusters, at fit and for new rows."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.clustering.distances import assign, memberships
from mdlearn.data.features.clustered_rows import BlockRows, clustered_rows
from mdlearn.data.features.feature_map import FeatureMap, array_of
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.landmarks import landmark_projector
from mdlearn.data.features.smoothed_clusters import SmoothedClusterRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, COPY_BYTES, DenseRows, Rows, Selection, read_only_rows, steps
from mdlearn.data.validation import check_number
from mdlearn.numerics import memory
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.lazy_property import kept

TURNING = 1e9
"""Operations, L d min(L, d), up to which landmarks are factored: some tenths of a second."""
ROUNDING_OF_ENTRIES = 1e-14
"""Share of the largest entry of a column that counts as rounding in the others."""


@dataclass(frozen=True, eq=False)
class LandmarkMap(FeatureMap):
    """Landmark map Phi(x): projections of x on L landmarks, in the blocks of the clusters that x belongs to."""

    centers: np.ndarray  # shape (K, d)
    landmarks: np.ndarray  # shape (L, d)
    projection: Kernel  # mu(x, l): "linear" for the dot product
    # width of soft clusters; None: a row belongs to the cluster of the nearest centre alone
    spread: float | None = None
    # theta = mix theta' of a model whose theta' were fitted (see `SmoothedClusterRows`); None: theta itself was
    mix: np.ndarray | None = None
    # orthonormal columns, of dot projections: coefficients are those along these axes (see `turned`)
    axes: np.ndarray | None = None

    def turned(self) -> LandmarkMap:
        """Return a map with coefficients along other axes of the landmark space: same functions of x, same |theta|.

        With landmarks V R, V orthonormal and R triangular but for the order of its columns, theta . mu(x) is
        V'theta . R x. Where columns of X have very different scales, all projections are nearly multiples of the
        largest one: products of them have lost the small columns. R x has the small columns alone in its last entries.
        Other projections than dot products stay as they are, and so do landmarks whose factorisation takes long.
        """
        L, d = self.landmarks.shape
        if self.projection.name != "linear" or float(L) * d * min(L, d) > TURNING:
            return self
        from scipy.linalg import qr

        axes = qr(self.landmarks, mode="economic", pivoting=True, check_finite=False)[0]
        return replace(self, axes=np.ascontiguousarray(axes))

    @property
    def straight(self) -> LandmarkMap:
        """The map whose features are the projections themselves."""
        return replace(self, axes=None)

    @kept
    def points(self) -> np.ndarray:
        """Points that rows are projected on, (r, d): the landmarks, or their coefficients along the axes."""
        if self.axes is None:
            return self.landmarks
        R = self.axes.T @ self.landmarks
        # Rounding in the place of a zero would bring a large column into features that have none of it.
        R[np.abs(R) <= ROUNDING_OF_ENTRIES * np.abs(self.landmarks).max(axis=0)] = 0.0
        return read_only_rows(R)

    @property
    def shape(self) -> tuple[int, int]:
        """(K, r): the number of coefficients in a block is L where there are no other axes."""
        return self.centers.shape[0], self.landmarks.shape[0] if self.axes is None else self.axes.shape[1]

    @property
    def columns(self) -> int:
        return int(self.centers.shape[1])

    @property
    def width(self) -> int:
        return self.shape[0] * self.shape[1]

    def attributes(self) -> dict[str, np.ndarray]:
        """`centers_` and `landmarks_` of a model."""
        return {"centers_": self.centers, "landmarks_": self.landmarks}

    def features(self, A: Rows) -> BlockRows:
        made: BlockRows = finished(self.rows(A))
        return made

    def rows(self, A: Rows) -> Generator[None, Any, BlockRows]:
        made = yield from clustered_rows(A, self.centers, self.points, self.projection, self.spread)
        return (
            made
            if self.mix is None
            else SmoothedClusterRows(made.F, made.layout, self.mix, model_dtype=made.model_dtype)
        )

    def shown(self, coef: np.ndarray) -> np.ndarray:
        """Coefficients (p, K r) of the features as theta, shape (p, K, L), in the type of `coef`."""
        blocks = self._untied(coef)
        return blocks if self.axes is None else np.asarray(blocks @ self.axes.T, dtype=coef.dtype)

    def _untied(self, coef: np.ndarray) -> np.ndarray:
        """Coefficients of every cluster, along the axes."""
        blocks = coef.reshape(-1, *self.shape)
        return blocks if self.mix is None else np.asarray(self.mix @ blocks, dtype=coef.dtype)

    def folded(self, coef: np.ndarray) -> np.ndarray | None:
        """w_k = sum_l theta_kl landmark_l of dot projections, shape (p, K, d), float64; None for other projections."""
        if self.projection.name != "linear":
            return None
        size = 8.0 * coef.shape[0] * self.centers.size
        memory.require(size, f"coefficients of {self.centers.shape[1]} columns for every cluster", "use coef_")
        return np.asarray(self._untied(coef.astype(np.float64, copy=False)) @ self.points)

    def scorer(self, coef: np.ndarray) -> Callable[[Rows], np.ndarray]:
        """Return a function from rows to decision values for coefficients (p, K r), folded where possible and few."""
        few = 8.0 * coef.shape[0] * self.centers.size <= COPY_BYTES
        folded = self.folded(coef) if few else None
        if folded is not None:
            return partial(self._scored, table=folded, folded=True)
        return partial(self._scored, table=self._untied(coef.astype(np.float64, copy=False)), folded=False)

    def _scored(self, A: Rows, table: np.ndarray, folded: bool) -> np.ndarray:
        """Scores from coefficients of every cluster for projections, or for (folded) rows themselves, O(K d + p d)."""
        F = np.zeros((A.shape[0], table.shape[0]))
        project = landmark_projector(self.projection, self.points, A.sparse)
        for part in steps(A.shape[0], 4 * BLOCK_ENTRIES // max(self.points.shape)):
            B = A.take(part)
            labels, weights = self.members(B)
            source = B if folded else DenseRows(project(B))
            out = F[part]
            for j in range(labels.shape[1]):
                for k in np.unique(labels[:, j]).tolist():
                    at = np.flatnonzero(labels[:, j] == k)
                    out[at] += weights[at, j, None] * source.take(at).dot(table[:, k].T)
        return F

    def over(self, kernel: Kernel) -> LandmarkMapKernel:
        """`kernel` on the landmark space."""
        return LandmarkMapKernel(kernel.name, kernel.params, kernel.function, None, self, replace(kernel, centre=None))

    def encoded(self) -> dict[str, Any]:
        """Points, widths and the projection by its name."""
        projection = self.projection
        if projection.function is not None:
            raise ValueError("a callable projection cannot be saved, because a model file holds no code")
        return {
            "centers": self.centers,
            "landmarks": self.landmarks,
            "projection": projection.name,
            "gamma": projection.params.get("gamma"),
            "centre": projection.centre,
            "spread": self.spread,
            "mix": self.mix,
            "axes": self.axes,
        }

    @classmethod
    def decoded(cls, values: Mapping[str, Any]) -> LandmarkMap:
        centers = array_of(values, "centers", None, None)
        K, d = centers.shape
        landmarks, spread = array_of(values, "landmarks", None, d), values["spread"]
        mix = None if values["mix"] is None else array_of(values, "mix", K, K)
        centre = None if values["centre"] is None else array_of(values, "centre", d)
        if values["projection"] == "linear":
            projection = Kernel("linear")
        elif values["projection"] == "rbf":
            gamma = check_number(values["gamma"], "gamma", low=0.0, high=np.finfo(float).max, strict=True)
            projection = Kernel("rbf", {"gamma": gamma}, None, centre)
        else:
            raise ValueError(f"there is no projection {values['projection']!r}")
        if spread is not None:
            spread = check_number(spread, "spread", low=0.0, high=np.finfo(float).max)
        axes = values.get("axes")  # formats before 5 had none
        if axes is not None:
            axes = array_of(values, "axes", landmarks.shape[0], None)
            if values["projection"] != "linear":
                raise ValueError("axes belong to dot projections")
        return cls(centers, landmarks, projection, spread, mix, axes)

    def members(self, A: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Clusters and weights of rows, both of shape (n, t)."""
        if self.spread is None:
            return assign(A, self.centers)[:, None], np.ones((A.shape[0], 1))
        return memberships(A, self.centers, self.spread)

    def placed(self, A: Rows) -> LandmarkSpaceRows:
        """Projections and weights over all clusters: what a kernel on the landmark space compares."""
        labels, by = self.members(A)
        weights = np.zeros((A.shape[0], self.shape[0]))
        np.put_along_axis(weights, labels, by, axis=1)
        mu = np.empty((A.shape[0], self.shape[1]))
        project = landmark_projector(self.projection, self.landmarks, A.sparse)
        for part in steps(A.shape[0], BLOCK_ENTRIES // max(self.shape[1], 1 if A.sparse else A.shape[1])):
            mu[part] = project(A.take(part))
        return LandmarkSpaceRows(mu, weights if self.mix is None else weights @ self.mix)


@dataclass(frozen=True, eq=False)
class LandmarkSpaceRows:
    """Rows that a landmark map projected, for a kernel on these: mu (n, L) and weights over clusters (n, K)."""

    mu: np.ndarray
    weights: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        """(n, L)."""
        return int(self.mu.shape[0]), int(self.mu.shape[1])

    def take(self, rows: Selection) -> LandmarkSpaceRows:
        """Selected rows with their projections and weights."""
        return LandmarkSpaceRows(self.mu[rows], self.weights[rows])


@dataclass(frozen=True)
class LandmarkMapKernel(Kernel):
    """Kernel over a landmark map: kappa(mu(x), mu(z)) times the inner product of the weights of x and z over clusters.

    With hard clusters that is kappa where both are in the same cluster, else 0.
    """

    map: Any = None
    compared: Any = None  # kappa

    def block(self, A: Any, B: Any) -> np.ndarray:
        """Kernel values between rows, given as they are or placed; shape (n, m)."""
        P, Q = (rows if isinstance(rows, LandmarkSpaceRows) else self.map.placed(rows) for rows in (A, B))
        K = self.compared.block(DenseRows(P.mu), DenseRows(Q.mu))
        with overflow_errstate():  # infinite values of rows in different clusters
            # A callable may keep what it returns.
            return np.asarray(K * (P.weights @ Q.weights.T))

    def mapping(self) -> Any:
        return self.map

    def centred_copy(self, rows: Rows) -> tuple[Kernel, Any]:
        """Rows are placed once for all blocks."""
        m, size = rows.shape[0], sum(self.map.shape)
        memory.require(8.0 * m * size, f"{size} features of {m} rows", "lower n_landmarks")
        return self, self.map.placed(rows)
