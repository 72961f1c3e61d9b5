# C functions of a margin, as kernels hold them.

ctypedef double (*function_t)(double, void*) noexcept nogil

cdef class Callback:
    cdef function_t function
    cdef void* data
    cdef double[::1] params
    cdef object owner


cdef inline void call_for_the_rest(Callback function, const double* t, Py_ssize_t n, double* found) noexcept nogil:
    # Values of the function itself where a table had no number: what is found is NaN there.
    cdef Py_ssize_t i
    for i in range(n):
        if found[i] != found[i]:
            found[i] = function.function(t[i], function.data)
