"""Products of a CSR matrix with a vector, and its columns, in float64 whatever its entries are, over some rows."""

from mdlearn._solvers.rows cimport (
    check_csr, check_order, entries_from, entry_t, index_t, n_stored, real_t, sparse_add, sparse_inner,
)

cdef extern from *:
    """
    #include <string.h>

    /* Whether a number is not 0; on its bits but the sign, which takes one comparison, NaN included. */
    static inline int mdlearn_stored_double(double x)
    {
        unsigned long long bits;
        memcpy(&bits, &x, sizeof bits);
        return (bits << 1) != 0;
    }

    static inline int mdlearn_stored_float(float x)
    {
        unsigned int bits;
        memcpy(&bits, &x, sizeof bits);
        return (bits << 1) != 0;
    }
    """
    int mdlearn_stored_double(double x) noexcept nogil
    int mdlearn_stored_float(float x) noexcept nogil


def dot(
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] w,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """out_i = x_i . w for first <= i < last; here and in the next two, an empty `data` of int8 stands for ones."""
    cdef Py_ssize_t i
    check_csr(n_stored(data, indices), indices.shape[0], indptr, out.shape[0], first, last)
    # Rows may all be empty.
    cdef const entry_t* x = &data[0] if data.shape[0] else NULL
    cdef const index_t* at = &indices[0] if indices.shape[0] else NULL
    cdef const double* u = &w[0] if w.shape[0] else NULL
    with nogil:
        for i in range(first, last):
            out[i] = sparse_inner(entries_from(x, indptr[i]), at + indptr[i], u, indptr[i + 1] - indptr[i])


def adjoint(
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] v,
    double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """Add v_i x_i to out for first <= i < last."""
    cdef Py_ssize_t i
    check_csr(n_stored(data, indices), indices.shape[0], indptr, v.shape[0], first, last)
    # Rows may all be empty.
    cdef const entry_t* x = &data[0] if data.shape[0] else NULL
    cdef const index_t* at = &indices[0] if indices.shape[0] else NULL
    cdef double* u = &out[0] if out.shape[0] else NULL
    with nogil:
        for i in range(first, last):
            if v[i] != 0.0:
                sparse_add(entries_from(x, indptr[i]), at + indptr[i], u, indptr[i + 1] - indptr[i], v[i])


def dot_and_adjoint(
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] w, double last_w,
    const double[::1] weights, double[::1] z, double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """z_i = x_i . w + last_w, and add weights_i z_i x_i to out, for first <= i < last: every row is read once."""
    cdef Py_ssize_t i, n
    cdef double by
    check_csr(n_stored(data, indices), indices.shape[0], indptr, z.shape[0], first, last)
    if weights.shape[0] != z.shape[0] or w.shape[0] != out.shape[0]:
        raise ValueError("weights and products, or coefficients and sums, differ in number")
    # Rows may all be empty.
    cdef const entry_t* x = &data[0] if data.shape[0] else NULL
    cdef const index_t* at = &indices[0] if indices.shape[0] else NULL
    cdef const double* u = &w[0] if w.shape[0] else NULL
    cdef double* sums = &out[0] if out.shape[0] else NULL
    with nogil:
        for i in range(first, last):
            n = indptr[i + 1] - indptr[i]
            z[i] = sparse_inner(entries_from(x, indptr[i]), at + indptr[i], u, n) + last_w
            by = weights[i] * z[i]
            if by != 0.0:
                sparse_add(entries_from(x, indptr[i]), at + indptr[i], sums, n, by)


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


def row_squares(
    const real_t[::1] data, const index_t[::1] indptr, double[::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """Write the squared length of every row first <= i < last, and return their sum."""
    cdef Py_ssize_t i, j, start, stop
    cdef double total = 0.0, one, a, b, c, d
    check_csr(data.shape[0], data.shape[0], indptr, out.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            start, stop, a, b, c, d = indptr[i], indptr[i + 1], 0.0, 0.0, 0.0, 0.0
            for j in range(start, stop - 3, 4):
                a += <double> data[j] * data[j]
                b += <double> data[j + 1] * data[j + 1]
                c += <double> data[j + 2] * data[j + 2]
                d += <double> data[j + 3] * data[j + 3]
            for j in range(stop - (stop - start) % 4, stop):
                a += <double> data[j] * data[j]
            one = (a + b) + (c + d)
            out[i] = one
            total += one
    return total


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


def write(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const long long[::1] rows,
    double[:, :] out,
):
    """Write the k-th of some rows into out_k, with zeros where no entry is stored."""
    cdef Py_ssize_t i, j, k, m = indptr.shape[0] - 1, d = out.shape[1]
    check_csr(data.shape[0], indices.shape[0], indptr, m, 0, m)
    if out.shape[0] != rows.shape[0]:
        raise ValueError("rows and the room for them differ in number")
    check_order(rows, m)
    with nogil:
        for k in range(rows.shape[0]):
            i = rows[k]
            for j in range(d):
                out[k, j] = 0.0
            for j in range(indptr[i], indptr[i + 1]):
                out[k, indices[j]] = data[j]


def gather(const real_t[:, :] X, int[::1] indptr, real_t[::1] data, int[::1] indices):
    """Write the entries of a dense array that are not 0, and where rows begin; return their number.

    It is -1 where there may be more than `data` and `indices` have room for.
    """
    cdef Py_ssize_t i, j, k = 0, m = X.shape[0], d = X.shape[1], step = X.strides[1] // <Py_ssize_t> sizeof(real_t)
    cdef Py_ssize_t size = data.shape[0]
    cdef const real_t* x
    if indptr.shape[0] != m + 1 or size != indices.shape[0]:
        raise ValueError("the arrays of the CSR matrix and the rows do not fit")
    cdef real_t* values = &data[0] if size else NULL
    cdef int* at = &indices[0] if size else NULL
    indptr[0] = 0
    with nogil:
        for i in range(m):
            if k + d > size:  # every entry is written, and the next one over it where it is 0: no branch to guess
                k = -1
                break
            x = &X[i, 0] if d else NULL
            for j in range(d):
                values[k], at[k] = x[j * step], <int> j
                if real_t is float:
                    k += mdlearn_stored_float(x[j * step])
                else:
                    k += mdlearn_stored_double(x[j * step])
            indptr[i + 1] = <int> k
    return k
