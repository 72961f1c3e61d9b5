# The generalised logistic loss in single passes over margins, the length of a step, and multipliers that are to balance.

from libc.math cimport INFINITY, fabs, isfinite

from mdlearn._solvers.clones cimport MDLEARN_LANES
from mdlearn._solvers.exponential cimport mdlearn_exp_one_double


cdef extern from *:
    """
    /* exp(-|t|); what is no number stays none. */
    MDLEARN_INLINE double mdlearn_small(double t)
    {
        const double size = fabs(t), e = mdlearn_exp_one_double(-size);
        return size == size ? e : size;
    }

    /* Sums of m rows, LANES side by side: `terms(sums, first row, number of rows)` is written once. */
    #define MDLEARN_ROWS(m, terms)                                                                         \\
        for (i = 0; i + MDLEARN_LANES <= m; i += MDLEARN_LANES)                                            \\
            for (k = 0; k < MDLEARN_LANES; k++) {                                                          \\
                terms                                                                                      \\
            }                                                                                              \\
        for (k = 0; i + k < m; k++) {                                                                      \\
            terms                                                                                          \\
        }

    MDLEARN_INLINE double mdlearn_sum_of_lanes(const double *parts)
    {
        double total = 0.0;
        Py_ssize_t k;
        for (k = 0; k < MDLEARN_LANES; k++)
            total += parts[k];
        return total;
    }

    MDLEARN_CLONES static double mdlearn_logistic_slopes(
        const double *z, const double *caps, double sharpness, double kink, double *MDLEARN_ALONE u, double *MDLEARN_ALONE bends,
        Py_ssize_t m)
    {
        double parts[MDLEARN_LANES] = {0};
        Py_ssize_t i, k;
        MDLEARN_ROWS(m,
            const double c = caps[i + k]; const double t = sharpness * (kink - z[i + k]); const double e = mdlearn_small(t);
            const double q = 1.0 / (1.0 + e);
            u[i + k] = c * (t >= 0.0 ? q : e * q);
            bends[i + k] = sharpness * c * (e * q * q);
            parts[k] += c * ((t > 0.0 ? t : 0.0) + mdlearn_log1p_one(e));
        )
        return mdlearn_sum_of_lanes(parts) / sharpness;
    }

    MDLEARN_CLONES static double mdlearn_logistic_loss(
        const double *z, const double *caps, double sharpness, double kink, Py_ssize_t m)
    {
        double parts[MDLEARN_LANES] = {0};
        Py_ssize_t i, k;
        MDLEARN_ROWS(m,
            const double t = sharpness * (kink - z[i + k]);
            parts[k] += caps[i + k] * ((t > 0.0 ? t : 0.0) + mdlearn_log1p_one(mdlearn_small(t)));
        )
        return mdlearn_sum_of_lanes(parts) / sharpness;
    }

    MDLEARN_CLONES static double mdlearn_logistic_entropy(const double *beta, const double *caps, Py_ssize_t m)
    {
        double parts[MDLEARN_LANES] = {0};
        Py_ssize_t i, k;
        MDLEARN_ROWS(m,
            const double c = caps[i + k]; const double p = beta[i + k] / (c > 0.0 ? c : 1.0);
            const double low = p > 0.0 ? p : 0.0; const double high = p < 1.0 ? 1.0 - p : 0.0;
            parts[k] += c * (mdlearn_x_log_x(low) + mdlearn_x_log_x(high));
        )
        return mdlearn_sum_of_lanes(parts);
    }

    /* First and second derivatives along dz, at z + t dz, of the line with slopes u less the loss. */
    MDLEARN_CLONES static void mdlearn_logistic_along(
        const double *z, const double *dz, const double *caps, double sharpness, double kink, const double *u, double t,
        Py_ssize_t m, double *slope, double *curve)
    {
        double slopes[MDLEARN_LANES] = {0}, curves[MDLEARN_LANES] = {0};
        Py_ssize_t i, k;
        MDLEARN_ROWS(m,
            const double c = caps[i + k]; const double x = sharpness * (kink - z[i + k] - t * dz[i + k]);
            const double e = mdlearn_small(x); const double q = 1.0 / (1.0 + e);
            slopes[k] += (u[i + k] - c * (x >= 0.0 ? q : e * q)) * dz[i + k];
            curves[k] += sharpness * c * (e * q * q) * dz[i + k] * dz[i + k];
        )
        *slope += mdlearn_sum_of_lanes(slopes);
        *curve += mdlearn_sum_of_lanes(curves);
    }
    """
    double mdlearn_logistic_slopes(
        const double *z, const double *caps, double sharpness, double kink, double *u, double *bends, Py_ssize_t m,
    ) noexcept nogil
    double mdlearn_logistic_loss(
        const double *z, const double *caps, double sharpness, double kink, Py_ssize_t m) noexcept nogil
    double mdlearn_logistic_entropy(const double *beta, const double *caps, Py_ssize_t m) noexcept nogil
    void mdlearn_logistic_along(
        const double *z, const double *dz, const double *caps, double sharpness, double kink, const double *u, double t,
        Py_ssize_t m, double *slope, double *curve) noexcept nogil


cdef enum:
    LENGTH_TRIALS = 40
    BALANCING_TURNS = 4


cdef inline double length(
    const double* z, const double* dz, const double* caps, double sharpness, double kink, const double* u,
    Py_ssize_t m, double start, double bend, double close,
) noexcept nogil:
    """Length of the step dz from margins z with multipliers u that takes the slope `start` to a share `close` of it."""
    cdef int trial
    cdef double low = 0.0, high = INFINITY, t = 1.0, value, curve, part = 1e-3  # of a bracket, that a trial leaves
    cdef bint near
    if not start < 0.0:
        return INFINITY
    for trial in range(LENGTH_TRIALS):
        value, curve = start + t * bend, bend
        mdlearn_logistic_along(z, dz, caps, sharpness, kink, u, t, m, &value, &curve)
        near = not fabs(value) > close * fabs(start)
        # Before the minimum the function has fallen; as near behind it, it may have risen by any amount.
        if near and not value > 0.0:
            return t if isfinite(t) else INFINITY
        if value < 0.0:
            low = t
        else:
            high = t
        t = min(t - (2.0 if near else 1.0) * value / curve, 8.0 * t) if curve > 0.0 else 8.0 * t
        if high < INFINITY:
            # A line through a flat end of the slope leads back to the other end, give or take rounding.
            if not low + part * (high - low) < t < high:
                t = 0.5 * (low + high)
        elif not t > low:
            t = 8.0 * low
        if t == low or t == high:
            break
    if low > 0.0:
        t = low
    return t if isfinite(t) else INFINITY


cdef inline bint balance(
    const double* sides, Py_ssize_t apart, const double* caps, Py_ssize_t m, double total, double left, double* beta,
) noexcept nogil:
    """Bring multipliers within their bounds to a sum of `total` with `sides`; say whether they can have it."""
    cdef Py_ssize_t i
    cdef double excess, size, space, share
    cdef int turn
    for turn in range(BALANCING_TURNS):
        excess, size, space = -total, 0.0, 0.0
        for i in range(m):
            excess += sides[i * apart] * beta[i]
            size += beta[i]
            space += min(beta[i], caps[i] - beta[i])
        if fabs(excess) <= left * size:
            return True
        share = excess / space if space > 0.0 else INFINITY
        if not fabs(share) < 1.0:
            return False
        for i in range(m):
            beta[i] -= share * sides[i * apart] * min(beta[i], caps[i] - beta[i])
    return True
