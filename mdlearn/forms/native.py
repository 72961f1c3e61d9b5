"""Native functions of the margin: what a plugin brings as scipy.LowLevelCallable, checked, kept alive, and summed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mdlearn._solvers import callbacks, native_losses
from mdlearn._solvers.callbacks import Callback, evaluate
from mdlearn.data.rows.rows import steps
from mdlearn.numerics.lazy_property import kept

SIGNATURE = "double (double, void *)"
MARGINS_PER_CALL = 1 << 20
"""Margins that one call of the kernel takes: some milliseconds."""
SLOPE_PARTS = 8192
"""Equal parts of the slopes at margins near 0, from which the search for a knot begins."""
NEAR_KNOTS = 2561
"""Margins near 0 at which slopes are noted; between two of them the cubic has ten digits of a logistic loss."""
FAR_KNOTS = 801
"""Margins up to twice as far at which they are noted, too: small slopes lie there, whose conjugates many rows need."""
TABLE_MARGIN = 16.0
"""Margin, on either side, up to which engines take a loss from polynomials."""
TABLE_PARTS = 2048
"""Parts of these margins, each with a polynomial of degree 5: of a logistic loss it has all digits of the value."""
TABLE_ROWS = 64
"""Rows from which such polynomials are made, once for a loss: they cost a fifth of its checks."""
CONJUGATE_ROWS = 512
"""Rows from which those of a conjugate are made: they cost what a loss of so many rows does in some fits."""
TABLE_ROUNDING = (2.0**-48, 0.0), (1e-9, 1e-12), (1e-5, 0.0)
"""Errors of value, slope and second derivative, as shares of what they are there and at most, up to which polynomials
are used; elsewhere the functions are called."""
CONJUGATE_ROUNDING = 1e-9
"""The same of a conjugate, which serves estimates alone."""
STEEPEST_TABLE = 1e50
"""Slope from which slopes have no bound."""
PLACE_BITS, OCTAVE_BITS = 48, 4
"""Bits of a slope that say where in its part of an octave it is, and which part that is, as the kernel has it."""
SLOPE_OCTAVES = 24
"""Halvings of the largest slope down to which the conjugate has polynomials, from either end."""
STEEP_OCTAVES = 8
"""Doublings of the slope 1 up to which it has them where slopes have no bound."""
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
        self.functions = tuple(functions)
        self.value, self.slope, self.bend = (one.callback for one in functions)
        self.conjugate = None if conjugate is None else conjugate.callback
        self.domain, self.bottom = (float(margins[0]), float(margins[-1])), bottom
        # Margins to which each side is clipped, and what its values are less than the function's.
        self.sides = {1: (-np.inf, np.inf, 0.0), -1: (-np.inf, np.inf, lowest)}
        if bottom is not None:
            self.sides = {1: (-np.inf, bottom, 0.0), -1: (bottom, np.inf, lowest)}
        far = np.linspace(2.0 * near[0], 2.0 * near[1], FAR_KNOTS)
        far = far[(far > self.domain[0]) & (far < self.domain[1])]
        margins = np.unique(np.concatenate([margins, np.linspace(*near, NEAR_KNOTS), far]))
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
        if z.shape[0] <= MARGINS_PER_CALL:
            return callbacks.losses(self.value, np.ascontiguousarray(z), counts, *self.sides[side])
        return sum(self.losses(z[part], counts[part], side) for part in steps(z.shape[0], MARGINS_PER_CALL))

    def estimated_losses(self, z: np.ndarray, counts: np.ndarray, side: int) -> float:
        """Return `losses` but for some digits, without a call of the loss at margins near 0."""
        if z.shape[0] < TABLE_ROWS:
            return self.losses(z, counts, side)
        return self.near.losses(np.ascontiguousarray(z), counts, *self.sides[side])

    def slopes(self, z: np.ndarray, counts: np.ndarray, weight: float, side: int, most: float) -> np.ndarray:
        """Multipliers at margins z, of slopes up to `most`; of many rows but for some digits."""
        z, out = np.ascontiguousarray(z), np.empty(z.shape[0])
        if z.shape[0] >= TABLE_ROWS:
            self.near.multipliers(z, counts, weight, side, *self.domain, most, out)
            return out
        for part in steps(z.shape[0], MARGINS_PER_CALL):
            callbacks.slopes(self.slope, z[part], counts[part], weight, side, *self.domain, out[part])
        return out

    def curvatures(self, z: np.ndarray, counts: np.ndarray, weight: float, side: int) -> np.ndarray:
        """Second derivatives at margins z; of many rows but for some digits."""
        z, out, slope = np.ascontiguousarray(z), np.empty(z.shape[0]), None if self.bottom is None else self.slope
        if z.shape[0] >= TABLE_ROWS:
            self.near.bends(z, counts, weight, side, slope is not None, *self.domain, out)
            return out
        for part in steps(z.shape[0], MARGINS_PER_CALL):
            callbacks.bends(self.bend, slope, z[part], counts[part], weight, side, *self.domain, out[part])
        return out

    def bound(
        self,
        beta: np.ndarray,
        counts: np.ndarray,
        weight: float,
        side: int,
        conjugate: native_losses.ConjugateTable | None = None,
    ) -> float:
        """Contribution of multipliers within their caps to a lower bound; a table spares a search of margins."""
        if beta.shape[0] > MARGINS_PER_CALL:
            parts = steps(beta.shape[0], MARGINS_PER_CALL)
            return sum(self.bound(beta[part], counts[part], weight, side, conjugate) for part in parts)
        functions, less = (self.table, self.value, self.slope, self.conjugate), self.sides[side][2]
        return native_losses.bound(*functions, np.ascontiguousarray(beta), counts, weight, side, less, conjugate)

    def estimate(
        self,
        beta: np.ndarray,
        counts: np.ndarray,
        weight: float,
        side: int,
        conjugate: native_losses.ConjugateTable | None = None,
    ) -> float:
        """Return that contribution but for some digits, mostly without a call of the loss."""
        beta, functions = np.ascontiguousarray(beta), (self.table, self.value, self.slope)
        return native_losses.estimate(*functions, beta, counts, weight, side, self.sides[side][2], conjugate)

    @kept
    def near(self) -> native_losses.NearTable:
        """Polynomials of the loss at margins near 0, that have nearly all digits where they are used."""
        ends = np.linspace(-TABLE_MARGIN, TABLE_MARGIN, TABLE_PARTS + 1)
        width = 2.0 * TABLE_MARGIN / TABLE_PARTS
        values, slopes, bends = (one(ends) for one in self.functions)
        parts = _quintics(values, slopes, bends, np.full(TABLE_PARTS, width))
        u = np.linspace(0.25, 0.75, 3)[:, None]
        places = (ends[:-1] + width * u).ravel()
        found = [_at_quintics(parts, u, order) / width**order for order in range(3)]
        wrong = np.zeros(TABLE_PARTS, dtype=bool)
        for (share, least), there, one, ours in zip(TABLE_ROUNDING, (values, slopes, bends), self.functions, found):
            size = np.abs(there[1:]) + np.abs(there[:-1])
            off = np.abs(one(places).reshape(ours.shape) - ours)
            wrong |= ~(off <= share * size + least * float(size.max())).all(axis=0)
        parts[wrong] = np.nan
        return native_losses.NearTable(
            parts, np.maximum.accumulate(slopes), -TABLE_MARGIN, 1.0 / width, self.value, self.slope, self.bend
        )

    def conjugate_table(
        self, margins_of: Callable[[np.ndarray], np.ndarray], side: int, cap: float
    ) -> native_losses.ConjugateTable:
        """Polynomials of minus the conjugate of one side with slopes up to `cap`; `margins_of`: those of slopes."""
        bounded = cap < STEEPEST_TABLE
        first = 2.0**-SLOPE_OCTAVES * (0.5 * cap if bounded else 1.0)
        count = ((SLOPE_OCTAVES + (0 if bounded else STEEP_OCTAVES)) << OCTAVE_BITS) + 1
        begin = int(np.array(first).view(np.int64)) >> PLACE_BITS
        x = (np.arange(begin, begin + count + 1) << PLACE_BITS).view(np.float64)
        x = np.concatenate([x, 0.5 * (x[1:] + x[:-1])])
        tables = []
        for far in (False, True):
            table, b = np.full((count, 7), np.nan), cap - x if far else x
            if bounded or not far:
                t = margins_of(-side * b)
                with np.errstate(all="ignore"):
                    least, bend = self.functions[0](t) + side * b * t, -1.0 / self.functions[2](t)
                    ends, width = slice(count + 1), np.diff(x[: count + 1])
                    table[:, :6] = _quintics(least[ends], (-side if far else side) * t[ends], bend[ends], width)
                    table[:, 6] = 1.0 / width
                    off = np.abs(_at_quintics(table, 0.5, 0) - least[count + 1 :])
                    size = np.abs(least) + np.abs(b * t)
                    table[~(off <= CONJUGATE_ROUNDING * size[count + 1 :])] = np.nan
            tables.append(table)
        return native_losses.ConjugateTable(self.near, np.array(tables), cap if bounded else np.inf, first)


def _quintics(values: np.ndarray, slopes: np.ndarray, bends: np.ndarray, width: np.ndarray) -> np.ndarray:
    """Coefficients (K, 6) of polynomials on (0, 1) that meet values and two derivatives at K + 1 ends."""
    first, second = width * slopes[:-1], 0.5 * width * width * bends[:-1]
    rise = np.diff(values) - first - second
    turn = width * slopes[1:] - first - 2.0 * second
    bent = 0.5 * width * width * bends[1:] - second
    higher = [10.0 * rise - 4.0 * turn + bent, -15.0 * rise + 7.0 * turn - 2.0 * bent, 6.0 * rise - 3.0 * turn + bent]
    flat = (bends[1:] == 0.0) & (bends[:-1] == 0.0) & (slopes[1:] == slopes[:-1])
    parts = np.stack([values[:-1], first, second, *higher], axis=1)
    parts[flat, 2:] = 0.0  # rounding would bend it
    return parts


def _at_quintics(parts: np.ndarray, u: Any, order: int) -> np.ndarray:
    """Values (0), slopes (1) or second derivatives (2) of polynomials at places on (0, 1), per unit of place."""
    c, powers = parts.T, [u**k for k in range(6)]
    factors = [(1, 1, 1, 1, 1, 1), (0, 1, 2, 3, 4, 5), (0, 0, 2, 6, 12, 20)][order]
    return np.asarray(sum(factors[k] * c[k] * powers[k - order] for k in range(order, 6)))


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
