"""Coordinate ascent on the dual of a MarginForm column: one loop, specialised for each kind of rows.

Coordinates are (t, i): multiplier of loss term t at row i, numbered t * m + i. The decision value of row i is the dot
product with the kept vector plus omega * border_i * S, where S = border' q is a scalar: a regularized bias or the
rank-one part of a centred variance costs nothing that way. A free bias, `offset`, stands still during a sweep.
"""

from libc.math cimport INFINITY

from mdlearn._solvers.rows cimport DenseRows, GramRows, row_add, row_dot, rows_t


cdef class Problem:
    """Everything about a column that the loop reads, and the multipliers that it writes.

    Parameters
    ----------
    y : (m,) signs; sides : (T,); kinks : (T, m) values of y f at which terms begin; caps, softness : (T, m) boxes and
    conjugate weights; diagonal : (m,) of the dual Hessian without softness; border : (m,); omega : factor of the border;
    beta : (T, m) multipliers; S : (1,) border' q.
    """

    cdef const double[::1] y, sides, diagonal, border
    cdef const double[:, ::1] kinks, caps, softness
    cdef double[:, ::1] beta
    cdef double[::1] S
    cdef double omega
    cdef public double offset

    def __init__(
        self, const double[::1] y, const double[::1] sides, const double[:, ::1] kinks, const double[:, ::1] caps,
        const double[:, ::1] softness, const double[::1] diagonal, const double[::1] border, double omega,
        double[:, ::1] beta, double[::1] S,
    ):
        cdef Py_ssize_t T = beta.shape[0], m = beta.shape[1]
        if y.shape[0] != m or diagonal.shape[0] != m or border.shape[0] != m or S.shape[0] != 1:
            raise ValueError("y, diagonal and border need one entry per row of the problem")
        if sides.shape[0] != T or kinks.shape[0] != T or kinks.shape[1] != m:
            raise ValueError("sides and kinks do not fit the multipliers")
        if caps.shape[0] != T or caps.shape[1] != m:
            raise ValueError("caps do not fit the multipliers")
        if softness.shape[0] != T or softness.shape[1] != m:
            raise ValueError("softness does not fit the multipliers")
        self.y, self.sides, self.kinks, self.caps, self.softness = y, sides, kinks, caps, softness
        self.diagonal, self.border, self.omega, self.beta, self.S = diagonal, border, omega, beta, S
        self.offset = 0.0


cdef int ascend(rows_t rows, Problem p, const long long[::1] order) except -1 nogil:
    cdef Py_ssize_t k, i, t, m = p.beta.shape[1]
    cdef double g, h, old, new, cap, step
    for k in range(order.shape[0]):
        t = order[k] // m
        i = order[k] - t * m
        old, cap = p.beta[t, i], p.caps[t, i]
        g = row_dot(rows, i) + p.omega * p.border[i] * p.S[0] + p.offset
        g = p.sides[t] * (p.kinks[t, i] - p.y[i] * g) - p.softness[t, i] * old
        if (g <= 0.0 and old <= 0.0) or (g >= 0.0 and old >= cap):
            continue
        h = p.diagonal[i] + p.softness[t, i]
        # A row of length zero has a fixed margin: its multiplier belongs at the bound that g points to. Where there is
        # none (a constraint), no multiplier will do.
        if h > 0.0:
            new = min(max(old + g / h, 0.0), cap)
        elif g > 0.0:
            new = cap if cap < INFINITY else old
        else:
            new = 0.0
        p.beta[t, i] = new
        step = p.sides[t] * p.y[i] * (new - old)
        if p.diagonal[i] > 0.0 and step != 0.0:
            row_add(rows, i, step)
            p.S[0] += step * p.border[i]
    return 0


def _check_order(rows, Problem p, const long long[::1] order):
    cdef Py_ssize_t k
    if rows.n_rows != p.beta.shape[1]:
        raise ValueError("rows and problem have different numbers of rows")
    for k in range(order.shape[0]):
        if order[k] < 0 or order[k] >= p.beta.shape[0] * p.beta.shape[1]:
            raise ValueError("a coordinate is out of range")


def sweep_gram(GramRows rows, Problem problem, const long long[::1] order):
    """Visit the coordinates in `order` once; multipliers and the kept vector are updated in place, without the GIL."""
    _check_order(rows, problem, order)
    with nogil:
        ascend(rows, problem, order)


def sweep_dense(DenseRows rows, Problem problem, const long long[::1] order):
    """Visit the coordinates in `order` once; multipliers and the kept vector are updated in place, without the GIL."""
    _check_order(rows, problem, order)
    with nogil:
        ascend(rows, problem, order)
