"""The Gaussian kernel: exponentials of whole arrays in place, and products with matrices that are never written down.

exp x = 2^n exp r with n the nearest integer to x / log 2, and the Taylor polynomial of r, whose even and odd terms are
summed apart: one long chain would wait for every sum. The compiler makes vector instructions of the loops; where it can,
a version for wider vectors is chosen when the module is loaded. All do the same operations: the bits are the same.
"""

from libc.stdint cimport uint16_t

from mdlearn._solvers.clones cimport MDLEARN_LANES
from mdlearn._solvers.exponential cimport mdlearn_exp_low_double
from mdlearn._solvers.rows cimport real_t


cdef extern from *:
    """
    /* Differences of a row a and of `n` rows whose entries lie column by column, LONG numbers apart. */
    #define MDLEARN_LOOPS(real)                                                                            \\
    MDLEARN_CLONES static void mdlearn_exp_##real(real *x, Py_ssize_t n)                                   \\
    {                                                                                                      \\
        Py_ssize_t k;                                                                                      \\
        for (k = 0; k < n; k++)                                                                            \\
            x[k] = mdlearn_exp_low_##real(x[k]);                                                           \\
    }                                                                                                      \\
    MDLEARN_CLONES static void mdlearn_near_##real(                                                        \\
        const real *a, const real *B, Py_ssize_t d, Py_ssize_t apart, Py_ssize_t n, real *K)               \\
    {                                                                                                      \\
        Py_ssize_t j, k;                                                                                   \\
        for (j = 0; j < n; j++)                                                                            \\
            K[j] = 0;                                                                                      \\
        for (k = 0; k + 4 <= d; k += 4) {                                                                  \\
            const real p = a[k], q = a[k + 1], r = a[k + 2], s = a[k + 3];                                 \\
            const real *P = B + k * apart, *Q = P + apart, *R = Q + apart, *S = R + apart;                 \\
            for (j = 0; j < n; j++) {                                                                      \\
                const real w = p - P[j], x = q - Q[j], y = r - R[j], z = s - S[j];                         \\
                K[j] = (((K[j] - w * w) - x * x) - y * y) - z * z;                                         \\
            }                                                                                              \\
        }                                                                                                  \\
        for (; k < d; k++) {                                                                               \\
            const real one = a[k], *column = B + k * apart;                                                \\
            for (j = 0; j < n; j++) {                                                                      \\
                const real off = one - column[j];                                                          \\
                K[j] -= off * off;                                                                         \\
            }                                                                                              \\
        }                                                                                                  \\
        for (j = 0; j < n; j++)                                                                            \\
            K[j] = mdlearn_exp_low_##real(K[j]);                                                           \\
    }                                                                                                      \\
    MDLEARN_CLONES static double mdlearn_sum_##real(const real *K, const real *coef, Py_ssize_t n)         \\
    {                                                                                                      \\
        real parts[MDLEARN_LANES] = {0};                                                                             \\
        double total = 0.0;                                                                                \\
        Py_ssize_t j, k, whole = n - n % MDLEARN_LANES;                                                             \\
        for (j = 0; j < whole; j += MDLEARN_LANES)                                                                    \\
            for (k = 0; k < MDLEARN_LANES; k++)                                                                       \\
                parts[k] += K[j + k] * coef[j + k];                                                        \\
        for (k = 0; k < MDLEARN_LANES; k++)                                                                           \\
            total += parts[k];                                                                             \\
        for (j = whole; j < n; j++)                                                                        \\
            total += K[j] * coef[j];                                                                       \\
        return total;                                                                                      \\
    }
    MDLEARN_LOOPS(double)
    MDLEARN_LOOPS(float)

    /* Sums of 4 rows of values, FAR numbers apart, with `right`, and their share in those of n columns with `left`. */
    MDLEARN_CLONES static void mdlearn_both_sides(
        const uint16_t *K, Py_ssize_t far, Py_ssize_t n, const float *left, const float *right, double *across,
        float *down)
    {
        const uint16_t *a = K, *b = K + far, *c = K + 2 * far, *d = K + 3 * far;
        float A[MDLEARN_LANES] = {0}, B[MDLEARN_LANES] = {0}, C[MDLEARN_LANES] = {0}, D[MDLEARN_LANES] = {0};
        Py_ssize_t j, k, whole = n - n % MDLEARN_LANES;
        for (j = 0; j < whole; j += MDLEARN_LANES)
            for (k = 0; k < MDLEARN_LANES; k++) {
                const float r = right[j + k], p = a[j + k], q = b[j + k], s = c[j + k], t = d[j + k];
                A[k] += p * r;
                B[k] += q * r;
                C[k] += s * r;
                D[k] += t * r;
                down[j + k] += (p * left[0] + q * left[1]) + (s * left[2] + t * left[3]);
            }
        for (j = whole; j < n; j++) {
            const float r = right[j], p = a[j], q = b[j], s = c[j], t = d[j];
            A[0] += p * r;
            B[0] += q * r;
            C[0] += s * r;
            D[0] += t * r;
            down[j] += (p * left[0] + q * left[1]) + (s * left[2] + t * left[3]);
        }
        for (k = 0; k < MDLEARN_LANES; k++) {
            across[0] += A[k];
            across[1] += B[k];
            across[2] += C[k];
            across[3] += D[k];
        }
    }
    """
    void mdlearn_exp_double(double *x, Py_ssize_t n) noexcept nogil
    void mdlearn_exp_float(float *x, Py_ssize_t n) noexcept nogil
    void mdlearn_near_double(
        const double *a, const double *B, Py_ssize_t d, Py_ssize_t apart, Py_ssize_t n, double *K) noexcept nogil
    void mdlearn_near_float(
        const float *a, const float *B, Py_ssize_t d, Py_ssize_t apart, Py_ssize_t n, float *K) noexcept nogil
    void mdlearn_both_sides(
        const uint16_t *K, Py_ssize_t far, Py_ssize_t n, const float *left, const float *right, double *across,
        float *down) noexcept nogil
    double mdlearn_sum_double(const double *K, const double *coef, Py_ssize_t n) noexcept nogil
    double mdlearn_sum_float(const float *K, const float *coef, Py_ssize_t n) noexcept nogil


