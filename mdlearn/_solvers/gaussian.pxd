# Single rows of the matrix of a Gaussian kernel, for loops of other modules.

cdef class RowMaker:
    cdef Py_ssize_t length
    cdef void fill(self, Py_ssize_t i, double* out) noexcept nogil

cdef class GaussianRows(RowMaker):
    cdef const double[:, ::1] columns
    cdef double[::1] own
