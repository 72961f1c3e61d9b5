"""Kernel functions k(A, B) -> (n, m) and the resolution of their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mdlearn.data.checks import check_number
from mdlearn.data.rows import BLOCK_ENTRIES, COPY_BYTES, DenseRows, Rows, steps

PARAMETERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "precomputed": (),
}
FAR, NEAR = 1e3, 40.0
"""Squared lengths and squared distances, in units of 1 / gamma, beyond and below which rbf values lose digits."""
DEFAULTS = {"gamma": "scale", "degree": 3, "coef0": 0.0}


@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters filled in.

    Attributes
    ----------
    name : str
        "linear", "rbf", "poly", "precomputed" or "callable".
    params : dict
        gamma, degree, coef0 where the kernel uses them.
    function : callable or None
        The user's own k(A, B) -> (n, m).
    centre : ndarray of shape (d,) or None
        Subtracted from both sides by rbf: distances keep their digits when the data lie far from the origin.
    """

    name: str
    params: dict[str, Any] = field(default_factory=dict)
    function: Callable[[np.ndarray, np.ndarray], Any] | None = None
    centre: np.ndarray | None = None

    def block(self, A: Rows, B: Rows) -> np.ndarray:
        """Kernel values between the rows of A (n, d) and of B (m, d), shape (n, m)."""
        if self.name == "callable":
            assert self.function is not None
            return _checked_block(self.function(A.matrix(), B.matrix()), A.shape[0], B.shape[0])
        centre = None if A.sparse or B.sparse else self.centre
        K = A.inner(B, centre)
        if self.name == "rbf":
            # In-place: one (n, m) array is all that a block may hold.
            left, right = A.squares(centre=centre), B.squares(centre=centre)
            K *= -2.0
            K += left[:, None]
            K += right
            np.maximum(K, 0.0, out=K)
            most = self.params["gamma"] * (left.max(initial=0.0) + right.max(initial=0.0))
            if most > FAR and not (A.sparse or B.sparse):
                _sharpen(K, A, B, self.params["gamma"], np.add.outer(left, right))
            K *= -self.params["gamma"]
            np.exp(K, out=K)
        elif self.name == "poly":
            K *= self.params["gamma"]
            K += self.params["coef0"]
            with np.errstate(over="ignore"):
                K **= self.params["degree"]
        return K

    def mapping(self) -> Any:
        """What rows go through before the kernel compares them (a LandmarkMap); None: nothing."""
        return None

    def eased(self, rows: Rows) -> tuple[Kernel, Rows]:
        """Kernel and rows for which all blocks between these rows cost less: in float64 and centred, if small."""
        small = 8.0 * rows.shape[0] * rows.shape[1] <= COPY_BYTES
        if rows.sparse or not small or (self.centre is None and rows.dtype == np.float64):
            return self, rows
        out = np.empty(rows.shape)
        for span in rows.spans():
            np.subtract(rows.block(span), 0.0 if self.centre is None else self.centre, out=out[span])
        return replace(self, centre=None), DenseRows(out)


def _sharpen(K: np.ndarray, A: Rows, B: Rows, gamma: float, far: np.ndarray) -> None:
    """Recompute squared distances by differences where rows are far out and close together.

    |a|^2 + |b|^2 - 2 a.b has an error of rounding of `far` = |a|^2 + |b|^2. Where gamma makes that visible, clusters
    are far apart in units of the kernel's width: few entries are not 0, and those are worth their price.
    """
    i, j = np.nonzero((gamma * far > FAR) & (gamma * K < NEAR))
    for piece in steps(i.shape[0], max(1, BLOCK_ENTRIES // A.shape[1])):
        difference = A.block(i[piece]) - B.block(j[piece])
        K[i[piece], j[piece]] = np.einsum("ij,ij->i", difference, difference)


def _checked_block(values: Any, n: int, m: int) -> np.ndarray:
    K = np.asarray(values)
    if K.dtype.kind not in "biuf":
        raise TypeError(f"the callable kernel returned values of dtype {K.dtype}; it needs to return real numbers")
    K = K.astype(np.float64, copy=False)
    if K.shape != (n, m):
        raise ValueError(
            f"the callable kernel returned shape {K.shape} for {n} and {m} rows; it needs to be ({n}, {m})"
        )
    if not np.isfinite(K).all():
        raise ValueError("the callable kernel returned NaN or infinity; it needs to return finite numbers")
    return np.ascontiguousarray(K)


def split_parameters(kernel: Any, given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Divide `given` into kernel parameters and the rest, and name the parameters that this kernel takes."""
    known = kernel_parameters(kernel)
    mine = {name: value for name, value in given.items() if name in known}
    return mine, {name: value for name, value in given.items() if name not in known}, known


def kernel_parameters(kernel: Any) -> tuple[str, ...]:
    """Names of the parameters that a kernel takes; ValueError or TypeError for an unknown kernel."""
    if callable(kernel):
        return ()
    if not isinstance(kernel, str):
        raise TypeError(f"kernel needs to be one of {', '.join(PARAMETERS)} or a callable k(A, B); got {kernel!r}")
    if kernel not in PARAMETERS:
        raise ValueError(f"kernel {kernel!r} is unknown; give one of {', '.join(PARAMETERS)} or a callable k(A, B)")
    return PARAMETERS[kernel]


def make_kernel(kernel: Any, given: dict[str, Any], X: Rows, counts: np.ndarray) -> Kernel:
    """Fill in the parameters of a kernel; gamma='scale' is 1 / (d Var X) over all entries, rows counted by weight."""
    if callable(kernel):
        return Kernel("callable", {}, kernel)
    params = {name: given.get(name, DEFAULTS[name]) for name in kernel_parameters(kernel)}
    if "gamma" in params:
        params["gamma"] = _gamma(params["gamma"], X, counts)
    if "degree" in params:
        params["degree"] = check_number(params["degree"], "degree", low=1, integer=True)
    if "coef0" in params:
        # A negative constant makes the polynomial kernel indefinite, and the problem non-convex.
        params["coef0"] = check_number(params["coef0"], "coef0", low=0.0, high=np.finfo(float).max)
    centre = X.adjoint(counts) / counts.sum() if kernel == "rbf" and not X.sparse else None
    return Kernel(kernel, params, None, centre)


def _gamma(gamma: Any, X: Rows, counts: np.ndarray) -> float:
    if isinstance(gamma, str):
        if gamma != "scale":
            raise ValueError(f"gamma {gamma!r} is unknown; give 'scale' or a number > 0")
        d = X.shape[1]
        n = float(counts.sum()) * d
        mean = float(X.adjoint(counts).sum()) / n
        if X.sparse:
            variance = float(counts @ X.squares()) - n * mean * mean
        else:
            variance = float(counts @ X.squares(centre=np.full(d, mean)))
        variance /= n
        # Equal numbers have a variance of rounding.
        return 1.0 / (d * variance) if variance > (4.0 * np.finfo(float).eps * mean) ** 2 else 1.0
    return check_number(gamma, "gamma", low=0.0, high=np.finfo(float).max, strict=True)
