"""Hinges and squared hinges of all rows in one pass: their sum, their conjugate, squared ones along a line z + t dz.

Along a line: per row and term the excess over the threshold is e = s (q + offset - z), the loss nu/2 c e_+^2. Arrays::

    z, dz, counts   (m,)    margins, their change per unit of t, counts
    offset          (m,)    or (0,) where there is none
    terms           (3, T)  rows q (threshold), s (side, +1 or -1), nu (twice the weight)
"""

from mdlearn._solvers.hinge_loops cimport hinge_loss, hinge_squares


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


def loss(const double[::1] z, const double[::1] counts, double side, double threshold, bint squared):
    """Return the sum of c_i e_i, or of c_i e_i^2, with e_i = max(0, side (threshold - z_i))."""
    cdef Py_ssize_t m = z.shape[0]
    cdef double total = 0.0
    if counts.shape[0] != m:
        raise ValueError("margins and counts differ in length")
    with nogil:
        if m:
            total = hinge_loss(&z[0], &counts[0], side, threshold, squared, m)
    return total


def squares(const double[::1] beta, const double[::1] counts, double scale):
    """Return the sum of scale beta_i^2 / c_i over the rows with c_i > 0; squares alone would be 0, or infinite, sooner."""
    cdef Py_ssize_t m = beta.shape[0]
    cdef double total = 0.0
    if counts.shape[0] != m:
        raise ValueError("multipliers and counts differ in length")
    with nogil:
        if m:
            total = hinge_squares(&beta[0], &counts[0], scale, m)
    return total
