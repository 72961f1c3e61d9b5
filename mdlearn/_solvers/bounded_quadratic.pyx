"""A dense quadratic with bounds: greedy ascent, two coordinates at a time, and Newton steps on its faces.

    maximise  e0'u - 1/2 u'(H + omega border border' + diag(soft)) u,   low <= u <= high   [, sum u fixed]

The gradient e is kept up to date, so that the best coordinate is known: few updates, each of one row of H. A face is
the rows that move; its system is LAPACK's, and every step ends where the value is highest along it.
"""

from libc.math cimport INFINITY, fabs

from mdlearn._solvers.known_rows cimport KnownRows
from mdlearn._solvers.pair_choice cimport mdlearn_companion, mdlearn_largest, mdlearn_partner, mdlearn_steepest
from mdlearn._solvers.rows cimport real_t

cdef double TINY = 1e-10  # least determinant of two coordinates, of the product of their own: equal rows have none
cdef double ROUNDING = 1e-14  # gradient of the second coordinate, of the first one's, that is rounding


cdef class _Quadratic:
    """What both kinds of steps read and write beside H: (n, n) and symmetric.

    Parameters
    ----------
    shape : that of H; border : (n,); omega : factor of the border; soft : (n,) >= 0; low, high : (n,) bounds;
    u : (n,) within them, written to; e : (n,) the gradient, written to.
    """

    def __init__(
        self, shape, const double[::1] border, double omega, const double[::1] soft, const double[::1] low,
        const double[::1] high, double[::1] u, double[::1] e,
    ):
        cdef Py_ssize_t n = shape[0]
        if shape[1] != n or n == 0:
            raise ValueError("a quadratic needs a square matrix")
        if border.shape[0] != n or soft.shape[0] != n or low.shape[0] != n or high.shape[0] != n:
            raise ValueError("the vectors of a quadratic need one entry per row")
        if u.shape[0] != n or e.shape[0] != n:
            raise ValueError("the vectors of a quadratic need one entry per row")
        self.border, self.omega, self.soft, self.low, self.high, self.u, self.e = border, omega, soft, low, high, u, e


cdef class Box(_Quadratic):
    """A quadratic for greedy steps, H in float64, in float32 or `KnownRows`; work : (4, n) of their own.

    Of known rows, steps also end where they need another one that they must not compute: `missing`.
    """

    def __init__(self, H, border, omega, soft, low, high, u, e, double[:, ::1] work):
        cdef Py_ssize_t k, n
        self.known = H if isinstance(H, KnownRows) else None
        if self.known is not None:
            H = self.known.values
        self.H, self.single = (None, H) if memoryview(H).format == "f" else (H, None)
        super().__init__(H.shape, border, omega, soft, low, high, u, e)
        n = self.u.shape[0]
        if work.shape[0] != 4 or work.shape[1] != n:
            raise ValueError("greedy steps on a quadratic need four rows of work as long as its own")
        self.weight, self.up, self.down, self.length = work[0], work[1], work[2], work[3]
        self.violation = INFINITY
        for k in range(n):
            if self.known is not None:
                begin(self, k, self.known.diagonal[k])
            else:
                begin(self, k, self.H[k, k] if self.single is None else self.single[k, k])


cdef inline const real_t* row(Box p, const real_t[:, ::1] H, Py_ssize_t k) noexcept nogil:
    # NULL for a row that is not there.
    if real_t is double:
        if p.known is not None:
            return p.known.row(k)
    return &H[k, 0]


cdef inline const real_t* start(Box p, const real_t[:, ::1] H) noexcept nogil:
    # Finite numbers, of which steps begin with a multiple by 0: a row of H may not be there.
    if real_t is double:
        return &p.up[0]
    else:
        return &H[0, 0]


cdef inline double within(Box p, Py_ssize_t k, double change) noexcept nogil:
    return min(max(change, p.low[k] - p.u[k]), p.high[k] - p.u[k])


