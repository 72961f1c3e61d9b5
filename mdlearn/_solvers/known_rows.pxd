# Some rows of a symmetric matrix, which loops ask for by their numbers.

from mdlearn._solvers.gaussian cimport RowMaker

cdef class KnownRows:
    cdef double[:, ::1] table
    cdef long long[::1] at
    cdef long long[::1] order
    cdef const double[::1] diagonal
    cdef RowMaker maker
    cdef Py_ssize_t allowed
    cdef readonly Py_ssize_t count, missing
    cdef readonly object values, place
    cdef object numbers

    cdef const double* row(self, Py_ssize_t k) noexcept nogil


cdef class SelectedRows(RowMaker):
    cdef KnownRows whole
    cdef const long long[::1] index
