"""Steps to the optimum of a quadratic in a box, over the coordinates of a face: one bound after the other is met."""

from libc.math cimport sqrt

from mdlearn._solvers.dual_descent cimport BETA, CAP, LABEL, RECORD, SOFTNESS
from mdlearn._solvers.rows cimport add, inner


cdef void column_of_inverse(const double[:, ::1] L, Py_ssize_t j, double* q) noexcept nogil:
    """q = (L L')^-1 e_j."""
    cdef Py_ssize_t i, n = L.shape[0]
    for i in range(n):
        q[i] = 0.0
    q[j] = 1.0 / L[j, j]
    for i in range(j + 1, n):
        q[i] = -inner(&L[i, j], q + j, i - j) / L[i, i]
    for i in range(n - 1, -1, -1):
        q[i] /= L[i, i]
        add(&L[i, 0], 1, q, i, -q[i])


cdef Py_ssize_t move_to_bound(double[::1] b, const double[::1] p, const double[::1] caps, double* length) noexcept nogil:
    """Go along p to its end or to the first bound; return the coordinate that meets it, or -1."""
    cdef Py_ssize_t i, j = -1
    cdef double room, t = 1.0
    for i in range(b.shape[0]):
        if p[i] != 0.0:
            room = (caps[i] - b[i]) / p[i] if p[i] > 0.0 else -b[i] / p[i]
            if room < t:
                t, j = max(room, 0.0), i
    for i in range(b.shape[0]):
        if p[i] != 0.0:
            b[i] = min(max(b[i] + t * p[i], 0.0), caps[i])
    if j >= 0:
        b[j] = caps[j] if p[j] > 0.0 else 0.0
    length[0] = t
    return j


cdef Py_ssize_t ascend_in_box(
    const double[:, ::1] L, double[::1] b, double[::1] p, const double[::1] caps, double[:, ::1] met, long long* order,
) noexcept nogil:
    """As `ascend`, with room that fits."""
    cdef Py_ssize_t n = L.shape[0], most = met.shape[0], k = 0, j, l
    cdef double length
    while True:
        j = move_to_bound(b, p, caps, &length)
        if j < 0 or k == most:
            return k + (j >= 0)
        for l in range(n):
            p[l] *= 1.0 - length
        column_of_inverse(L, j, &met[k, 0])
        for l in range(k):
            add(&met[l, 0], 1, &met[k, 0], n, -met[k, order[l]] / met[l, order[l]])
            met[k, order[l]] = 0.0
        order[k] = j
        if not met[k, j] > 0.0:
            return k
        add(&met[k, 0], 1, &p[0], n, -p[j] / met[k, j])
        k += 1
        for l in range(k):
            p[order[l]] = 0.0


def ascend(
    const double[:, ::1] L, double[::1] b, double[::1] p, const double[::1] caps, double[:, ::1] met,
    long long[::1] order,
):
    """Go from b along its Newton step p, which changes with every bound that is met: that coordinate stays there.

    Parameters
    ----------
    L : (n, n) lower factor of the matrix of the quadratic; b, p, caps : (n,), 0 <= b <= caps; met : (k, n) and order :
    (k,) room for the columns of the inverse that belong to as many bounds.

    Returns
    -------
    Number of bounds that were met; k + 1 where the last one ended the steps.
    """
    cdef Py_ssize_t n = L.shape[0], most = met.shape[0], k
    if L.shape[1] != n or b.shape[0] != n or p.shape[0] != n or caps.shape[0] != n or met.shape[1] != n or n == 0:
        raise ValueError("factor, place, step, bounds and room do not fit each other")
    if order.shape[0] != most:
        raise ValueError("the room for bounds needs a number each")
    with nogil:
        k = ascend_in_box(L, b, p, caps, met, &order[0] if most else NULL)
    return k


cdef bint factor(double[:, ::1] M) noexcept nogil:
    """Lower Cholesky factor in the place of a matrix; whether there is one."""
    cdef Py_ssize_t a, b
    for a in range(M.shape[0]):
        for b in range(a):
            M[a, b] = (M[a, b] - inner(&M[a, 0], &M[b, 0], b)) / M[b, b]
        M[a, a] -= inner(&M[a, 0], &M[a, 0], a)
        if not M[a, a] > 0.0:
            return False
        M[a, a] = sqrt(M[a, a])
    return True


