"""Coordinate ascent on the dual of a MarginForm column: one loop, specialised for each kind of rows.

Coordinates are (t, i): multiplier of loss term t at row i, numbered t * m + i. The decision value of row i is the dot
product with the kept vector plus omega * border_i * S, where S = border' q is a scalar: a regularized bias or the
rank-one part of a centred variance costs nothing that way. A free bias, `offset`, stands still during a sweep.
"""

from libc.math cimport INFINITY

from mdlearn._solvers.rows cimport add, check_order, strided_inner


cdef class GramRows:
    """A symmetric matrix R (m, m) and the kept vector f = R q (m,): a product is a lookup, an update costs a row of R."""

    cdef const double[:, ::1] matrix
    cdef double[::1] kept

    def __init__(self, const double[:, ::1] matrix, double[::1] kept):
        if matrix.shape[0] != matrix.shape[1] or kept.shape[0] != matrix.shape[0] or kept.shape[0] == 0:
            raise ValueError("a Gram matrix needs to be square, with one kept entry per row")
        self.matrix, self.kept = matrix, kept

    @property
    def n_rows(self):
        """Number of rows."""
        return self.matrix.shape[0]


cdef class DenseRows:
    """Rows X (m, d) of float64 or float32 with any strides, read only, and the kept vector w = X' q (d,)."""

    cdef const double[:, :] wide  # X is one of the two
    cdef const float[:, :] single
    cdef bint is_single
    cdef Py_ssize_t step
    cdef double[::1] kept

    def __init__(self, matrix, double[::1] kept):
        if kept.shape[0] != matrix.shape[1] or matrix.shape[0] == 0 or kept.shape[0] == 0:
            raise ValueError("rows need at least one column, with one kept entry per column")
        self.is_single = matrix.itemsize == 4
        if self.is_single:
            self.single = matrix
        else:
            self.wide = matrix
        self.step = matrix.strides[1] // matrix.itemsize
        self.kept = kept

    @property
    def n_rows(self):
        """Number of rows."""
        return self.single.shape[0] if self.is_single else self.wide.shape[0]


ctypedef fused rows_t:
    GramRows
    DenseRows


cdef inline double row_dot(rows_t rows, Py_ssize_t i) except? -1.0 nogil:
    if rows_t is GramRows:
        return rows.kept[i]
    else:
        if rows.is_single:
            return strided_inner(&rows.single[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0])
        return strided_inner(&rows.wide[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0])


cdef inline int row_add(rows_t rows, Py_ssize_t i, double by) except -1 nogil:
    if rows_t is GramRows:
        add(&rows.matrix[i, 0], 1, &rows.kept[0], rows.kept.shape[0], by)
    elif rows.is_single:
        add(&rows.single[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0], by)
    else:
        add(&rows.wide[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0], by)
    return 0


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


def sweep(rows_t rows, Problem problem, const long long[::1] order):
    """Visit the coordinates in `order` once; multipliers and the kept vector are updated in place, without the GIL."""
    if rows.n_rows != problem.beta.shape[1]:
        raise ValueError("rows and problem have different numbers of rows")
    check_order(order, problem.beta.shape[0] * problem.beta.shape[1])
    with nogil:
        ascend(rows, problem, order)