cdef inline void move(Box p, Py_ssize_t k, double change) noexcept nogil:
    cdef double to = min(max(p.u[k] + change, p.low[k]), p.high[k])
    p.e[k] -= (to - p.u[k]) * p.soft[k]
    p.u[k] = to
    marked(p, k)


cdef (double, double) both(Box p, Py_ssize_t i, Py_ssize_t j, double a) noexcept nogil:
    # The optimum over two coordinates: the free one, or the better of those on the edges that it lies beyond.
    cdef double hi = p.length[i], hj = p.length[j], ei = p.e[i], ej = p.e[j], best = -INFINITY, gain
    # Quotients, not products: those of entries of 1e-300 are 0.
    cdef double ai = a / hi, aj = a / hj, xi = ei / hi, xj = ej / hj, det = max(1.0 - ai * aj, TINY)
    cdef double x = (xi - ai * xj) / det, y = (xj - aj * xi) / det, d = x, f = y, near
    if x != within(p, i, x):
        d = within(p, i, x)
        f = within(p, j, (ej - a * d) / hj)
        best = ei * d + ej * f - 0.5 * (hi * d * d + hj * f * f) - a * d * f
    if y != within(p, j, y):
        y = within(p, j, y)
        near = within(p, i, (ei - a * y) / hi)
        gain = ei * near + ej * y - 0.5 * (hi * near * near + hj * y * y) - a * near * y
        if gain > best:
            d, f = near, y
    return d, f


cdef Py_ssize_t double_steps(Box p, const real_t[:, ::1] H, Py_ssize_t most, double enough) noexcept nogil:
    cdef Py_ssize_t n = p.u.shape[0], count = 0, i = 0, j = 0, first, second = -1
    cdef double a, c, x, up, down, d = 0.0, f = 0.0
    cdef const real_t* one = start(p, H)
    cdef const real_t* other = one
    while True:
        # Update and choice in one pass over the rows of the last coordinates.
        c = p.omega * (d * p.border[i] + f * p.border[j])
        first = mdlearn_largest(
            real_t is float, one, other, d, f, c, &p.border[0], &p.e[0], &p.up[0], &p.down[0], &p.weight[0], n,
            &p.violation)
        if first < 0 or count >= most or p.violation <= enough:
            return count
        one, second = row(p, H, first), -1
        if one == NULL:
            return count
        i, j, other, d, f = first, first, one, within(p, first, p.e[first] * p.weight[first]), 0.0
        if p.length[i] > 0.0:
            # The partner that gains most where the first one steps, and gives way to it.
            c, x, up, down = p.omega * p.border[i], p.e[i] * p.weight[i], p.up[i], p.down[i]
            p.up[i] = p.down[i] = 0.0
            second = mdlearn_companion(
                real_t is float, one, c, &p.border[0], x, p.weight[i], &p.e[0], &p.up[0], &p.down[0], &p.length[0], n)
            p.up[i], p.down[i] = up, down
            if second >= 0:
                a = one[second] + c * p.border[second]
                # An equal row gains nothing but rounding, and does not say how to share the step.
                if fabs(p.e[second] - a * x) > ROUNDING * fabs(p.e[first]):
                    j, other = second, row(p, H, second)
                    if other == NULL:
                        return count
                    d, f = both(p, i, j, a)
        move(p, i, d)
        if j != i:
            move(p, j, f)
        count += 1


