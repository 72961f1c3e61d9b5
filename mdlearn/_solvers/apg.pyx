"""The element-wise part of the accelerated proximal gradient: decision values to slopes and curvatures, and the prox.

Columns of decision values F (n, k) belong to k problems. Their loss terms are entries [t, j] of an array (T, k, 5)::

    logistic  1 for a logistic term, 0 for a squared hinge
    weight    per unit of count
    side      +1 or -1 (squared hinge only)
    threshold
    alpha     sharpness (logistic only)

and the rest of a problem is a column of (3, k): kappa, a / m, and the present mean of its margins. Where the loss of a
row compares its class with every other one, `codes` are the classes and `share` the weights of the rows.
"""

from libc.math cimport exp, log1p, sqrt


cdef int check(
    double[:, ::1] F, const signed char[:, ::1] signs, const double[:, :] counts, const double[:, :, ::1] terms,
) except -1:
    if terms.shape[1] != F.shape[1] or terms.shape[2] != 5:
        raise ValueError("terms need the shape (T, k, 5), with the k columns of F")
    if signs.shape[0] != F.shape[0] or counts.shape[0] != F.shape[0]:
        raise ValueError("F, signs and counts differ in length")
    if signs.shape[1] != F.shape[1] or counts.shape[1] != F.shape[1]:
        raise ValueError("F, signs and counts differ in columns")
    return 0


def slopes(
    double[:, ::1] F, const signed char[:, ::1] signs, const double[:, :] counts, const double[:, :, ::1] terms,
    const double[:, ::1] rest,
):
    """Replace decision values by the derivatives of the objective with respect to them; return its value.

    The objective is sum_ij c_ij [ sum_t loss_t(z_ij) + kappa_j/2 (z_ij - mean_j)^2 - (a/m) z_ij ] with z = sign * f.
    """
    cdef Py_ssize_t i, j, t, k = F.shape[1]
    cdef double z, slope, gap, small, one, row, value = 0.0
    check(F, signs, counts, terms)
    if rest.shape[0] != 3 or rest.shape[1] != k:
        raise ValueError("the rest needs the shape (3, k)")
    with nogil:
        for i in range(F.shape[0]):
            row = 0.0
            for j in range(k):
                z = signs[i, j] * F[i, j]
                gap = z - rest[2, j]
                slope = rest[0, j] * gap - rest[1, j]
                one = 0.5 * rest[0, j] * gap * gap - rest[1, j] * z
                for t in range(terms.shape[0]):
                    if terms[t, j, 0] > 0.5:
                        gap = terms[t, j, 4] * (terms[t, j, 3] - z)
                        small = exp(-gap if gap > 0.0 else gap)
                        one += terms[t, j, 1] / terms[t, j, 4] * ((gap if gap > 0.0 else 0.0) + log1p(small))
                        slope -= terms[t, j, 1] * (1.0 if gap >= 0.0 else small) / (1.0 + small)
                    else:
                        gap = terms[t, j, 2] * (terms[t, j, 3] - z)
                        if gap > 0.0:
                            one += terms[t, j, 1] * gap * gap
                            slope -= 2.0 * terms[t, j, 1] * terms[t, j, 2] * gap
                row += counts[i, j] * one
                F[i, j] = signs[i, j] * counts[i, j] * slope
            value += row
    return value


def bends(
    double[:, ::1] F, const signed char[:, ::1] signs, const double[:, :] counts, const double[:, :, ::1] terms,
):
    """Replace decision values by the second derivatives of the losses with respect to them."""
    cdef Py_ssize_t i, j, t
    cdef double z, bend, gap, small
    check(F, signs, counts, terms)
    with nogil:
        for i in range(F.shape[0]):
            for j in range(F.shape[1]):
                z, bend = signs[i, j] * F[i, j], 0.0
                for t in range(terms.shape[0]):
                    gap = terms[t, j, 3] - z
                    if terms[t, j, 0] > 0.5:
                        gap = terms[t, j, 4] * gap
                        small = exp(-gap if gap > 0.0 else gap)
                        bend += terms[t, j, 1] * terms[t, j, 4] * small / ((1.0 + small) * (1.0 + small))
                    elif terms[t, j, 2] * gap > 0.0:
                        bend += 2.0 * terms[t, j, 1]
                F[i, j] = counts[i, j] * bend


