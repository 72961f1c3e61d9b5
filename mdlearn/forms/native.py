"""Native functions of the margin: what a plugin brings as scipy.LowLevelCallable, checked and kept alive."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn._solvers.callbacks import Callback, evaluate
from mdlearn.data.rows.rows import steps

SIGNATURE = "double (double, void *)"
MARGINS_PER_CALL = 1 << 20
"""Margins that one call of the kernel takes: some milliseconds."""
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


def _check_native_owner(function: Any, owner: Any) -> None:
    """Raise TypeError for a native function that runs Python or has nobody to keep it alive, as far as it tells."""
    python = TypeError(
        "a native function cannot be a Python function behind ctypes or cffi: it would run without the interpreter's "
        "lock; compile it (C, Cython, numba.cfunc), or give the loss as NumPy functions"
    )
    if isinstance(function, FROM_CTYPES):
        kept = list(_kept_by_ctypes(function, set()))
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


def _kept_by_ctypes(one: Any, seen: set[int]) -> Any:
    """Everything that the ctypes object of a native function keeps alive."""
    if id(one) in seen:
        return
    seen.add(id(one))
    yield one
    objects = getattr(one, "_objects", None)
    for other in objects.values() if isinstance(objects, dict) else ():
        yield from _kept_by_ctypes(other, seen)
