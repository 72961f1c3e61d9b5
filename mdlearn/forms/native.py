"""Native functions of the margin: what a plugin brings as scipy.LowLevelCallable, checked, kept alive, and summed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn._solvers import native_losses
from mdlearn._solvers.callbacks import Callback, evaluate
from mdlearn.data.rows.rows import steps

SIGNATURE = "double (double, void *)"
MARGINS_PER_CALL = 1 << 20
"""Margins that one call of the kernel takes: some milliseconds."""
SLOPE_PARTS = 8192
"""Equal parts of the slopes at margins near 0, from which the search for a knot begins."""
NEAR_KNOTS = 2561
"""Margins near 0 at which slopes are noted; between two of them the cubic has ten digits of a logistic loss."""
FROM_CTYPES: Any = ctypes.CFUNCTYPE(None).__base__


class NativeFunction:
    """Native, compiled function of the margin, called without the interpreter; also a function of arrays.

    Parameters
    ----------
    function : scipy.LowLevelCallable, or what numba.cfunc returns
        Of signature ``double (double, void *)``: a margin, and the parameters. In Cython it needs to be
        ``noexcept nogil``. It is called from several threads and without the interpreter's lock.
    params : sequence of float, default ()
        What its second argument points to, as doubles; kept here. A null pointer when empty.
    owner : object, optional
        What else is kept as long. A function of cffi needs its library here, which is unloaded when nobody holds it.

    Raises
    ------
    TypeError
        For anything else: another signature, data of its own, a Python function behind ctypes or cffi, a bare address,
        which nothing keeps alive, or a function of cffi without its library.
    """

    def __init__(self, function: Any, params: Sequence[float] = (), owner: Any = None) -> None:
        from scipy import LowLevelCallable

        compiled = None
        if hasattr(function, "address") and hasattr(function, "ctypes"):  # numba
            compiled, function = function, LowLevelCallable(function.ctypes)
        if not isinstance(function, LowLevelCallable):
            raise TypeError(f"a native function needs to be a scipy.LowLevelCallable; got {function!r}")
        if function.signature != SIGNATURE:
            raise TypeError(f"a native function needs the signature {SIGNATURE!r}; this one has {function.signature!r}")
        if function.user_data is not None:
            raise TypeError("a native function with user_data cannot be kept alive; give its numbers as params")
        source = function.function
        while isinstance(source, LowLevelCallable):
            source = source.function
        if compiled is None:
            _check_native_owner(source, owner)
        self.params = np.array(params, dtype=np.float64)
        if self.params.ndim != 1 or not np.isfinite(self.params).all():
            raise ValueError(f"params of a native function need to be a list of finite numbers; got {params!r}")
        capsule = tuple.__getitem__(function, 0)
        self.callback = Callback(capsule, self.params, (compiled, function, owner))

    def __call__(self, t: np.ndarray) -> np.ndarray:
        """Return the function's value at every entry of a float64 array (n,)."""
        t = np.ascontiguousarray(t, dtype=np.float64)
        out = np.empty_like(t)
        for part in steps(t.shape[0], MARGINS_PER_CALL):
            evaluate(self.callback, t[part], out[part])
        return out


