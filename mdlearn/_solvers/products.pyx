"""Symmetric matrices: sums of outer products of rows, added to the lower triangle, blocks with their mirror images, and
sums of some of their rows.

Dense rows of X' D X by pieces go through BLAS, which numpy.matmul cannot tell to add into a matrix. Other threads run
meanwhile.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.string cimport memcpy

from mdlearn._solvers.clones cimport MDLEARN_LANES
from mdlearn._solvers.rows cimport check_csr, index_t, real_t, sparse_add

cdef extern from *:
    """
    MDLEARN_CLONES static void mdlearn_add_4_rows(
        const double *a, const double *b, const double *c, const double *d, const double *weights,
        double *MDLEARN_ALONE out, Py_ssize_t n)
    {
        const double p = weights[0], q = weights[1], r = weights[2], s = weights[3];
        Py_ssize_t j;
        for (j = 0; j < n; j++)
            out[j] = (((out[j] + p * a[j]) + q * b[j]) + r * c[j]) + s * d[j];
    }
    """
    void mdlearn_add_4_rows(
        const double* a, const double* b, const double* c, const double* d, const double* weights, double* out,
        Py_ssize_t n) noexcept nogil


ctypedef void (*syrk_t)(
    char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta, double* c, int* ldc,
) noexcept nogil


def add_dense(const double[:, :] B, double weight, double[:, :] M, capsule):
    """Add weight B' B to the lower triangle of M.

    Parameters
    ----------
    B : (k, n)
        By rows or by columns, without gaps along these.
    weight : float
    M : (n, n)
        By rows.
    capsule : PyCapsule
        DSYRK as SciPy publishes it for Cython.
    """
    cdef syrk_t dsyrk = <syrk_t> PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule))
    cdef int n = B.shape[1], k = B.shape[0], step, ldc
    cdef double one = 1.0
    # Fortran sees M transposed: its upper triangle is the lower one here.
    cdef char uplo = b"U", trans
    if M.shape[0] != n or M.shape[1] != n:
        raise ValueError("M needs as many rows and columns as B has columns")
    if n == 0 or k == 0:
        return
    if M.strides[1] != sizeof(double) or M.strides[0] < n * <Py_ssize_t> sizeof(double):
        raise ValueError("M needs to lie by rows, without gaps")
    ldc = M.strides[0] // <Py_ssize_t> sizeof(double)
    if B.strides[1] == sizeof(double) and B.strides[0] >= n * <Py_ssize_t> sizeof(double):
        trans, step = b"N", B.strides[0] // <Py_ssize_t> sizeof(double)
    elif B.strides[0] == sizeof(double) and B.strides[1] >= k * <Py_ssize_t> sizeof(double):
        trans, step = b"T", B.strides[1] // <Py_ssize_t> sizeof(double)
    else:
        raise ValueError("B needs to lie by rows or by columns, without gaps")
    with nogil:
        dsyrk(&uplo, &trans, &n, &k, &weight, <double*> &B[0, 0], &step, &one, &M[0, 0], &ldc)


cdef inline void add_lower_outer(
    const real_t* x, const index_t* at, Py_ssize_t n, double weight, double* M, Py_ssize_t width
) noexcept nogil:
    # Two rows of M at a time, two columns of each: the compiler cannot know that no entry comes twice, and would wait
    # for every sum to be stored.
    cdef double a, b, c, d, by, next_by
    cdef double* row
    cdef double* next_row
    cdef Py_ssize_t j, k, pairs = n - n % 2
    for j in range(0, pairs, 2):
        row, by = M + at[j] * width, weight * x[j]
        next_row, next_by = M + at[j + 1] * width, weight * x[j + 1]
        for k in range(0, j, 2):
            a = row[at[k]] + by * x[k]
            b = row[at[k + 1]] + by * x[k + 1]
            c = next_row[at[k]] + next_by * x[k]
            d = next_row[at[k + 1]] + next_by * x[k + 1]
            row[at[k]] = a
            row[at[k + 1]] = b
            next_row[at[k]] = c
            next_row[at[k + 1]] = d
        row[at[j]] += by * x[j]
        next_row[at[j]] += next_by * x[j]
        next_row[at[j + 1]] += next_by * x[j + 1]
    if pairs < n:
        sparse_add(x, at, M + at[pairs] * width, n, weight * x[pairs])


def add_sparse(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] weights,
    double[:, ::1] M, Py_ssize_t first, Py_ssize_t last, bint bias, long long most,
):
    """Add sum_i weights_i x_i x_i' over rows from the first of a CSR matrix to the lower triangle of M.

    With a bias, rows have a last entry 1, and M a last row and column for it. Indices of a row are sorted. Returns the
    row that comes next: `last`, or the one after that with which the products came to `most`.
    """
    cdef Py_ssize_t i, n, stop = last, width = M.shape[0], d = M.shape[0] - bias
    cdef long long done = 0
    if M.shape[0] != M.shape[1]:
        raise ValueError("M needs to be square")
    check_csr(data.shape[0], indices.shape[0], indptr, weights.shape[0], first, last)
    # Rows may all be empty.
    cdef const real_t* x = &data[0] if data.shape[0] else NULL
    cdef const index_t* at = &indices[0] if data.shape[0] else NULL
    cdef double* sums = &M[0, 0] if width else NULL
    with nogil:
        for i in range(first, last):
            done += 1
            if weights[i] != 0.0:
                n = indptr[i + 1] - indptr[i]
                add_lower_outer(x + indptr[i], at + indptr[i], n, weights[i], sums, width)
                if bias:
                    sparse_add(x + indptr[i], at + indptr[i], sums + d * width, n, weights[i])
                    sums[d * width + d] += weights[i]
                done += n * (n + 2) // 2
            if done >= most:
                stop = i + 1
                break
    return stop


cdef void both_halves(
    const real_t[:, ::1] values, real_t[:, ::1] G, Py_ssize_t row, Py_ssize_t column
) noexcept nogil:
    # Strips of rows whose mirror images fill whole lines of the cache; `below` entries of a row are in the lower half.
    cdef Py_ssize_t i = 0, j, k, n, below, whole
    while i < values.shape[0]:
        n = min(values.shape[0] - i, <Py_ssize_t> MDLEARN_LANES)
        for k in range(n):
            below = min(values.shape[1], row - column + i + k + 1)
            if below > 0:
                memcpy(&G[row + i + k, column], &values[i + k, 0], below * sizeof(real_t))
        whole = max(<Py_ssize_t> 0, min(values.shape[1], row - column + i + 1)) if n == MDLEARN_LANES else 0
        for j in range(whole):
            for k in range(MDLEARN_LANES):
                G[column + j, row + i + k] = values[i + k, j]
        for j in range(whole, min(values.shape[1], row - column + i + n)):
            for k in range(max(<Py_ssize_t> 0, column - row + j - i), n):
                G[column + j, row + i + k] = values[i + k, j]
        i += n


def write_symmetric(const real_t[:, ::1] values, real_t[:, ::1] G, Py_ssize_t row, Py_ssize_t column):
    """Write a block of a symmetric matrix and its mirror image; of a block on the diagonal, the lower half counts.

    Parameters
    ----------
    values : (n, k)
    G : (m, m), written to
    row, column : int
        Where the block begins; it ends on the diagonal or below it.
    """
    cdef Py_ssize_t m = G.shape[0], n = values.shape[0], k = values.shape[1]
    if G.shape[1] != m or not 0 <= row <= m - n or not 0 <= column <= row + n - k:
        raise ValueError("the block does not end in the lower half of a square matrix")
    if n and k:
        with nogil:
            both_halves(values, G, row, column)


cdef void rows_added(
    const double[:, ::1] G, const long long[::1] rows, const double[::1] weights, double[::1] out
) noexcept nogil:
    # Four long streams of memory, from which every number is read once.
    cdef Py_ssize_t i, j, n = G.shape[1], whole = rows.shape[0] - rows.shape[0] % 4
    for i in range(0, whole, 4):
        mdlearn_add_4_rows(
            &G[rows[i], 0], &G[rows[i + 1], 0], &G[rows[i + 2], 0], &G[rows[i + 3], 0], &weights[i], &out[0], n)
    for i in range(whole, rows.shape[0]):
        for j in range(n):
            out[j] += weights[i] * G[rows[i], j]


def add_rows(const double[:, ::1] G, const long long[::1] rows, const double[::1] weights, double[::1] out):
    """Add sum_i weights_i G[rows_i] to `out`.

    Parameters
    ----------
    G : (m, n)
    rows, weights : (k,)
    out : (n,)
    """
    cdef Py_ssize_t i
    if weights.shape[0] != rows.shape[0] or out.shape[0] != G.shape[1]:
        raise ValueError("a sum of rows needs a weight a row, and as many entries as rows have")
    for i in range(rows.shape[0]):
        if not 0 <= rows[i] < G.shape[0]:
            raise ValueError("an index is out of range")
    if out.shape[0]:
        with nogil:
            rows_added(G, rows, weights, out)
