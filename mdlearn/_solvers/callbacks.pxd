# C functions of a margin, as kernels hold them.

ctypedef double (*function_t)(double, void*) noexcept nogil

cdef class Callback:
    cdef function_t function
    cdef void* data
    cdef double[::1] params
    cdef object owner
