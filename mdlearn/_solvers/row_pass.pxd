# Products of dense rows for a certificate: with coefficients, and two sums of rows beside the squares of the columns.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the names of its versions


cdef extern from *:
    """
    #define MDLEARN_WIDE 8

    /* z = X w, for m rows of d columns. */
    MDLEARN_CLONES static void mdlearn_row_products(
        const double *X, Py_ssize_t m, Py_ssize_t d, const double *w, double *MDLEARN_ALONE z)
    {
        Py_ssize_t i, j, k;
        for (i = 0; i < m; i++) {
            const double *a = X + i * d;
            double parts[MDLEARN_WIDE] = {0}, rest = 0.0;
            for (j = 0; j + MDLEARN_WIDE <= d; j += MDLEARN_WIDE)
                for (k = 0; k < MDLEARN_WIDE; k++)
                    parts[k] += a[j + k] * w[j + k];
            for (; j < d; j++)
                rest += a[j] * w[j];
            for (k = 0; k < MDLEARN_WIDE; k++)
                rest += parts[k];
            z[i] = rest;
        }
    }

    /* p = X' u, for m rows of d columns. */
    MDLEARN_CLONES static void mdlearn_row_sum(
        const double *X, Py_ssize_t m, Py_ssize_t d, const double *u, double *MDLEARN_ALONE p)
    {
        Py_ssize_t i, j;
        for (j = 0; j < d; j++)
            p[j] = 0.0;
        for (i = 0; i + 4 <= m; i += 4) {
            const double *a = X + i * d, *b = a + d, *c = b + d, *e = c + d;
            const double u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3];
            for (j = 0; j < d; j++)
                p[j] += (u0 * a[j] + u1 * b[j]) + (u2 * c[j] + u3 * e[j]);
        }
        for (; i < m; i++)
            for (j = 0; j < d; j++)
                p[j] += u[i] * X[i * d + j];
    }

    /* p = X' u, q = X' v and the sum of squares of every column, for m rows of d columns. */
    MDLEARN_CLONES static void mdlearn_row_sums(
        const double *X, Py_ssize_t m, Py_ssize_t d, const double *u, const double *v, double *MDLEARN_ALONE p,
        double *MDLEARN_ALONE q, double *MDLEARN_ALONE squares)
    {
        Py_ssize_t i, j;
        for (j = 0; j < d; j++)
            p[j] = q[j] = squares[j] = 0.0;
        for (i = 0; i + 4 <= m; i += 4) {
            const double *a = X + i * d, *b = a + d, *c = b + d, *e = c + d;
            const double u0 = u[i], u1 = u[i + 1], u2 = u[i + 2], u3 = u[i + 3];
            const double v0 = v[i], v1 = v[i + 1], v2 = v[i + 2], v3 = v[i + 3];
            for (j = 0; j < d; j++) {
                p[j] += (u0 * a[j] + u1 * b[j]) + (u2 * c[j] + u3 * e[j]);
                q[j] += (v0 * a[j] + v1 * b[j]) + (v2 * c[j] + v3 * e[j]);
                squares[j] += (a[j] * a[j] + b[j] * b[j]) + (c[j] * c[j] + e[j] * e[j]);
            }
        }
        for (; i < m; i++) {
            const double *a = X + i * d, u0 = u[i], v0 = v[i];
            for (j = 0; j < d; j++) {
                p[j] += u0 * a[j];
                q[j] += v0 * a[j];
                squares[j] += a[j] * a[j];
            }
        }
    }
    """
    void mdlearn_row_products(
        const double *X, Py_ssize_t m, Py_ssize_t d, const double *w, double *z) noexcept nogil
    void mdlearn_row_sum(const double *X, Py_ssize_t m, Py_ssize_t d, const double *u, double *p) noexcept nogil
    void mdlearn_row_sums(
        const double *X, Py_ssize_t m, Py_ssize_t d, const double *u, const double *v, double *p, double *q,
        double *squares) noexcept nogil
