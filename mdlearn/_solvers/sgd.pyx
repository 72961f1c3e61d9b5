"""Stochastic steps of Algorithm 2 (LDM paper) on a MarginForm column, at the cost of two rows each.

A step draws rows i and j, and goes along the gradient of the scaled objective whose expectation is exact::

    w <- w - eta_t [ (spread (z_i - z_j) - pull + loss'(z_i)) y_i x_i + ridge w ]
    eta_t = eta0 (1 + ridge eta0 t)^(-3/4)

Shrinking w and summing it up for the average would touch every column. So w = scale * u, and the sum of the iterates
is total + carried * u: both scalars change at every step, the vectors only where row i has entries. Behind the columns
come an entry for the constant feature and one per row: the coefficients of w as a combination of rows.
"""

from libc.math cimport exp, fabs, sqrt
from libc.stdlib cimport calloc, free

from mdlearn._solvers.callbacks cimport Callback, function_t
from mdlearn._solvers.rows cimport (
    add, check_csr, check_order, index_t, real_t, sparse_add, sparse_inner, strided_inner,
)

cdef double SMALL = 0.0625, LARGE = 16.0  # of `scale`: narrow, so that total + carried * u cancels few digits


cdef struct Native:
    function_t derivative
    void* data
    double weight, side


cdef class Problem:
    """A column, divided by the factor that makes step sizes a matter of the data's scale.

    Parameters
    ----------
    y : (m,) signs; offset : (m,) what margins are less than y f; terms : (6, T) side, threshold, jump, rise, height and
    sharpness of every loss term: its derivative is -side (jump + rise * excess) beyond its threshold, and
    -side * height / (1 + exp(-sharpness * excess)); spread, pull, ridge : factors of margin difference, mean and w;
    constant : value of a feature that every row has, behind the last column (0: none);
    natives : (Callback, weight, side) of every term with a derivative of its own: weight times the part of it that
    falls (side 1) or rises (side -1);
    weights, shifts : (T + len(natives), m) factors of the terms in single rows, and what their thresholds are higher by
    there; None: 1 and 0 in all.
    """

    cdef const double[::1] y, offset
    cdef const double[:, ::1] terms, weights, shifts
    cdef bint by_row
    cdef double spread, pull, ridge, constant
    cdef Native* natives
    cdef Py_ssize_t n_natives
    cdef list callbacks  # held as long as their pointers

    def __cinit__(self):
        self.natives, self.n_natives = NULL, 0

    def __init__(
        self, const double[::1] y, const double[::1] offset, const double[:, ::1] terms, double spread, double pull,
        double ridge, double constant, natives=(), const double[:, ::1] weights=None,
        const double[:, ::1] shifts=None,
    ):
        if offset.shape[0] != y.shape[0]:
            raise ValueError("y and offset differ in length")
        if terms.shape[0] != 6:
            raise ValueError("terms need six rows: side, threshold, jump, rise, height, sharpness")
        if self.natives != NULL:
            raise ValueError("a problem is made once")
        self.by_row = weights is not None
        cdef Py_ssize_t T = terms.shape[1] + len(natives), m = y.shape[0]
        if self.by_row and (
            shifts is None or weights.shape[0] != T or weights.shape[1] != m or shifts.shape[0] != T or shifts.shape[1] != m
        ):
            raise ValueError("weights and shifts by row need one number for every term and row")
        self.y, self.offset, self.terms, self.weights, self.shifts = y, offset, terms, weights, shifts
        self.spread, self.pull, self.ridge, self.constant = spread, pull, ridge, constant
        self.callbacks = [callback for callback, _, _ in natives]
        self.natives = <Native*>calloc(len(self.callbacks) + 1, sizeof(Native))
        if self.natives == NULL:
            raise MemoryError
        cdef Callback callback
        for callback, weight, side in natives:
            self.natives[self.n_natives] = Native(callback.function, callback.data, weight, side)
            self.n_natives += 1

    def __dealloc__(self):
        free(self.natives)


cdef class Walk:
    """Iterate and running sum: w = scale * u; sum of the iterates after step t0 = total + carried * u.

    Parameters
    ----------
    eta0 : first step size; t0 : steps before the sum starts;
    u, total : (d + 1 + m,) zeros, written in place: columns, constant feature, rows;
    t : steps already taken; then u and total are where those led, scale 1 and carried 0.
    """

    cdef double eta0
    cdef double[::1] u, total
    cdef readonly double scale, carried
    cdef readonly long long t, t0

    def __init__(self, double eta0, long long t0, double[::1] u, double[::1] total, long long t=0):
        if u.shape[0] != total.shape[0] or u.shape[0] < 3:
            raise ValueError("u and total need one entry per column, one for the constant feature, and one per row")
        self.eta0, self.t0, self.u, self.total = eta0, t0, u, total
        if t < 0:
            raise ValueError("steps already taken cannot be fewer than 0")
        self.scale, self.carried, self.t = 1.0, 0.0, t


cdef int renormalise(Walk walk) except -1 nogil:
    cdef double* u = &walk.u[0]
    cdef double* total = &walk.total[0]
    cdef Py_ssize_t c
    for c in range(walk.u.shape[0]):
        total[c] += walk.carried * u[c]
        u[c] *= walk.scale
    walk.scale, walk.carried = 1.0, 0.0
    return 0


