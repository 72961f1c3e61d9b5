"""Steps to the optimum of a quadratic in a box, over the coordinates of a face: one bound after the other is met."""

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
    cdef Py_ssize_t n = L.shape[0], most = met.shape[0], k = 0, j, l
    cdef double length
    if L.shape[1] != n or b.shape[0] != n or p.shape[0] != n or caps.shape[0] != n or met.shape[1] != n or n == 0:
        raise ValueError("factor, place, step, bounds and room do not fit each other")
    if order.shape[0] != most:
        raise ValueError("the room for bounds needs a number each")
    with nogil:
        while True:
            j = move_to_bound(b, p, caps, &length)
            if j < 0 or k == most:
                k += j >= 0
                break
            for l in range(n):
                p[l] *= 1.0 - length
            column_of_inverse(L, j, &met[k, 0])
            for l in range(k):
                add(&met[l, 0], 1, &met[k, 0], n, -met[k, order[l]] / met[l, order[l]])
                met[k, order[l]] = 0.0
            order[k] = j
            if not met[k, j] > 0.0:
                break
            add(&met[k, 0], 1, &p[0], n, -p[j] / met[k, j])
            k += 1
            for l in range(k):
                p[order[l]] = 0.0
    return k
