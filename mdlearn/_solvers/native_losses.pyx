"""Sums over rows of a native loss: its values, multipliers, second derivatives, and its conjugate without a formula.

The conjugate at a slope s is s z - f(z) where z is the margin with f'(z) = s. The margin is looked up between knots of a
table, and found by the secant method there. A margin near it makes a bound: the tangent errs to the safe side.
"""

from libc.math cimport INFINITY, fabs, isfinite

from mdlearn._solvers.callbacks cimport Callback

cdef double ROUNDING = 2.0 * 2.220446049250313e-16  # of f(z) - s z, relative to its two parts
cdef double CLOSE_SLOPE = 64.0 * 2.220446049250313e-16  # share of s (1 + |z|) that a near margin may cost a bound
cdef int SECANT_STEPS = 8, MOST_STEPS = 60  # from the first number on the interval is halved, which ends before the second
cdef double WIDE = 0.1  # distance of two margins between which a cubic says too little
cdef Py_ssize_t FEW_KNOTS = 6  # that are looked at one by one


cdef class SlopeTable:
    """Knots of a convex loss, between which the margin of a slope is found.

    Parameters
    ----------
    knots : (U, 7) slopes, which rise, with the first and the last margin of each, the one nearest to 0, the second
    derivatives at first and last margin, and the conjugate;
    starts : (B + 1,) last knots that are not above the ends of B equal parts of the slopes from `low` on;
    scale : number of these parts per unit of slope.
    """

    cdef const double[:, ::1] knots
    cdef const Py_ssize_t[::1] starts
    cdef double low, scale

    def __init__(self, const double[:, ::1] knots, const Py_ssize_t[::1] starts, double low, double scale):
        cdef Py_ssize_t k
        if knots.shape[0] < 1 or knots.shape[1] != 7 or starts.shape[0] < 2:
            raise ValueError("a table of slopes needs seven numbers for each knot, and two starts")
        for k in range(starts.shape[0]):
            if not 0 <= starts[k] < knots.shape[0]:
                raise ValueError("a start of a table of slopes is no knot")
        self.knots, self.starts, self.low, self.scale = knots, starts, low, scale


cdef Py_ssize_t knot_below(SlopeTable table, double s) noexcept nogil:
    # The last knot whose slope is not above s, or else the first.
    cdef Py_ssize_t low = 0, high = table.knots.shape[0] - 1, middle
    cdef double place = (s - table.low) * table.scale
    if 0.0 <= place < table.starts.shape[0] - 1:
        middle = <Py_ssize_t> place
        low, high = table.starts[middle], table.starts[middle + 1]
        if high - low <= FEW_KNOTS:
            # One step or none for most slopes; those next to an end may have been rounded over it.
            while low > 0 and table.knots[low, 0] > s:
                low -= 1
            while low + 1 < table.knots.shape[0] and table.knots[low + 1, 0] <= s:
                low += 1
            return low
        low, high = max(low - 1, 0), min(high + 1, table.knots.shape[0] - 1)
    while low < high:
        middle = (low + high + 1) // 2
        if table.knots[middle, 0] <= s:
            low = middle
        else:
            high = middle - 1
    return low


cdef double least(SlopeTable table, Callback value, Callback slope, double s) noexcept nogil:
    # Lower bound of min_t f(t) - s t.
    cdef Py_ssize_t last = table.knots.shape[0] - 1
    cdef double c = min(max(s, table.knots[0, 0]), table.knots[last, 0])
    cdef Py_ssize_t k = knot_below(table, c)
    cdef const double* a = &table.knots[k, 0]
    cdef const double* b = &table.knots[min(k + 1, last), 0]
    cdef double low = a[2], high = b[1], z = a[3], miss = 0.0, room = 0.0
    cdef double f, bend, rise, share, width, there, before = 0.0, at = 0.0
    cdef int turn = 0
    if a[0] < c:
        rise, width = b[0] - a[0], high - low
        share, bend = (c - a[0]) / rise, rise / width
        z = low + width * share
        if a[5] > 0.0 and b[4] > 0.0:  # the cubic whose ends have the margins and second derivatives of the knots
            there = z + share * (1.0 - share) * (
                (1.0 - share) * (rise / a[5] - width) - share * (rise / b[4] - width)
            )
            if low < there < high:
                z, bend = there, a[5] + (b[4] - a[5]) * (there - low) / width
        while True:
            miss = slope.function(z, slope.data) - c
            if turn > 0 and (miss - before) * (z - at) > 0.0:
                bend = (miss - before) / (z - at)
            if miss <= 0.0:
                low = z
            if miss >= 0.0:
                high = z
            room = high - z if miss < 0.0 else z - low
            if fabs(miss) * room <= CLOSE_SLOPE * fabs(c) * (1.0 + fabs(z)):
                break
            if high - low <= ROUNDING * fabs(z) or turn == MOST_STEPS:
                break
            before, at, there = miss, z, z - miss / bend
            z = there if turn < SECANT_STEPS and low < there < high else 0.5 * (low + high)
            turn += 1
    f = value.function(z, value.data)
    if a[0] == c:
        miss, room = 0.0, 0.0
    return f - s * z - fabs(miss) * room - ROUNDING * (fabs(f) + fabs(s * z))


