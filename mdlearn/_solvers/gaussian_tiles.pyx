"""Tiles of the Gaussian kernel by inner products, exp(scale a.b - left - right): values, and sums of values that no
memory ever holds.

Sums go over a few rows and a strip of columns at a time: inner products, exponentials and what becomes of them stay in
the first cache. BLAS would write and read all of them once more, which for rows of few entries takes as long. Inner
loops go over columns, so that vectors of any width serve, and all do the same operations: the bits are the same.
"""

from mdlearn._solvers.clones cimport MDLEARN_LANES
from mdlearn._solvers.exponential cimport mdlearn_exp_low_double
from mdlearn._solvers.rows cimport real_t


cdef extern from *:
    """
    #define MDLEARN_TILE_LOOPS(real)                                                                           \\
    MDLEARN_CLONES static void mdlearn_gaussian_row_##real(                                                    \\
        real *K, const real *right, real left, real scale, Py_ssize_t n)                                       \\
    {                                                                                                          \\
        Py_ssize_t j;                                                                                          \\
        for (j = 0; j < n; j++) {                                                                              \\
            const real v = scale * K[j] - left - right[j];                                                     \\
            K[j] = v > 0 ? 0 : v;                                                                              \\
        }                                                                                                      \\
        for (j = 0; j < n; j++)                                                                                \\
            K[j] = mdlearn_exp_low_##real(K[j]);                                                               \\
    }                                                                                                          \\
    /* Inner products of 4 rows with n rows whose entries lie column by column, APART from each other. */       \\
    MDLEARN_CLONES static void mdlearn_inner_##real(                                                           \\
        const real *a, const real *b, const real *c, const real *e, const real *MDLEARN_ALONE B,               \\
        Py_ssize_t d, Py_ssize_t apart, Py_ssize_t n, real *MDLEARN_ALONE W,                                   \\
        real *MDLEARN_ALONE X, real *MDLEARN_ALONE Y, real *MDLEARN_ALONE Z)                                   \\
    {                                                                                                          \\
        Py_ssize_t j, k;                                                                                       \\
        for (j = 0; j < n; j++)                                                                                \\
            W[j] = X[j] = Y[j] = Z[j] = 0;                                                                     \\
        for (k = 0; k + 4 <= d; k += 4) {                                                                      \\
            const real a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];                                 \\
            const real b0 = b[k], b1 = b[k + 1], b2 = b[k + 2], b3 = b[k + 3];                                 \\
            const real c0 = c[k], c1 = c[k + 1], c2 = c[k + 2], c3 = c[k + 3];                                 \\
            const real e0 = e[k], e1 = e[k + 1], e2 = e[k + 2], e3 = e[k + 3];                                 \\
            const real *P = B + k * apart, *Q = P + apart, *R = Q + apart, *S = R + apart;                     \\
            for (j = 0; j < n; j++) {                                                                          \\
                const real p = P[j], q = Q[j], r = R[j], s = S[j];                                             \\
                W[j] = (((W[j] + a0 * p) + a1 * q) + a2 * r) + a3 * s;                                         \\
                X[j] = (((X[j] + b0 * p) + b1 * q) + b2 * r) + b3 * s;                                         \\
                Y[j] = (((Y[j] + c0 * p) + c1 * q) + c2 * r) + c3 * s;                                         \\
                Z[j] = (((Z[j] + e0 * p) + e1 * q) + e2 * r) + e3 * s;                                         \\
            }                                                                                                  \\
        }                                                                                                      \\
        for (; k < d; k++) {                                                                                   \\
            const real a0 = a[k], b0 = b[k], c0 = c[k], e0 = e[k], *P = B + k * apart;                         \\
            for (j = 0; j < n; j++) {                                                                          \\
                const real p = P[j];                                                                           \\
                W[j] += a0 * p;                                                                                \\
                X[j] += b0 * p;                                                                                \\
                Y[j] += c0 * p;                                                                                \\
                Z[j] += e0 * p;                                                                                \\
            }                                                                                                  \\
        }                                                                                                      \\
    }                                                                                                          \\
    /* Sums of 4 rows of values, FAR apart, with `right`, and their share in those of n columns with `left`. */   \\
    MDLEARN_CLONES static void mdlearn_value_sums_##real(                                                      \\
        const real *K, Py_ssize_t far, Py_ssize_t n, const real *left, const real *right, double *across,      \\
        real *down)                                                                                            \\
    {                                                                                                          \\
        const real *a = K, *b = K + far, *c = K + 2 * far, *d = K + 3 * far;                                   \\
        real A[MDLEARN_LANES] = {0}, B[MDLEARN_LANES] = {0}, C[MDLEARN_LANES] = {0}, D[MDLEARN_LANES] = {0};   \\
        Py_ssize_t j, k, whole = n - n % MDLEARN_LANES;                                                        \\
        for (j = 0; j < whole; j += MDLEARN_LANES)                                                             \\
            for (k = 0; k < MDLEARN_LANES; k++) {                                                              \\
                const real r = right[j + k], p = a[j + k], q = b[j + k], s = c[j + k], t = d[j + k];           \\
                A[k] += p * r;                                                                                 \\
                B[k] += q * r;                                                                                 \\
                C[k] += s * r;                                                                                 \\
                D[k] += t * r;                                                                                 \\
                down[j + k] += (p * left[0] + q * left[1]) + (s * left[2] + t * left[3]);                      \\
            }                                                                                                  \\
        for (j = whole; j < n; j++) {                                                                          \\
            const real r = right[j], p = a[j], q = b[j], s = c[j], t = d[j];                                   \\
            A[0] += p * r;                                                                                     \\
            B[0] += q * r;                                                                                     \\
            C[0] += s * r;                                                                                     \\
            D[0] += t * r;                                                                                     \\
            down[j] += (p * left[0] + q * left[1]) + (s * left[2] + t * left[3]);                              \\
        }                                                                                                      \\
        for (k = 0; k < MDLEARN_LANES; k++) {                                                                  \\
            across[0] += A[k];                                                                                 \\
            across[1] += B[k];                                                                                 \\
            across[2] += C[k];                                                                                 \\
            across[3] += D[k];                                                                                 \\
        }                                                                                                      \\
    }
    MDLEARN_TILE_LOOPS(double)
    MDLEARN_TILE_LOOPS(float)
    """
    void mdlearn_gaussian_row_double(
        double *K, const double *right, double left, double scale, Py_ssize_t n) noexcept nogil
    void mdlearn_gaussian_row_float(
        float *K, const float *right, float left, float scale, Py_ssize_t n) noexcept nogil
    void mdlearn_inner_double(
        const double *a, const double *b, const double *c, const double *e, const double *B, Py_ssize_t d,
        Py_ssize_t apart, Py_ssize_t n, double *W, double *X, double *Y, double *Z) noexcept nogil
    void mdlearn_inner_float(
        const float *a, const float *b, const float *c, const float *e, const float *B, Py_ssize_t d,
        Py_ssize_t apart, Py_ssize_t n, float *W, float *X, float *Y, float *Z) noexcept nogil
    void mdlearn_value_sums_double(
        const double *K, Py_ssize_t far, Py_ssize_t n, const double *left, const double *right, double *across,
        double *down) noexcept nogil
    void mdlearn_value_sums_float(
        const float *K, Py_ssize_t far, Py_ssize_t n, const float *left, const float *right, double *across,
        float *down) noexcept nogil


