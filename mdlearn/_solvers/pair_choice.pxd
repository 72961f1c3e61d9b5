# Passes of greedy ascent over pairs of coordinates: the update of a gradient with the choice of the next pair.
#
# Extremes of blocks of rows are found side by side; the first row that has one is then looked for in its block.

from mdlearn._solvers.clones cimport MDLEARN_LANES

cdef extern from *:
    """
    #include <math.h>
    #define MDLEARN_CHOICE_BLOCK 128

    MDLEARN_INLINE double mdlearn_gain(double from, double e, double down, double top, double length, double h)
    {
        double d = from - e, a = top + length - 2.0 * h, least = 1e-12 * top;
        a = a > least ? a : least;
        d = down > 0.0 ? d : 0.0;
        return d > 0.0 ? d * d / a : 0.0; /* infinite where rows of length zero meet */
    }

    /* Size of a gradient where that points inside. */
    MDLEARN_INLINE double mdlearn_inward(double e, double up, double down)
    {
        double a = e * up, b = -e * down;
        a = a > b ? a : b;
        return a > 0.0 ? a : 0.0;
    }

    #define MDLEARN_JOINT_TINY 1e-10 /* least curvature of the second coordinate, of its own: equal rows have none */
    MDLEARN_INLINE double mdlearn_joint_gain(
        double a, double x, double weight, double e, double up, double down, double length)
    {
        const double size = mdlearn_inward(e - a * x, up, down);
        double left = length - a * (a * weight), least = MDLEARN_JOINT_TINY * length;
        left = left > least ? left : least;
        return left > 0.0 ? size * size / left : 0.0;
    }

    #define MDLEARN_PAIR_LOOPS(real)                                                                                 \\
    /* e -= t (rise - fall); the row that may go up with the largest e, or -1, and how far apart both ends are. */   \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_steepest_##real(                                                        \\
        const real *rise, const real *fall, double t, double *e, const double *up, const double *down,               \\
        Py_ssize_t n, double *violation)                                                                             \\
    {                                                                                                                \\
        double top = -INFINITY, bottom = INFINITY, highest;                                                          \\
        Py_ssize_t start, j, k, stop, whole, at = 0;                                                                 \\
        for (start = 0; start < n; start += MDLEARN_CHOICE_BLOCK) {                                                  \\
            double hi[MDLEARN_LANES], lo[MDLEARN_LANES];                                                             \\
            for (k = 0; k < MDLEARN_LANES; k++)                                                                      \\
                hi[k] = -INFINITY, lo[k] = INFINITY;                                                                 \\
            stop = n - start < MDLEARN_CHOICE_BLOCK ? n : start + MDLEARN_CHOICE_BLOCK;                              \\
            whole = start + (stop - start) / MDLEARN_LANES * MDLEARN_LANES;                                          \\
            for (j = start; j < whole; j += MDLEARN_LANES)                                                           \\
                for (k = 0; k < MDLEARN_LANES; k++) {                                                                \\
                    const double v = e[j + k] - t * (rise[j + k] - fall[j + k]);                                     \\
                    const double a = up[j + k] > 0.0 ? v : -INFINITY, b = down[j + k] > 0.0 ? v : INFINITY;          \\
                    e[j + k] = v;                                                                                    \\
                    hi[k] = a > hi[k] ? a : hi[k];                                                                   \\
                    lo[k] = b < lo[k] ? b : lo[k];                                                                   \\
                }                                                                                                    \\
            for (j = whole; j < stop; j++) {                                                                         \\
                e[j] -= t * (rise[j] - fall[j]);                                                                     \\
                hi[0] = up[j] > 0.0 && e[j] > hi[0] ? e[j] : hi[0];                                                  \\
                lo[0] = down[j] > 0.0 && e[j] < lo[0] ? e[j] : lo[0];                                                \\
            }                                                                                                        \\
            highest = hi[0];                                                                                         \\
            for (k = 0; k < MDLEARN_LANES; k++) {                                                                    \\
                highest = hi[k] > highest ? hi[k] : highest;                                                         \\
                bottom = lo[k] < bottom ? lo[k] : bottom;                                                            \\
            }                                                                                                        \\
            if (highest > top)                                                                                       \\
                top = highest, at = start;                                                                           \\
        }                                                                                                            \\
        *violation = top - bottom;                                                                                   \\
        for (j = at; j < n; j++)                                                                                     \\
            if (up[j] > 0.0 && e[j] == top)                                                                          \\
                return j;                                                                                            \\
        return -1;                                                                                                   \\
    }                                                                                                                \\
    /* The row that may go down and gains most beside row i (Fan, Chen and Lin, JMLR 2005), or -1. */                \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_partner_##real(                                                         \\
        const real *rise, const double *e, const double *down, const double *length, Py_ssize_t i, Py_ssize_t n)     \\
    {                                                                                                                \\
        const double from = e[i], top = length[i];                                                                   \\
        double best = 0.0, highest;                                                                                  \\
        Py_ssize_t start, j, k, stop, whole, at = -1;                                                                \\
        for (start = 0; start < n; start += MDLEARN_CHOICE_BLOCK) {                                                  \\
            double hi[MDLEARN_LANES] = {0};                                                                          \\
            stop = n - start < MDLEARN_CHOICE_BLOCK ? n : start + MDLEARN_CHOICE_BLOCK;                              \\
            whole = start + (stop - start) / MDLEARN_LANES * MDLEARN_LANES;                                          \\
            for (j = start; j < whole; j += MDLEARN_LANES)                                                           \\
                for (k = 0; k < MDLEARN_LANES; k++) {                                                                \\
                    const double gain = mdlearn_gain(from, e[j + k], down[j + k], top, length[j + k], rise[j + k]);  \\
                    hi[k] = gain > hi[k] ? gain : hi[k];                                                             \\
                }                                                                                                    \\
            for (j = whole; j < stop; j++) {                                                                         \\
                const double gain = mdlearn_gain(from, e[j], down[j], top, length[j], rise[j]);                      \\
                hi[0] = gain > hi[0] ? gain : hi[0];                                                                 \\
            }                                                                                                        \\
            highest = hi[0];                                                                                         \\
            for (k = 1; k < MDLEARN_LANES; k++)                                                                      \\
                highest = hi[k] > highest ? hi[k] : highest;                                                         \\
            if (highest > best)                                                                                      \\
                best = highest, at = start;                                                                          \\
        }                                                                                                            \\
        if (at < 0)                                                                                                  \\
            return -1;                                                                                               \\
        for (j = at; j < n; j++)                                                                                     \\
            if (mdlearn_gain(from, e[j], down[j], top, length[j], rise[j]) == best)                                  \\
                return j;                                                                                            \\
        return -1;                                                                                                   \\
    }                                                                                                                \\
    /* e -= d one + f other + c border; the row whose own step gains most, or -1, and the largest gradient. */       \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_largest_##real(                                                         \\
        const real *one, const real *other, double d, double f, double c, const double *border, double *e,           \\
        const double *up, const double *down, const double *weight, Py_ssize_t n, double *worst)                     \\
    {                                                                                                                \\
        double best = 0.0, highest, most = 0.0;                                                                      \\
        Py_ssize_t start, j, k, stop, whole, at = -1;                                                                \\
        for (start = 0; start < n; start += MDLEARN_CHOICE_BLOCK) {                                                  \\
            double hi[MDLEARN_LANES] = {0}, far[MDLEARN_LANES] = {0};                                                \\
            stop = n - start < MDLEARN_CHOICE_BLOCK ? n : start + MDLEARN_CHOICE_BLOCK;                              \\
            whole = start + (stop - start) / MDLEARN_LANES * MDLEARN_LANES;                                          \\
            for (j = start; j < whole; j += MDLEARN_LANES)                                                           \\
                for (k = 0; k < MDLEARN_LANES; k++) {                                                                \\
                    const double v = e[j + k] - (d * one[j + k] + f * other[j + k] + c * border[j + k]);             \\
                    const double size = mdlearn_inward(v, up[j + k], down[j + k]), gain = size * size * weight[j + k];\\
                    e[j + k] = v;                                                                                    \\
                    far[k] = size > far[k] ? size : far[k];                                                          \\
                    hi[k] = gain > hi[k] ? gain : hi[k];                                                             \\
                }                                                                                                    \\
            for (j = whole; j < stop; j++) {                                                                         \\
                const double v = e[j] - (d * one[j] + f * other[j] + c * border[j]);                                 \\
                const double size = mdlearn_inward(v, up[j], down[j]), gain = size * size * weight[j];               \\
                e[j] = v;                                                                                            \\
                far[0] = size > far[0] ? size : far[0];                                                              \\
                hi[0] = gain > hi[0] ? gain : hi[0];                                                                 \\
            }                                                                                                        \\
            highest = hi[0];                                                                                         \\
            for (k = 0; k < MDLEARN_LANES; k++) {                                                                    \\
                highest = hi[k] > highest ? hi[k] : highest;                                                         \\
                most = far[k] > most ? far[k] : most;                                                                \\
            }                                                                                                        \\
            if (highest > best)                                                                                      \\
                best = highest, at = start;                                                                          \\
        }                                                                                                            \\
        *worst = most;                                                                                               \\
        if (at < 0)                                                                                                  \\
            return -1;                                                                                               \\
        for (j = at; j < n; j++) {                                                                                   \\
            const double size = mdlearn_inward(e[j], up[j], down[j]);                                                \\
            if (size * size * weight[j] == best)                                                                     \\
                return j;                                                                                            \\
        }                                                                                                            \\
        return -1;                                                                                                   \\
    }                                                                                                                \\
    /* The row that gains most where row i, itself of no interest, steps by x and gives way to it, or -1. */         \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_companion_##real(                                                       \\
        const real *one, double c, const double *border, double x, double weight, const double *e, const double *up, \\
        const double *down, const double *length, Py_ssize_t n)                                                      \\
    {                                                                                                                \\
        double best = 0.0, highest;                                                                                  \\
        Py_ssize_t start, j, k, stop, whole, at = -1;                                                                \\
        for (start = 0; start < n; start += MDLEARN_CHOICE_BLOCK) {                                                  \\
            double hi[MDLEARN_LANES] = {0};                                                                          \\
            stop = n - start < MDLEARN_CHOICE_BLOCK ? n : start + MDLEARN_CHOICE_BLOCK;                              \\
            whole = start + (stop - start) / MDLEARN_LANES * MDLEARN_LANES;                                          \\
            for (j = start; j < whole; j += MDLEARN_LANES)                                                           \\
                for (k = 0; k < MDLEARN_LANES; k++) {                                                                \\
                    const double gain = mdlearn_joint_gain(                                                          \\
                        one[j + k] + c * border[j + k], x, weight, e[j + k], up[j + k], down[j + k], length[j + k]); \\
                    hi[k] = gain > hi[k] ? gain : hi[k];                                                             \\
                }                                                                                                    \\
            for (j = whole; j < stop; j++) {                                                                         \\
                const double gain = mdlearn_joint_gain(                                                              \\
                    one[j] + c * border[j], x, weight, e[j], up[j], down[j], length[j]);                             \\
                hi[0] = gain > hi[0] ? gain : hi[0];                                                                 \\
            }                                                                                                        \\
            highest = hi[0];                                                                                         \\
            for (k = 1; k < MDLEARN_LANES; k++)                                                                      \\
                highest = hi[k] > highest ? hi[k] : highest;                                                         \\
            if (highest > best)                                                                                      \\
                best = highest, at = start;                                                                          \\
        }                                                                                                            \\
        if (at < 0)                                                                                                  \\
            return -1;                                                                                               \\
        for (j = at; j < n; j++)                                                                                     \\
            if (mdlearn_joint_gain(one[j] + c * border[j], x, weight, e[j], up[j], down[j], length[j]) == best)      \\
                return j;                                                                                            \\
        return -1;                                                                                                   \\
    }
    MDLEARN_PAIR_LOOPS(double)
    MDLEARN_PAIR_LOOPS(float)
    """
    Py_ssize_t mdlearn_steepest_double(
        const double* rise, const double* fall, double t, double* e, const double* up, const double* down,
        Py_ssize_t n, double* violation) noexcept nogil
    Py_ssize_t mdlearn_steepest_float(
        const float* rise, const float* fall, double t, double* e, const double* up, const double* down,
        Py_ssize_t n, double* violation) noexcept nogil
    Py_ssize_t mdlearn_partner_double(
        const double* rise, const double* e, const double* down, const double* length, Py_ssize_t i, Py_ssize_t n
    ) noexcept nogil
    Py_ssize_t mdlearn_partner_float(
        const float* rise, const double* e, const double* down, const double* length, Py_ssize_t i, Py_ssize_t n
    ) noexcept nogil
    Py_ssize_t mdlearn_largest_double(
        const double* one, const double* other, double d, double f, double c, const double* border, double* e,
        const double* up, const double* down, const double* weight, Py_ssize_t n, double* worst) noexcept nogil
    Py_ssize_t mdlearn_companion_double(
        const double* one, double c, const double* border, double x, double weight, const double* e, const double* up,
        const double* down, const double* length, Py_ssize_t n) noexcept nogil
    Py_ssize_t mdlearn_largest_float(
        const float* one, const float* other, double d, double f, double c, const double* border, double* e,
        const double* up, const double* down, const double* weight, Py_ssize_t n, double* worst) noexcept nogil
    Py_ssize_t mdlearn_companion_float(
        const float* one, double c, const double* border, double x, double weight, const double* e, const double* up,
        const double* down, const double* length, Py_ssize_t n) noexcept nogil
