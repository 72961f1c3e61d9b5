"""Products of a CSR matrix with a vector, in float64 whatever its entries are, over a range of its rows."""

ctypedef fused real_t:
    float
    double

ctypedef fused index_t:
    int
    long long


cdef int check(
    Py_ssize_t entries, Py_ssize_t indices, const index_t[::1] indptr, Py_ssize_t rows, Py_ssize_t first,
    Py_ssize_t last,
) except -1:
    if indptr.shape[0] != rows + 1 or indices < entries:
        raise ValueError("the arrays of the CSR matrix and the vector do not fit")
    if not 0 <= first <= last <= rows:
        raise ValueError("the range of rows is out of bounds")
    # That rows follow each other, and where their columns are, is looked at once, at the door.
    if indptr[first] < 0 or indptr[last] > entries:
        raise ValueError("indptr does not fit data and indices")
    return 0


def dot(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] w,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """out_i = x_i . w for first <= i < last."""
    cdef Py_ssize_t i, j, start, stop, whole
    cdef double a, b, c, d
    check(data.shape[0], indices.shape[0], indptr, out.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            start, stop = indptr[i], indptr[i + 1]
            whole = stop - (stop - start) % 4
            # Four sums: one would wait for itself at every step.
            a = b = c = d = 0.0
            for j in range(start, whole, 4):
                a += data[j] * w[indices[j]]
                b += data[j + 1] * w[indices[j + 1]]
                c += data[j + 2] * w[indices[j + 2]]
                d += data[j + 3] * w[indices[j + 3]]
            for j in range(whole, stop):
                a += data[j] * w[indices[j]]
            out[i] = (a + b) + (c + d)


def adjoint(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] v,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """Add v_i x_i to out for first <= i < last."""
    cdef Py_ssize_t i, j
    cdef double by
    check(data.shape[0], indices.shape[0], indptr, v.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            by = v[i]
            if by != 0.0:
                for j in range(indptr[i], indptr[i + 1]):
                    out[indices[j]] += by * data[j]


def squares(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] weights,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """out_i = sum_j weights_j x_ij^2 for first <= i < last."""
    cdef Py_ssize_t i, j
    cdef double total, entry
    check(data.shape[0], indices.shape[0], indptr, out.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            total = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                entry = data[j]
                total += weights[indices[j]] * entry * entry
            out[i] = total
