# Polynomials of degree 5 at many places, each in the part of a table where it lies: no number where the table ends.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the names of its versions


cdef extern from *:
    """
    #include <math.h>
    #include <string.h>
    #define MDLEARN_PLACE_BITS 48 /* of a number that say where in its part of an octave it is: 16 parts */

    #define MDLEARN_AT_MARGINS(name, polynomial)                                                           \\
        MDLEARN_CLONES static void name(                                                                   \\
            const double *MDLEARN_ALONE t, Py_ssize_t n, const double *MDLEARN_ALONE parts, double n_parts, \\
            double low, double scale, double *MDLEARN_ALONE out)                                           \\
        {                                                                                                  \\
            Py_ssize_t i;                                                                                  \\
            for (i = 0; i < n; i++) {                                                                      \\
                const double place = (t[i] - low) * scale;                                                 \\
                const int inside = place >= 0.0 && place < n_parts;                                        \\
                const double at = inside ? place : 0.0;                                                    \\
                const int k = (int)at;                                                                     \\
                const double u = at - k, *c = parts + 6 * k;                                               \\
                const double f = polynomial;                                                               \\
                out[i] = inside ? f : (double)NAN;                                                         \\
            }                                                                                              \\
        }

    MDLEARN_AT_MARGINS(
        mdlearn_table_values, c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5])))))
    MDLEARN_AT_MARGINS(
        mdlearn_table_slopes,
        scale * (c[1] + u * (2.0 * c[2] + u * (3.0 * c[3] + u * (4.0 * c[4] + u * (5.0 * c[5]))))))
    MDLEARN_AT_MARGINS(
        mdlearn_table_bends,
        scale * scale * (2.0 * c[2] + u * (6.0 * c[3] + u * (12.0 * c[4] + u * (20.0 * c[5])))))

    /* The polynomial of a slope b, and where in its part that is, from 0 to 1. */
    #define MDLEARN_AT_SLOPES(name, result)                                                                \\
        MDLEARN_CLONES static void name(                                                                   \\
            const double *MDLEARN_ALONE b, Py_ssize_t n, const double *MDLEARN_ALONE parts, long long count, \\
            double cap, long long first, double *MDLEARN_ALONE out)                                        \\
        {                                                                                                  \\
            Py_ssize_t i;                                                                                  \\
            for (i = 0; i < n; i++) {                                                                      \\
                const int far = b[i] > 0.5 * cap;                                                          \\
                const double x = far ? cap - b[i] : b[i], turn = far ? -1.0 : 1.0;                         \\
                long long bits, k;                                                                         \\
                double u;                                                                                  \\
                memcpy(&bits, &x, sizeof bits);                                                            \\
                k = (long long)((unsigned long long)bits >> MDLEARN_PLACE_BITS) - first;                   \\
                bits = (long long)(((unsigned long long)bits << (52 - MDLEARN_PLACE_BITS)                  \\
                                    & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);                        \\
                memcpy(&u, &bits, sizeof u);                                                               \\
                u -= 1.0;                                                                                  \\
                {                                                                                          \\
                    const int inside = x > 0.0 && k >= 0 && k < count;                                     \\
                    const double *c = parts + 7 * ((inside ? k : 0) + (far ? count : 0));                  \\
                    const double f = result;                                                               \\
                    out[i] = inside ? f : (double)NAN;                                                     \\
                    (void)turn;                                                                            \\
                }                                                                                          \\
            }                                                                                              \\
        }

    MDLEARN_AT_SLOPES(
        mdlearn_table_conjugates, c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5])))))
    MDLEARN_AT_SLOPES(
        mdlearn_table_margins,
        turn * c[6] * (c[1] + u * (2.0 * c[2] + u * (3.0 * c[3] + u * (4.0 * c[4] + u * (5.0 * c[5]))))))

    /* b = multipliers per weight, a division by 0 among them. */
    MDLEARN_CLONES static void mdlearn_slopes_of(
        const double *MDLEARN_ALONE beta, const double *MDLEARN_ALONE counts, double weight, Py_ssize_t n,
        double *MDLEARN_ALONE b)
    {
        Py_ssize_t i;
        for (i = 0; i < n; i++)
            b[i] = beta[i] / (weight * counts[i]);
    }

    /* The sum of weight counts (value - less); no number where a value is none. */
    MDLEARN_CLONES static double mdlearn_weighted_sum(
        const double *MDLEARN_ALONE value, const double *MDLEARN_ALONE counts, double weight, double less, Py_ssize_t n)
    {
        double sums[MDLEARN_LANES] = {0}, total = 0.0;
        Py_ssize_t i, k, whole = n - n % MDLEARN_LANES;
        for (i = 0; i < whole; i += MDLEARN_LANES)
            for (k = 0; k < MDLEARN_LANES; k++)
                sums[k] += counts[i + k] * (value[i + k] - less);
        for (i = whole; i < n; i++)
            total += counts[i] * (value[i] - less);
        for (k = 0; k < MDLEARN_LANES; k++)
            total += sums[k];
        return weight * total;
    }
    """
    enum:
        PLACE_BITS "MDLEARN_PLACE_BITS"
    void slopes_of "mdlearn_slopes_of"(
        const double* beta, const double* counts, double weight, Py_ssize_t n, double* b,
    ) noexcept nogil
    double weighted_sum "mdlearn_weighted_sum"(
        const double* value, const double* counts, double weight, double less, Py_ssize_t n,
    ) noexcept nogil
    # Values, slopes and second derivatives at n margins t, of n_parts polynomials from the margin `low` on.
    void table_values "mdlearn_table_values"(
        const double* t, Py_ssize_t n, const double* parts, double n_parts, double low, double scale, double* out,
    ) noexcept nogil
    void table_slopes "mdlearn_table_slopes"(
        const double* t, Py_ssize_t n, const double* parts, double n_parts, double low, double scale, double* out,
    ) noexcept nogil
    void table_bends "mdlearn_table_bends"(
        const double* t, Py_ssize_t n, const double* parts, double n_parts, double low, double scale, double* out,
    ) noexcept nogil
    # Values and slopes at n numbers b >= 0, of polynomials on parts that widen from 0 on, and others from `cap` down.
    void table_conjugates "mdlearn_table_conjugates"(
        const double* b, Py_ssize_t n, const double* parts, long long count, double cap, long long first, double* out,
    ) noexcept nogil
    void table_margins "mdlearn_table_margins"(
        const double* b, Py_ssize_t n, const double* parts, long long count, double cap, long long first, double* out,
    ) noexcept nogil
