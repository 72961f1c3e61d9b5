"""Products of a CSR matrix with a vector, in float64 whatever its entries are, over a range of its rows."""

from mdlearn._solvers.rows cimport check_csr, index_t, real_t, sparse_inner


def dot(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] w,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """out_i = x_i . w for first <= i < last."""
    cdef Py_ssize_t i
    check_csr(data.shape[0], indices.shape[0], indptr, out.shape[0], first, last)
    # Rows may all be empty.
    cdef const real_t* x = &data[0] if data.shape[0] else NULL
    cdef const index_t* at = &indices[0] if data.shape[0] else NULL
    cdef const double* u = &w[0] if w.shape[0] else NULL
    with nogil:
        for i in range(first, last):
            out[i] = sparse_inner(x + indptr[i], at + indptr[i], u, indptr[i + 1] - indptr[i])


def adjoint(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] v,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """Add v_i x_i to out for first <= i < last."""
    cdef Py_ssize_t i, j
    cdef double by
    check_csr(data.shape[0], indices.shape[0], indptr, v.shape[0], first, last)
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
    check_csr(data.shape[0], indices.shape[0], indptr, out.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            total = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                entry = data[j]
                total += weights[indices[j]] * entry * entry
            out[i] = total


def count(const real_t[:, :] X, long long[::1] counts):
    """Write the number of entries of every row of a dense array that are not 0."""
    cdef Py_ssize_t i, j
    if counts.shape[0] != X.shape[0]:
        raise ValueError("rows and counts differ in number")
    with nogil:
        for i in range(X.shape[0]):
            counts[i] = 0
            for j in range(X.shape[1]):
                counts[i] += X[i, j] != 0


def gather(const real_t[:, :] X, const long long[::1] indptr, real_t[::1] data, int[::1] indices):
    """Write the entries of a dense array that are not 0, row by row, where `count` says that they begin."""
    cdef Py_ssize_t i, j, k = 0
    if indptr.shape[0] != X.shape[0] + 1 or data.shape[0] != indices.shape[0]:
        raise ValueError("the arrays of the CSR matrix and the rows do not fit")
    if indptr[0] != 0 or indptr[X.shape[0]] != data.shape[0]:
        raise ValueError("the arrays of the CSR matrix and the rows do not fit")
    with nogil:
        for i in range(X.shape[0]):
            for j in range(X.shape[1]):
                if X[i, j] != 0:
                    if k < data.shape[0]:
                        data[k], indices[k] = X[i, j], <int> j
                    k += 1
    if k != data.shape[0]:
        raise ValueError("the rows have another number of entries that are not 0")
