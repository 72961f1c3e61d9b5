"""Hinges of power 1 or 2 replaced by their envelopes around given multipliers: slopes, and the minimum along a line.

Row i with centre a_i, steepness s_i and cap c_i has the multiplier u_i = a_i + s_i (kink - z_i), cut off at 0 and at
c_i. A squared hinge is its own envelope: centre 0, no cap.
"""

from cpython.pycapsule cimport PyCapsule_GetName, PyCapsule_GetPointer
from libc.math cimport INFINITY, fabs, isfinite, sqrt

from mdlearn._solvers.envelope_loops cimport mdlearn_multipliers, mdlearn_rise
from mdlearn._solvers.rows cimport add, inner

cdef enum:
    TRIALS = 60

ctypedef void (*syrk_t)(
    char* uplo, char* trans, int* n, int* k, double* alpha, double* a, int* lda, double* beta, double* c, int* ldc,
) noexcept nogil
ctypedef void (*posv_t)(
    char* uplo, int* n, int* nrhs, double* a, int* lda, double* b, int* ldb, int* info,
) noexcept nogil


cdef inline Py_ssize_t look(
    const double[::1] z, const double[::1] centre, const double[::1] steepness, const double[::1] caps, double kink,
    double[::1] u, long long[::1] free,
) noexcept nogil:
    if z.shape[0] == 0:
        return 0
    return mdlearn_multipliers(&z[0], &centre[0], &steepness[0], &caps[0], kink, z.shape[0], &u[0], &free[0])


def slopes(
    const double[::1] z, const double[::1] centre, const double[::1] steepness, const double[::1] caps, double kink,
    double[::1] u, long long[::1] free,
):
    """Write the multipliers at margins z into u; return how many are between their bounds, whose rows `free` lists."""
    cdef Py_ssize_t n, m = z.shape[0]
    if centre.shape[0] != m or steepness.shape[0] != m or caps.shape[0] != m or u.shape[0] != m or free.shape[0] < m:
        raise ValueError("margins, centres, steepness, caps, multipliers and rows differ in length")
    with nogil:
        n = look(z, centre, steepness, caps, kink, u, free)
    return n


cdef inline double along(
    const double[::1] z, const double[::1] dz, const double[::1] centre, const double[::1] steepness,
    const double[::1] caps, double kink, const double[::1] u, double t, double* bend,
) noexcept nogil:
    """Rise of the slope of the loss from 0 to t, and its second derivative at t; summed from the change of every row."""
    bend[0] = 0.0
    if z.shape[0] == 0:
        return 0.0
    return mdlearn_rise(&z[0], &dz[0], &centre[0], &steepness[0], &caps[0], kink, &u[0], t, z.shape[0], bend)


cdef double length(
    const double[::1] z, const double[::1] dz, const double[::1] centre, const double[::1] steepness,
    const double[::1] caps, double kink, const double[::1] u, double start, double bend, double close,
) noexcept nogil:
    cdef int trial
    cdef double low = 0.0, high = INFINITY, t = 1.0, value, curve = 0.0
    if not start < 0.0:
        return INFINITY
    for trial in range(TRIALS):
        value = start + t * bend + along(z, dz, centre, steepness, caps, kink, u, t, &curve)
        if not fabs(value) > close * fabs(start):
            break
        if value < 0.0:
            low = t
        else:
            high = t
        t = t - value / (curve + bend) if curve + bend > 0.0 else 8.0 * t
        if not low < t < high:
            t = 0.5 * (low + high) if high < INFINITY else 8.0 * low
        if t == low or t == high:
            break
    return t if isfinite(t) else INFINITY


def minimum(
    const double[::1] z, const double[::1] dz, const double[::1] centre, const double[::1] steepness,
    const double[::1] caps, double kink, const double[::1] u, double start, double bend, double close,
):
    """Length of the step dz from margins z with multipliers u that takes the slope `start` to a share `close` of it.

    `bend` is the second derivative of all but the loss. Infinite where there is no minimum.
    """
    cdef Py_ssize_t m = z.shape[0]
    cdef double t
    if dz.shape[0] != m or centre.shape[0] != m or steepness.shape[0] != m or caps.shape[0] != m or u.shape[0] != m:
        raise ValueError("margins, steps, centres, steepness, caps and multipliers differ in length")
    with nogil:
        t = length(z, dz, centre, steepness, caps, kink, u, start, bend, close)
    return t


