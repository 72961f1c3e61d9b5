"""The generalised logistic loss of every row, c_i / s log(1 + exp(s (kink - z_i))), in single passes over margins."""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, fabs, isfinite, sqrt

from mdlearn._solvers.clones cimport MDLEARN_LANES
from mdlearn._solvers.exponential cimport mdlearn_exp_one_double
from mdlearn._solvers.rows cimport add, inner

ctypedef void (*syrk_t)(
    char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta, double* c, int* ldc,
) noexcept nogil
ctypedef void (*posv_t)(
    char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info,
) noexcept nogil

cdef enum:
    TRIALS = 40
    BALANCING_TURNS = 4

cdef double LEAST_PART = 1e-3  # of a bracket, that a trial leaves behind


cdef extern from *:
    """
    #if defined(_MSC_VER)
    #define MDLEARN_ALONE __restrict
    #else
    #define MDLEARN_ALONE restrict
    #endif
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


cdef double look(
    const double[::1] z, const double[::1] caps, double sharpness, double kink, double[::1] u, double[::1] bends,
) noexcept nogil:
    if z.shape[0] == 0:
        return 0.0
    return mdlearn_logistic_slopes(&z[0], &caps[0], sharpness, kink, &u[0], &bends[0], z.shape[0])


def slopes(
    const double[::1] z, const double[::1] caps, double sharpness, double kink, double[::1] u, double[::1] bends,
):
    """Write multipliers c_i p_i and second derivatives s c_i p_i (1 - p_i) at margins z; return the loss."""
    cdef Py_ssize_t m = z.shape[0]
    cdef double value
    if caps.shape[0] != m or u.shape[0] != m or bends.shape[0] != m:
        raise ValueError("margins, caps, multipliers and second derivatives differ in length")
    with nogil:
        value = look(z, caps, sharpness, kink, u, bends)
    return value


def loss(const double[::1] z, const double[::1] counts, double sharpness, double kink):
    """Return the sum of c_i / s log(1 + exp(s (kink - z_i)))."""
    cdef Py_ssize_t m = z.shape[0]
    cdef double value = 0.0
    if counts.shape[0] != m:
        raise ValueError("margins and counts differ in length")
    with nogil:
        if m:
            value = mdlearn_logistic_loss(&z[0], &counts[0], sharpness, kink, m)
    return value


cdef double conjugate(const double[::1] beta, const double[::1] caps) noexcept nogil:
    return mdlearn_logistic_entropy(&beta[0], &caps[0], beta.shape[0]) if beta.shape[0] else 0.0


def entropy(const double[::1] beta, const double[::1] caps):
    """Return sum_i c_i (p_i ln p_i + (1 - p_i) ln(1 - p_i)) with p_i = beta_i / c_i, of rows with c_i > 0."""
    cdef double total
    if caps.shape[0] != beta.shape[0]:
        raise ValueError("multipliers and caps differ in length")
    with nogil:
        total = conjugate(beta, caps)
    return total


cdef double length(
    const double[::1] z, const double[::1] dz, const double[::1] caps, double sharpness, double kink,
    const double[::1] u, double start, double bend, double close,
) noexcept nogil:
    cdef int trial
    cdef double low = 0.0, high = INFINITY, t = 1.0, value, curve
    cdef bint near
    if not start < 0.0:
        return INFINITY
    for trial in range(TRIALS):
        value, curve = start + t * bend, bend
        if z.shape[0]:
            mdlearn_logistic_along(
                &z[0], &dz[0], &caps[0], sharpness, kink, &u[0], t, z.shape[0], &value, &curve)
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
            if not low + LEAST_PART * (high - low) < t < high:
                t = 0.5 * (low + high)
        elif not t > low:
            t = 8.0 * low
        if t == low or t == high:
            break
    if low > 0.0:
        t = low
    return t if isfinite(t) else INFINITY


def minimum(
    const double[::1] z, const double[::1] dz, const double[::1] caps, double sharpness, double kink,
    const double[::1] u, double start, double bend, double close,
):
    """Length of the step dz from margins z with multipliers u that takes the slope `start` to a share `close` of it.

    `bend` is the second derivative of all but the loss. Infinite where there is no minimum.
    """
    cdef Py_ssize_t m = z.shape[0]
    cdef double t
    if dz.shape[0] != m or caps.shape[0] != m or u.shape[0] != m:
        raise ValueError("margins, steps, caps and multipliers differ in length")
    with nogil:
        t = length(z, dz, caps, sharpness, kink, u, start, bend, close)
    return t


cdef class Work:
    """Room for Newton steps on k dense rows of n columns, and BLAS as SciPy publishes it for Cython."""

    cdef double[:, ::1] M, held, rows
    cdef syrk_t syrk
    cdef posv_t posv

    def __init__(self, double[:, ::1] M, double[:, ::1] held, double[:, ::1] rows, dsyrk, dposv):
        cdef Py_ssize_t k = held.shape[0], n = held.shape[1]
        if M.shape[0] != n or M.shape[1] != n or rows.shape[0] != 4 or rows.shape[1] != max(k, n):
            raise ValueError("the room does not fit the rows")
        self.M, self.held, self.rows = M, held, rows
        self.syrk = <syrk_t> PyCapsule_GetPointer(dsyrk, PyCapsule_GetName(dsyrk))
        self.posv = <posv_t> PyCapsule_GetPointer(dposv, PyCapsule_GetName(dposv))


cdef int direction(
    const double[:, ::1] B, const double[::1] ridge, const double[::1] fixed, const double[::1] w,
    const double[::1] u, const double[::1] bends, double least_bend, double* slope, double* step, Work r,
) noexcept nogil:
    """Write the slope and the Newton step against it, by the matrix of second derivatives."""
    cdef int n = B.shape[1], k = B.shape[0], one_side = 1, info = 0
    cdef double one = 1.0, zero = 0.0, root, lacking = least_bend
    cdef char upper = b"U", by_columns = b"N"
    cdef Py_ssize_t i, j
    for j in range(n):
        slope[j] = ridge[j] * w[j] - fixed[j]
    for i in range(k):
        add(&B[i, 0], 1, slope, n, -u[i])
        root = sqrt(bends[i])
        lacking -= bends[i]
        for j in range(n):
            r.held[i, j] = root * B[i, j]
    r.syrk(&upper, &by_columns, &n, &k, &one, &r.held[0, 0], &n, &zero, &r.M[0, 0], &n)
    for j in range(n):
        r.M[j, j] += ridge[j]
        step[j] = -slope[j]
    # A step along a free bias would have no end where no loss bends.
    r.M[n - 1, n - 1] += max(lacking, 0.0)
    r.posv(&upper, &n, &one_side, &r.M[0, 0], &n, step, &n, &info)
    return info


cdef bint balance(
    const double[:, ::1] B, const double[::1] caps, double total, double left, double[::1] beta,
) noexcept nogil:
    """Bring multipliers within their bounds to a sum of `total` of the last column; say whether they can have it."""
    cdef Py_ssize_t i, last = B.shape[1] - 1
    cdef double excess, size, space, share
    cdef int turn
    for turn in range(BALANCING_TURNS):
        excess, size, space = -total, 0.0, 0.0
        for i in range(beta.shape[0]):
            excess += B[i, last] * beta[i]
            size += beta[i]
            space += min(beta[i], caps[i] - beta[i])
        if fabs(excess) <= left * size:
            return True
        share = excess / space if space > 0.0 else INFINITY
        if not fabs(share) < 1.0:
            return False
        for i in range(beta.shape[0]):
            beta[i] -= share * B[i, last] * min(beta[i], caps[i] - beta[i])
    return True


cdef double bound(
    const double[:, ::1] B, const double[::1] fixed, const double[::1] caps, double sharpness, double kink,
    bint free, double left, double[::1] beta, double* element,
) noexcept nogil:
    """The dual value of multipliers, brought within their bounds; minus infinity where these cannot be balanced."""
    cdef Py_ssize_t i, j, n = B.shape[1]
    cdef double total = 0.0
    for i in range(beta.shape[0]):
        beta[i] = min(max(beta[i], 0.0), caps[i])
    if free and not balance(B, caps, -fixed[n - 1], left, beta):
        return -INFINITY
    for j in range(n):
        element[j] = fixed[j]
    for i in range(beta.shape[0]):
        total += beta[i]
        if beta[i] != 0.0:
            add(&B[i, 0], 1, element, n, beta[i])
    return kink * total - conjugate(beta, caps) / sharpness - 0.5 * inner(element, element, n - free)


def newton_step(
    const double[:, ::1] B, const double[::1] ridge, const double[::1] fixed, const double[::1] caps, double sharpness,
    double kink, double[::1] w, double[::1] z, double[::1] u, double[::1] bends, double[::1] alpha, double[::1] beta,
    Work room, double loss, double rounding, double least_bend, double full, double close, double left_over,
):
    """Make a Newton step on 1/2 w' diag(ridge) w - fixed'w + the loss of rows B w = z.

    Parameters
    ----------
    B : (k, n) signed rows, whose last column is that of a free bias where the last ridge is 0; ridge, fixed, w : (n,);
    caps, z, u, bends, alpha : (k,); w, z, u, bends and alpha, which w is made of, are changed in place, and u and bends
    belong to z; beta : (k,) written: multipliers that stand for where a step of length 1 leads, within their bounds;
    loss : at z; rounding : what the objective may rise by; least_bend : second derivative that the loss is taken to
    have at least along a free bias, 0 without one; full : share of its slope that such a step may leave, if the
    objective does not rise, close : that another length may; left_over : share of their sum that multipliers of a free
    bias may miss theirs by.

    Returns
    -------
    float, float
        The loss at its end, and the dual value of beta; infinite, and nothing but beta changed, where there is no step.
    """
    cdef Py_ssize_t i, j, n = B.shape[1], k = B.shape[0]
    cdef double t = 1.0, start, bend = 0.0, left, rise, value = INFINITY, lower = -INFINITY
    if ridge.shape[0] != n or fixed.shape[0] != n or w.shape[0] != n or room.M.shape[0] != n or n == 0 or k == 0:
        raise ValueError("rows and coefficients do not fit each other")
    if caps.shape[0] != k or z.shape[0] != k or u.shape[0] != k or bends.shape[0] != k or alpha.shape[0] != k:
        raise ValueError("rows, caps, margins and multipliers differ in length")
    if beta.shape[0] != k or room.held.shape[0] != k:
        raise ValueError("rows and room differ in length")
    cdef double* slope = &room.rows[0, 0]
    cdef double* step = &room.rows[1, 0]
    cdef double[::1] dz = room.rows[2, :k], before = room.rows[3, :k]
    with nogil:
        if direction(B, ridge, fixed, w, u, bends, least_bend, slope, step, room) == 0:
            start = inner(slope, step, n)
            for j in range(n):
                bend += ridge[j] * step[j] * step[j]
            for i in range(k):
                dz[i] = inner(&B[i, 0], step, n)
                beta[i], before[i] = u[i] - bends[i] * dz[i], u[i]
                z[i] += dz[i]
            value, left = look(z, caps, sharpness, kink, u, bends), start + bend
            rise = start + 0.5 * bend + (value - loss)
            for i in range(k):
                left += (before[i] - u[i]) * dz[i]
                rise += before[i] * dz[i]
            if not (fabs(left) <= full * fabs(start) and rise <= rounding):
                for i in range(k):
                    z[i] -= dz[i]
                t = length(z, dz, caps, sharpness, kink, before, start, bend, close)
                t = t if t < INFINITY else 0.0
                for i in range(k):
                    z[i] += t * dz[i]
                value = look(z, caps, sharpness, kink, u, bends)
            for j in range(n):
                w[j] += t * step[j]
            for i in range(k):
                alpha[i] += t * (beta[i] - alpha[i])
            lower = bound(B, fixed, caps, sharpness, kink, ridge[n - 1] == 0.0, left_over, beta, slope)
    return (value if t > 0.0 else INFINITY), lower
