"""Greedy ascent on a small dense quadratic with bounds: two coordinates at a time, free or such that the sum is kept.

    maximise  e0'u - 1/2 u'(H + omega border border' + diag(soft)) u,   low <= u <= high   [, sum u fixed]

The gradient e is kept up to date, so that the best coordinate is known: few updates, each of one row of H.
"""

from libc.math cimport INFINITY, fabs

cdef double TINY = 1e-10  # least curvature of the second coordinate, of its own: equal rows have none
cdef double ROUNDING = 1e-14  # gradient of the second coordinate, of the first one's, that is rounding


cdef class Box:
    """Everything that the loops read and write.

    Parameters
    ----------
    H : (n, n) symmetric; border : (n,); omega : factor of the border; soft : (n,) >= 0; low, high : (n,) bounds;
    u : (n,) within them, written to; e : (n,) the gradient, written to; work : (4, n) of the loops' own.
    """

    cdef const double[:, ::1] H
    cdef const double[::1] border, soft, low, high
    cdef double omega
    cdef double[::1] u, e, weight, up, down, length
    cdef public double violation

    def __init__(
        self, const double[:, ::1] H, const double[::1] border, double omega, const double[::1] soft,
        const double[::1] low, const double[::1] high, double[::1] u, double[::1] e, double[:, ::1] work,
    ):
        cdef Py_ssize_t k, n = H.shape[0]
        cdef double h
        if H.shape[1] != n or work.shape[0] != 4 or work.shape[1] != n or n == 0:
            raise ValueError("a quadratic needs a square matrix, with four rows of work as long as its own")
        if border.shape[0] != n or soft.shape[0] != n or low.shape[0] != n or high.shape[0] != n:
            raise ValueError("the vectors of a quadratic need one entry per row")
        if u.shape[0] != n or e.shape[0] != n:
            raise ValueError("the vectors of a quadratic need one entry per row")
        self.H, self.border, self.omega, self.soft, self.low, self.high, self.u, self.e = (
            H, border, omega, soft, low, high, u, e
        )
        self.weight, self.up, self.down, self.length = work[0], work[1], work[2], work[3]
        self.violation = INFINITY
        for k in range(n):
            h = H[k, k] + omega * border[k] * border[k] + soft[k]
            # A row of length zero has a fixed margin: its multiplier belongs at the bound that e points to.
            self.length[k] = h
            self.weight[k] = 1.0 / h if h > 0.0 else 1e300
            self.marked(k)

    cdef inline void marked(self, Py_ssize_t k) noexcept nogil:
        self.up[k] = 1.0 if self.u[k] < self.high[k] else 0.0
        self.down[k] = 1.0 if self.u[k] > self.low[k] else 0.0


cdef inline double within(Box p, Py_ssize_t k, double change) noexcept nogil:
    return min(max(change, p.low[k] - p.u[k]), p.high[k] - p.u[k])


cdef inline void move(Box p, Py_ssize_t k, double change) noexcept nogil:
    cdef double to = min(max(p.u[k] + change, p.low[k]), p.high[k])
    p.e[k] -= (to - p.u[k]) * p.soft[k]
    p.u[k] = to
    p.marked(k)


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


cdef Py_ssize_t double_steps(Box p, Py_ssize_t most, double enough) noexcept nogil:
    cdef Py_ssize_t n = p.u.shape[0], count = 0, i = 0, j = 0, first, second, k
    cdef double best, score, a, c, x, left, d = 0.0, f = 0.0
    cdef const double* one
    cdef const double* other
    while True:
        # Update and choice in one pass over the rows of the last coordinates.
        one, other, c = &p.H[i, 0], &p.H[j, 0], p.omega * (d * p.border[i] + f * p.border[j])
        best, first = 0.0, -1
        for k in range(n):
            p.e[k] -= d * one[k] + f * other[k] + c * p.border[k]
            score = max(p.e[k] * p.up[k], -p.e[k] * p.down[k])
            score *= score * p.weight[k]
            if score > best:
                best, first = score, k
        p.violation = fabs(p.e[first]) if first >= 0 else 0.0
        if first < 0 or count >= most or p.violation <= enough:
            return count
        i, j, d, f = first, first, within(p, first, p.e[first] * p.weight[first]), 0.0
        if p.length[i] > 0.0:
            # The partner that gains most where the first one steps, and gives way to it.
            one, c, x = &p.H[i, 0], p.omega * p.border[i], p.e[i] * p.weight[i]
            best, second = 0.0, -1
            for k in range(n):
                a = one[k] + c * p.border[k]
                score = p.e[k] - a * x
                score = max(score * p.up[k], -score * p.down[k])
                left = max(p.length[k] - a * (a * p.weight[i]), TINY * p.length[k])
                if score * score > best * left and k != i and left > 0.0:
                    best, second = score * score / left, k
            if second >= 0:
                a = one[second] + c * p.border[second]
                # An equal row gains nothing but rounding, and does not say how to share the step.
                if fabs(p.e[second] - a * x) > ROUNDING * p.violation:
                    j = second
                    d, f = both(p, i, j, a)
        move(p, i, d)
        if j != i:
            move(p, j, f)
        count += 1


cdef Py_ssize_t pair_steps(Box p, Py_ssize_t most, double enough) noexcept nogil:
    cdef Py_ssize_t n = p.u.shape[0], count = 0, i = 0, j = 0, k, highest, partner
    cdef double top, bottom, best, score, d, a, t = 0.0
    cdef const double* rise
    cdef const double* fall
    while True:
        rise, fall = &p.H[i, 0], &p.H[j, 0]
        top, bottom, highest = -INFINITY, INFINITY, -1
        for k in range(n):
            p.e[k] -= t * (rise[k] - fall[k])
            if p.e[k] > top and p.up[k] > 0.0:
                top, highest = p.e[k], k
            if p.e[k] < bottom and p.down[k] > 0.0:
                bottom = p.e[k]
        p.violation = top - bottom
        if not p.violation > enough or count >= most:
            return count
        # The partner that gains most beside the steepest (Fan, Chen and Lin, JMLR 2005).
        i, rise, best, partner = highest, &p.H[highest, 0], 0.0, -1
        top = p.length[i]
        for k in range(n):
            d = (p.e[i] - p.e[k]) * p.down[k]
            if d > 0.0:
                a = max(top + p.length[k] - 2.0 * rise[k], 1e-12 * top)
                score = d * d / a if a > 0.0 else INFINITY
                if score > best:
                    best, partner = score, k
        if partner < 0:
            return count
        j = partner
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
        p.marked(i)
        p.marked(j)
        count += 1


def doubles(Box problem, Py_ssize_t most, double enough):
    """Take at most so many steps of two coordinates; return how many. `violation` is then the largest gradient left.

    One coordinate at a time would crawl where all rows are alike, as a wide kernel or a constant makes them.
    """
    cdef Py_ssize_t count
    with nogil:
        count = double_steps(problem, most, enough)
    return count


def pairs(Box problem, Py_ssize_t most, double enough):
    """Take at most so many steps of two coordinates that keep the sum; `violation` is their largest difference.

    The border is taken for a constant, which such steps do not feel.
    """
    cdef Py_ssize_t count
    with nogil:
        count = pair_steps(problem, most, enough)
    return count


def gather(
    const double[:, ::1] H, const long long[::1] rows, const long long[::1] columns, double[:, ::1] out,
    Py_ssize_t start, Py_ssize_t stop,
):
    """Copy the rows `start` to `stop` of H[rows][:, columns] to the same rows of `out`."""
    cdef Py_ssize_t a, b, n = columns.shape[0]
    cdef const double* row
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
