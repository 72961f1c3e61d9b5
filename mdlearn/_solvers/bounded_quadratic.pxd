# A dense quadratic with bounds, for loops over many of them.

from mdlearn._solvers.known_rows cimport KnownRows


cdef class _Quadratic:
    cdef const double[::1] border, soft, low, high
    cdef double omega
    cdef double[::1] u, e


cdef class Box(_Quadratic):
    cdef const double[:, ::1] H
    cdef const float[:, ::1] single
    cdef KnownRows known
    cdef double[::1] weight, up, down, length
    cdef public double violation


cdef inline void marked(Box p, Py_ssize_t k) noexcept nogil:
    p.up[k] = 1.0 if p.u[k] < p.high[k] else 0.0
    p.down[k] = 1.0 if p.u[k] > p.low[k] else 0.0


cdef inline void begin(Box p, Py_ssize_t k, double diagonal) noexcept nogil:
    cdef double h = diagonal + p.omega * p.border[k] * p.border[k] + p.soft[k]
    # A row of length zero has a fixed margin: its multiplier belongs at the bound that e points to.
    p.length[k] = h
    p.weight[k] = 1.0 / h if h > 0.0 else 1e300
    marked(p, k)


cdef Py_ssize_t box_steps(Box p, bint paired, Py_ssize_t most, double enough) noexcept nogil
