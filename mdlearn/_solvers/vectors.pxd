# Sums over two plain vectors in float64, with eight partial sums: one would wait for itself at every step.

ctypedef fused entry_t:
    double
    float


cdef inline double inner(const entry_t* x, const double* w, Py_ssize_t n) noexcept nogil:
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef Py_ssize_t j, whole = n - n % 8
    for j in range(0, whole, 8):
        a += x[j] * w[j]
        b += x[j + 1] * w[j + 1]
        c += x[j + 2] * w[j + 2]
        d += x[j + 3] * w[j + 3]
        e += x[j + 4] * w[j + 4]
        f += x[j + 5] * w[j + 5]
        g += x[j + 6] * w[j + 6]
        h += x[j + 7] * w[j + 7]
    for j in range(whole, n):
        a += x[j] * w[j]
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


cdef inline double squared_distance(const double* x, const double* w, Py_ssize_t n) noexcept nogil:
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef Py_ssize_t j, whole = n - n % 8
    for j in range(0, whole, 8):
        a += (x[j] - w[j]) * (x[j] - w[j])
        b += (x[j + 1] - w[j + 1]) * (x[j + 1] - w[j + 1])
        c += (x[j + 2] - w[j + 2]) * (x[j + 2] - w[j + 2])
        d += (x[j + 3] - w[j + 3]) * (x[j + 3] - w[j + 3])
        e += (x[j + 4] - w[j + 4]) * (x[j + 4] - w[j + 4])
        f += (x[j + 5] - w[j + 5]) * (x[j + 5] - w[j + 5])
        g += (x[j + 6] - w[j + 6]) * (x[j + 6] - w[j + 6])
        h += (x[j + 7] - w[j + 7]) * (x[j + 7] - w[j + 7])
    for j in range(whole, n):
        a += (x[j] - w[j]) * (x[j] - w[j])
    return ((a + e) + (c + g)) + ((b + f) + (d + h))
