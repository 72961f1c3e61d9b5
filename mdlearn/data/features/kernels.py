"""Kernel functions k(A, B) -> (n, m) and the resolution of their parameters: built-in ones, plugins' and functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers.gaussian import exponentials
from mdlearn._solvers.gaussian_tiles import gaussians
from mdlearn.data.kernel_functions import KernelFunction, kernel_function_rows, kernel_function_takes_objects
from mdlearn.data.rows.arrays import check_rows
from mdlearn.data.rows.object_rows import ObjectRows
from mdlearn.data.rows.rows import BLOCK_ENTRIES, COPY_BYTES, DenseRows, Rows, steps
from mdlearn.data.validation import check_number
from mdlearn.errors import (
    ErrorNotes,
    ParametersWithErrorNotes,
    call_with_error_notes,
    came,
    did_you_mean,
    faulty,
    title_in_error,
)
from mdlearn.numerics.errstate import overflow_errstate
from mdlearn.numerics.frozen_init import quick_init

PARAMETERS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "rbf": ("gamma",),
    "poly": ("gamma", "degree", "coef0"),
    "precomputed": (),
}
FORMULAS = {
    "linear": "a . b",
    "rbf": "exp(-gamma |a - b|^2)",
    "poly": "(gamma a . b + coef0)^degree",
    "precomputed": "the kernel matrix is given as X",
}
FAR_LENGTH, NEAR_DISTANCE = 1e3, 40.0
"""Squared lengths and squared distances, in units of 1 / gamma, beyond and below which rbf values lose digits."""
EXPLICIT = ("linear", "precomputed")
"""Kernels that no approximation is for."""
ARGUMENTS = ("approximation", "n_components")
"""What is asked for beside the parameters of any other kernel: see `mdlearn.data.features.kernel_approximation`."""
BLOCK_OBJECTS = 1024
"""Objects of one side in a call of a kernel that compares such."""
LARGEST_NUMBER = float(np.finfo(float).max)
RANGES: dict[str, dict[str, Any]] = {
    "gamma": {"low": 0.0, "high": LARGEST_NUMBER, "strict": True},
    "degree": {"low": 1, "high": 1024, "integer": True},
    "coef0": {"low": 0.0, "high": LARGEST_NUMBER},
}
"""What `check_number` asks of the parameters of built-in kernels. A power of 1024 takes 2 beyond float64; a negative
constant makes the polynomial kernel indefinite, and the problem non-convex."""
FULL_ROWS = 16
"""Columns to an entry of sparse rows up to which products of written-out rows cost less (asv_bench/kernels.py)."""
DEFAULTS = {"gamma": "scale", "degree": 3, "coef0": 0.0}
POWER_ENTRIES = 1 << 15
"""Numbers that are raised to a power at once: they stay in the cache."""


def raised_to_degree(K: np.ndarray, degree: int) -> np.ndarray:
    """Raise numbers to a whole degree >= 1, in place: by squares, as NumPy's power takes a hundred times as long."""
    step = max(1, POWER_ENTRIES * K.shape[0] // max(1, K.size))
    for start in range(0, K.shape[0], step):
        part = K[start : start + step]
        base = part.copy()
        for bit in f"{degree:b}"[1:]:
            part *= part
            if bit == "1":
                part *= base
    return K


@quick_init
@dataclass(frozen=True)
class Kernel:
    """A kernel with its parameters filled in."""

    name: str  # "linear", "rbf", "poly", "precomputed", "callable", or that of a plugin's kernel
    params: dict[str, Any] = field(default_factory=dict)  # gamma, degree, coef0, or what a plugin's kernel declares
    function: Callable[[Any, Any], Any] | None = None  # k(A, B) -> (n, m) of the user or of a plugin
    # shape (d,), subtracted from both sides by rbf: distances keep their digits when the data lie far from the origin
    centre: np.ndarray | None = None
    explicit: ClassVar[Any] = None
    """Map to rows of a linear problem in place of the kernel's (a KernelApproximationMap); None: there is none."""

    def rows_of(self, X: Any) -> Rows:
        """Rows of an X for predictions, checked."""
        return check_rows(X)

    @property
    def exact(self) -> Kernel:
        """Kernel that a model of this kernel compares rows with."""
        return self

    def block(self, A: Rows, B: Rows) -> np.ndarray:
        """Kernel values between the rows of A (n, d) and of B (m, d), shape (n, m); what overflows is infinite."""
        centre = None if A.sparse or B.sparse else self.centre
        return self.tile(A, B, centre, self.squares(A, centre), self.squares(B, centre))

    def squares(self, rows: Rows, centre: np.ndarray | None) -> np.ndarray:
        """Squared lengths of rows less a centre, which `tile` makes values of; empty where it needs none."""
        return rows.squares(centre=centre) if self.name == "rbf" else np.empty(0)

    def tile(self, A: Rows, B: Rows, centre: np.ndarray | None, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Kernel values as `block` makes them, of rows whose `squares` are known."""
        with overflow_errstate():
            if self.name == "rbf":
                return self._gaussian(A, B, centre, left, right)
            K = A.inner(B)
            if self.name == "poly":
                K *= self.params["gamma"]
                K += self.params["coef0"]
                K = raised_to_degree(K, self.params["degree"])
        return K

    def _gaussian(self, A: Rows, B: Rows, centre: np.ndarray | None, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """exp(-gamma |a - b|^2), in place: one (n, m) array is all that a block may hold."""
        gamma = self.params["gamma"]
        K = np.ascontiguousarray(A.inner(B, centre))
        if gamma * (left.max(initial=0.0) + right.max(initial=0.0)) > FAR_LENGTH:
            K *= -2.0
            K += left[:, None]
            K += right
            _recompute_kernel_distances(K, A, B, gamma, np.add.outer(left, right))
            K *= -gamma
            np.minimum(K, 0.0, out=K)
            exponentials(K)
        else:
            gaussians(K, gamma * left, gamma * right, 2.0 * gamma)
        return K

    def diagonal(self, rows: Rows) -> np.ndarray:
        """k(x, x) of every row of a kernel that is `plain`."""
        if self.name == "rbf":
            return np.ones(rows.shape[0])
        with overflow_errstate():
            values = self.params["gamma"] * rows.squares() + self.params["coef0"]
            return raised_to_degree(values, self.params["degree"])

    @property
    def plain(self) -> bool:
        """Whether values are made of inner products of rows: then a part of a matrix costs that part of its price."""
        return self.name in ("rbf", "poly") and self.mapping() is None

    @property
    def title(self) -> str:
        """Name of this kernel in error messages."""
        return f"kernel {self.name!r}"

    @property
    def answering(self) -> str:
        """Name of this kernel where an error is about what it returned."""
        return self.title

    def mapping(self) -> Any:
        """Map that rows go through before the kernel compares them (a LandmarkMap); None: there is none."""
        return None

    def centred_copy(self, rows: Rows) -> tuple[Kernel, Rows]:
        """Kernel and rows for which all blocks between these rows cost less: in float64 and centred, if small.

        Sparse rows are written out where products of dense ones cost less.
        """
        m, d = rows.shape
        thin = rows.sparse and FULL_ROWS * rows.n_entries < m * d
        if thin or 8.0 * m * d > COPY_BYTES:
            return self, rows
        if not rows.sparse and self.centre is None and rows.dtype == np.float64:
            return self, rows
        out = np.empty(rows.shape)
        for span in rows.spans():
            np.subtract(rows.block(span), 0.0 if self.centre is None else self.centre, out=out[span])
        return replace(self, centre=None), DenseRows(out)


class CallableKernel(Kernel):
    """Kernel that is a user's function k(A, B), called with whole sets of rows."""

    def block(self, A: Rows, B: Rows) -> np.ndarray:
        """Kernel values that the user's function returns for all rows of A and of B, checked."""
        assert self.function is not None
        return _checked_kernel_values(self.function(A.matrix(), B.matrix()), A.shape[0], B.shape[0], self)

    @property
    def title(self) -> str:
        return "the callable kernel"


class BroughtKernel(Kernel):
    """Kernel of a plugin: `function` is that of its `KernelFunction`, with parameters."""

    @property
    def title(self) -> str:
        return title_in_error(self._brought, "kernel")

    @property
    def answering(self) -> str:
        return f"{self.title} is faulty: {type(self._brought).__name__}.values"

    @property
    def _brought(self) -> Any:
        """Object that has the method `values`."""
        return self.function.func.__self__  # type: ignore[union-attr]

    def block(self, A: Rows, B: Rows) -> np.ndarray:
        """Values from dense blocks of rows (or lists of objects) whose size does not depend on how many there are."""
        assert self.function is not None
        step = BLOCK_OBJECTS if isinstance(A, ObjectRows) else BLOCK_ENTRIES // A.shape[1]
        K = np.empty((A.shape[0], B.shape[0]))
        for rows in steps(A.shape[0], step):
            left = A.objects[rows] if isinstance(A, ObjectRows) else A.block(rows)
            for columns in steps(B.shape[0], step):
                right = B.objects[columns] if isinstance(B, ObjectRows) else B.block(columns)
                with ErrorNotes(self._brought, "kernel", "values"):
                    values = self.function(left, right)
                K[rows, columns] = _checked_kernel_values(values, len(left), len(right), self)
        return K

    def rows_of(self, X: Any) -> Rows:
        """Rows of an X for predictions, checked; objects where the kernel compares such."""
        kind = type(self._brought)
        return kernel_function_rows(kind, X) if kernel_function_takes_objects(kind) else check_rows(X)

    def encoded_rows(self, rows: ObjectRows) -> Mapping[str, Any]:
        """Values that a model file holds of objects."""
        values = call_with_error_notes(self._brought, "kernel", "encoded", rows.objects)
        if not isinstance(values, Mapping):
            raise faulty(self._brought, "kernel", "encoded", f"returned {came(values)}, a mapping is needed")
        return values

    def decoded_rows(self, values: dict[str, Any], n: int) -> ObjectRows:
        """Rows of n objects whose values a model file holds."""
        objects = call_with_error_notes(self._brought, "kernel", "decoded", values)
        if not isinstance(objects, list) or len(objects) != n:
            told = f"returned {came(objects)}, a list of {n} objects is needed"
            raise faulty(self._brought, "kernel", "decoded", told)
        return kernel_function_rows(type(self._brought), objects)


def _recompute_kernel_distances(K: np.ndarray, A: Rows, B: Rows, gamma: float, far: np.ndarray) -> None:
    """Recompute squared distances of the Gaussian kernel by differences where rows are far out and close together.

    |a|^2 + |b|^2 - 2 a.b has an error of d roundings of `far` = |a|^2 + |b|^2 at most. Where gamma makes that visible,
    clusters are far apart in units of the kernel's width: few entries are not 0, and those are worth their price.
    """
    error = A.shape[1] * np.finfo(float).eps
    i, j = np.nonzero((gamma * far > FAR_LENGTH) & (gamma * (K - error * far) < NEAR_DISTANCE))
    for piece in steps(i.shape[0], BLOCK_ENTRIES // A.shape[1]):
        left, right = A.take(i[piece]), B.take(j[piece])
        if A.sparse and B.sparse:
            K[i[piece], j[piece]] = np.ravel((left.matrix() - right.matrix()).power(2).sum(axis=1))
        else:
            difference = left.block(slice(None)) - right.block(slice(None))
            K[i[piece], j[piece]] = np.einsum("ij,ij->i", difference, difference)


def _checked_kernel_values(values: Any, n: int, m: int, kernel: Kernel) -> np.ndarray:
    """Return the values of a kernel function as a float64 block; TypeError or ValueError for anything else."""
    K = np.asarray(values)
    if K.dtype.kind not in "biuf":
        raise TypeError(f"{kernel.answering} returned values of dtype {K.dtype}; it needs to return real numbers")
    K = K.astype(np.float64, copy=False)
    if K.shape != (n, m):
        raise ValueError(f"{kernel.answering} returned shape {K.shape} for {n} and {m} rows; it needs to be ({n}, {m})")
    if not np.isfinite(K).all():
        raise ValueError(f"{kernel.answering} returned NaN or infinity; it needs to return finite numbers")
    return np.ascontiguousarray(K)


def split_kernel_parameters(
    kernel: Any, given: dict[str, Any], objective: Any
) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Split `given` into kernel parameters and the rest, and name the parameters that this kernel takes.

    `kernel` is a built-in name, a KernelFunction class or a callable, here and in `make_kernel`; `objective` has a
    name and parameters, none of which may be the kernel's.
    """
    known: tuple[str, ...] = ARGUMENTS
    if isinstance(kernel, str):
        known = (*PARAMETERS[kernel], *(ARGUMENTS if kernel not in EXPLICIT else ()))
    elif _is_plugin_kernel(kernel):
        known = (*kernel.parameters, *ARGUMENTS)
        both = [name for name in known if name in objective.parameters]
        if both:
            raise ValueError(
                f"kernel {kernel.name!r} and objective {objective.name!r} both have a parameter {both[0]!r}; use "
                "another kernel or another objective"
            )
    if not given:
        return {}, {}, known
    mine = {name: value for name, value in given.items() if name in known}
    return mine, {name: value for name, value in given.items() if name not in known}, known


def make_kernel(kernel: Any, given: dict[str, Any], X: Rows, counts: np.ndarray) -> Kernel:
    """Make a kernel with all parameters; gamma='scale' is 1 / (d Var X) over all entries, rows counted by weight."""
    if not isinstance(kernel, str):
        if _is_plugin_kernel(kernel):
            return make_plugin_kernel(kernel, given, float(counts.sum()))
        return CallableKernel("callable", {}, kernel)
    if not PARAMETERS[kernel]:
        return Kernel(kernel)
    params = {name: given.get(name, DEFAULTS[name]) for name in PARAMETERS[kernel]}
    if isinstance(params.get("gamma"), str):
        params["gamma"] = _kernel_gamma_of_rows(params["gamma"], X, counts)
    params = check_kernel_parameters(params)
    centre = X.adjoint(counts) / counts.sum() if kernel == "rbf" and not X.sparse else None
    return Kernel(kernel, params, None, centre)


def make_plugin_kernel(cls: type[KernelFunction], given: dict[str, Any], total: float) -> Kernel:
    """Make the kernel of a plugin: check given parameters, fill in defaults; `total` is m, the sum of the weights."""
    params: dict[str, Any] = ParametersWithErrorNotes.read_by(cls, "kernel", {})
    for name, parameter in cls.parameters.items():
        if name in given:
            params[name] = parameter.check(name, given[name])
            continue
        with ErrorNotes(cls, "kernel", "parameters"):
            params[name] = parameter.fill(params, total)
    return BroughtKernel(cls.name, params, partial(cls().values, params))


def _is_plugin_kernel(kernel: Any) -> bool:
    """Whether a kernel is a class of kernels that a plugin brings."""
    return isinstance(kernel, type) and issubclass(kernel, KernelFunction)


def check_kernel_parameters(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a built-in kernel as numbers; one sentence says what is wrong with one."""
    return {name: check_number(value, name, **RANGES[name]) for name, value in params.items()}


def _kernel_gamma_of_rows(gamma: str, X: Rows, counts: np.ndarray) -> float:
    """Value of gamma='scale' of a kernel over these rows; ValueError for another word."""
    if gamma != "scale":
        hint = did_you_mean(gamma, ["scale"])
        raise ValueError(f"gamma {gamma!r} is unknown; give 'scale' or a number > 0{hint}")
    d = X.shape[1]
    n = float(counts.sum()) * d
    mean = float(X.adjoint(counts).sum()) / n
    return kernel_gamma_of_variance(X.spread(counts, mean) / n, mean, d)


def kernel_gamma_of_variance(variance: float, mean: float, d: int) -> float:
    """Value of gamma="scale" of a kernel for d columns of entries of this variance and mean; 1 where it is rounding."""
    return 1.0 / (d * variance) if variance > (4.0 * np.finfo(float).eps * mean) ** 2 else 1.0
