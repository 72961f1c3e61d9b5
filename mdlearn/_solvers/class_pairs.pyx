"""Pairs of classes over one kernel matrix K, whose rows lie class by class: steps and values of many in one call.

Each pair is a problem in signed multipliers u of its rows::

    maximise  target'u - 1/2 u'(K + constant) u,   low <= u <= high [, sum u = 0]

A hinge of weight C beside a threshold leaves a row's loss max(0, high (e - b), low (e - b)), e = target - (K + constant) u.
"""

from libc.math cimport INFINITY, fabs
from libc.stdlib cimport qsort
from libc.string cimport memcpy

from mdlearn._solvers.bounded_quadratic cimport Box, begin, box_steps
from mdlearn._solvers.gaussian cimport RowMaker
from mdlearn._solvers.known_rows cimport KnownRows

cdef enum:
    ROW_STEPS = 4, MOST_ROW_STEPS = 64  # steps per row between two gaps, and of a pair, at most

cdef double FLAT_SLOPE = 1e-10
"""Slope along an intercept, as a share of all weights, that is rounding."""
cdef double LEAST_SHARE = 0.01
"""Share of the objective at u = 0 that a gap is relative to where the objective itself is less."""


cdef struct Knot:
    double at, jump


cdef int in_order(const void* one, const void* other) noexcept nogil:
    cdef double a = (<const Knot*> one).at, b = (<const Knot*> other).at
    return (a > b) - (a < b)


cdef class _PairRows(RowMaker):
    """Rows of the matrix between the rows of one pair."""

    cdef const double[:, ::1] K
    cdef Py_ssize_t first, second, n, o  # where its classes begin, and their rows

    cdef void fill(self, Py_ssize_t i, double* out) noexcept nogil:
        cdef const double* row = &self.K[self.first + i if i < self.n else self.second + i - self.n, 0]
        memcpy(out, row + self.first, self.n * sizeof(double))
        memcpy(out + self.n, row + self.second, self.o * sizeof(double))


cdef class Pairs:
    """Pairs over one kernel matrix.

    Parameters
    ----------
    K : (m, m), symmetric; spans : (p, 4), where the rows of both classes of a pair begin and end, the second after the
    first; starts : (p + 1,) where a pair's rows begin among those of all pairs; target, low, high : one number for each
    of these, low <= 0 <= high; constant : what a regularized intercept adds to K; paired : whether each sum of u is 0;
    square : (n, n), columns : (9, n) and places : (2, n) of their own, n rows of the largest pair.
    """

    cdef const double[:, ::1] K
    cdef const long long[:, ::1] spans
    cdef const long long[::1] starts
    cdef const double[::1] target, low, high
    cdef double[:, ::1] columns
    cdef double constant
    cdef bint paired
    cdef Box box
    cdef KnownRows known
    cdef _PairRows rows

    def __init__(
        self, const double[:, ::1] K, const long long[:, ::1] spans, const long long[::1] starts,
        const double[::1] target, const double[::1] low, const double[::1] high, double constant, bint paired,
        double[:, ::1] square, double[:, ::1] columns, long long[:, ::1] places,
    ):
        cdef Py_ssize_t j, n, most = 1, m = K.shape[0], p = spans.shape[0]
        if K.shape[1] != m or spans.shape[1] != 4 or starts.shape[0] != p + 1 or starts[0] != 0:
            raise ValueError("pairs need a square matrix, four ends of rows for each, and where each begins")
        for j in range(p):
            n = spans[j, 1] - spans[j, 0] + spans[j, 3] - spans[j, 2]
            if not 0 <= spans[j, 0] < spans[j, 1] <= spans[j, 2] < spans[j, 3] <= m or starts[j + 1] != starts[j] + n:
                raise ValueError("rows of a pair are out of range")
            most = max(most, n)
        if not target.shape[0] == low.shape[0] == high.shape[0] == starts[p]:
            raise ValueError("pairs need one number for each of their rows")
        self.K, self.spans, self.starts, self.target, self.low, self.high = K, spans, starts, target, low, high
        self.constant, self.paired = constant, paired
        if square.shape[0] < most or square.shape[1] != square.shape[0]:
            raise ValueError("the square needs as many rows as the largest pair")
        if columns.shape[0] != 9 or columns.shape[1] != square.shape[0]:
            raise ValueError("pairs need nine columns as long as the square")
        if places.shape[0] != 2 or places.shape[1] != square.shape[0]:
            raise ValueError("pairs need two rows of places as long as the square")
        columns[:], places[:] = 0.0, -1
        columns[4] = 1.0
        self.columns, self.rows = columns, _PairRows()
        self.rows.K, self.rows.length = K, square.shape[0]
        # Two columns are knots, one is e; one of numbers 0 stands for what each pair brings.
        none = columns[3]
        self.known = KnownRows(square, places[0], places[1], none, self.rows)
        self.box = Box(self.known, columns[4], constant, none, none, none, none, columns[2], columns[5:])


