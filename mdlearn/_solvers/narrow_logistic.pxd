"""Newton steps on logistic losses over narrow rows: tables of rows and coefficients, attributes, and their products."""

from libc.string cimport memset

from mdlearn._solvers.narrow_loops cimport mdlearn_adjoint, mdlearn_gram, mdlearn_margins, mdlearn_scaled
from mdlearn._solvers.single_loops cimport (
    mdlearn_single_adjoint, mdlearn_single_bend, mdlearn_single_gram, mdlearn_single_margins,
)

cdef enum:
    # Rows of the table of a problem: numbers of every row of it.
    LABEL, CAP, Z, U, SIGNED, BENDS, DZ, BEFORE, ALPHA, TOWARDS, BEST, FACTORED, Q, TABLE
    # Rows of the table of its coefficients.
    W = 0, G, STEP, STANDS, FIXED, RIDGE, SCRATCH, MORE_SCRATCH, RESIDUAL, SOLVED, ALONG, PRODUCT, VECTORS
    LANES = 8, PIECE = 256, SINGLE_LANES = 16, SINGLE_PIECE = 512


cdef class NarrowLogistic:
    cdef const double[:, ::1] T
    cdef const float[:, ::1] S
    cdef double[:, ::1] table, vectors, room, M
    cdef Py_ssize_t rows, m, n, stride
    cdef double sharpness, kink, least_bend, full, close, rounding, left_over, far, price, loss
    cdef bint free, at_slope, factored, fresh, exact, rough, loose, rough_factor
    cdef readonly double objective, bound


cdef inline double* row(NarrowLogistic p, int which) noexcept nogil:
    return &p.table[which, 0]


cdef inline double* vector(NarrowLogistic p, int which) noexcept nogil:
    return &p.vectors[which, 0]


cdef inline void margins(NarrowLogistic p, int source, int target) noexcept nogil:
    """Signed rows times coefficients."""
    cdef const double *w = vector(p, source)
    if p.rough:
        mdlearn_single_margins(&p.S[0, 0], p.S.shape[1], p.n, p.m, w, row(p, LABEL), row(p, target))
    else:
        mdlearn_margins(&p.T[0, 0], p.m, p.n, p.m, w, row(p, LABEL), row(p, target))


cdef inline void adjoint(NarrowLogistic p, const double* u, int target) noexcept nogil:
    """The sum of signed rows times u."""
    cdef double *signed_ = row(p, SIGNED)
    mdlearn_scaled(row(p, LABEL), u, p.m, signed_)
    if p.rough:
        mdlearn_single_adjoint(&p.S[0, 0], p.S.shape[1], p.n, p.m, signed_, vector(p, target))
    else:
        mdlearn_adjoint(&p.T[0, 0], p.m, p.n, p.m, signed_, vector(p, target))


cdef inline void curvature(NarrowLogistic p, int source, int change, int target) noexcept nogil:
    """Second derivatives of the losses times coefficients, and the margins of these."""
    cdef const double *v = vector(p, source)
    cdef const double *bends = row(p, BENDS)
    if p.rough:
        mdlearn_single_bend(
            &p.S[0, 0], p.S.shape[1], p.n, p.m, v, row(p, LABEL), bends, row(p, change), vector(p, target))
        return
    margins(p, source, change)
    mdlearn_scaled(row(p, change), bends, p.m, row(p, TOWARDS))
    adjoint(p, row(p, TOWARDS), target)


cdef inline void matrix(NarrowLogistic p) noexcept nogil:
    """Write the second derivatives into the lower triangle of M, those of the loss by rows at their weights."""
    cdef Py_ssize_t i, j, k, n = p.n, width = n + 8
    cdef double lacking = p.least_bend
    cdef double *M = &p.M[0, 0]
    for i in range(n):
        for j in range(width):  # sums are written beyond the diagonal
            M[i * width + j] = p.vectors[RIDGE, i] if j == i else 0.0
    if p.free:  # a step along it would have no end where no loss bends
        for k in range(p.m):
            lacking -= p.table[BENDS, k]
        M[(n - 1) * width + n - 1] += max(lacking, 0.0)
    if p.rough:
        add_single_rows(p, M)
    else:
        add_rows(p, M)


cdef inline void add_rows(NarrowLogistic p, double* M) noexcept nogil:
    """Add every so many-th row's second derivatives at their weights to M."""
    cdef Py_ssize_t j, k, start, size, padded, n = p.n, width = n + 8, stride = p.stride
    cdef Py_ssize_t found = (p.m + stride - 1) // stride
    cdef const double* weighed = row(p, FACTORED)
    cdef const double* column
    cdef double *block = &p.room[0, 0]
    cdef double *weights = block + (n + 2) * PIECE
    if stride == 1:
        for start in range(0, p.m, 256):
            mdlearn_gram(&p.T[0, start], p.m, n, min(p.m - start, PIECE), weighed + start, block, M, width)
        return
    for start in range(0, found, 256):
        size = min(found - start, PIECE)
        padded = (size + 7) // 8 * 8
        for k in range(padded):
            weights[k] = weighed[(start + k) * stride] if k < size else 0.0
        for j in range(n):
            column = &p.T[j, start * stride]
            for k in range(size):
                block[j * PIECE + k] = column[k * stride]
            for k in range(size, padded):
                block[j * PIECE + k] = 0.0
        mdlearn_gram(block, PIECE, n, padded, weights, block + n * PIECE, M, width)


cdef inline void add_single_rows(NarrowLogistic p, double* M) noexcept nogil:
    """As `add_rows`, of rows in single precision."""
    cdef Py_ssize_t j, k, start, size, padded, n = p.n, width = n + 8, stride = p.stride
    cdef Py_ssize_t found = (p.m + stride - 1) // stride
    cdef const double* weighed = row(p, FACTORED)
    cdef const float* column
    cdef float *block = <float*> &p.room[0, 0]
    cdef float *weights = block + (n + 2) * SINGLE_PIECE
    for start in range(0, found, 512):
        size = min(found - start, SINGLE_PIECE)
        padded = (size + 15) // 16 * 16
        for k in range(padded):
            weights[k] = <float> weighed[(start + k) * stride] if k < size else 0.0
        if stride == 1:
            column = &p.S[0, start]
            mdlearn_single_gram(column, p.S.shape[1], n, padded, weights, block, M, width)
            continue
        for j in range(n):
            column = &p.S[j, start * stride]
            for k in range(size):
                block[j * SINGLE_PIECE + k] = column[k * stride]
            for k in range(size, padded):
                block[j * SINGLE_PIECE + k] = 0.0
        mdlearn_single_gram(block, SINGLE_PIECE, n, padded, weights, block + n * SINGLE_PIECE, M, width)
