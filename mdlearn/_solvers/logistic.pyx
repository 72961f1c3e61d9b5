"""The generalised logistic loss of every row, c_i / s log(1 + exp(s (kink - z_i))), in single passes over margins."""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, fabs, sqrt

from mdlearn._solvers.logistic_loops cimport (
    balance, length, mdlearn_logistic_entropy, mdlearn_logistic_loss, mdlearn_logistic_slopes,
)
from mdlearn._solvers.rows cimport add, inner

ctypedef void (*syrk_t)(
    char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta, double* c, int* ldc,
) noexcept nogil
ctypedef void (*posv_t)(
    char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info,
) noexcept nogil

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


def minimum(
    const double[::1] z, const double[::1] dz, const double[::1] caps, double sharpness, double kink,
    const double[::1] u, double start, double bend, double close,
):
    """Length of the step dz from margins z with multipliers u that takes the slope `start` to a share `close` of it.

    `bend` is the second derivative of all but the loss. Infinite where there is no minimum.
    """
    cdef Py_ssize_t m = z.shape[0]
    cdef double t
    if m == 0:
        raise ValueError("there are no margins")
    if dz.shape[0] != m or caps.shape[0] != m or u.shape[0] != m:
        raise ValueError("margins, steps, caps and multipliers differ in length")
    with nogil:
        t = length(&z[0], &dz[0], &caps[0], sharpness, kink, &u[0], m, start, bend, close)
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


cdef double bound(
    const double[:, ::1] B, const double[::1] fixed, const double[::1] caps, double sharpness, double kink,
    bint free, double left, double[::1] beta, double* element,
) noexcept nogil:
    """The dual value of multipliers, brought within their bounds; minus infinity where these cannot be balanced."""
    cdef Py_ssize_t i, j, n = B.shape[1]
    cdef double total = 0.0
    for i in range(beta.shape[0]):
        beta[i] = min(max(beta[i], 0.0), caps[i])
    if free and not balance(&B[0, n - 1], n, &caps[0], beta.shape[0], -fixed[n - 1], left, &beta[0]):
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
                t = length(
                    &z[0], &dz[0], &caps[0], sharpness, kink, &before[0], k, start, bend, close)
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
