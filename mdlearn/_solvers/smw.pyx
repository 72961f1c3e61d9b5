"""The element-wise part of the LSVM fixed point: what one iteration does to every row once f is known.

Arrays of m rows and T terms, the same in all functions::

    y, counts   (m,)    signs and counts; a row of count c stands for c copies
    terms       (3, T)  rows q, s and nu: q = side * threshold, the end of the constraint's right-hand side; s = side,
                        +1 or -1; nu = twice the weight: the loss is nu/2 (q - s y f)_+^2 per copy of a row
    z, u        (T, m)  one value per term and copy of a row, z = Q u
"""


cdef int check(
    const double[::1] y, const double[::1] counts, const double[:, ::1] terms, const double[:, :] u,
) except -1:
    if terms.shape[0] != 3:
        raise ValueError("terms need three rows: q, s, nu")
    if counts.shape[0] != y.shape[0] or u.shape[1] != y.shape[0] or u.shape[0] != terms.shape[1]:
        raise ValueError("y, counts, terms and u differ in length")
    return 0


def advance(
    const double[::1] y, const double[::1] counts, const double[:, ::1] terms, double alpha,
    double[:, :] z, double[:, :] u, double[::1] f,
):
    """Take u = Q^-1 z from the decision values of its own primal point, then the next z; all in place.

    Parameters
    ----------
    alpha : float
        Step of the fixed point.
    z : (T, m)
        Present values, the next ones on return.
    u : (T, m)
        Last values, those of the given z on return.
    f : (m,)
        Decision values at A'D u; on return what the next primal point is solved from: y sum_t s nu c z.

    Returns
    -------
    loss, step, shift : float
        Loss at f; squared changes of u and of z, summed over the copies.
    """
    cdef Py_ssize_t i, t, m = y.shape[0], along
    cdef double margin, own, new, change, excess, flow, loss = 0.0, step = 0.0, shift = 0.0
    cdef double *zt
    cdef double *ut
    check(y, counts, terms, u)
    check(y, counts, terms, z)
    if f.shape[0] != m:
        raise ValueError("f and y differ in length")
    along = sizeof(double)
    if m == 0 or terms.shape[1] == 0:
        return loss, step, shift
    if z.strides[1] != along or u.strides[1] != along:
        raise ValueError("the rows of z and u need to lie without gaps")
    with nogil:
        for i in range(m):
            flow = 0.0
            for t in range(terms.shape[1]):
                zt, ut = &z[t, 0], &u[t, 0]
                margin = terms[1, t] * y[i] * f[i]
                own = terms[2, t] * (zt[i] - margin)
                change = own - ut[i]
                step += counts[i] * change * change
                ut[i] = own
                # Without branches: which rows are active is hard to guess.
                excess = terms[0, t] - margin
                excess = excess if excess > 0.0 else 0.0
                loss += 0.5 * terms[2, t] * counts[i] * excess * excess
                excess = zt[i] - terms[0, t] - alpha * own
                new = terms[0, t] + (excess if excess > 0.0 else 0.0)
                change = new - zt[i]
                shift += counts[i] * change * change
                zt[i] = new
                flow += terms[1, t] * terms[2, t] * new
            f[i] = y[i] * counts[i] * flow
    return loss, step, shift


def multipliers(
    const double[::1] y, const double[::1] counts, const double[:, ::1] terms, const double[:, :] u,
    double[:, :] beta, double[::1] alpha,
):
    """Write beta = counts max(u, 0), shape (T, m), and alpha = y counts sum_t s u, shape (m,): signed, not cut off."""
    cdef Py_ssize_t i, t, m = y.shape[0]
    cdef double total, own
    check(y, counts, terms, u)
    check(y, counts, terms, beta)
    if alpha.shape[0] != m:
        raise ValueError("alpha and y differ in length")
    with nogil:
        for i in range(m):
            total = 0.0
            for t in range(terms.shape[1]):
                own = counts[i] * u[t, i]
                beta[t, i] = own if own > 0.0 else 0.0
                total += terms[1, t] * u[t, i]
            alpha[i] = y[i] * counts[i] * total
