"""Sums over rows of a native loss: its values, multipliers, second derivatives, and its conjugate without a formula.

The conjugate at a slope s is s z - f(z) where z is the margin with f'(z) = s. The margin is looked up between knots of a
table, and found by the secant method there. A margin near it makes a bound: the tangent errs to the safe side.
"""

from libc.math cimport INFINITY, NAN, fabs, isfinite
from libc.string cimport memcpy

from mdlearn._solvers.callbacks cimport Callback, call_for_the_rest
from mdlearn._solvers.loss_polynomials cimport (
    PLACE_BITS, slopes_of, table_bends, table_conjugates, table_margins, table_slopes, table_values, weighted_sum,
)

cdef enum:
    BLOCK = 128  # rows that go through every step together: calls for one do not wait for those of another

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


cdef inline bint settled(double miss, double room, double c, double z) noexcept nogil:
    # Whether the tangent at a margin z costs a bound no more than rounding does.
    return fabs(miss) * room <= CLOSE_SLOPE * fabs(c) * (1.0 + fabs(z))


cdef double refined(
    Callback value, Callback slope, double s, double c, double z, double bend, double low, double high,
) noexcept nogil:
    # Lower bound of min_t f(t) - s t, from a margin between two whose slopes are not above and not below c.
    cdef double f, miss, room, there, before = 0.0, at = 0.0
    cdef int turn = 0
    while True:
        miss = slope.function(z, slope.data) - c
        if turn > 0 and (miss - before) * (z - at) > 0.0:
            bend = (miss - before) / (z - at)
        if miss <= 0.0:
            low = z
        if miss >= 0.0:
            high = z
        room = high - z if miss < 0.0 else z - low
        if settled(miss, room, c, z):
            break
        if high - low <= ROUNDING * fabs(z) or turn == MOST_STEPS:
            break
        before, at, there = miss, z, z - miss / bend
        z = there if turn < SECANT_STEPS and low < there < high else 0.5 * (low + high)
        turn += 1
    f = value.function(z, value.data)
    return f - s * z - fabs(miss) * room - ROUNDING * (fabs(f) + fabs(s * z))


cdef double least(SlopeTable table, Callback value, Callback slope, double s) noexcept nogil:
    # Lower bound of min_t f(t) - s t.
    cdef Py_ssize_t last = table.knots.shape[0] - 1
    cdef double c = min(max(s, table.knots[0, 0]), table.knots[last, 0])
    cdef Py_ssize_t k = knot_below(table, c)
    cdef const double* a = &table.knots[k, 0]
    cdef const double* b = &table.knots[min(k + 1, last), 0]
    cdef double low = a[2], high = b[1], z = a[3]
    cdef double f, bend, rise, share, width, there
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
        return refined(value, slope, s, c, z, bend, low, high)
    f = value.function(z, value.data)
    return f - s * z - ROUNDING * (fabs(f) + fabs(s * z))


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


cdef class NearTable:
    """Polynomials of a loss on equal parts of the margins near 0: engines need some digits less than the functions have.

    Parameters
    ----------
    parts : (K, 6) coefficients of 1, u, ..., u^5 in every part, on which u is from 0 to 1; no numbers where the functions
    themselves are called;
    slopes : (K + 1,) at the ends of the parts, in rising order;
    low : margin at which the first part begins; scale : parts per unit of margin;
    value, slope, bend : the functions.
    """

    cdef const double[:, ::1] parts
    cdef const double[::1] slopes
    cdef double low, scale
    cdef Callback value, slope, bend

    def __init__(
        self, const double[:, ::1] parts, const double[::1] slopes, double low, double scale, Callback value not None,
        Callback slope not None, Callback bend not None,
    ):
        if parts.shape[0] < 3 or parts.shape[1] != 6 or slopes.shape[0] != parts.shape[0] + 1:
            raise ValueError("a table of a loss needs six numbers for each of three parts or more, and slopes between")
        self.parts, self.slopes, self.low, self.scale = parts, slopes, low, scale
        self.value, self.slope, self.bend = value, slope, bend

    def losses(self, const double[::1] z, const double[::1] counts, double low, double high, double less):
        """Return the sum of counts times f(t) - less, at margins z that are clipped to [low, high]."""
        cdef Py_ssize_t first, n
        cdef double[BLOCK] t, found
        cdef double total = 0.0
        if counts.shape[0] != z.shape[0]:
            raise ValueError("margins and counts differ in length")
        with nogil:
            for first from 0 <= first < z.shape[0] by BLOCK:
                n = clipped(z, first, low, high, t)
                table_values(t, n, &self.parts[0, 0], self.parts.shape[0], self.low, self.scale, found)
                call_for_the_rest(self.value, t, n, found)
                total += weighted_sum(found, &counts[first], 1.0, less, n)
        return total

    def multipliers(
        self, const double[::1] z, const double[::1] counts, double weight, int side, double low, double high,
        double most, double[::1] out,
    ):
        """Write multipliers as `slopes` does, of slopes that are no larger than `most`."""
        cdef Py_ssize_t i, first, n
        cdef double t[BLOCK]
        cdef double found[BLOCK]
        if counts.shape[0] != z.shape[0] or out.shape[0] != z.shape[0]:
            raise ValueError("margins, counts and multipliers differ in length")
        with nogil:
            for first from 0 <= first < z.shape[0] by BLOCK:
                n = clipped(z, first, low, high, t)
                slopes_at(self, t, n, found)
                for i in range(n):
                    out[first + i] = weight * counts[first + i] * min(max(-side * found[i], 0.0), most)

    def bends(
        self, const double[::1] z, const double[::1] counts, double weight, int side, bint two, double low,
        double high, double[::1] out,
    ):
        """Write second derivatives as the function of that name does; `two`: the loss has another side."""
        cdef Py_ssize_t i, first, n
        cdef double t[BLOCK]
        cdef double found[BLOCK]
        cdef double fall[BLOCK]
        if counts.shape[0] != z.shape[0] or out.shape[0] != z.shape[0]:
            raise ValueError("margins, counts and second derivatives differ in length")
        with nogil:
            for first from 0 <= first < z.shape[0] by BLOCK:
                n = clipped(z, first, low, high, t)
                bends_at(self, t, n, found)
                if two:
                    slopes_at(self, t, n, fall)
                    for i in range(n):
                        found[i] = found[i] if (fall[i] <= 0.0 if side > 0 else fall[i] > 0.0) else 0.0
                for i in range(n):
                    out[first + i] = weight * counts[first + i] * max(found[i], 0.0)


