# Single rows of the matrix of a Gaussian kernel, for loops of other modules.

cdef class GaussianRows:
    cdef const double[:, ::1] columns
    cdef double[::1] own
    cdef void fill(self, Py_ssize_t i, double* out) noexcept nogil
