# Sums over rows for hinges: of so many parts beside each other and turns after each other that few roundings add up.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the names of its versions


cdef extern from *:
    """
    #define MDLEARN_SUMS 8    /* beside each other */
    #define MDLEARN_TURNS 128 /* one after the other before they are added to the total */

    /* Return the sum of a(i) * b(i) over the rows i of m: both are found first, which compilers do by vectors. */
    #define MDLEARN_RETURN_SUM_OF_ROWS(m, a, b)                                                            \\
        {                                                                                                  \\
            double one[MDLEARN_TURNS], other[MDLEARN_TURNS], total = 0.0;                                  \\
            Py_ssize_t first, k, piece;                                                                    \\
            for (first = 0; first < m; first += piece) {                                                   \\
                mdlearn_sums sums = {0};                                                                   \\
                piece = m - first < MDLEARN_TURNS ? m - first : MDLEARN_TURNS;                             \\
                for (k = 0; k < piece; k++) {                                                              \\
                    const Py_ssize_t i = first + k;                                                        \\
                    one[k] = a, other[k] = b;                                                              \\
                }                                                                                          \\
                for (; k % MDLEARN_SUMS; k++)                                                              \\
                    one[k] = other[k] = 0.0;                                                               \\
                for (k = 0; k < piece; k += MDLEARN_SUMS)                                                  \\
                    MDLEARN_ADD(sums, one + k, other + k);                                                 \\
                total += MDLEARN_SUM(sums);                                                                \\
            }                                                                                              \\
            return total;                                                                                  \\
        }

    MDLEARN_CLONES static double mdlearn_sum_of(const double *x, Py_ssize_t m)
        MDLEARN_RETURN_SUM_OF_ROWS(m, x[i], 1.0)

    MDLEARN_INLINE double mdlearn_above(double slack) { return slack > 0.0 ? slack : 0.0; }

    MDLEARN_CLONES static double mdlearn_hinges(
        const double *z, const double *counts, double side, double threshold, Py_ssize_t m)
        MDLEARN_RETURN_SUM_OF_ROWS(m, counts[i], mdlearn_above(side * (threshold - z[i])))

    MDLEARN_CLONES static double mdlearn_squared_hinges(
        const double *z, const double *counts, double side, double threshold, Py_ssize_t m)
        MDLEARN_RETURN_SUM_OF_ROWS(
            m, counts[i] * mdlearn_above(side * (threshold - z[i])), mdlearn_above(side * (threshold - z[i])))

    static double mdlearn_hinge_loss(
        const double *z, const double *counts, double side, double threshold, int squared, Py_ssize_t m)
    {
        return squared ? mdlearn_squared_hinges(z, counts, side, threshold, m)
                       : mdlearn_hinges(z, counts, side, threshold, m);
    }

    MDLEARN_CLONES static double mdlearn_hinge_squares(
        const double *beta, const double *counts, double scale, Py_ssize_t m)
        MDLEARN_RETURN_SUM_OF_ROWS(m, counts[i] > 0.0 ? scale * beta[i] / counts[i] : 0.0, beta[i])
    """
    # Sum of m numbers.
    double sum_of "mdlearn_sum_of"(const double* x, Py_ssize_t m) noexcept nogil
    # Sum of c_i e_i, or of c_i e_i^2, with e_i = max(0, side (threshold - z_i)).
    double hinge_loss "mdlearn_hinge_loss"(
        const double* z, const double* counts, double side, double threshold, bint squared, Py_ssize_t m,
    ) noexcept nogil
    # Sum of scale beta_i^2 / c_i over the rows with c_i > 0; squares alone would be 0, or infinite, sooner.
    double hinge_squares "mdlearn_hinge_squares"(
        const double* beta, const double* counts, double scale, Py_ssize_t m) noexcept nogil
