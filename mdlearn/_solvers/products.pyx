"""Symmetric matrices: sums of outer products of rows, added to the lower triangle, and blocks with their mirror images.

Dense rows of X' D X by pieces go through BLAS, which numpy.matmul cannot tell to add into a matrix. Other threads run
meanwhile.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.string cimport memcpy

from mdlearn._solvers.clones cimport MDLEARN_LANES
from mdlearn._solvers.rows cimport check_csr, index_t, real_t

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


def add_sparse(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, const double[::1] weights,
    double[:, ::1] M, Py_ssize_t first, Py_ssize_t last, bint bias,
):
    """Add sum_i weights_i x_i x_i' over the rows first <= i < last of a CSR matrix to the lower triangle of M.

    With a bias, rows have a last entry 1, and M a last row and column for it. Indices of a row are sorted.
    """
    cdef Py_ssize_t i, j, k, start, stop, d = M.shape[0] - bias
    cdef double by
    cdef index_t row
    if M.shape[0] != M.shape[1]:
        raise ValueError("M needs to be square")
    check_csr(data.shape[0], indices.shape[0], indptr, weights.shape[0], first, last)
    with nogil:
        for i in range(first, last):
            if weights[i] == 0.0:
                continue
            start, stop = indptr[i], indptr[i + 1]
            for j in range(start, stop):
                by, row = weights[i] * data[j], indices[j]
                for k in range(start, j + 1):
                    M[row, indices[k]] += by * data[k]
                if bias:
                    M[d, row] += by
            if bias:
                M[d, d] += weights[i]


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