cdef int check_pairs(double[:, ::1] F, const Py_ssize_t[::1] codes, const double[::1] share) except -1:
    if codes.shape[0] != F.shape[0] or share.shape[0] != F.shape[0]:
        raise ValueError("F, codes and shares differ in length")
    for i in range(codes.shape[0]):
        if not 0 <= codes[i] < F.shape[1]:
            raise ValueError("codes need to be columns of F")
    return 0


cdef inline double rising(double t) noexcept nogil:
    """1 / (1 + exp(-t)) without overflow."""
    cdef double small = exp(-t if t > 0.0 else t)
    return (1.0 if t >= 0.0 else small) / (1.0 + small)


def pair_slopes(double[:, ::1] F, const Py_ssize_t[::1] codes, const double[::1] share, double alpha, double threshold):
    """Replace decision values by the derivatives of sum_i share_i sum_(k != y_i) psi(f_(y_i) - f_k); return its value.

    psi(t) = ln(1 + exp(-alpha (t - threshold))) / alpha.
    """
    cdef Py_ssize_t i, j
    cdef double own, t, small, row, total, value = 0.0
    check_pairs(F, codes, share)
    with nogil:
        for i in range(F.shape[0]):
            own, row, total = threshold - F[i, codes[i]], 0.0, 0.0
            for j in range(F.shape[1]):
                if j != codes[i]:
                    t = alpha * (own + F[i, j])
                    small = exp(-t if t > 0.0 else t)
                    row += (t if t > 0.0 else 0.0) + log1p(small)
                    F[i, j] = share[i] * (1.0 if t >= 0.0 else small) / (1.0 + small)
                    total += F[i, j]
            F[i, codes[i]] = -total
            value += share[i] * row
    return value / alpha


def pair_bends(
    double[:, ::1] F, const Py_ssize_t[::1] codes, const double[::1] share, double alpha, double threshold,
    double reach,
):
    """Replace decision values by the second derivatives of every psi, 0 in the row's own column.

    With `reach` > 0 by their average over so much to either side, where that is larger.
    """
    cdef Py_ssize_t i, j
    cdef double own, t, small, bend, mean
    check_pairs(F, codes, share)
    with nogil:
        for i in range(F.shape[0]):
            own = threshold - F[i, codes[i]]
            for j in range(F.shape[1]):
                if j != codes[i]:
                    t = alpha * (own + F[i, j])
                    small = exp(-t if t > 0.0 else t)
                    bend = alpha * small / ((1.0 + small) * (1.0 + small))
                    if reach > 0.0:
                        mean = (rising(t + alpha * reach) - rising(t - alpha * reach)) / (2.0 * reach)
                        bend = mean if mean > bend else bend
                    F[i, j] = share[i] * bend
            F[i, codes[i]] = 0.0


def shrink(double[:, ::1] V, const double[::1] by):
    """Shorten every row of V by a length, in place; rows that are no longer than it become zero."""
    cdef Py_ssize_t i, j
    cdef double length, factor
    if by.shape[0] != V.shape[0]:
        raise ValueError("one length per row of V is needed")
    with nogil:
        for i in range(V.shape[0]):
            length = 0.0
            for j in range(V.shape[1]):
                length += V[i, j] * V[i, j]
            length = sqrt(length)
            factor = 1.0 - by[i] / length if length > by[i] else 0.0
            if by[i] > 0.0:
                for j in range(V.shape[1]):
                    V[i, j] = factor * V[i, j]
