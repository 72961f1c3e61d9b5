"""Products of a CSR matrix with a vector, and its columns, in float64 whatever its entries are, over some rows."""

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


def column_squares(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] v,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """Add v_i x_ij^2 to out_j for first <= i < last."""
    cdef Py_ssize_t i, j
    cdef double by, entry
    check_csr(data.shape[0], indices.shape[0], indptr, v.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            by = v[i]
            if by != 0.0:
                for j in range(indptr[i], indptr[i + 1]):
                    entry = data[j]
                    out[indices[j]] += by * entry * entry


def columns(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, double[:, ::1] T,
    Py_ssize_t first, Py_ssize_t last,
):
    """T_ji = x_ij for first <= i < last, where an entry is stored."""
    cdef Py_ssize_t i, j
    # Columns may be padded.
    check_csr(data.shape[0], indices.shape[0], indptr, min(T.shape[1], indptr.shape[0] - 1), first, last)
    with nogil:
        for i in range(first, last):
            for j in range(indptr[i], indptr[i + 1]):
                T[indices[j], i] = data[j]


cdef inline long long entries_of_row(const real_t* x, Py_ssize_t step, Py_ssize_t d) noexcept nogil:
    cdef long long n = 0
    cdef Py_ssize_t j
    if step == 1:  # the compiler then compares several entries at a time
        for j in range(d):
            n += x[j] != 0
    else:
        for j in range(d):
            n += x[j * step] != 0
    return n


def count(const real_t[:, :] X, long long[::1] counts):
    """Write the number of entries of every row of a dense array that are not 0."""
    cdef Py_ssize_t i, d = X.shape[1], step = X.strides[1] // <Py_ssize_t> sizeof(real_t)
    if counts.shape[0] != X.shape[0]:
        raise ValueError("rows and counts differ in number")
    with nogil:
        for i in range(X.shape[0]):
            counts[i] = entries_of_row(&X[i, 0], step, d) if d else 0


def gather(const real_t[:, :] X, const long long[::1] indptr, real_t[::1] data, int[::1] indices):
    """Write the entries of a dense array that are not 0, row by row, where `count` says that they begin."""
    cdef Py_ssize_t i, j, k = 0, m = X.shape[0], d = X.shape[1], step = X.strides[1] // <Py_ssize_t> sizeof(real_t)
    cdef Py_ssize_t size = data.shape[0]
    cdef const real_t* x
    if indptr.shape[0] != m + 1 or size != indices.shape[0]:
        raise ValueError("the arrays of the CSR matrix and the rows do not fit")
    if indptr[0] != 0 or indptr[m] != size:
        raise ValueError("the arrays of the CSR matrix and the rows do not fit")
    with nogil:
        for i in range(m if d else 0):
            x = &X[i, 0]
            if k + d <= size:  # every entry is written, and the next one over it where it is 0: no branch to guess
                for j in range(d):
                    data[k], indices[k] = x[j * step], <int> j
                    k += x[j * step] != 0
                continue
            for j in range(d):
                if x[j * step] != 0:
                    if k < size:
                        data[k], indices[k] = x[j * step], <int> j
                    k += 1
    if k != size:
        raise ValueError("the rows have another number of entries that are not 0")