cdef double descend(Problem p, Walk walk, Py_ssize_t i, double z_i, double z_j) except? -1.0 nogil:
    # Take the step's effect on the scalars; return what u gains along row i.
    cdef Py_ssize_t term
    cdef double excess, eta, growth, given, slope = p.spread * (z_i - z_j) - p.pull, share = 1.0, at = z_i
    for term in range(p.terms.shape[1]):
        if p.by_row:
            share, at = p.weights[term, i], z_i - p.shifts[term, i]
        excess = p.terms[0, term] * (p.terms[1, term] - at)
        if excess > 0.0:
            slope -= share * p.terms[0, term] * (p.terms[2, term] + p.terms[3, term] * excess)
        if p.terms[4, term] != 0.0:
            # exp overflows to infinity, and the quotient is then 0 as it should be.
            slope -= share * p.terms[0, term] * p.terms[4, term] / (1.0 + exp(-p.terms[5, term] * excess))
    for term in range(p.n_natives):
        if p.by_row:
            share, at = p.weights[p.terms.shape[1] + term, i], z_i - p.shifts[p.terms.shape[1] + term, i]
        given = p.natives[term].derivative(at, p.natives[term].data)
        if p.natives[term].side * given < 0.0:
            slope += share * p.natives[term].weight * given
    walk.t += 1
    growth = sqrt(1.0 + p.ridge * walk.eta0 * walk.t)
    eta = walk.eta0 / (growth * sqrt(growth))
    walk.scale *= 1.0 - eta * p.ridge
    if not SMALL <= fabs(walk.scale) <= LARGE:
        renormalise(walk)
    return -eta * slope * p.y[i] / walk.scale


cdef inline int finish(Problem p, Walk walk, Py_ssize_t i, double gain) except -1 nogil:
    # The step's entries behind the columns, then the new iterate enters the sum.
    cdef Py_ssize_t d = walk.u.shape[0] - p.y.shape[0] - 1
    walk.u[d] += gain * p.constant
    walk.u[d + 1 + i] += gain
    if walk.t > walk.t0:
        walk.total[d] -= walk.carried * gain * p.constant
        walk.total[d + 1 + i] -= walk.carried * gain
        walk.carried += walk.scale
    return 0


cdef int check(Problem p, Py_ssize_t m, const long long[::1] i, const long long[::1] j) except -1:
    if p.y.shape[0] != m:
        raise ValueError("rows and problem have different numbers of rows")
    if i.shape[0] != j.shape[0]:
        raise ValueError("every step needs two rows: i and j differ in length")
    check_order(i, m)
    check_order(j, m)
    return 0


cdef inline double margin(Problem p, Walk walk, Py_ssize_t i, double product) except? -1.0 nogil:
    # From the product of the row with u's columns.
    product += p.constant * walk.u[walk.u.shape[0] - p.y.shape[0] - 1]
    return p.y[i] * walk.scale * product - p.offset[i]


def walk_dense(const real_t[:, :] X, Problem problem, Walk walk, const long long[::1] i, const long long[::1] j):
    """Take one step for every pair (i, j) of dense rows X (m, d), without the GIL."""
    cdef Py_ssize_t k, row, m = X.shape[0], d = X.shape[1], step = X.strides[1] // <Py_ssize_t> sizeof(real_t)
    cdef double z_i, z_j, gain
    cdef double* u = &walk.u[0]
    check(problem, m, i, j)
    if walk.u.shape[0] != d + 1 + m:
        raise ValueError("u needs one entry per column, one for the constant feature, and one per row")
    with nogil:
        for k in range(i.shape[0]):
            row = i[k]
            z_i = z_j = margin(problem, walk, row, strided_inner(&X[row, 0], step, u, d))
            if problem.spread != 0.0:
                z_j = margin(problem, walk, j[k], strided_inner(&X[j[k], 0], step, u, d))
            gain = descend(problem, walk, row, z_i, z_j)
            if gain != 0.0:
                add(&X[row, 0], step, u, d, gain)
                if walk.carried != 0.0:
                    add(&X[row, 0], step, &walk.total[0], d, -walk.carried * gain)
            finish(problem, walk, row, gain)


def walk_csr(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Problem problem,
    Walk walk, const long long[::1] i, const long long[::1] j,
):
    """Take one step for every pair (i, j) of CSR rows, without the GIL; the caller vouches for the column indices."""
    cdef Py_ssize_t k, row, start, n, other, last, m = problem.y.shape[0]
    cdef double z_i, z_j, gain
    cdef double* u = &walk.u[0]
    check_csr(data.shape[0], indices.shape[0], indptr, m, 0, m)
    check(problem, m, i, j)
    if walk.u.shape[0] < m + 2:
        raise ValueError("u needs one entry per column, one for the constant feature, and one per row")
    # Rows may all be empty.
    cdef const real_t* x = &data[0] if data.shape[0] else NULL
    cdef const index_t* at = &indices[0] if data.shape[0] else NULL
    with nogil:
        for k in range(i.shape[0]):
            row = i[k]
            start, n = indptr[row], indptr[row + 1] - indptr[row]
            z_i = z_j = margin(problem, walk, row, sparse_inner(x + start, at + start, u, n))
            if problem.spread != 0.0:
                other, last = indptr[j[k]], indptr[j[k] + 1]
                z_j = margin(problem, walk, j[k], sparse_inner(x + other, at + other, u, last - other))
            gain = descend(problem, walk, row, z_i, z_j)
            if gain != 0.0:
                sparse_add(x + start, at + start, u, n, gain)
                sparse_add(x + start, at + start, &walk.total[0], n, -walk.carried * gain)
            finish(problem, walk, row, gain)
