# Loops over envelopes of hinges at any margins, without a branch that depends on these: which rows lie beyond their
# kinks nobody foresees, and a wrong guess costs more than a row.

from mdlearn._solvers.clones cimport MDLEARN_LANES  # and the sums side by side


cdef extern from *:
    """
    #define MDLEARN_ENVELOPES 256

    /* Multipliers u, cut off at 0 and at caps; rows between these go to `between`, whose number is returned. */
    MDLEARN_CLONES static Py_ssize_t mdlearn_multipliers(
        const double *z_, const double *centre_, const double *s_, const double *caps_, double kink, Py_ssize_t m,
        double *u_, long long *between)
    {
        long long inside[MDLEARN_ENVELOPES];
        Py_ssize_t start, k, n = 0;
        for (start = 0; start < m; start += MDLEARN_ENVELOPES) {
            const Py_ssize_t size = m - start < MDLEARN_ENVELOPES ? m - start : MDLEARN_ENVELOPES;
            const double *z = z_ + start, *centre = centre_ + start, *s = s_ + start, *caps = caps_ + start;
            double *MDLEARN_ALONE u = u_ + start;
            for (k = 0; k < size; k++) {
                const double x = centre[k] + s[k] * (kink - z[k]), above = x > 0.0 ? x : 0.0;
                u[k] = above < caps[k] ? above : caps[k];
                inside[k] = (x > 0.0) & (x < caps[k]);
            }
            for (k = 0; k < size; k++) {
                between[n] = start + k;
                n += inside[k];
            }
        }
        return n;
    }

    /* Rise of the slope of the loss along dz from 0, where multipliers are u, to t; and its second derivative there. */
    MDLEARN_CLONES static double mdlearn_rise(
        const double *z_, const double *dz_, const double *centre_, const double *s_, const double *caps_, double kink,
        const double *u_, double t, Py_ssize_t m, double *bend)
    {
        double fall[MDLEARN_ENVELOPES], steep[MDLEARN_ENVELOPES], total = 0.0, second = 0.0;
        mdlearn_sums rise = {0}, curve = {0};
        Py_ssize_t start, k;
        for (start = 0; start < m; start += MDLEARN_ENVELOPES) {
            const Py_ssize_t size = m - start < MDLEARN_ENVELOPES ? m - start : MDLEARN_ENVELOPES, whole = size & ~7;
            const double *z = z_ + start, *dz = dz_ + start, *centre = centre_ + start, *s = s_ + start;
            const double *caps = caps_ + start, *u = u_ + start;
            for (k = 0; k < size; k++) {
                const double x = centre[k] + s[k] * (kink - z[k] - t * dz[k]), above = x > 0.0 ? x : 0.0;
                fall[k] = u[k] - (above < caps[k] ? above : caps[k]);
                steep[k] = (x > 0.0) & (x < caps[k]) ? s[k] * dz[k] : 0.0;
            }
            for (k = 0; k < whole; k += 8) {
                MDLEARN_ADD(rise, fall + k, dz + k);
                MDLEARN_ADD(curve, steep + k, dz + k);
            }
            for (; k < size; k++) {
                total += fall[k] * dz[k];
                second += steep[k] * dz[k];
            }
        }
        *bend = MDLEARN_SUM(curve) + second;
        return MDLEARN_SUM(rise) + total;
    }
    """
    Py_ssize_t mdlearn_multipliers(
        const double* z, const double* centre, const double* s, const double* caps, double kink, Py_ssize_t m,
        double* u, long long* between) noexcept nogil
    double mdlearn_rise(
        const double* z, const double* dz, const double* centre, const double* s, const double* caps, double kink,
        const double* u, double t, Py_ssize_t m, double* bend) noexcept nogil