cdef Py_ssize_t pair_steps(Box p, const real_t[:, ::1] H, Py_ssize_t most, double enough) noexcept nogil:
    cdef Py_ssize_t n = p.u.shape[0], count = 0, i, j
    cdef double top, a, t = 0.0
    cdef const real_t* rise = start(p, H)
    cdef const real_t* fall = rise
    while True:
        i = mdlearn_steepest(real_t is float, rise, fall, t, &p.e[0], &p.up[0], &p.down[0], n, &p.violation)
        if not p.violation > enough or count >= most:
            return count
        rise = row(p, H, i)
        if rise == NULL:
            return count
        j = mdlearn_partner(real_t is float, rise, &p.e[0], &p.down[0], &p.length[0], i, n)
        if j < 0:
            return count
        fall, top = row(p, H, j), p.length[i]
        if fall == NULL:
            return count
        a = max(top + p.length[j] - 2.0 * rise[j], 1e-12 * top)
        t = (p.e[i] - p.e[j]) / a if a > 0.0 else INFINITY
        t = min(t, min(p.high[i] - p.u[i], p.u[j] - p.low[j]))
        if t >= p.high[i] - p.u[i]:
            p.u[i] = p.high[i]
        else:
            p.u[i] += t
        if t >= p.u[j] - p.low[j]:
            p.u[j] = p.low[j]
        else:
            p.u[j] -= t
        p.e[i] -= t * p.soft[i]
        p.e[j] += t * p.soft[j]
        marked(p, i)
        marked(p, j)
        count += 1


cdef Py_ssize_t box_steps(Box p, bint paired, Py_ssize_t most, double enough) noexcept nogil:
    # At most so many steps, of pairs or of two coordinates; how many were taken.
    if p.single is None:
        return pair_steps(p, p.H, most, enough) if paired else double_steps(p, p.H, most, enough)
    return pair_steps(p, p.single, most, enough) if paired else double_steps(p, p.single, most, enough)


def doubles(Box problem, Py_ssize_t most, double enough):
    """Take at most so many steps of two coordinates; return how many. `violation` is then the largest gradient left.

    One coordinate at a time would crawl where all rows are alike, as a wide kernel or a constant makes them.
    """
    cdef Py_ssize_t count
    with nogil:
        count = box_steps(problem, False, most, enough)
    return count


def pairs(Box problem, Py_ssize_t most, double enough):
    """Take at most so many steps of two coordinates that keep the sum; `violation` is their largest difference.

    The border is taken for a constant, which such steps do not feel.
    """
    cdef Py_ssize_t count
    with nogil:
        count = box_steps(problem, True, most, enough)
    return count


def gather(
    const real_t[:, ::1] H, const long long[::1] rows, const long long[::1] columns, real_t[:, ::1] out,
    Py_ssize_t start, Py_ssize_t stop,
):
    """Copy the rows `start` to `stop` of H[rows][:, columns] to the same rows of `out`."""
    cdef Py_ssize_t a, b, n = columns.shape[0]
    cdef const real_t* row
    if out.shape[0] != rows.shape[0] or out.shape[1] != n or not 0 <= start <= stop <= rows.shape[0]:
        raise ValueError("the copy needs a row and a column per index, and a range of its rows")
    for a in range(start, stop):
        if not 0 <= rows[a] < H.shape[0]:
            raise ValueError("an index is out of range")
    for b in range(n):
        if not 0 <= columns[b] < H.shape[1]:
            raise ValueError("an index is out of range")
    with nogil:
        for a in range(start, stop):
            row = &H[rows[a], 0]
            for b in range(n):
                out[a, b] = row[columns[b]]


cdef class Face(_Quadratic):
    """A quadratic for Newton steps; index : (n,) and work : (2, n) of their own."""

    cdef const double[:, ::1] H
    cdef double[::1] moved, change
    cdef long long[::1] index
    cdef readonly double worst
    cdef readonly Py_ssize_t free, entering

    def __init__(
        self, const double[:, ::1] H, border, omega, soft, low, high, u, e, long long[::1] index, double[:, ::1] work,
    ):
        self.H = H
        super().__init__((self.H.shape[0], self.H.shape[1]), border, omega, soft, low, high, u, e)
        cdef Py_ssize_t n = self.u.shape[0]
        if work.shape[0] != 2 or work.shape[1] != n or index.shape[0] != n:
            raise ValueError("Newton steps on a quadratic need an index and two rows of work as long as its own")
        self.index, self.moved, self.change = index, work[0], work[1]
        self.worst, self.free, self.entering = INFINITY, 0, 0


