# Sums over rows for hinges: of so many parts beside each other and turns after each other that few roundings add up.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the names of its versions


cdef extern from *:
    """
    #define MDLEARN_SUMS 8    /* beside each other */
    #define MDLEARN_TURNS 128 /* one after the other before they are added to the total */

    /* Return the sum of `term` over the rows i of m. */
    #define MDLEARN_RETURN_SUM_OF_ROWS(m, term)                                                            \\
        {                                                                                                  \\
            double total = 0.0;                                                                            \\
            Py_ssize_t first = 0, j;                                                                       \\
            while (first < m) {                                                                            \\
                const Py_ssize_t left = m - first, most = MDLEARN_SUMS * MDLEARN_TURNS;                    \\
                const Py_ssize_t end = first + (left < most ? left : most);                                \\
                double sums[MDLEARN_SUMS] = {0};                                                           \\
                for (; first + MDLEARN_SUMS <= end; first += MDLEARN_SUMS)                                 \\
                    for (j = 0; j < MDLEARN_SUMS; j++) {                                                   \\
                        const Py_ssize_t i = first + j;                                                    \\
                        sums[j] += term;                                                                   \\
                    }                                                                                      \\
                for (j = 0; first < end; first++, j++) {                                                   \\
                    const Py_ssize_t i = first;                                                            \\
                    sums[j] += term;                                                                       \\
                }                                                                                          \\
                for (j = 1; j < MDLEARN_SUMS; j++)                                                         \\
                    sums[0] += sums[j];                                                                    \\
                total += sums[0];                                                                          \\
            }                                                                                              \\
            return total;                                                                                  \\
        }

    MDLEARN_CLONES static double mdlearn_sum_of(const double *x, Py_ssize_t m) MDLEARN_RETURN_SUM_OF_ROWS(m, x[i])

    MDLEARN_INLINE double mdlearn_hinge(double slack, int squared)
    {
        const double excess = slack > 0.0 ? slack : 0.0;
        return squared ? excess * excess : excess;
    }
    MDLEARN_CLONES static double mdlearn_hinge_loss(
        const double *z, const double *counts, double side, double threshold, int squared, Py_ssize_t m)
        MDLEARN_RETURN_SUM_OF_ROWS(m, counts[i] * mdlearn_hinge(side * (threshold - z[i]), squared))

    MDLEARN_CLONES static double mdlearn_hinge_squares(
        const double *beta, const double *counts, double scale, Py_ssize_t m)
        MDLEARN_RETURN_SUM_OF_ROWS(m, counts[i] > 0.0 ? scale * beta[i] / counts[i] * beta[i] : 0.0)
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