cdef enum:
    CHUNK = 512  # values that stay in the first cache


def exponentials(real_t[:, ::1] K):
    """Replace every entry of K, none above 88 (float32) or 709, by its exponential; values below 1e-37 (1e-307) are 0.

    Parameters
    ----------
    K : (n, m), written to
    """
    cdef Py_ssize_t n = K.shape[0] * K.shape[1]
    if n == 0:
        return
    with nogil:
        if real_t is double:
            mdlearn_exp_double(&K[0, 0], n)
        else:
            mdlearn_exp_float(&K[0, 0], n)


cdef void near(const real_t* a, const real_t[:, ::1] B, Py_ssize_t j, Py_ssize_t n, real_t* K) noexcept nogil:
    if real_t is double:
        mdlearn_near_double(a, &B[0, j], B.shape[0], B.shape[1], n, K)
    else:
        mdlearn_near_float(a, &B[0, j], B.shape[0], B.shape[1], n, K)


cdef int check_sides(const real_t[:, ::1] A, const real_t[:, ::1] B, Py_ssize_t rows, Py_ssize_t columns) except -1:
    if A.shape[1] != B.shape[0] or A.shape[0] != rows or B.shape[1] != columns or B.shape[0] == 0:
        raise ValueError("rows, columns and results of the Gaussian kernel do not fit each other")
    return 0


def block(const real_t[:, ::1] A, const real_t[:, ::1] B, real_t[:, ::1] K):
    """Write exp(-|a_i - b_j|^2) into K, for rows of few entries.

    Parameters
    ----------
    A : (n, d); B : (d, m), column by column; K : (n, m)
    """
    cdef Py_ssize_t i, j = 0
    check_sides(A, B, K.shape[0], K.shape[1])
    with nogil:
        while j < K.shape[1]:
            for i in range(K.shape[0]):
                near(&A[i, 0], B, j, min(K.shape[1] - j, <Py_ssize_t> CHUNK), &K[i, j])
            j += CHUNK


