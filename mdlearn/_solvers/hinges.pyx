"""The loss of squared hinges along a line of margins, z + t dz, in one pass over the rows.

Per row and term the excess over the threshold is e = s (q + offset - z), the loss nu/2 c e_+^2. Arrays::

    z, dz, counts   (m,)    margins, their change per unit of t, counts
    offset          (m,)    or (0,) where there is none
    terms           (3, T)  rows q (threshold), s (side, +1 or -1), nu (twice the weight)
"""


def along(
    const double[::1] z, const double[::1] dz, const double[::1] counts, const double[::1] offset,
    const double[:, ::1] terms, double t,
):
    """Return by how much the slope of the loss along the line rises from 0 to t, and its curvature at t.

    The rise is summed from the change of every row: a difference of two slopes would have lost its digits.
    """
    cdef Py_ssize_t i, j, m = z.shape[0], n = terms.shape[1]
    cdef double excess, rate, moved, rise = 0.0, curvature = 0.0
    cdef bint shifted = offset.shape[0] > 0
    if terms.shape[0] != 3:
        raise ValueError("terms need three rows: q, s, nu")
    if dz.shape[0] != m or counts.shape[0] != m or (shifted and offset.shape[0] != m):
        raise ValueError("z, dz, counts and offset differ in length")
    with nogil:
        for j in range(n):
            for i in range(m):
                excess = terms[1, j] * (terms[0, j] + (offset[i] if shifted else 0.0) - z[i])
                rate = -terms[1, j] * dz[i]
                moved = excess + t * rate
                if moved > 0.0:
                    curvature += terms[2, j] * counts[i] * rate * rate
                    rise += terms[2, j] * counts[i] * rate * (t * rate if excess > 0.0 else moved)
                elif excess > 0.0:
                    rise -= terms[2, j] * counts[i] * rate * excess
    return rise, curvature