cdef inline Py_ssize_t clipped(const double[::1] z, Py_ssize_t first, double low, double high, double* t) noexcept nogil:
    # Write some margins from the first on, clipped; return their number.
    cdef Py_ssize_t i, n = min(<Py_ssize_t> BLOCK, z.shape[0] - first)
    for i in range(n):
        t[i] = min(max(z[first + i], low), high)
    return n


cdef inline void slopes_at(NearTable table, const double* t, Py_ssize_t n, double* found) noexcept nogil:
    table_slopes(t, n, &table.parts[0, 0], table.parts.shape[0], table.low, table.scale, found)
    call_for_the_rest(table.slope, t, n, found)


cdef inline void bends_at(NearTable table, const double* t, Py_ssize_t n, double* found) noexcept nogil:
    table_bends(t, n, &table.parts[0, 0], table.parts.shape[0], table.low, table.scale, found)
    call_for_the_rest(table.bend, t, n, found)


cdef class ConjugateTable:
    """Polynomials of minus the conjugate of one side of a loss, on parts of its slopes that widen from both ends.

    Parameters
    ----------
    near : table of the loss;
    parts : (2, K, 7) coefficients of 1, u, ..., u^5 in every part, on which u is from 0 to 1, and one over its width:
    first those of slopes b > 0 up to half of the largest, then those of what slopes lack to the largest; no numbers
    where there is no polynomial;
    cap : largest slope, which may be infinite; first : number at which the first part begins.
    """

    cdef NearTable near
    cdef const double[:, :, ::1] parts
    cdef double cap
    cdef long long first

    def __init__(self, NearTable near not None, const double[:, :, ::1] parts, double cap, double first):
        cdef long long bits
        if parts.shape[0] != 2 or parts.shape[1] < 1 or parts.shape[2] != 7:
            raise ValueError("a table of a conjugate needs seven numbers for each part, from both ends")
        memcpy(&bits, &first, sizeof(double))
        self.near, self.parts, self.cap, self.first = near, parts, cap, bits >> PLACE_BITS


cdef void least_of_block(
    ConjugateTable known, NearTable near, SlopeTable table, Callback value, Callback slope, const double* b, int side,
    Py_ssize_t n, double* found,
) noexcept nogil:
    # Lower bounds of min_t f(t) - s t at s = -side b, from the margins that the table has, between two of known slopes.
    cdef Py_ssize_t i, k
    cdef double z[BLOCK]
    cdef double bend[BLOCK]
    cdef double low[BLOCK]
    cdef double miss[BLOCK]
    cdef double s, room, f, width = 1.0 / near.scale
    table_margins(b, n, &known.parts[0, 0, 0], known.parts.shape[1], known.cap, known.first, z)
    for i in range(n):
        z[i] *= side
    table_bends(z, n, &near.parts[0, 0], near.parts.shape[0], near.low, near.scale, bend)
    table_slopes(z, n, &near.parts[0, 0], near.parts.shape[0], near.low, near.scale, miss)
    for i in range(n):
        s, low[i] = -side * b[i], NAN
        z[i] -= (miss[i] - s) / bend[i] if bend[i] > 0.0 else 0.0
        f = (z[i] - near.low) * near.scale
        if 1.0 <= f < near.parts.shape[0] - 1 and bend[i] > 0.0:
            k = <Py_ssize_t> f
            if near.slopes[k - 1] <= s <= near.slopes[k + 2]:
                low[i] = near.low + (k - 1) * width
    for i in range(n):
        if low[i] == low[i]:
            miss[i] = slope.function(z[i], slope.data) + side * b[i]
    for i in range(n):
        s = -side * b[i]
        if low[i] == low[i]:
            room = low[i] + 3.0 * width - z[i] if miss[i] < 0.0 else z[i] - low[i]
            if settled(miss[i], room, s, z[i]):
                f = value.function(z[i], value.data)
                found[i] = f - s * z[i] - fabs(miss[i]) * room - ROUNDING * (fabs(f) + fabs(s * z[i]))
            else:
                found[i] = refined(value, slope, s, s, z[i], bend[i], low[i], low[i] + 3.0 * width)
        else:
            found[i] = least(table, value, slope, s)