cdef class Work:
    """Room for Newton steps on k dense rows of n columns, and BLAS as SciPy publishes it for Cython."""

    cdef double[:, ::1] M, held
    cdef double[::1] g, x, step, moved, change
    cdef syrk_t syrk
    cdef posv_t posv

    def __init__(
        self, Py_ssize_t k, Py_ssize_t n, double[:, ::1] M, double[:, ::1] held, double[:, ::1] columns,
        double[::1] change, dsyrk, dposv,
    ):
        if M.shape[0] != n or M.shape[1] != n or held.shape[0] != k or held.shape[1] != n or change.shape[0] != k:
            raise ValueError("the room does not fit the rows")
        if columns.shape[0] != 4 or columns.shape[1] != max(n, k):
            raise ValueError("the room does not fit the columns")
        self.M, self.held, self.change = M, held, change
        self.g, self.x, self.step, self.moved = columns[0], columns[1], columns[2], columns[3]
        self.syrk = <syrk_t> PyCapsule_GetPointer(dsyrk, PyCapsule_GetName(dsyrk))
        self.posv = <posv_t> PyCapsule_GetPointer(dposv, PyCapsule_GetName(dposv))


cdef inline void times(const double[:, ::1] A, const double* x, double* out, Py_ssize_t n) noexcept nogil:
    """A x, or x where A is empty."""
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = inner(&A[j, 0], x, n) if A.shape[0] else x[j]


cdef inline bint are_few(const double[:, ::1] A, Py_ssize_t n_free, Py_ssize_t n) noexcept nogil:
    """Whether a step's matrix is one of the free rows, which r.x then has a number of each for."""
    return A.shape[0] == 0 and 2 * n_free < n


cdef int direction(
    const double[:, ::1] B, const double[:, ::1] A, const double[::1] steepness, const long long[::1] free,
    Py_ssize_t n_free, Work r,
) noexcept nogil:
    """Write the Newton step against r.g into r.step: by a matrix of the free rows where these are few, or of columns."""
    cdef int n = B.shape[1], k = n_free, one_side = 1, info = 0, order
    cdef double one = 1.0, zero = 0.0, root
    cdef char upper = b"U", by_columns = b"N", by_rows = b"T"
    cdef Py_ssize_t i, j
    cdef bint few = are_few(A, k, n)
    for i in range(k):
        root = 1.0 if few else sqrt(steepness[free[i]])
        for j in range(n):
            r.held[i, j] = root * B[free[i], j]
    order = k if few else n
    if few and k:
        r.syrk(&upper, &by_rows, &k, &n, &one, &r.held[0, 0], &n, &zero, &r.M[0, 0], &k)
        for i in range(k):
            (&r.M[0, 0])[i * k + i] += 1.0 / steepness[free[i]]
            r.x[i] = inner(&r.held[i, 0], &r.g[0], n)
    elif not few:
        if k:
            r.syrk(&upper, &by_columns, &n, &k, &one, &r.held[0, 0], &n, &zero, &r.M[0, 0], &n)
        for i in range(n):
            for j in range(i + 1):
                r.M[i, j] = (r.M[i, j] if k else 0.0) + (A[i, j] if A.shape[0] else <double> (i == j))
            r.x[i] = r.g[i]
    if order:
        r.posv(&upper, &order, &one_side, &r.M[0, 0], &order, &r.x[0], &order, &info)
    for j in range(n):
        r.step[j] = -r.g[j] if few else -r.x[j]
    if few:
        for i in range(k):
            add(&r.held[i, 0], 1, &r.step[0], n, r.x[i])
    return info


cdef void slope(
    const double[:, ::1] B, const double[:, ::1] A, const double[::1] fixed, const double[::1] w, const double[::1] u,
    Work r,
) noexcept nogil:
    """Write A w - fixed - B'u into r.g."""
    cdef Py_ssize_t i, j, n = B.shape[1]
    times(A, &w[0], &r.g[0], n)
    for j in range(n):
        r.g[j] -= fixed[j]
    for i in range(B.shape[0]):
        if u[i] != 0.0:
            add(&B[i, 0], 1, &r.g[0], n, -u[i])


