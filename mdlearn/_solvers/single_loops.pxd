# Products in single precision with rows that lie column by column, padded to sixteen: half of the memory's traffic.
#
# Sums of a piece of the rows are of single precision, those over pieces of double. All versions do the same operations.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the versions
from mdlearn._solvers.narrow_loops cimport mdlearn_gram  # and how such matrices are summed


cdef extern from *:
    """
    #define MDLEARN_SINGLE_PIECE 512
    #if defined(__GNUC__)
    typedef float mdlearn_singles __attribute__((vector_size(64), aligned(4), may_alias));
    #define MDLEARN_SINGLE_ADD(sums, x, y) sums += *(const mdlearn_singles *)(x) * *(const mdlearn_singles *)(y)
    #else
    typedef float mdlearn_singles[16];
    #define MDLEARN_SINGLE_ADD(sums, x, y) \\
        do { int lane_; for (lane_ = 0; lane_ < 16; lane_++) (sums)[lane_] += (x)[lane_] * (y)[lane_]; } while (0)
    #endif
    #define MDLEARN_SINGLE_HALF(p, k) ((((p)[k] + (p)[k + 4]) + ((p)[k + 2] + (p)[k + 6])) \\
        + (((p)[k + 1] + (p)[k + 5]) + ((p)[k + 3] + (p)[k + 7])))
    #define MDLEARN_SINGLE_SUM(p) ((double)(MDLEARN_SINGLE_HALF(p, 0) + MDLEARN_SINGLE_HALF(p, 8)))

    /* out = the sum of w_j times column j. */
    MDLEARN_INLINE void mdlearn_single_combine(
        const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t size, const double *w, float *MDLEARN_ALONE out)
    {
        Py_ssize_t j, k;
        for (k = 0; k < size; k++)
            out[k] = 0.0f;
        for (j = 0; j + 4 <= n; j += 4, S += 4 * apart) {
            const float a = (float)w[j], b = (float)w[j + 1], c = (float)w[j + 2], d = (float)w[j + 3];
            for (k = 0; k < size; k++)
                out[k] += (a * S[k] + b * S[k + apart]) + (c * S[k + 2 * apart] + d * S[k + 3 * apart]);
        }
        for (; j < n; j++, S += apart) {
            const float a = (float)w[j];
            for (k = 0; k < size; k++)
                out[k] += a * S[k];
        }
    }

    /* g_j += the product of column j and v. */
    MDLEARN_INLINE void mdlearn_single_project(
        const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t size, const float *v, double *g)
    {
        Py_ssize_t j, k;
        for (j = 0; j + 4 <= n; j += 4) {
            const float *one = S + j * apart, *two = one + apart, *three = two + apart, *four = three + apart;
            mdlearn_singles a = {0}, b = {0}, c = {0}, d = {0};
            for (k = 0; k < size; k += 16) {
                MDLEARN_SINGLE_ADD(a, one + k, v + k);
                MDLEARN_SINGLE_ADD(b, two + k, v + k);
                MDLEARN_SINGLE_ADD(c, three + k, v + k);
                MDLEARN_SINGLE_ADD(d, four + k, v + k);
            }
            g[j] += MDLEARN_SINGLE_SUM(a);
            g[j + 1] += MDLEARN_SINGLE_SUM(b);
            g[j + 2] += MDLEARN_SINGLE_SUM(c);
            g[j + 3] += MDLEARN_SINGLE_SUM(d);
        }
        for (; j < n; j++) {
            mdlearn_singles a = {0};
            for (k = 0; k < size; k += 16)
                MDLEARN_SINGLE_ADD(a, S + j * apart + k, v + k);
            g[j] += MDLEARN_SINGLE_SUM(a);
        }
    }

    /* out = labels * (sum of w_j times column j) of m rows. */
    MDLEARN_CLONES static void mdlearn_single_margins(
        const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *w, const double *labels,
        double *result)
    {
        float out[MDLEARN_SINGLE_PIECE];
        Py_ssize_t start, k;
        for (start = 0; start < m; start += MDLEARN_SINGLE_PIECE) {
            const Py_ssize_t size = apart - start < MDLEARN_SINGLE_PIECE ? apart - start : MDLEARN_SINGLE_PIECE;
            const Py_ssize_t found = m - start < size ? m - start : size;
            mdlearn_single_combine(S + start, apart, n, size, w, out);
            for (k = 0; k < found; k++)
                result[start + k] = labels[start + k] * out[k];
        }
    }

    /* g_j = the product of column j and v, of m rows. */
    MDLEARN_CLONES static void mdlearn_single_adjoint(
        const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *v, double *g)
    {
        float some[MDLEARN_SINGLE_PIECE];
        Py_ssize_t start, k;
        for (k = 0; k < n; k++)
            g[k] = 0.0;
        for (start = 0; start < m; start += MDLEARN_SINGLE_PIECE) {
            const Py_ssize_t size = apart - start < MDLEARN_SINGLE_PIECE ? apart - start : MDLEARN_SINGLE_PIECE;
            for (k = 0; k < size; k++)
                some[k] = start + k < m ? (float)v[start + k] : 0.0f;
            mdlearn_single_project(S + start, apart, n, size, some, g);
        }
    }

    /* q = labels * (sum of w_j times column j), and g_j = the product of column j and bends * labels * q: the rows are
       read once. */
    MDLEARN_CLONES static void mdlearn_single_bend(
        const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *w, const double *labels,
        const double *bends, double *q, double *g)
    {
        float out[MDLEARN_SINGLE_PIECE];
        Py_ssize_t start, k;
        for (k = 0; k < n; k++)
            g[k] = 0.0;
        for (start = 0; start < m; start += MDLEARN_SINGLE_PIECE) {
            const Py_ssize_t size = apart - start < MDLEARN_SINGLE_PIECE ? apart - start : MDLEARN_SINGLE_PIECE;
            const Py_ssize_t found = m - start < size ? m - start : size;
            mdlearn_single_combine(S + start, apart, n, size, w, out);
            for (k = 0; k < found; k++) {
                const double one = labels[start + k] * out[k];
                q[start + k] = one;
                out[k] = (float)(bends[start + k] * labels[start + k] * one);
            }
            for (; k < size; k++)
                out[k] = 0.0f;
            mdlearn_single_project(S + start, apart, n, size, out, g);
        }
    }

    MDLEARN_GRAM(mdlearn_single_gram, float, mdlearn_singles, 16, MDLEARN_SINGLE_ADD, MDLEARN_SINGLE_SUM)
    """
    void mdlearn_single_margins(const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *w,
                                const double *labels, double *out) noexcept nogil
    void mdlearn_single_adjoint(const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *v,
                                double *g) noexcept nogil
    void mdlearn_single_bend(const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *w,
                             const double *labels, const double *bends, double *q, double *g) noexcept nogil
    void mdlearn_single_gram(const float *S, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t size, const float *v,
                             float *room, double *M, Py_ssize_t width) noexcept nogil
