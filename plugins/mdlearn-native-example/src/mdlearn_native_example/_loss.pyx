"""The loss of one margin z, its two derivatives and its conjugate; params points to the width h of the corner.

Other compiled code calls these without the interpreter: they need to be `noexcept nogil`, and safe in several threads.
Nothing of mdlearn is cimported, so that newer versions of it need no new build.
"""


cdef api double value(double z, void *params) noexcept nogil:
    cdef double h = (<double *>params)[0], missing = 1.0 - z
    if missing <= 0.0:
        return 0.0
    return missing * missing / (2.0 * h) if missing < h else missing - 0.5 * h


cdef api double slope(double z, void *params) noexcept nogil:
    # With respect to the margin, and not negated.
    cdef double h = (<double *>params)[0], missing = 1.0 - z
    if missing <= 0.0:
        return 0.0
    return -missing / h if missing < h else -1.0


cdef api double bend(double z, void *params) noexcept nogil:
    cdef double h = (<double *>params)[0], missing = 1.0 - z
    return 1.0 / h if 0.0 < missing < h else 0.0


cdef api double conjugate(double s, void *params) noexcept nogil:
    # sup over z of s z - value(z), for slopes -1 <= s <= 0.
    return s + 0.5 * (<double *>params)[0] * s * s