cdef int descend(
    const double[:, ::1] B, const double[:, ::1] A, const double[::1] fixed, const double[::1] centre,
    const double[::1] steepness, const double[::1] caps, double kink, double[::1] w, double[::1] z, double[::1] u,
    double[::1] alpha, long long[::1] free, Work r, int most, double target, double close, double* share,
) noexcept nogil:
    """`newton_steps`; return the number of steps. Slope and multipliers are then those of its end."""
    cdef Py_ssize_t i, j, n = B.shape[1], k = B.shape[0], n_free
    cdef int turn
    cdef bint few
    cdef double t, start, bend
    share[0] = 1.0
    for turn in range(most + 1):
        n_free = look(z, centre, steepness, caps, kink, u, free)
        slope(B, A, fixed, w, u, r)
        if turn == most or inner(&r.g[0], &r.g[0], n) <= target:
            return turn
        if direction(B, A, steepness, free, n_free, r) != 0:
            return turn
        for i in range(k):
            r.change[i] = inner(&B[i, 0], &r.step[0], n)
        times(A, &r.step[0], &r.moved[0], n)
        bend, start = inner(&r.step[0], &r.moved[0], n), inner(&r.step[0], &r.g[0], n)
        t = length(z, r.change, centre, steepness, caps, kink, u, start, bend, close)
        if not t < INFINITY:
            return turn
        for j in range(n):
            w[j] += t * r.step[j]
        for i in range(k):
            alpha[i] += t * (u[i] - alpha[i])
            z[i] += t * r.change[i]
        few = are_few(A, n_free, n)
        for i in range(n_free):  # both are the same, but steep envelopes lose the digits of the second
            alpha[free[i]] += t * (r.x[i] if few else -steepness[free[i]] * r.change[free[i]])
        share[0] *= 1.0 - t
    return most


cdef int check_block(
    const double[:, ::1] B, const double[:, ::1] A, const double[::1] fixed, const double[::1] centre,
    const double[::1] steepness, const double[::1] caps, const double[::1] w, const double[::1] z,
    const double[::1] u, const double[::1] alpha, const long long[::1] free, Work room,
) except -1:
    cdef Py_ssize_t n = B.shape[1], k = B.shape[0]
    if fixed.shape[0] != n or w.shape[0] != n or z.shape[0] != k or u.shape[0] != k or free.shape[0] < k or n == 0:
        raise ValueError("rows, coefficients and margins do not fit each other")
    if centre.shape[0] != k or steepness.shape[0] != k or caps.shape[0] != k or alpha.shape[0] != k:
        raise ValueError("rows, centres, steepness and caps differ in length")
    if room.M.shape[0] != n or room.change.shape[0] != k or (A.shape[0] and (A.shape[0] != n or A.shape[1] != n)):
        raise ValueError("the matrix does not fit the coefficients")
    return 0


def newton_steps(
    const double[:, ::1] B, const double[:, ::1] A, const double[::1] fixed, const double[::1] centre,
    const double[::1] steepness, const double[::1] caps, double kink, double[::1] w, double[::1] z, double[::1] u,
    double[::1] alpha, long long[::1] free, Work room, int most, double target, double close,
):
    """Minimise 1/2 w'Aw - fixed'w + the envelopes of rows B w = z, by at most so many Newton steps.

    Where A w = B'alpha + rest, then so it stays, with a rest that goes from the one given towards `fixed`.

    Parameters
    ----------
    B : (k, n) signed rows; A : (n, n), or (0, 0) for the identity; fixed : (n,); w : (n,), z, u, alpha : (k,) changed
    in place; free : (k,) room; target : squared slope at which to end.

    Returns
    -------
    bool, float
        Whether it ended before it had made all steps; the share of the rest given that is still in it.
    """
    cdef double share
    cdef int taken
    check_block(B, A, fixed, centre, steepness, caps, w, z, u, alpha, free, room)
    with nogil:
        taken = descend(
            B, A, fixed, centre, steepness, caps, kink, w, z, u, alpha, free, room, most, target, close, &share,
        )
    return taken < most, share


