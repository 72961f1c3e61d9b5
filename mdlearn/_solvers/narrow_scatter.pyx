"""Rows written column by column, their scatter about the mean, and the matrix of a variance term over signed rows."""

from libc.string cimport memcpy

from mdlearn._solvers.narrow_loops cimport mdlearn_adjoint, mdlearn_gram
from mdlearn._solvers.narrow_matrices cimport factor
from mdlearn._solvers.rows cimport real_t

cdef enum:
    LANES = 8, PIECE = 256


def columns(const real_t[:, :] X, double[:, ::1] T):
    """Write the rows of X into the columns of T, with 1 where T has more entries than they, and zeros for padding."""
    cdef Py_ssize_t i, j, k, m = X.shape[0], d = X.shape[1], wide = T.shape[1], apart = X.strides[1] // sizeof(real_t)
    cdef const real_t *a
    cdef const real_t *b
    cdef const real_t *c
    cdef const real_t *e
    cdef double* column
    if m == 0 or wide < m or wide % LANES or T.shape[0] < d:
        raise ValueError("rows and columns do not fit each other")
    with nogil:
        for k in range(0, m - m % 4, 4):
            a, b, c, e = &X[k, 0], &X[k + 1, 0], &X[k + 2, 0], &X[k + 3, 0]
            for j in range(d):
                column, i = &T[j, k], j * apart
                column[0], column[1], column[2], column[3] = a[i], b[i], c[i], e[i]
        for j in range(T.shape[0]):
            for k in range(m - m % 4 if j < d else 0, m):
                T[j, k] = X[k, j] if j < d else 1.0
            for k in range(m, wide):
                T[j, k] = 0.0


def scatter(const double[:, ::1] T, const double[::1] counts, double[::1] weights, double[:, ::1] room,
            double[::1] mean, double[:, ::1] about):
    """Write the mean of rows that weigh `counts`, and add the sum of squares about it to a lower triangle.

    T : (n, m) as for `NarrowNewton`; counts : one a row; weights : (m,) and room : (n + 8, 256), room; mean : (n,);
    about : (n, n + 8).
    """
    cdef Py_ssize_t j, k, start, size, n = T.shape[0], m = T.shape[1], rows = counts.shape[0]
    cdef double total = 0.0, centre
    cdef double* column
    cdef const double* one
    if m % LANES or not m - LANES < rows <= m or weights.shape[0] != m or mean.shape[0] != n or rows == 0:
        raise ValueError("rows and columns differ in length")
    if room.shape[0] != n + 8 or room.shape[1] != PIECE or about.shape[0] != n or about.shape[1] != n + 8:
        raise ValueError("the room does not fit the columns")
    with nogil:
        for k in range(m):
            weights[k] = counts[k] if k < rows else 0.0
            total += weights[k]
        mdlearn_adjoint(&T[0, 0], m, n, m, &weights[0], &mean[0])
        for j in range(n):
            mean[j] /= total
        for start in range(0, m, 256):
            size = min(m - start, PIECE)
            for j in range(n):
                one, centre, column = &T[j, start], mean[j], &room[j, 0]
                for k in range(size):
                    column[k] = one[k] - centre
            mdlearn_gram(&room[0, 0], PIECE, n, size, &weights[start], &room[n, 0], &about[0, 0], n + 8)


def quadratic(const double[:, ::1] T, const double[::1] counts, const double[::1] labels, const double[::1] mean,
              const double[:, ::1] about, double kappa, double[::1] weights, double[:, ::1] room, double[:, ::1] A,
              double[:, ::1] L, double[::1] v):
    """Write A = I + kappa times the scatter of signed rows, its factor L, and the mean signed row v.

    weights : (m,) and room : (n + 2, n + 8), room; of L the lower triangle is written.

    With r_i = y_i x_i, x = m + d and v = l m + s the scatter is that of the d_i, less
    C s s' - C ((1 - l^2) m m' - l (m s' + s m')): no digits are lost where m is large beside d.

    Returns
    -------
    bool
        Whether there is a factor.
    """
    cdef Py_ssize_t i, j, k, n = T.shape[0], m = T.shape[1], rows = counts.shape[0]
    cdef double total = 0.0, label = 0.0, rest = 0.0
    cdef bint found
    if m % LANES or not m - LANES < rows <= m or labels.shape[0] != rows or weights.shape[0] != m or rows == 0:
        raise ValueError("rows and columns differ in length")
    if mean.shape[0] != n or about.shape[0] != n or about.shape[1] != n + 8 or v.shape[0] != n:
        raise ValueError("the sums do not fit the columns")
    if A.shape[0] != n or A.shape[1] != n or L.shape[0] != n or L.shape[1] != n:
        raise ValueError("the matrices do not fit the columns")
    if room.shape[0] != n + 2 or room.shape[1] != n + 8:
        raise ValueError("the room does not fit the columns")
    with nogil:
        for k in range(rows):
            total += counts[k]
            label += counts[k] * labels[k]
        label /= total
        for k in range(m):
            weights[k] = counts[k] * (labels[k] - label) if k < rows else 0.0
            rest += weights[k]
        rest /= total
        mdlearn_adjoint(&T[0, 0], m, n, m, &weights[0], &v[0])
        for i in range(n):
            v[i] = v[i] / total - rest * mean[i]
        for i in range(n):
            for j in range(i + 1):
                A[i, j] = about[i, j] - total * v[i] * v[j] + total * (
                    (1.0 - label * label) * mean[i] * mean[j] - label * (mean[i] * v[j] + v[i] * mean[j]))
                A[i, j] = kappa * A[i, j] + <double> (i == j)
                A[j, i] = room[i, j] = A[i, j]
            for j in range(i + 1, n + 8):  # products with zeros read beyond the diagonal
                room[i, j] = 0.0
        for i in range(n):
            v[i] += label * mean[i]
        found = factor(&room[0, 0], n + 8, n, &room[n, 0])
        for i in range(n):
            memcpy(&L[i, 0], &room[i, 0], (i + 1) * sizeof(double))
    return found