def step_over_dense(
    const double[:, ::1] X, double[:, ::1] records, double[::1] w, double kink, double border, double trace,
    double[:, ::1] M, double[:, ::1] numbers, double[:, ::1] met, long long[::1] places, double[::1] moved,
):
    """Go to the optimum over the multipliers between their bounds, of rows that are few enough for plain loops.

    Parameters
    ----------
    X : (m, d); records : (m, 8) and w : (d + 1,) of an `Ascent` without a variance, changed in place; kink, border : as
    there; trace : what the diagonal gets, relative to its largest entry; M : (n, n), numbers : (6, n), met : (k, n),
    places : (n + k,) and moved : (d + 1,), room for the n multipliers, k bounds and what w gets.

    Returns
    -------
    Whether there was a step: not where the multipliers are no n, or their matrix has no factor.
    """
    cdef Py_ssize_t m = X.shape[0], d = X.shape[1], n = M.shape[0], most = met.shape[0], found = 0, i, a, b
    cdef double largest = 0.0, rise = 0.0, bend = 0.0, length
    cdef bint stepped = False
    if m == 0 or d == 0 or records.shape[0] != m or records.shape[1] != RECORD or w.shape[0] != d + 1:
        raise ValueError("rows, records and coefficients do not fit each other")
    if n == 0 or M.shape[1] != n or numbers.shape[0] != 6 or numbers.shape[1] != n or moved.shape[0] != d + 1:
        raise ValueError("the room does not fit multipliers and coefficients")
    if most == 0 or met.shape[1] != n or places.shape[0] != n + most:
        raise ValueError("the room does not fit multipliers and bounds")
    cdef double[::1] beta = numbers[0], caps = numbers[1], step = numbers[2], change = numbers[3], slope = numbers[4]
    cdef double[::1] y = numbers[5]
    cdef double* r
    with nogil:
        for i in range(m):
            if 0.0 < records[i, BETA] < records[i, CAP]:
                if found < n:
                    places[found] = i
                found += 1
        if found == n:
            for a in range(n):
                r = &records[places[a], 0]
                beta[a], caps[a], y[a] = r[BETA], r[CAP], r[LABEL]
                for b in range(a + 1):
                    M[a, b] = y[a] * y[b] * (inner(&X[places[a], 0], &X[places[b], 0], d) + border)
                largest = max(largest, M[a, a])
                slope[a] = inner(&X[places[a], 0], &w[0], d) + border * w[d]
                slope[a] = kink - y[a] * slope[a] - r[SOFTNESS] * beta[a]
            for a in range(n):
                M[a, a] += records[places[a], SOFTNESS] + trace * largest
            stepped = factor(M)
        if stepped:
            for a in range(n):
                step[a] = (slope[a] - inner(&M[a, 0], &step[0], a)) / M[a, a]
            for a in range(n - 1, -1, -1):
                step[a] /= M[a, a]
                add(&M[a, 0], 1, &step[0], a, -step[a])
            change[:] = beta
            moved[:] = 0.0
            ascend_in_box(M, change, step, caps, met, &places[n])
            for a in range(n):
                change[a] -= beta[a]
                rise += slope[a] * change[a]
                bend += records[places[a], SOFTNESS] * change[a] * change[a]
                add(&X[places[a], 0], 1, &moved[0], d, y[a] * change[a])
                moved[d] += border * y[a] * change[a]
            bend += inner(&moved[0], &moved[0], d + 1)
            # Bounds that others would leave again: the highest place comes before the end of the step.
            length = min(1.0, rise / bend) if rise > 0.0 and bend > 0.0 else 0.0
            for a in range(n):
                records[places[a], BETA] = min(max(beta[a] + length * change[a], 0.0), caps[a])
            add(&moved[0], 1, &w[0], d + 1, length)
    return stepped
