# Cholesky factors of matrices of few rows, which lie `apart` numbers from each other.

from libc.math cimport INFINITY, sqrt
from libc.string cimport memcmp, memcpy

from mdlearn._solvers.narrow_loops cimport mdlearn_adjoint
from mdlearn._solvers.rows cimport add, inner


cdef enum:
    # Places in a factor that columns share: the stride of the rows of its matrix (0: none yet), what it has beside
    # these and a ridge, the weights of the rows, and the factor.
    SHARED_STRIDE, SHARED_LACKING, SHARED_WEIGHTS


cdef inline double* check_shared(double[::1] shared, Py_ssize_t m, Py_ssize_t n) except NULL:
    """The matrix behind the factor: room for what that is of."""
    if shared.shape[0] != SHARED_WEIGHTS + m + 2 * n * (n + 8):
        raise ValueError("the room does not fit the matrices")
    return &shared[SHARED_WEIGHTS + m + n * (n + 8)]


cdef inline bint take_shared(
    const double[::1] shared, Py_ssize_t stride, double lacking, const double* weights, Py_ssize_t m, double* M,
    Py_ssize_t n,
) noexcept:
    """Write the shared factor into M where its matrix is that of these weights; say whether it is."""
    if shared[SHARED_STRIDE] != stride or shared[SHARED_LACKING] != lacking:
        return False
    if memcmp(&shared[SHARED_WEIGHTS], weights, m * sizeof(double)):
        return False
    memcpy(M, &shared[SHARED_WEIGHTS + m], n * (n + 8) * sizeof(double))
    return True


cdef inline void give_shared(
    double[::1] shared, Py_ssize_t stride, double lacking, const double* weights, Py_ssize_t m, const double* M,
    Py_ssize_t n,
) noexcept:
    """Write a factor M, and what tells its matrix, for the columns that follow."""
    shared[SHARED_STRIDE], shared[SHARED_LACKING] = stride, lacking
    memcpy(&shared[SHARED_WEIGHTS], weights, m * sizeof(double))
    memcpy(&shared[SHARED_WEIGHTS + m], M, n * (n + 8) * sizeof(double))


cdef inline bint factor(double* M, Py_ssize_t apart, Py_ssize_t n, double* v) noexcept nogil:
    """Replace the lower triangle of M, whose rows are `apart`, by its Cholesky factor; say whether there is one."""
    cdef Py_ssize_t i, j, k, whole
    cdef double pivot
    cdef double *below = v + apart
    below[0] = 0.0
    for j in range(n):
        whole = (j + 7) // 8 * 8
        memcpy(v, M + j * apart, j * sizeof(double))
        for k in range(j, whole):  # what is right of the diagonal is multiplied by zeros
            v[k] = 0.0
        mdlearn_adjoint(M + j * apart, apart, n - j, whole, v, below)
        pivot = M[j * apart + j] - below[0]
        if not 0.0 < pivot < INFINITY:
            return False
        pivot = sqrt(pivot)
        M[j * apart + j] = pivot
        pivot = 1.0 / pivot
        for i in range(j + 1, n):
            M[i * apart + j] = (M[i * apart + j] - below[i - j]) * pivot
    return True


cdef inline double half_solve(
    const double* L, Py_ssize_t apart, Py_ssize_t n, const double* x, double* y,
) noexcept nogil:
    """Solve L y = x; return the squared length of y."""
    cdef Py_ssize_t j
    for j in range(n):
        y[j] = (x[j] - inner(L + j * apart, y, j)) / L[j * apart + j]
    return inner(y, y, n)


cdef inline void solve(const double* L, Py_ssize_t apart, Py_ssize_t n, double* x) noexcept nogil:
    """Solve L L'x = x in place."""
    cdef Py_ssize_t j
    half_solve(L, apart, n, x, x)
    for j in range(n - 1, -1, -1):
        x[j] /= L[j * apart + j]
        add(L + j * apart, 1, x, j, -x[j])