cdef enum:
    STRIP = 256  # columns whose values for 4 rows stay in the first cache


def gaussians(real_t[:, ::1] K, const real_t[::1] left, const real_t[::1] right, double scale):
    """Replace inner products by values of the Gaussian kernel, exp(scale K_ij - left_i - right_j), none above 1.

    Parameters
    ----------
    K : (n, m), written to
    left, right : (n,), (m,)
        gamma |a|^2 and gamma |b|^2.
    scale : float
        2 gamma.
    """
    if left.shape[0] != K.shape[0] or right.shape[0] != K.shape[1]:
        raise ValueError("the Gaussian kernel needs a squared length per row and per column")
    cdef Py_ssize_t i
    if K.shape[0] == 0 or K.shape[1] == 0:
        return
    with nogil:
        for i in range(K.shape[0]):
            if real_t is double:
                mdlearn_gaussian_row_double(&K[i, 0], &right[0], left[i], scale, K.shape[1])
            else:
                mdlearn_gaussian_row_float(&K[i, 0], &right[0], left[i], <float> scale, K.shape[1])


cdef void values_of_4(
    const real_t[:, ::1] A, const Py_ssize_t* rows, const real_t[:, ::1] B, Py_ssize_t j, Py_ssize_t n,
    const real_t* left, const real_t[::1] right, real_t scale, real_t* K
) noexcept nogil:
    cdef const real_t* a = &A[rows[0], 0]
    cdef const real_t* b = &A[rows[1], 0]
    cdef const real_t* c = &A[rows[2], 0]
    cdef const real_t* e = &A[rows[3], 0]
    cdef Py_ssize_t k, d = B.shape[0], apart = B.shape[1]
    if real_t is double:
        mdlearn_inner_double(a, b, c, e, &B[0, j], d, apart, n, K, K + STRIP, K + 2 * STRIP, K + 3 * STRIP)
    else:
        mdlearn_inner_float(a, b, c, e, &B[0, j], d, apart, n, K, K + STRIP, K + 2 * STRIP, K + 3 * STRIP)
    for k in range(4):
        if real_t is double:
            mdlearn_gaussian_row_double(K + k * STRIP, &right[j], left[k], scale, n)
        else:
            mdlearn_gaussian_row_float(K + k * STRIP, &right[j], left[k], scale, n)


