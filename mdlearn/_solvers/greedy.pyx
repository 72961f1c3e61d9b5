"""Greedy ascent on a small dense quadratic with bounds: one coordinate at a time, or pairs that keep the sum.

    maximise  e0'u - 1/2 u'(H + omega border border' + diag(soft)) u,   low <= u <= high   [, sum u fixed]

The gradient e is kept up to date, so that the best coordinate is known: few updates, each of one row of H.
"""

from libc.math cimport INFINITY, fabs


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


cdef Py_ssize_t single_steps(Box p, Py_ssize_t most, double enough) noexcept nogil:
    cdef Py_ssize_t n = p.u.shape[0], count = 0, i = 0, chosen, k
    cdef double best, score, old, new, d, c
    cdef const double* row
    d = 0.0
    while True:
        # Update and choice in one pass over the row of the last coordinate.
        best, row, c = 0.0, &p.H[i, 0], d * p.omega * p.border[i]
        chosen = i
        for k in range(n):
            p.e[k] -= d * row[k] + c * p.border[k]
            score = max(p.e[k] * p.up[k], -p.e[k] * p.down[k])
            score *= score * p.weight[k]
            if score > best:
                best, chosen = score, k
        i = chosen
        p.violation = fabs(p.e[i]) if best > 0.0 else 0.0
        if best <= 0.0 or count >= most or p.violation <= enough:
            return count
        old = p.u[i]
        new = min(max(old + p.e[i] * p.weight[i], p.low[i]), p.high[i])
        d = new - old
        p.u[i] = new
        p.e[i] -= d * p.soft[i]
        p.marked(i)
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
                a = top + p.length[k] - 2.0 * rise[k]
                score = d * d / max(a, 1e-12 * top)
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


def singles(Box problem, Py_ssize_t most, double enough):
    """Take at most so many steps of one coordinate; return how many. `violation` is then the largest gradient left."""
    cdef Py_ssize_t count
    with nogil:
        count = single_steps(problem, most, enough)
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
