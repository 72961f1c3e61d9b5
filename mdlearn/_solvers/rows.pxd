# The row interface of coordinate descent: what one row contributes to the vector that is kept up to date.
#
# GramRows   keeps f = R q (one entry per training row): a dot product is a lookup, an update costs one row of R.
# DenseRows  keeps w = X' q (one entry per column): both cost one row of X, as it lies in memory.
# The functions are specialised at compile time, so the loop over coordinates is written once.

cdef class GramRows:
    cdef const double[:, ::1] matrix
    cdef double[::1] kept

cdef class DenseRows:
    # X is one of the two.
    cdef const double[:, :] wide
    cdef const float[:, :] single
    cdef bint is_single
    cdef Py_ssize_t step
    cdef double[::1] kept

ctypedef fused rows_t:
    GramRows
    DenseRows

ctypedef fused real_t:
    double
    float


cdef inline double dot(const real_t* row, Py_ssize_t step, const double* kept, Py_ssize_t length) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    if step == 1:  # the compiler then sees two plain arrays
        for j in range(length):
            total += row[j] * kept[j]
    else:
        for j in range(length):
            total += row[j * step] * kept[j]
    return total


cdef inline void add(const real_t* row, Py_ssize_t step, double* kept, Py_ssize_t length, double by) noexcept nogil:
    cdef Py_ssize_t j
    if step == 1:
        for j in range(length):
            kept[j] += by * row[j]
    else:
        for j in range(length):
            kept[j] += by * row[j * step]


cdef inline double row_dot(rows_t rows, Py_ssize_t i) except? -1.0 nogil:
    if rows_t is GramRows:
        return rows.kept[i]
    else:
        if rows.is_single:
            return dot(&rows.single[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0])
        return dot(&rows.wide[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0])


cdef inline int row_add(rows_t rows, Py_ssize_t i, double by) except -1 nogil:
    if rows_t is GramRows:
        add(&rows.matrix[i, 0], 1, &rows.kept[0], rows.kept.shape[0], by)
    elif rows.is_single:
        add(&rows.single[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0], by)
    else:
        add(&rows.wide[i, 0], rows.step, &rows.kept[0], rows.kept.shape[0], by)
    return 0