cdef double one_bound(SlopeTable table, Callback value, Callback slope, Callback conjugate, double s) noexcept nogil:
    # Lower bound of min_t f(t) - s t, from the conjugate where there is one that is finite.
    cdef double found = -conjugate.function(s, conjugate.data) if conjugate is not None else NAN
    return found if isfinite(found) else least(table, value, slope, s)


def bound(
    SlopeTable table not None, Callback value not None, Callback slope not None, Callback conjugate,
    const double[::1] beta, const double[::1] counts, double weight, int side, double less,
    ConjugateTable near=None,
):
    """Return a lower bound of the sum of weight times counts times min_t f(t) - less - s t, at slopes of multipliers.

    From the conjugate where there is one that is finite, else from margins that are looked up, beginning with those
    that `near` has.
    """
    cdef Py_ssize_t i, first, n, left, m = beta.shape[0]
    cdef double share, there, of_block, at_zero = 0.0, at_cap = 0.0, total = 0.0
    cdef double cap = INFINITY if near is None else near.cap
    cdef double b[BLOCK]
    cdef double factor[BLOCK]
    cdef double found[BLOCK]
    cdef NearTable margins = None if near is None else near.near
    if counts.shape[0] != m:
        raise ValueError("multipliers and counts differ in length")
    with nogil:
        for first from 0 <= first < m by BLOCK:
            n = min(<Py_ssize_t> BLOCK, m - first)
            left = 0
            for i in range(n):
                share = weight * counts[first + i]
                there = beta[first + i] / share if share > 0.0 else 0.0
                at_zero += share if there == 0.0 else 0.0
                at_cap += share if there == cap else 0.0
                factor[left], b[left] = share, there
                left += there != 0.0 and there != cap
            if conjugate is not None:
                for i in range(left):
                    found[i] = -conjugate.function(-side * b[i], conjugate.data)
                for i in range(left):
                    if not isfinite(found[i]):
                        found[i] = least(table, value, slope, -side * b[i])
            elif near is not None:
                least_of_block(near, margins, table, value, slope, b, side, left, found)
            else:
                for i in range(left):
                    found[i] = least(table, value, slope, -side * b[i])
            of_block = 0.0
            for i in range(left):
                of_block += factor[i] * (found[i] - less)
            total += of_block  # by blocks: equal parts are rounded in the same direction
        if at_zero > 0.0:
            total += at_zero * (one_bound(table, value, slope, conjugate, 0.0) - less)
        if at_cap > 0.0:
            total += at_cap * (one_bound(table, value, slope, conjugate, -side * cap) - less)
    return total


def estimate(
    SlopeTable table not None, Callback value not None, Callback slope not None, const double[::1] beta,
    const double[::1] counts, double weight, int side, double less, ConjugateTable near=None,
):
    """Return what `bound` does but for some digits, from the tables alone where margins are near 0."""
    cdef Py_ssize_t i, first, n, m = beta.shape[0]
    cdef double share, some = NAN, zero = NAN, total = 0.0
    cdef double[BLOCK] b, found
    if counts.shape[0] != m:
        raise ValueError("multipliers and counts differ in length")
    with nogil:
        for first from 0 <= first < m by BLOCK:
            n = min(<Py_ssize_t> BLOCK, m - first)
            slopes_of(&beta[first], &counts[first], weight, n, b)
            if near is not None:
                table_conjugates(b, n, &near.parts[0, 0, 0], near.parts.shape[1], near.cap, near.first, found)
                some = weighted_sum(found, &counts[first], weight, less, n)
            if some == some:  # every row is in the table
                total += some
                continue
            for i in range(n):
                share = weight * counts[first + i]
                if share > 0.0:
                    if b[i] == 0.0:
                        zero = interpolated(table, value, slope, 0.0) if zero != zero else zero
                        found[i] = zero
                    elif near is None or found[i] != found[i]:
                        found[i] = interpolated(table, value, slope, -side * b[i])
                    total += share * (found[i] - less)
    return total