cdef double intercept(Pairs s, const double* e, const double* low, const double* high, Py_ssize_t n) noexcept nogil:
    """The intercept of least loss; the midpoint of several."""
    cdef Knot* knots = <Knot*> &s.columns[0, 0]
    cdef double slope = 0.0, total = 0.0, left
    cdef Py_ssize_t k
    for k in range(n):
        knots[k].at, knots[k].jump = e[k], high[k] - low[k]
        slope -= high[k]
        total += knots[k].jump
    qsort(knots, n, sizeof(Knot), in_order)
    total *= FLAT_SLOPE
    k, slope = 0, slope + knots[0].jump
    while slope < -total and k < n - 1:
        k += 1
        slope += knots[k].jump
    left = knots[k].at
    while slope <= total and k < n - 1:
        k += 1
        slope += knots[k].jump
    return 0.5 * (left + knots[k].at)


cdef double middle(const double* u, const double* e, const double* low, const double* high, Py_ssize_t n) noexcept nogil:
    """The intercept in the middle between the multipliers that want to rise and to fall most."""
    cdef double top = -INFINITY, bottom = INFINITY
    cdef Py_ssize_t k
    for k in range(n):
        top = max(top, e[k] if u[k] < high[k] else -INFINITY)
        bottom = min(bottom, e[k] if u[k] > low[k] else INFINITY)
    return 0.5 * (top + bottom)


cdef (double, double) objective_and_bound(
    Pairs s, const double* u, const double* e, double b, Py_ssize_t first, Py_ssize_t n,
) noexcept nogil:
    """Objective and lower bound at u, which leaves e, and an intercept."""
    cdef const double* low = &s.low[first]
    cdef const double* high = &s.high[first]
    cdef double squares = 0.0, gain = 0.0, loss = 0.0, d
    cdef Py_ssize_t k
    for k in range(n):
        d = e[k] - b
        loss += max(max(high[k] * d, low[k] * d), 0.0)
        gain += s.target[first + k] * u[k]
        squares += u[k] * (s.target[first + k] - e[k])
    squares = 0.5 * max(squares, 0.0)
    return squares + loss, gain - squares


cdef inline void add(double* out, double factor, const double* row, Py_ssize_t n) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(n):
        out[k] += factor * row[k]


cdef void take_up(Pairs s, Box p, Py_ssize_t j, double[::1] u) noexcept nogil:
    """Let steps go over a pair from u = 0: none of its rows is known."""
    cdef Py_ssize_t k, at, first = s.starts[j], n = s.starts[j + 1] - first
    s.rows.first, s.rows.n = s.spans[j, 0], s.spans[j, 1] - s.spans[j, 0]
    s.rows.second, s.rows.o = s.spans[j, 2], s.spans[j, 3] - s.spans[j, 2]
    s.known.count, s.known.allowed = 0, n
    p.u, p.low, p.high = u[first : first + n], s.low[first : first + n], s.high[first : first + n]
    for k in range(n):
        at = s.rows.first + k if k < s.rows.n else s.rows.second + k - s.rows.n
        s.known.at[k] = -1
        p.u[k], p.e[k] = 0.0, s.target[first + k]
        begin(p, k, s.K[at, at])


cdef void products(Pairs s, const double* u, Py_ssize_t j) noexcept nogil:
    """Write K u of a pair to e, from the rows of K whose u is not 0."""
    cdef Py_ssize_t i, k, a = s.spans[j, 0], c = s.spans[j, 2], n = s.spans[j, 1] - a, o = s.spans[j, 3] - c
    cdef const double* row
    for k in range(n + o):
        s.columns[2, k] = 0.0
    for i in range(n + o):
        if u[i] != 0.0:
            row = &s.K[a + i if i < n else c + i - n, 0]
            add(&s.columns[2, 0], u[i], row + a, n)
            add(&s.columns[2, n], u[i], row + c, o)


