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

    /* Size of a gradient where that points inside, and what its own step gains. */
    MDLEARN_INLINE double mdlearn_inward(double e, double up, double down)
    {
        double a = e * up, b = -e * down;
        a = a > b ? a : b;
        return a > 0.0 ? a : 0.0;
    }
    MDLEARN_INLINE double mdlearn_own_gain(double e, double up, double down, double weight)
    {
        const double size = mdlearn_inward(e, up, down);
        return size * size * weight;
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

    /* Rows j by blocks, LANES of each side by side, in lane k: `begin` before a block, `end` after it. */
    #define MDLEARN_BY_BLOCKS(n, begin, row, end)                                                                    \\
        for (start = 0; start < n; start += MDLEARN_CHOICE_BLOCK) {                                                  \\
            const Py_ssize_t stop = n - start < MDLEARN_CHOICE_BLOCK ? n : start + MDLEARN_CHOICE_BLOCK;             \\
            const Py_ssize_t whole = start + (stop - start) / MDLEARN_LANES * MDLEARN_LANES;                         \\
            begin                                                                                                    \\
            for (first = start; first < whole; first += MDLEARN_LANES)                                               \\
                for (k = 0; k < MDLEARN_LANES; k++) {                                                                \\
                    const Py_ssize_t j = first + k;                                                                  \\
                    row                                                                                              \\
                }                                                                                                    \\
            for (k = 0; first < stop; first++) {                                                                     \\
                const Py_ssize_t j = first;                                                                          \\
                row                                                                                                  \\
            }                                                                                                        \\
            end                                                                                                      \\
        }

    /* Return the first row j with the largest `gain`, or -1 where none is above 0; each has `row` done before. */
    #define MDLEARN_RETURN_FIRST_OF_LARGEST(n, row, after, gain)                                                     \\
        {                                                                                                            \\
            double best = 0.0;                                                                                       \\
            Py_ssize_t start, first, k, at = -1;                                                                     \\
            MDLEARN_BY_BLOCKS(n,                                                                                     \\
                double hi[MDLEARN_LANES] = {0}; double highest;,                                                     \\
                row                                                                                                  \\
                const double found = gain;                                                                           \\
                hi[k] = found > hi[k] ? found : hi[k];,                                                              \\
                highest = hi[0];                                                                                     \\
                for (k = 1; k < MDLEARN_LANES; k++)                                                                  \\
                    highest = hi[k] > highest ? hi[k] : highest;                                                     \\
                if (highest > best) {                                                                                \\
                    best = highest;                                                                                  \\
                    at = start;                                                                                      \\
                }                                                                                                    \\
            )                                                                                                        \\
            after                                                                                                    \\
            for (; at >= 0 && at < n; at++) {                                                                        \\
                const Py_ssize_t j = at;                                                                             \\
                if (gain == best)                                                                                    \\
                    return at;                                                                                       \\
            }                                                                                                        \\
            return -1;                                                                                               \\
        }

    #define MDLEARN_PAIR_LOOPS(real)                                                                                 \\
    /* e -= t (rise - fall); the row that may go up with the largest e, or -1, and how far apart both ends are. */   \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_steepest_##real(                                                        \\
        const real *rise, const real *fall, double t, double *MDLEARN_ALONE e, const double *up, const double *down, \\
        Py_ssize_t n, double *violation)                                                                             \\
    {                                                                                                                \\
        double top = -INFINITY, bottom = INFINITY;                                                                   \\
        Py_ssize_t start, first, k, at = 0;                                                                          \\
        MDLEARN_BY_BLOCKS(n,                                                                                         \\
            double hi[MDLEARN_LANES]; double lo[MDLEARN_LANES]; double highest = -INFINITY;                          \\
            for (k = 0; k < MDLEARN_LANES; k++) {                                                                    \\
                hi[k] = -INFINITY;                                                                                   \\
                lo[k] = INFINITY;                                                                                    \\
            },                                                                                                       \\
            const double v = e[j] - t * (rise[j] - fall[j]);                                                         \\
            const double a = up[j] > 0.0 ? v : -INFINITY; const double b = down[j] > 0.0 ? v : INFINITY;             \\
            e[j] = v;                                                                                                \\
            hi[k] = a > hi[k] ? a : hi[k];                                                                           \\
            lo[k] = b < lo[k] ? b : lo[k];,                                                                          \\
            for (k = 0; k < MDLEARN_LANES; k++) {                                                                    \\
                highest = hi[k] > highest ? hi[k] : highest;                                                         \\
                bottom = lo[k] < bottom ? lo[k] : bottom;                                                            \\
            }                                                                                                        \\
            if (highest > top) {                                                                                     \\
                top = highest;                                                                                       \\
                at = start;                                                                                          \\
            }                                                                                                        \\
        )                                                                                                            \\
        *violation = top - bottom;                                                                                   \\
        for (; at < n; at++)                                                                                         \\
            if (up[at] > 0.0 && e[at] == top)                                                                        \\
                return at;                                                                                           \\
        return -1;                                                                                                   \\
    }                                                                                                                \\
    /* The row that may go down and gains most beside row i (Fan, Chen and Lin, JMLR 2005), or -1. */                \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_partner_##real(                                                         \\
        const real *rise, const double *e, const double *down, const double *length, Py_ssize_t i, Py_ssize_t n)     \\
    {                                                                                                                \\
        const double from = e[i], top = length[i];                                                                   \\
        MDLEARN_RETURN_FIRST_OF_LARGEST(n, , , mdlearn_gain(from, e[j], down[j], top, length[j], rise[j]))           \\
    }                                                                                                                \\
    /* e -= d one + f other + c border; the row whose own step gains most, or -1, and the largest gradient. */       \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_largest_##real(                                                         \\
        const real *one, const real *other, double d, double f, double c, const double *border,                      \\
        double *MDLEARN_ALONE e, const double *up, const double *down, const double *weight, Py_ssize_t n,           \\
        double *worst)                                                                                               \\
    {                                                                                                                \\
        double far[MDLEARN_LANES] = {0};                                                                             \\
        MDLEARN_RETURN_FIRST_OF_LARGEST(n,                                                                           \\
            const double v = e[j] - (d * one[j] + f * other[j] + c * border[j]);                                     \\
            const double size = mdlearn_inward(v, up[j], down[j]);                                                   \\
            e[j] = v;                                                                                                \\
            far[k] = size > far[k] ? size : far[k];,                                                                 \\
            for (*worst = far[0], k = 1; k < MDLEARN_LANES; k++)                                                     \\
                *worst = far[k] > *worst ? far[k] : *worst;,                                                         \\
            mdlearn_own_gain(e[j], up[j], down[j], weight[j]))                                                       \\
    }                                                                                                                \\
    /* The row that gains most where row i, itself of no interest, steps by x and gives way to it, or -1. */         \\
    MDLEARN_CLONES static Py_ssize_t mdlearn_companion_##real(                                                       \\
        const real *one, double c, const double *border, double x, double weight, const double *e, const double *up, \\
        const double *down, const double *length, Py_ssize_t n)                                                      \\
    {                                                                                                                \\
        MDLEARN_RETURN_FIRST_OF_LARGEST(                                                                             \\
            n, , , mdlearn_joint_gain(one[j] + c * border[j], x, weight, e[j], up[j], down[j], length[j]))           \\
    }
    MDLEARN_PAIR_LOOPS(double)
    MDLEARN_PAIR_LOOPS(float)

    /* One name for rows of both types, float where `single` says so. */
    #define mdlearn_steepest(single, rise, fall, ...)                                                                \\
        ((single) ? mdlearn_steepest_float((const float *)(rise), (const float *)(fall), __VA_ARGS__)                \\
            : mdlearn_steepest_double((const double *)(rise), (const double *)(fall), __VA_ARGS__))
    #define mdlearn_partner(single, one, ...)                                                                        \\
        ((single) ? mdlearn_partner_float((const float *)(one), __VA_ARGS__)                                         \\
            : mdlearn_partner_double((const double *)(one), __VA_ARGS__))
    #define mdlearn_largest(single, one, other, ...)                                                                 \\
        ((single) ? mdlearn_largest_float((const float *)(one), (const float *)(other), __VA_ARGS__)                 \\
            : mdlearn_largest_double((const double *)(one), (const double *)(other), __VA_ARGS__))
    #define mdlearn_companion(single, one, ...)                                                                      \\
        ((single) ? mdlearn_companion_float((const float *)(one), __VA_ARGS__)                                       \\
            : mdlearn_companion_double((const double *)(one), __VA_ARGS__))
    """
    Py_ssize_t mdlearn_steepest(
        bint single, const void* rise, const void* fall, double t, double* e, const double* up, const double* down,
        Py_ssize_t n, double* violation) noexcept nogil
    Py_ssize_t mdlearn_partner(
        bint single, const void* rise, const double* e, const double* down, const double* length, Py_ssize_t i,
        Py_ssize_t n) noexcept nogil
    Py_ssize_t mdlearn_largest(
        bint single, const void* one, const void* other, double d, double f, double c, const double* border, double* e,
        const double* up, const double* down, const double* weight, Py_ssize_t n, double* worst) noexcept nogil
    Py_ssize_t mdlearn_companion(
        bint single, const void* one, double c, const double* border, double x, double weight, const double* e,
        const double* up, const double* down, const double* length, Py_ssize_t n) noexcept nogil