cdef class RowMaker:
    """What computes single rows of a symmetric matrix, `length` entries each."""

    cdef void fill(self, Py_ssize_t i, double* out) noexcept nogil:
        pass


cdef class GaussianRows(RowMaker):
    """Rows of the matrix of a Gaussian kernel over rows x_i of few entries: exp(-|x_i - x_j|^2) for all j.

    Parameters
    ----------
    columns : (d, m), the rows column by column
    own : (d,) of its own
    """

    def __init__(self, const double[:, ::1] columns, double[::1] own):
        if columns.shape[0] == 0 or columns.shape[1] == 0 or own.shape[0] != columns.shape[0]:
            raise ValueError("rows of the Gaussian kernel need entries, and room for those of one")
        self.columns, self.own, self.length = columns, own, columns.shape[1]

    cdef void fill(self, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t k, j = 0, m = self.columns.shape[1]
        for k in range(self.columns.shape[0]):
            self.own[k] = self.columns[k, i]
        while j < m:
            near(&self.own[0], self.columns, j, min(m - j, <Py_ssize_t> CHUNK), out + j)
            j += CHUNK


cdef void add_rows(
    const real_t[:, ::1] A, const real_t[:, ::1] B, const real_t[::1] coef, double[::1] out
) noexcept nogil:
    cdef Py_ssize_t i, j = 0, n
    cdef real_t[CHUNK] K
    while j < B.shape[1]:
        n = min(B.shape[1] - j, <Py_ssize_t> CHUNK)
        for i in range(A.shape[0]):
            near(&A[i, 0], B, j, n, &K[0])
            if real_t is double:
                out[i] += mdlearn_sum_double(&K[0], &coef[j], n)
            else:
                out[i] += mdlearn_sum_float(&K[0], &coef[j], n)
        j += CHUNK


def add_products(const real_t[:, ::1] A, const real_t[:, ::1] B, const real_t[::1] coef, double[::1] out):
    """Add sum_j coef_j exp(-|a_i - b_j|^2) to out_i, for rows of few entries; sums of CHUNK terms have the type of A.

    Parameters
    ----------
    A : (n, d); B : (d, m), column by column; coef : (m,); out : (n,)
    """
    check_sides(A, B, out.shape[0], coef.shape[0])
    with nogil:
        add_rows(A, B, coef, out)


cdef void both_sides(
    const uint16_t[:, ::1] K, const float[::1] left, const float[::1] right, double[::1] across, double[::1] down
) noexcept nogil:
    cdef Py_ssize_t i, k, n, j = 0, rows = K.shape[0] - K.shape[0] % 4
    cdef float[CHUNK] sums
    while j < K.shape[1]:
        n = min(K.shape[1] - j, <Py_ssize_t> CHUNK)
        for k in range(n):
            sums[k] = 0.0
        i = 0
        while i < rows:
            mdlearn_both_sides(&K[i, j], K.shape[1], n, &left[i], &right[j], &across[i], &sums[0])
            i += 4
        for i in range(rows, K.shape[0]):
            for k in range(n):
                across[i] += K[i, j + k] * right[j + k]
                sums[k] += K[i, j + k] * left[i]
        for k in range(n):
            down[j + k] += sums[k]
        j += CHUNK


def add_both_sides(
    const uint16_t[:, ::1] K, const float[::1] left, const float[::1] right, double[::1] across, double[::1] down
):
    """Add K right to `across` and K'left to `down`, for integers of 16 bits; sums within a tile are in float32.

    Parameters
    ----------
    K : (n, m); left, across : (n,); right, down : (m,)
    """
    cdef Py_ssize_t n = K.shape[0], m = K.shape[1]
    if left.shape[0] != n or across.shape[0] != n or right.shape[0] != m or down.shape[0] != m:
        raise ValueError("a tile of kernel values needs a coefficient and a sum for each of its rows and columns")
    with nogil:
        both_sides(K, left, right, across, down)
