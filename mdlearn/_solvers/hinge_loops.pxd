# Sums over rows for hinges: of so many parts beside each other and turns after each other that few roundings add up.

cdef enum:
    SUMS = 8, TURNS = 128  # beside each other, and one after the other before they are added to the total


cdef inline double sum_of(const double* x, Py_ssize_t m) noexcept nogil:
    """Sum of m numbers."""
    cdef Py_ssize_t i = 0, j, k
    cdef double total = 0.0
    cdef double[SUMS] sums
    while i < m:
        for j in range(SUMS):
            sums[j] = 0.0
        k = min(i + SUMS * TURNS, m)
        while i + SUMS <= k:
            for j in range(SUMS):
                sums[j] += x[i + j]
            i += SUMS
        for j in range(k - i):
            sums[j] += x[i + j]
        i = k
        for j in range(1, SUMS):
            sums[0] += sums[j]
        total += sums[0]
    return total


cdef inline double hinge_loss(
    const double* z, const double* counts, double side, double threshold, bint squared, Py_ssize_t m,
) noexcept nogil:
    """Sum of c_i e_i, or of c_i e_i^2, with e_i = max(0, side (threshold - z_i))."""
    cdef Py_ssize_t i = 0, j, k
    cdef double excess, total = 0.0
    cdef double[SUMS] sums
    while i < m:
        for j in range(SUMS):
            sums[j] = 0.0
        k = min(i + SUMS * TURNS, m)
        while i + SUMS <= k:
            for j in range(SUMS):
                excess = max(0.0, side * (threshold - z[i + j]))
                sums[j] += counts[i + j] * (excess * excess if squared else excess)
            i += SUMS
        for j in range(k - i):
            excess = max(0.0, side * (threshold - z[i + j]))
            sums[j] += counts[i + j] * (excess * excess if squared else excess)
        i = k
        for j in range(1, SUMS):
            sums[0] += sums[j]
        total += sums[0]
    return total


cdef inline double hinge_squares(
    const double* beta, const double* counts, double scale, Py_ssize_t m,
) noexcept nogil:
    """Sum of scale beta_i^2 / c_i over the rows with c_i > 0; squares alone would be 0, or infinite, sooner."""
    cdef Py_ssize_t i = 0, j, k
    cdef double total = 0.0
    cdef double[SUMS] sums
    while i < m:
        for j in range(SUMS):
            sums[j] = 0.0
        k = min(i + SUMS * TURNS, m)
        while i + SUMS <= k:
            for j in range(SUMS):
                sums[j] += scale * beta[i + j] / counts[i + j] * beta[i + j] if counts[i + j] > 0.0 else 0.0
            i += SUMS
        for j in range(k - i):
            sums[j] += scale * beta[i + j] / counts[i + j] * beta[i + j] if counts[i + j] > 0.0 else 0.0
        i = k
        for j in range(1, SUMS):
            sums[0] += sums[j]
        total += sums[0]
    return total