cdef double half_square(const double[:, ::1] L, const double* x, double* y, Py_ssize_t n) noexcept nogil:
    """1/2 x' A^-1 x where A = L L', or the identity where L is empty; y : room."""
    cdef Py_ssize_t j
    if L.shape[0] == 0:
        return 0.5 * inner(x, x, n)
    for j in range(n):
        y[j] = (x[j] - inner(&L[j, 0], y, j)) / L[j, j]
    return 0.5 * inner(y, y, n)


cdef double gap(
    const double[:, ::1] A, const double[:, ::1] L, const double[::1] fixed, const double[::1] caps,
    const double[::1] softness, double kink, const double[::1] w, const double[::1] z, const double[::1] u, Work r,
    double* value,
) noexcept nogil:
    """Objective, written into `value`, less the dual value of u; r.g is the slope there."""
    cdef Py_ssize_t i, j, n = w.shape[0]
    cdef double g, gain = 0.0
    times(A, &w[0], &r.moved[0], n)
    value[0] = 0.5 * inner(&w[0], &r.moved[0], n) - inner(&fixed[0], &w[0], n)
    for j in range(n):
        r.moved[j] -= r.g[j]
    for i in range(z.shape[0]):
        g = max(kink - z[i], 0.0)
        if softness[i] > 0.0:
            value[0] += 0.5 * g * g / softness[i]
        elif g > 0.0:
            value[0] += caps[i] * g
        gain += u[i] * (kink - 0.5 * softness[i] * u[i])
    return value[0] - gain + half_square(L, &r.moved[0], &r.x[0], n)


def stage(
    const double[:, ::1] B, const double[:, ::1] A, const double[:, ::1] L, const double[::1] fixed,
    double[::1] centre, double[::1] steepness, const double[::1] caps, const double[::1] softness, double kink,
    double[::1] w, double[::1] z, double[::1] u, double[::1] alpha, long long[::1] free, Work room, int most,
    double left, double solved, double growth, int moves, double part, double close,
):
    """Move the multipliers on while the slope is small beside the gap, then make at most so many Newton steps.

    Parameters
    ----------
    As for `newton_steps`, whose rows are now all that there are; L : (n, n), A = L L', or (0, 0) with A; centre,
    steepness : (k,) changed in place; softness : (k,), 0 for hinges of power 1; left : gap at the beginning; solved :
    share of it that half of the squared slope is to be below for the multipliers to become centres, `moves` times at
    most, of envelopes steeper by `growth`; part : share of the gap at which the squared slope ends the steps, or of
    itself where there are no moves.

    Returns
    -------
    int, float, float, float
        Number of steps; the share of the rest given that is still in it; objective and gap at the end.
    """
    cdef Py_ssize_t i, n = B.shape[1], k = B.shape[0]
    cdef int taken, move
    cdef double share, value = 0.0, target
    check_block(B, A, fixed, centre, steepness, caps, w, z, u, alpha, free, room)
    if L.shape[0] != A.shape[0] or L.shape[1] != A.shape[1] or softness.shape[0] != k:
        raise ValueError("the factor does not fit the matrix, or softness the rows")
    with nogil:
        look(z, centre, steepness, caps, kink, u, free)
        slope(B, A, fixed, w, u, room)
        for move in range(moves):
            if not half_square(L, &room.g[0], &room.x[0], n) <= solved * left:
                break
            for i in range(k):
                centre[i] = u[i]
                steepness[i] *= growth
            look(z, centre, steepness, caps, kink, u, free)
            slope(B, A, fixed, w, u, room)
            left = gap(A, L, fixed, caps, softness, kink, w, z, u, room, &value)
        target = part * (left if moves else inner(&room.g[0], &room.g[0], n))
        taken = descend(
            B, A, fixed, centre, steepness, caps, kink, w, z, u, alpha, free, room, most, target, close, &share,
        )
        left = gap(A, L, fixed, caps, softness, kink, w, z, u, room, &value)
    return taken, share, value, left
