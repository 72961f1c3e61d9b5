"""Kernel approximation: explicit features made of kernel values with a few points.

What is fitted over these features is another problem than the kernel's, and its certificate speaks of that problem. So
it is asked for by name, and models say so.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.linalg import lapack

from mdlearn.data.features.feature_map import FeatureMap, array_of
from mdlearn.data.features.kernel_tiles import KernelTileSums
from mdlearn.data.features.kernels import EXPLICIT, Kernel
from mdlearn.data.features.landmarks import choose, in_time
from mdlearn.data.rows.arrays import LARGEST_ENTRY
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, steps
from mdlearn.data.validation import check_number
from mdlearn.errors import did_you_mean
from mdlearn.numerics import memory

APPROXIMATIONS = ("nystroem", "landmarks")
DEFAULT_POINTS = 500
"""Points where nobody says how many."""
SPANNED_DISTANCE = 1e-12
"""Squared distance of a point from the span of others, relative to the largest k(z, z), that counts as none."""
CANCELLING_DISTANCE = 1e-6
"""The same distance, below which sums over points lose more digits than objective and prediction may differ by."""
INDEFINITE_SHARE = 1e-8
"""What a semidefinite matrix can lack of its factorisation by rounding, in the same units."""


@dataclass(frozen=True, eq=False)
class KernelApproximationMap(FeatureMap):
    """Feature map of a kernel approximation: phi(x) = M' (k(x, z_1), ..., k(x, z_r)) with points z_l.

    With M M' the inverse of their kernel matrix inner products of features are the kernel on the span of the points
    (Nystroem); without M features are the kernel values themselves (landmarks).
    """

    kernel: Kernel
    points: np.ndarray  # shape (r, d)
    mix: np.ndarray | None  # M; None: the identity

    @property
    def approximation(self) -> str:
        """Which one of APPROXIMATIONS."""
        return APPROXIMATIONS[self.mix is None]

    @property
    def columns(self) -> int:
        return int(self.points.shape[1])

    @property
    def width(self) -> int:
        return int(self.points.shape[0] if self.mix is None else self.mix.shape[1])

    def features(self, A: Rows) -> np.ndarray:
        K = self.kernel.block(A, DenseRows(self.points))
        return K if self.mix is None else K @ self.mix

    def attributes(self) -> dict[str, np.ndarray]:
        """`landmarks_` of a model."""
        return {"landmarks_": self.points}

    def combination(self, coef: np.ndarray) -> np.ndarray:
        """Coefficients (r, p) of the kernel values with the points, from those (p, q) of the features."""
        coef = coef.astype(np.float64, copy=False)
        return coef.T if self.mix is None else self.mix @ coef.T

    def scorer(self, coef: np.ndarray) -> Callable[[Rows], np.ndarray]:
        """Predict with coefficients (p, q): f = sum_l c_l k(x, z_l), or by features where that sum loses digits."""
        if self._cancels():
            return partial(self._by_features, coef=coef.astype(np.float64, copy=False))
        return KernelTileSums(self.kernel, DenseRows(self.points), self.combination(coef))

    def _cancels(self) -> bool:
        """Whether a point lies so close to the span of others that its coefficients M c cancel each other.

        The first column of M belongs to the largest k(z, z): its one entry is the root of the inverse.
        """
        if self.mix is None or self.mix.size == 0:
            return False
        return bool(np.abs(self.mix).max() * np.sqrt(CANCELLING_DISTANCE) > np.abs(self.mix[:, 0]).max())

    def _by_features(self, A: Rows, coef: np.ndarray) -> np.ndarray:
        """Decision values as the fit has them: features first, which are of the size of the rows' images."""
        out = np.empty((A.shape[0], coef.shape[0]))
        for rows in steps(A.shape[0], max(64, BLOCK_ENTRIES // self.points.shape[0])):
            out[rows] = self.features(A.take(rows)) @ coef.T
        return out

    def encoded(self) -> dict[str, Any]:
        """Points and M; the kernel is the model's."""
        return {"points": self.points, "mix": self.mix}

    @classmethod
    def decoded(cls, values: Mapping[str, Any]) -> Self:
        """The map of `encoded`, with the model's kernel under the name "kernel"."""
        points = array_of(values, "points", None, None)
        mix = None if values["mix"] is None else array_of(values, "mix", points.shape[0], None)
        return cls(values["kernel"], points, mix)


@dataclass(frozen=True)
class ApproximateKernel(Kernel):
    """A kernel that a linear problem over explicit features stands for; `params` say so."""

    map: Any = None

    @classmethod
    def of(cls, place: KernelApproximationMap) -> ApproximateKernel:
        """The kernel of a map."""
        own = place.kernel
        asked = {"approximation": place.approximation, "n_components": place.points.shape[0]}
        return cls(own.name, {**own.params, **asked}, own.function, own.centre, place)

    @property
    def explicit(self) -> Any:
        return self.map

    @property
    def exact(self) -> Kernel:
        kernel: Kernel = self.map.kernel
        return kernel


def check_kernel_approximation(kernel: Any, given: Mapping[str, Any]) -> None:
    """Raise ValueError or TypeError where `approximation` and `n_components` make no sense for a kernel.

    `kernel`: as for `mdlearn.fit`; `given`: parameters of the kernel, as given.
    """
    how = given.get("approximation")
    if how is None:
        if given.get("n_components") is not None:
            raise ValueError("n_components is the number of points of an approximation; give approximation='nystroem'")
        return
    if not isinstance(how, str) or how not in APPROXIMATIONS:
        told, hint = ", ".join(APPROXIMATIONS), did_you_mean(how, APPROXIMATIONS)
        raise ValueError(f"approximation needs to be one of {told}; got {how!r}{hint}")
    if isinstance(kernel, str) and kernel in EXPLICIT:
        raise ValueError(f"an approximation needs a kernel of rows, such as kernel='rbf'; got kernel={kernel!r}")
    if given.get("n_components") is not None:
        check_number(given["n_components"], "n_components", low=1, integer=True)


def approximate_kernel(
    kernel: Kernel, how: str, n: int | None, X: Rows, counts: np.ndarray, seed: int
) -> Generator[None, Any, ApproximateKernel]:
    """Make an approximation of a kernel: features of points chosen at random among distinct rows of positive weight.

    `n`: number of points; None: 500, or all distinct rows where these are fewer; `X` of shape (m, d); `counts` of shape
    (m,). Yields None now and then, and returns the kernel. Raises ValueError for more points than distinct rows, or a
    kernel that is not positive semidefinite on them.
    """
    rows = distinct(X, counts)
    n = min(DEFAULT_POINTS, len(rows)) if n is None else n
    points = yield from in_time(choose("random", rows, n, seed, "n_components"))
    if how == "landmarks":
        return ApproximateKernel.of(KernelApproximationMap(kernel, points, None))
    memory.require(40.0 * n * n, f"the kernel matrix of {n} points", "lower n_components")
    yield
    K = kernel.block(DenseRows(points), DenseRows(points))
    if not np.abs(K).max() <= LARGEST_ENTRY:
        raise ValueError(f"values of {kernel.title} overflow; scale the features")
    yield
    mix = nystroem_approximation(K)
    if mix is None:
        raise ValueError(f"{kernel.title} is not positive semidefinite on {n} rows; an approximation needs that")
    return ApproximateKernel.of(KernelApproximationMap(kernel, points, mix))


def nystroem_approximation(K: np.ndarray) -> np.ndarray | None:
    """Matrix M (n, rank) of a Nystroem kernel approximation, M M' = K^-1 on the range of K; None: not semidefinite.

    By a Cholesky factorisation with pivots, M = P L^-T: a tenth of the time that eigenvectors take, which would give
    the same inner products in other axes.
    """
    n, largest = K.shape[0], float(K.diagonal().max(initial=0.0))
    if not largest > 0:
        return None
    L, pivots, rank, _ = lapack.dpstrf(K, lower=1, tol=SPANNED_DISTANCE * largest)
    order, L = pivots - 1, np.tril(L[:, :rank])
    rest = K[np.ix_(order[rank:], order[rank:])] - L[rank:] @ L[rank:].T
    if np.abs(rest).max(initial=0.0) > INDEFINITE_SHARE * largest:
        return None
    M = np.zeros((n, rank))
    M[order[:rank]] = lapack.dtrtri(L[:rank], lower=1)[0].T
    return M