cdef void strip_sums(
    const real_t[:, ::1] A, const real_t[:, ::1] B, Py_ssize_t j, Py_ssize_t n, const real_t[::1] left,
    const real_t[::1] right, real_t scale, const real_t[::1] above, const real_t[::1] beside, double[::1] across,
    real_t* down
) noexcept nogil:
    cdef real_t[4 * STRIP] K
    cdef Py_ssize_t[4] rows
    cdef real_t[4] own, weights
    cdef double[4] sums
    cdef Py_ssize_t i = 0, k, row
    while i < A.shape[0]:
        for k in range(4):  # behind the last row, it stands in for others, with a weight of 0
            row = min(i + k, A.shape[0] - 1)
            rows[k], own[k], sums[k] = row, left[row], 0.0
            weights[k] = above[row] if i + k < above.shape[0] else 0.0
        values_of_4(A, &rows[0], B, j, n, &own[0], right, scale, &K[0])
        if real_t is double:
            mdlearn_value_sums_double(&K[0], STRIP, n, &weights[0], &beside[j], &sums[0], down)
        else:
            mdlearn_value_sums_float(&K[0], STRIP, n, &weights[0], &beside[j], &sums[0], down)
        for k in range(min(A.shape[0] - i, <Py_ssize_t> 4)):
            across[i + k] += sums[k]
        i += 4


cdef void tile_sums(
    const real_t[:, ::1] A, const real_t[:, ::1] B, const real_t[::1] left, const real_t[::1] right, real_t scale,
    const real_t[::1] above, const real_t[::1] beside, double[::1] across, double[::1] down
) noexcept nogil:
    cdef real_t[STRIP] sums
    cdef Py_ssize_t j = 0, k, n
    while j < B.shape[1]:
        n = min(B.shape[1] - j, <Py_ssize_t> STRIP)
        for k in range(n):
            sums[k] = 0.0
        strip_sums(A, B, j, n, left, right, scale, above, beside, across, &sums[0])
        if down.shape[0] > 0:
            for k in range(n):
                down[j + k] += sums[k]
        j += STRIP


def add_products(
    const real_t[:, ::1] A, const real_t[:, ::1] B, const real_t[::1] left, const real_t[::1] right, double scale,
    const real_t[::1] above, const real_t[::1] beside, double[::1] across, double[::1] down
):
    """Add the sums of a tile K_ij = exp(scale a_i.b_j - left_i - right_j): K beside to `across`, K'above to `down`.

    Sums of a strip of columns over all rows, and of a row over such a strip, have the type of A.

    Parameters
    ----------
    A : (n, d); B : (d, m), column by column; left, right : (n,), (m,); beside : (m,); across : (n,)
    above, down : (n,), (m,), or (0,) both: then there are no sums over rows
    """
    cdef Py_ssize_t n = A.shape[0], m = B.shape[1]
    if A.shape[1] != B.shape[0] or A.shape[1] == 0 or left.shape[0] != n or right.shape[0] != m:
        raise ValueError("rows, columns and squared lengths of a tile do not fit each other")
    if beside.shape[0] != m or across.shape[0] != n:
        raise ValueError("a tile of kernel values needs a coefficient a column, and a sum a row")
    if (above.shape[0], down.shape[0]) not in ((n, m), (0, 0)):
        raise ValueError("a tile of kernel values needs a coefficient a row, and a sum a column, or neither")
    with nogil:
        tile_sums(A, B, left, right, <real_t> scale, above, beside, across, down)
