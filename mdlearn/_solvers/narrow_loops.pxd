# Loops over rows that lie column by column, padded to whole vectors; all versions do the same operations.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the sums side by side


cdef extern from *:
    """
    #define MDLEARN_MARGINS 1024
    #define MDLEARN_PIECE 128
    /* out = labels * (sum of w_j times column j); columns lie `apart` numbers from each other. */
    MDLEARN_CLONES static void mdlearn_margins(
        const double *T, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *w, const double *labels,
        double *result)
    {
        Py_ssize_t j, k, start;
        for (start = 0; start < m; start += MDLEARN_MARGINS) {
            const Py_ssize_t size = m - start < MDLEARN_MARGINS ? m - start : MDLEARN_MARGINS;
            const double *one = T + start, *label = labels + start;
            double *MDLEARN_ALONE out = result + start;
            for (k = 0; k < size; k++)
                out[k] = 0.0;
            for (j = 0; j + 4 <= n; j += 4, one += 4 * apart) {
                const double a = w[j], b = w[j + 1], c = w[j + 2], d = w[j + 3];
                for (k = 0; k < size; k++)
                    out[k] += (a * one[k] + b * one[k + apart]) + (c * one[k + 2 * apart] + d * one[k + 3 * apart]);
            }
            for (; j < n; j++, one += apart)
                for (k = 0; k < size; k++)
                    out[k] += w[j] * one[k];
            for (k = 0; k < size; k++)
                out[k] *= label[k];
        }
    }

    /* g_j = the product of column j and v. */
    MDLEARN_CLONES static void mdlearn_adjoint(
        const double *T, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *v, double *g)
    {
        Py_ssize_t j, k;
        for (j = 0; j + 4 <= n; j += 4) {
            const double *one = T + j * apart, *two = one + apart, *three = two + apart, *four = three + apart;
            mdlearn_sums a = {0}, b = {0}, c = {0}, d = {0};
            for (k = 0; k < m; k += 8) {
                MDLEARN_ADD(a, one + k, v + k);
                MDLEARN_ADD(b, two + k, v + k);
                MDLEARN_ADD(c, three + k, v + k);
                MDLEARN_ADD(d, four + k, v + k);
            }
            g[j] = MDLEARN_SUM(a);
            g[j + 1] = MDLEARN_SUM(b);
            g[j + 2] = MDLEARN_SUM(c);
            g[j + 3] = MDLEARN_SUM(d);
        }
        for (; j < n; j++) {
            const double *one = T + j * apart;
            mdlearn_sums a = {0};
            for (k = 0; k < m; k += 8)
                MDLEARN_ADD(a, one + k, v + k);
            g[j] = MDLEARN_SUM(a);
        }
    }

    /* M_ij += the sum of v_k times columns i and j, for j up to i at least; `room` has 2 `size` numbers. Of type `real`,
       whose `vector` has so many `lanes`. */
    #define MDLEARN_GRAM(name, real, vector, lanes, ADD, SUM)                                                       \\
    MDLEARN_CLONES static void name(                                                                                \\
        const real *T, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t size, const real *v,                              \\
        real *MDLEARN_ALONE room, double *M, Py_ssize_t width)                                                      \\
    {                                                                                                               \\
        Py_ssize_t i, j, k;                                                                                         \\
        real *MDLEARN_ALONE second = room + size;                                                                   \\
        for (i = 0; i < n; i += 2) {                                                                                \\
            const real *one = T + i * apart, *two = i + 1 < n ? one + apart : one;                                  \\
            double *upper = M + i * width, *lower = upper + width;                                                  \\
            for (k = 0; k < size; k++) {                                                                            \\
                room[k] = v[k] * one[k];                                                                            \\
                second[k] = v[k] * two[k];                                                                          \\
            }                                                                                                       \\
            for (j = 0; j < i + 2 && j < n; j += 4) {                                                               \\
                const real *a = T + j * apart, *b = j + 1 < n ? a + apart : a, *c = j + 2 < n ? a + 2 * apart : a;  \\
                const real *d = j + 3 < n ? a + 3 * apart : a;                                                      \\
                vector p = {0}, q = {0}, r = {0}, s = {0}, t = {0}, u = {0}, x = {0}, y = {0};                      \\
                for (k = 0; k < size; k += lanes) {                                                                 \\
                    ADD(p, a + k, room + k);                                                                        \\
                    ADD(q, b + k, room + k);                                                                        \\
                    ADD(r, c + k, room + k);                                                                        \\
                    ADD(s, d + k, room + k);                                                                        \\
                    ADD(t, a + k, second + k);                                                                      \\
                    ADD(u, b + k, second + k);                                                                      \\
                    ADD(x, c + k, second + k);                                                                      \\
                    ADD(y, d + k, second + k);                                                                      \\
                }                                                                                                   \\
                upper[j] += SUM(p);                                                                                 \\
                upper[j + 1] += SUM(q);                                                                             \\
                upper[j + 2] += SUM(r);                                                                             \\
                upper[j + 3] += SUM(s);                                                                             \\
                if (i + 1 < n) {                                                                                    \\
                    lower[j] += SUM(t);                                                                             \\
                    lower[j + 1] += SUM(u);                                                                         \\
                    lower[j + 2] += SUM(x);                                                                         \\
                    lower[j + 3] += SUM(y);                                                                         \\
                }                                                                                                   \\
            }                                                                                                       \\
        }                                                                                                           \\
    }
    MDLEARN_GRAM(mdlearn_gram, double, mdlearn_sums, 8, MDLEARN_ADD, MDLEARN_SUM)

    /* Multipliers u, x before they are cut off, signed ones, and the steepness of free rows, else 0; sums: the loss, and what multipliers add to
       the dual value. */
    MDLEARN_CLONES static void mdlearn_envelopes(
        const double *labels, const double *caps, const double *softness, const double *s, const double *centre,
        const double *z, double kink, int squared, Py_ssize_t m, double *x_, double *u_, double *signed_,
        double *slope_, double *sums)
    {
        double lost[MDLEARN_PIECE], twice[MDLEARN_PIECE], kinks[MDLEARN_PIECE];
        mdlearn_sums loss = {0}, gain = {0}, square = {0};
        Py_ssize_t start, k;
        for (k = 0; k < MDLEARN_PIECE; k++)
            kinks[k] = kink;
        for (start = 0; start < m; start += MDLEARN_PIECE) {
            const Py_ssize_t end = m - start < MDLEARN_PIECE ? m - start : MDLEARN_PIECE;
            const double *label = labels + start, *cap = caps + start, *steep = s + start, *around = centre + start;
            const double *at = z + start, *soft = softness + start;
            double *MDLEARN_ALONE u = u_ + start, *MDLEARN_ALONE with_sign = signed_ + start;
            double *MDLEARN_ALONE slope = slope_ + start, *MDLEARN_ALONE before = x_ + start;
            for (k = 0; k < end; k++) {
                const double off = kink - at[k], x = around[k] + steep[k] * off, above = x > 0.0 ? x : 0.0;
                const double cut = above < cap[k] ? above : cap[k];
                before[k] = x;
                u[k] = cut;
                with_sign[k] = label[k] * cut;
                slope[k] = (x > 0.0) & (x < cap[k]) ? steep[k] : 0.0;
                lost[k] = off > 0.0 ? off : 0.0;
            }
            for (k = 0; k < end; k += 8)
                MDLEARN_ADD(gain, u + k, kinks + k);
            if (squared) {
                for (k = 0; k < end; k++)
                    twice[k] = steep[k] * lost[k];
                for (k = 0; k < end; k += 8)
                    MDLEARN_ADD(loss, twice + k, lost + k);
                for (k = 0; k < end; k++)
                    twice[k] = soft[k] * u[k];
                for (k = 0; k < end; k += 8)
                    MDLEARN_ADD(square, twice + k, u + k);
            } else {
                for (k = 0; k < end; k += 8)
                    MDLEARN_ADD(loss, cap + k, lost + k);
            }
        }
        sums[0] = (squared ? 0.5 : 1.0) * MDLEARN_SUM(loss);
        sums[1] = MDLEARN_SUM(gain) - 0.5 * MDLEARN_SUM(square);
    }

    /* Rise of the slope of the loss along dz from 0 to t, and its second derivative at t. */
    MDLEARN_CLONES static void mdlearn_along(
        const double *caps, const double *x_, const double *dz_, const double *sdz_, Py_ssize_t m, double t,
        double *sums)
    {
        double fall[MDLEARN_PIECE], bend[MDLEARN_PIECE];
        mdlearn_sums rise = {0}, curve = {0};
        Py_ssize_t start, k;
        for (start = 0; start < m; start += MDLEARN_PIECE) {
            const Py_ssize_t end = m - start < MDLEARN_PIECE ? m - start : MDLEARN_PIECE;
            const double *cap = caps + start, *x = x_ + start, *dz = dz_ + start, *sdz = sdz_ + start;
            for (k = 0; k < end; k++) {
                const double at = x[k] - t * sdz[k], before = x[k] > 0.0 ? x[k] : 0.0, after = at > 0.0 ? at : 0.0;
                bend[k] = (at > 0.0) & (at < cap[k]) ? sdz[k] : 0.0;
                fall[k] = (before < cap[k] ? before : cap[k]) - (after < cap[k] ? after : cap[k]);
            }
            for (k = 0; k < end; k += 8)
                MDLEARN_ADD(rise, fall + k, dz + k);
            for (k = 0; k < end; k += 8)
                MDLEARN_ADD(curve, bend + k, dz + k);
        }
        sums[0] = MDLEARN_SUM(rise);
        sums[1] = MDLEARN_SUM(curve);
    }

    /* Multipliers become centres of steeper envelopes. */
    MDLEARN_CLONES static void mdlearn_recentre(
        const double *u, double growth, Py_ssize_t m, double *MDLEARN_ALONE centre, double *MDLEARN_ALONE s)
    {
        Py_ssize_t k;
        for (k = 0; k < m; k++) {
            centre[k] = u[k];
            s[k] *= growth;
        }
    }

    MDLEARN_CLONES static void mdlearn_scaled(
        const double *a, const double *b, Py_ssize_t m, double *MDLEARN_ALONE out)
    {
        Py_ssize_t k;
        for (k = 0; k < m; k++)
            out[k] = a[k] * b[k];
    }

    /* z goes t along dz, alpha towards the multipliers there. */
    MDLEARN_CLONES static void mdlearn_advance(
        const double *u, const double *fall, const double *dz, double t, Py_ssize_t m, double *MDLEARN_ALONE z,
        double *MDLEARN_ALONE alpha)
    {
        Py_ssize_t k;
        for (k = 0; k < m; k++) {
            z[k] += t * dz[k];
            alpha[k] += t * ((u[k] - alpha[k]) - fall[k]);
        }
    }
    """
    void mdlearn_margins(const double *T, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *w,
                         const double *labels, double *out) noexcept nogil
    void mdlearn_adjoint(const double *T, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t m, const double *v,
                         double *g) noexcept nogil
    void mdlearn_gram(const double *T, Py_ssize_t apart, Py_ssize_t n, Py_ssize_t size, const double *v, double *room,
                      double *M, Py_ssize_t width) noexcept nogil
    void mdlearn_envelopes(const double *labels, const double *caps, const double *softness, const double *s,
                           const double *centre, const double *z, double kink, int squared, Py_ssize_t m, double *x,
                           double *u, double *signed_, double *slope, double *sums) noexcept nogil
    void mdlearn_along(const double *caps, const double *x, const double *dz, const double *sdz, Py_ssize_t m, double t,
                       double *sums) noexcept nogil
    void mdlearn_recentre(const double *u, double growth, Py_ssize_t m, double *centre, double *s) noexcept nogil
    void mdlearn_scaled(const double *a, const double *b, Py_ssize_t m, double *out) noexcept nogil
    void mdlearn_advance(const double *u, const double *fall, const double *dz, double t, Py_ssize_t m, double *z,
                         double *alpha) noexcept nogil