class NativeSums:
    """Sums of a native loss over rows.

    `functions`: value, derivative and second derivative; `conjugate`: None: margins of slopes are looked up; `margins`
    (shape (G,)): in rising order, between the first and the last of which the functions are finite; `near`: margins
    between which most rows are expected, within these; `bottom`, `lowest`: margin at which a loss that falls and rises
    is least, with its value there.
    """

    def __init__(
        self,
        functions: Sequence[NativeFunction],
        conjugate: NativeFunction | None,
        margins: np.ndarray,
        near: tuple[float, float],
        bottom: float | None,
        lowest: float,
    ) -> None:
        self.value, self.slope, self.bend = (one.callback for one in functions)
        self.conjugate = None if conjugate is None else conjugate.callback
        self.domain, self.bottom, self.lowest = (float(margins[0]), float(margins[-1])), bottom, lowest
        margins = np.union1d(margins, np.linspace(*near, NEAR_KNOTS))
        values, slopes, seconds = (one(margins) for one in functions)
        slopes = np.maximum.accumulate(slopes)
        s, first = np.unique(slopes, return_index=True)
        last = np.append(first[1:], slopes.shape[0]) - 1
        nearest = np.clip(np.searchsorted(margins, 0.0), first, last)
        with np.errstate(over="ignore", invalid="ignore"):
            conjugate_values = s * margins[nearest] - values[nearest]
        knots = [s, margins[first], margins[last], margins[nearest], seconds[first], seconds[last], conjugate_values]
        low, high = (float(slopes[np.searchsorted(margins, t)]) for t in near)
        ends = np.linspace(low, high, SLOPE_PARTS + 1)
        starts = np.maximum(np.searchsorted(s, ends, side="right") - 1, 0).astype(np.intp)
        scale = SLOPE_PARTS / (high - low) if high > low else 0.0
        self.table = native_losses.SlopeTable(np.ascontiguousarray(np.transpose(knots)), starts, low, scale)

    def losses(self, z: np.ndarray, counts: np.ndarray, side: int) -> float:
        """Sum of one side of the loss."""
        low, high = -np.inf, np.inf
        if self.bottom is not None:
            low, high = (low, self.bottom) if side > 0 else (self.bottom, high)
        z, less = np.ascontiguousarray(z), self._value_shift(side)
        parts = steps(z.shape[0], MARGINS_PER_CALL)
        return sum(native_losses.losses(self.value, z[part], counts[part], low, high, less) for part in parts)

    def slopes(self, z: np.ndarray, counts: np.ndarray, weight: float, side: int) -> np.ndarray:
        """Multipliers at margins z."""
        z, out = np.ascontiguousarray(z), np.empty(z.shape[0])
        for part in steps(z.shape[0], MARGINS_PER_CALL):
            native_losses.slopes(self.slope, z[part], counts[part], weight, side, *self.domain, out[part])
        return out

    def curvatures(self, z: np.ndarray, counts: np.ndarray, weight: float, side: int) -> np.ndarray:
        """Second derivatives at margins z."""
        z, out, slope = np.ascontiguousarray(z), np.empty(z.shape[0]), None if self.bottom is None else self.slope
        for part in steps(z.shape[0], MARGINS_PER_CALL):
            native_losses.bends(self.bend, slope, z[part], counts[part], weight, side, *self.domain, out[part])
        return out

    def bound(self, beta: np.ndarray, counts: np.ndarray, weight: float, side: int) -> float:
        """Contribution of multipliers within their caps to a lower bound."""
        beta, functions = np.ascontiguousarray(beta), (self.table, self.value, self.slope, self.conjugate)
        numbers = weight, side, self._value_shift(side)
        parts = steps(beta.shape[0], MARGINS_PER_CALL)
        return sum(native_losses.bound(*functions, beta[part], counts[part], *numbers) for part in parts)

    def estimate(self, beta: np.ndarray, counts: np.ndarray, weight: float, side: int) -> float:
        """Return that contribution but for some digits, mostly without a call of the loss."""
        beta, functions = np.ascontiguousarray(beta), (self.table, self.value, self.slope)
        return native_losses.estimate(*functions, beta, counts, weight, side, self._value_shift(side))

    def _value_shift(self, side: int) -> float:
        """Return what every row's value is less than the function's."""
        return 0.0 if side > 0 else self.lowest


def _check_native_owner(function: Any, owner: Any) -> None:
    """Raise TypeError for a native function that runs Python or has nobody to keep it alive, as far as it tells."""
    python = TypeError(
        "a native function cannot be a Python function behind ctypes or cffi: it would run without the interpreter's "
        "lock; compile it (C, Cython, numba.cfunc), or give the loss as NumPy functions"
    )
    if isinstance(function, FROM_CTYPES):
        kept = list(_kept_by_native_function(function, set()))
        if any(type(one).__name__ == "CThunkObject" or isinstance(one, ctypes.PyDLL) for one in kept):
            raise python
        if not any(isinstance(one, ctypes.CDLL) for one in kept):
            raise TypeError(
                "a native function that is a bare address is kept alive by nobody; take it from its library "
                "(ctypes.CDLL), or give the capsule or numba function itself"
            )
    elif type(function).__module__ == "_cffi_backend":
        if " calling " in repr(function):
            raise python
        if owner is None:
            raise TypeError("a function of cffi does not keep its library loaded; give the library as owner=lib")


def _kept_by_native_function(one: Any, seen: set[int]) -> Any:
    """Everything that the ctypes object of a native function keeps alive."""
    if id(one) in seen:
        return
    seen.add(id(one))
    yield one
    objects = getattr(one, "_objects", None)
    for other in objects.values() if isinstance(objects, dict) else ():
        yield from _kept_by_native_function(other, seen)
