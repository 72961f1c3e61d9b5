# The row interface of coordinate descent: what one row contributes to the vector that is kept up to date.
#
# GramRows   keeps f = R q (one entry per training row): a dot product is a lookup, an update costs one row of R.
# DenseRows  keeps w = X' q (one entry per column): both cost one row of X.
# The functions are specialised at compile time, so the loop over coordinates is written once.

cdef class GramRows:
    cdef const double[:, ::1] matrix
    cdef double[::1] kept

cdef class DenseRows:
    cdef const double[:, ::1] matrix
    cdef double[::1] kept

ctypedef fused rows_t:
    GramRows
    DenseRows


cdef inline double row_dot(rows_t rows, Py_ssize_t i) except? -1.0 nogil:
    cdef const double* row
    cdef const double* kept
    cdef double total = 0.0
    cdef Py_ssize_t j, length
    if rows_t is GramRows:
        return rows.kept[i]
    else:
        # Pointers to one checked row: the compiler then sees two plain arrays.
        row, kept, length = &rows.matrix[i, 0], &rows.kept[0], rows.matrix.shape[1]
        for j in range(length):
            total += row[j] * kept[j]
        return total


cdef inline int row_add(rows_t rows, Py_ssize_t i, double step) except -1 nogil:
    cdef const double* row = &rows.matrix[i, 0]
    cdef double* kept = &rows.kept[0]
    cdef Py_ssize_t j, length = rows.matrix.shape[1]
    for j in range(length):
        kept[j] += step * row[j]
    return 0