cdef Py_ssize_t chosen(Face p) noexcept nogil:
    cdef Py_ssize_t k, n = 0
    cdef double violation
    cdef bint inside
    p.worst, p.free, p.entering = 0.0, 0, 0
    for k in range(p.u.shape[0]):
        inside = p.low[k] < p.u[k] < p.high[k]
        violation = max(p.e[k] if p.u[k] < p.high[k] else 0.0, -p.e[k] if p.u[k] > p.low[k] else 0.0)
        p.worst = max(p.worst, violation)
        p.free += inside
        if inside or violation > 0.0:
            p.index[n] = k
            n += 1
    p.entering = n - p.free
    return n


cdef void fill(Face p, double[:, ::1] A, double[:, ::1] sides, double trace) noexcept nogil:
    cdef Py_ssize_t a, b, n = A.shape[0]
    cdef double largest = 0.0
    cdef const double* row
    for a in range(n):
        row = &p.H[p.index[a], 0]
        for b in range(a + 1):
            A[a, b] = row[p.index[b]]
        sides[0, a], sides[1, a] = p.e[p.index[a]], p.border[p.index[a]]
        largest = max(largest, A[a, a])
    for a in range(n):
        A[a, a] += p.soft[p.index[a]] + trace * largest


cdef bint along(Face p, const double[:, ::1] solved) noexcept nogil:
    cdef Py_ssize_t a, k, n = solved.shape[1], m = p.u.shape[0]
    cdef double by = 0.0, across = 0.0, length, total = 0.0, slope = 0.0, bend = 0.0, d
    cdef const double* row
    for a in range(n):
        k = p.index[a]
        by += p.border[k] * solved[0, a]
        across += p.border[k] * solved[1, a]
    # The border is a matrix of rank one beside the factor.
    length = p.omega * by / (1.0 + p.omega * across)
    p.change[:] = 0.0
    for a in range(n):
        k = p.index[a]
        d = p.u[k] + solved[0, a] - length * solved[1, a]
        d = min(max(d, p.low[k]), p.high[k]) - p.u[k]
        p.moved[a] = d
        total += p.border[k] * d
        slope += p.e[k] * d
        if d != 0.0:
            row = &p.H[k, 0]
            for k in range(m):
                p.change[k] += d * row[k]
    for k in range(m):
        p.change[k] += p.omega * total * p.border[k]
    for a in range(n):
        k = p.index[a]
        p.change[k] += p.soft[k] * p.moved[a]
        bend += p.change[k] * p.moved[a]
    if not slope > 0.0:
        return False
    length = 1.0 if slope >= bend else slope / bend
    for k in range(m):
        p.e[k] -= length * p.change[k]
    for a in range(n):
        k = p.index[a]
        p.u[k] = min(max(p.u[k] + length * p.moved[a], p.low[k]), p.high[k])
    return True


def rows(Face face):
    """Number of rows that a step moves: those inside their boxes (`free`) and those at a bound that want to leave it
    (`entering`). `worst` is the largest gradient that points inside.
    """
    cdef Py_ssize_t n
    with nogil:
        n = chosen(face)
    return n


def system(Face face, double[:, ::1] A, double[:, ::1] sides, double trace):
    """Lower triangle of the quadratic of the rows that `rows` has found, and what is on the right: gradient and border.

    The border itself is left out of A; `trace` of the largest entry is added to the diagonal.
    """
    cdef Py_ssize_t n = face.free + face.entering
    if A.shape[0] != n or A.shape[1] != n or sides.shape[0] != 2 or sides.shape[1] != n:
        raise ValueError("the system of a step needs a square matrix and two right sides, a row per row that moves")
    with nogil:
        fill(face, A, sides, trace)


def step(Face face, const double[:, ::1] solved):
    """Go as far along a step as the value rises, given the solutions of `system`; say whether it rises at all."""
    cdef bint gains
    if solved.shape[0] != 2 or solved.shape[1] != face.free + face.entering:
        raise ValueError("a step needs both solutions, an entry per row that moves")
    with nogil:
        gains = along(face, solved)
    return gains