cdef double interpolated(SlopeTable table, Callback value, Callback slope, double s) noexcept nogil:
    # min_t f(t) - s t from the cubic between two knots, of which the conjugate is known with its slope.
    cdef Py_ssize_t last = table.knots.shape[0] - 1
    cdef double c = min(max(s, table.knots[0, 0]), table.knots[last, 0])
    cdef Py_ssize_t k = knot_below(table, c)
    cdef const double* a = &table.knots[k, 0]
    cdef const double* b = &table.knots[min(k + 1, last), 0]
    cdef double width = b[0] - a[0], rise = b[6] - a[6], share
    if a[0] == c:
        return -a[6]
    if not b[1] - a[2] < WIDE:
        return least(table, value, slope, s)
    share = (c - a[0]) / width
    return -(a[6] + share * rise + share * (1.0 - share) * (
        (1.0 - share) * (a[2] * width - rise) - share * (b[1] * width - rise)
    ))


def losses(
    Callback value not None, const double[::1] z, const double[::1] counts, double low, double high, double less,
):
    """Return the sum of counts times f(t) - less, at margins z that are clipped to [low, high]."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    if counts.shape[0] != z.shape[0]:
        raise ValueError("margins and counts differ in length")
    with nogil:
        for i in range(z.shape[0]):
            total += counts[i] * (value.function(min(max(z[i], low), high), value.data) - less)
    return total


def slopes(
    Callback slope not None, const double[::1] z, const double[::1] counts, double weight, int side, double low,
    double high, double[::1] out,
):
    """Write multipliers at margins z, clipped to [low, high]: weight times counts times how far f falls to its side."""
    cdef Py_ssize_t i
    if counts.shape[0] != z.shape[0] or out.shape[0] != z.shape[0]:
        raise ValueError("margins, counts and multipliers differ in length")
    with nogil:
        for i in range(z.shape[0]):
            out[i] = weight * counts[i] * max(-side * slope.function(min(max(z[i], low), high), slope.data), 0.0)


def bends(
    Callback bend not None, Callback slope, const double[::1] z, const double[::1] counts, double weight, int side,
    double low, double high, double[::1] out,
):
    """Write second derivatives at margins z, clipped to [low, high]; those of the other side are 0, told by `slope`.

    Without `slope` the loss has no other side.
    """
    cdef Py_ssize_t i
    cdef double t, fall
    cdef bint two = slope is not None
    if counts.shape[0] != z.shape[0] or out.shape[0] != z.shape[0]:
        raise ValueError("margins, counts and second derivatives differ in length")
    with nogil:
        for i in range(z.shape[0]):
            t = min(max(z[i], low), high)
            if two:
                fall = slope.function(t, slope.data)
                if not (fall <= 0.0 if side > 0 else fall > 0.0):
                    out[i] = 0.0
                    continue
            out[i] = weight * counts[i] * max(bend.function(t, bend.data), 0.0)


def bound(
    SlopeTable table not None, Callback value not None, Callback slope not None, Callback conjugate,
    const double[::1] beta, const double[::1] counts, double weight, int side, double less,
):
    """Return a lower bound of the sum of weight times counts times min_t f(t) - less - s t, at slopes of multipliers.

    From the conjugate where there is one that is finite, else from margins that are looked up.
    """
    cdef Py_ssize_t i
    cdef double factor, s, found, total = 0.0
    cdef bint known = conjugate is not None
    if counts.shape[0] != beta.shape[0]:
        raise ValueError("multipliers and counts differ in length")
    with nogil:
        for i in range(beta.shape[0]):
            factor = weight * counts[i]
            if factor > 0.0:
                s = -side * beta[i] / factor
                found = -conjugate.function(s, conjugate.data) if known else INFINITY
                if not isfinite(found):
                    found = least(table, value, slope, s)
                total += factor * (found - less)
    return total


def estimate(
    SlopeTable table not None, Callback value not None, Callback slope not None, const double[::1] beta,
    const double[::1] counts, double weight, int side, double less,
):
    """Return what `bound` does but for some digits, from the table alone where margins are near 0."""
    cdef Py_ssize_t i
    cdef double factor, total = 0.0
    if counts.shape[0] != beta.shape[0]:
        raise ValueError("multipliers and counts differ in length")
    with nogil:
        for i in range(beta.shape[0]):
            factor = weight * counts[i]
            if factor > 0.0:
                total += factor * (interpolated(table, value, slope, -side * beta[i] / factor) - less)
    return total