cdef Py_ssize_t solve(
    Pairs s, Box p, Py_ssize_t j, double[::1] u, const double[::1] levels, double tol,
) noexcept nogil:
    """Take steps on a pair from 0 until its gap is at most tol, or its violation at the last level; steps left."""
    cdef Py_ssize_t k, level, first = s.starts[j], n = s.starts[j + 1] - first, count, left = MOST_ROW_STEPS * n
    cdef double upper, lower, b, at_zero = 0.0
    take_up(s, p, j, u)
    for k in range(n):
        at_zero += fabs(s.target[first + k]) * (s.high[first + k] - s.low[first + k])
    for level in range(levels.shape[0]):
        while left > 0:
            count = box_steps(p, s.paired, min(ROW_STEPS * n, left), levels[level])
            left -= count
            b = middle(&p.u[0], &p.e[0], &p.low[0], &p.high[0], n) if s.paired else 0.0
            upper, lower = objective_and_bound(s, &p.u[0], &p.e[0], b, first, n)
            if upper - lower <= tol * max(fabs(upper), LEAST_SHARE * at_zero):
                return left
            if count == 0 or p.violation <= levels[level]:
                break
    return left


def ascend(Pairs pairs, double[::1] u, const double[::1] levels, double tol, Py_ssize_t first, Py_ssize_t most):
    """Solve pairs from `first` on by greedy steps, until these have read about `most` entries; return the next one.

    `u`: multipliers of all pairs, those of solved ones are written; `levels`: falling violations of a pair at which
    its gap is looked at: the first that meets `tol` is enough. A pair that takes too many steps is left where it is.
    """
    cdef Py_ssize_t n, p = pairs.spans.shape[0]
    cdef Box box = pairs.box
    if not 0 <= first <= p or u.shape[0] != pairs.target.shape[0]:
        raise ValueError("the first pair is out of range, or multipliers are not those of all pairs")
    with nogil:
        while first < p and most > 0:
            n = pairs.starts[first + 1] - pairs.starts[first]
            most -= ((MOST_ROW_STEPS + 1) * n - solve(pairs, box, first, u, levels, tol)) * n
            first += 1
    return first


cdef void balance(double* u, const double* low, const double* high, bint paired, Py_ssize_t n) noexcept nogil:
    """Move multipliers within their bounds, and to sum 0 where asked: those of the heavier sign shrink in proportion."""
    cdef double excess = 0.0, room = 0.0, keep
    cdef Py_ssize_t k
    for k in range(n):
        u[k] = min(max(u[k], low[k]), high[k])
        excess += u[k]
    if not paired or excess == 0.0:
        return
    for k in range(n):
        if u[k] * excess > 0.0:
            room += u[k]
    keep = max(1.0 - excess / room, 0.0)
    for k in range(n):
        if u[k] * excess > 0.0:
            u[k] *= keep


cdef void write_values(Pairs s, const double* u, Py_ssize_t j, double* out) noexcept nogil:
    """Eight values of a pair, as `values` has them."""
    cdef Py_ssize_t k, start = s.starts[j], n = s.starts[j + 1] - start
    cdef double total = 0.0, squares = 0.0, b = 0.0, size = 0.0, caps = 0.0, rise = 0.0, fall = 0.0, cap, kink
    cdef double* e = &s.columns[2, 0]
    products(s, u, j)
    for k in range(n):
        total += u[k]
        squares += u[k] * e[k]
        size += fabs(u[k])
        cap, kink = s.high[start + k] - s.low[start + k], fabs(s.target[start + k])
        caps += cap
        if s.high[start + k] > 0.0:
            rise += cap * kink
        else:
            fall += cap * kink
    for k in range(n):
        e[k] = s.target[start + k] - e[k] - s.constant * total
    if s.paired:
        b = intercept(s, e, &s.low[start], &s.high[start], n)
    out[0], out[1] = objective_and_bound(s, u, e, b, start, n)
    out[2], out[3] = b if s.paired else s.constant * total, max(squares, 0.0)
    out[4], out[5], out[6] = size, caps, rise + fall
    out[7] = 2.0 * min(rise, fall) if s.paired else out[6]


def values(Pairs pairs, double[::1] u, Py_ssize_t first, double[:, ::1] out):
    """Make multipliers u of pairs from `first` on feasible, and find what follows from these and the matrix alone.

    out : (pairs, 8): objective, lower bound, intercept, squared length in the space of the kernel, sums of the sizes of
    u and of high - low, and the objective at u = 0 without an intercept and with the best one.
    """
    cdef Py_ssize_t j, start, at = 0, stop = first + out.shape[0]
    if not 0 <= first <= stop < pairs.starts.shape[0] or out.shape[1] != 8:
        raise ValueError("pairs are out of range, or a pair needs eight values")
    if u.shape[0] != pairs.starts[stop] - pairs.starts[first]:
        raise ValueError("multipliers are not those of the pairs")
    with nogil:
        for j in range(first, stop):
            start = pairs.starts[j]
            balance(&u[at], &pairs.low[start], &pairs.high[start], pairs.paired, pairs.starts[j + 1] - start)
            write_values(pairs, &u[at], j, &out[j - first, 0])
            at += pairs.starts[j + 1] - start
