"""Values of a point for its certificate, over explicit dense rows: all that one pass over these can tell.

Terms of the loss are given by their numbers, a row of six each (see `mdlearn.forms.losses`)::

    side, threshold, jump, rise, height, sharpness
"""

from libc.math cimport INFINITY, fabs

from mdlearn._solvers.hinge_loops cimport hinge_loss, hinge_squares, sum_of
from mdlearn._solvers.logistic_loops cimport mdlearn_logistic_entropy, mdlearn_logistic_loss
from mdlearn._solvers.row_pass cimport mdlearn_row_products, mdlearn_row_sum, mdlearn_row_sums
from mdlearn._solvers.rows cimport inner

cdef enum:
    SIDE, THRESHOLD, JUMP, RISE, HEIGHT, SHARPNESS, NUMBERS
    UNBIASED = 0, REGULARIZED, FREE
    MOST_CORRECTIONS = 4

cdef double SMALL_CORRECTION = 1e-2
"""What a correction of a sum takes away beside what remains for it to be the last: as in the certificates."""


cdef double term_loss(const double* term, const double* z, const double* counts, Py_ssize_t m) noexcept nogil:
    """Sum of a term over all rows."""
    if term[HEIGHT] > 0.0:
        return term[HEIGHT] * mdlearn_logistic_loss(z, counts, term[SHARPNESS], term[THRESHOLD], m)
    if term[JUMP] > 0.0:
        return term[JUMP] * hinge_loss(z, counts, term[SIDE], term[THRESHOLD], False, m)
    if term[RISE] > 0.0:
        return 0.5 * term[RISE] * hinge_loss(z, counts, term[SIDE], term[THRESHOLD], True, m)
    return 0.0


cdef double term_bound(
    const double* term, const double* beta, const double* counts, const double* caps, Py_ssize_t m,
) noexcept nogil:
    """Minus the conjugate of a term at multipliers within their caps."""
    cdef double value = term[SIDE] * term[THRESHOLD] * sum_of(beta, m)
    if term[HEIGHT] > 0.0:
        value -= mdlearn_logistic_entropy(beta, caps, m) / term[SHARPNESS]
    elif term[RISE] > 0.0:
        value -= hinge_squares(beta, counts, 0.5 / term[RISE], m)
    return value


cdef double spread_bound(double* sigma, const double* counts, double total, double kappa, Py_ssize_t m) noexcept nogil:
    """Shift multipliers of a variance along the counts to sum 0; return minus their conjugate."""
    cdef Py_ssize_t i
    cdef int turn
    cdef double excess, size, value = 0.0
    for i in range(m):
        sigma[i] = sigma[i] if counts[i] > 0.0 else 0.0
    for turn in range(MOST_CORRECTIONS):
        excess, size = sum_of(sigma, m) / total, 0.0
        for i in range(m):
            sigma[i] -= counts[i] * excess
            size += fabs(sigma[i])
        if fabs(excess) * total <= SMALL_CORRECTION * size:
            break
    for i in range(m):
        if counts[i] > 0.0:
            value += (sigma[i] / kappa) * (sigma[i] / counts[i])
    return -0.5 * value


cdef bint balance(
    const double[:, ::1] terms, const double[::1] y, double[:, ::1] beta, const double* alpha, double* room,
) noexcept nogil:
    """Shrink multipliers that push the sum of alpha the wrong way, to sum 0; say whether that is enough.

    `alpha` is what they are added to, y times all that is not theirs; `room` is for one number a row.
    """
    cdef Py_ssize_t i, t, m = y.shape[0]
    cdef double excess = sum_of(alpha, m), found = 0.0, left
    for t in range(beta.shape[0]):
        for i in range(m):
            room[i] = terms[t, SIDE] * y[i] * beta[t, i]
        excess += sum_of(room, m)
    for t in range(beta.shape[0]):
        for i in range(m):
            room[i] = beta[t, i] if terms[t, SIDE] * y[i] * excess > 0.0 else 0.0
        found += sum_of(room, m)
    if not fabs(excess) < found:
        return excess == 0.0
    left = 1.0 - fabs(excess) / found
    for t in range(beta.shape[0]):
        for i in range(m):
            if terms[t, SIDE] * y[i] * excess > 0.0:
                beta[t, i] *= left
    return True


cdef double distribution(
    const double[::1] z, const double[::1] counts, double total, double variance, double mean,
) noexcept nogil:
    """Weight of the variance times it, less that of the mean times it."""
    cdef Py_ssize_t i, m = z.shape[0]
    cdef double centre, squares = 0.0
    if not (variance > 0.0 or mean > 0.0):
        return 0.0
    centre = inner(&z[0], &counts[0], m) / total
    if variance > 0.0:
        for i in range(m):
            squares += counts[i] * (z[i] - centre) * (z[i] - centre)
    return variance * (squares / total) - mean * centre


cdef double missed(
    const double[::1] w, double left, const double[::1] own, const double[:, ::1] sums, bint constant,
) noexcept nogil:
    """Mean square of what coefficients lack to be the sum of rows times `own`, in units of the lengths of the terms.

    `left` is what the coefficient of a constant column lacks. Columns of zeros are left out.
    """
    cdef Py_ssize_t j, d = w.shape[0], m = own.shape[0], found = 0
    cdef double off, total = 0.0
    for j in range(d):
        if sums[2, j] > 0.0:
            off = w[j] - sums[1, j]
            total += off * off / sums[2, j]
            found += 1
    if constant:
        total += left * left / m
        found += 1
    return total / (found * inner(&own[0], &own[0], m)) if total != 0.0 else 0.0


cdef double make_feasible(
    const double[::1] y, const double[::1] counts, const double[:, ::1] caps, const double[:, ::1] terms, double total,
    double variance, double mean, int bias, const double[::1] sigma, double[:, ::1] beta, double[::1] alpha,
    double* room,
) noexcept nogil:
    """Dual value of multipliers made feasible, but for the squared norm; alpha is what they stand for."""
    cdef Py_ssize_t i, t, m = y.shape[0]
    cdef double lower = 0.0
    for i in range(m):
        alpha[i] = sigma[i]
    if variance > 0.0:
        lower = spread_bound(&alpha[0], &counts[0], total, 2.0 * variance / total, m)
    for i in range(m):
        alpha[i] = y[i] * ((alpha[i] if variance > 0.0 else 0.0) + mean / total * counts[i])
    for t in range(terms.shape[0]):
        for i in range(m):
            beta[t, i] = min(max(beta[t, i], 0.0), caps[t, i])
    if bias == FREE and not balance(terms, y, beta, &alpha[0], room):
        lower = -INFINITY
    for t in range(terms.shape[0]):
        lower += term_bound(&terms[t, 0], &beta[t, 0], &counts[0], &caps[t, 0], m)
        for i in range(m):
            alpha[i] += terms[t, SIDE] * y[i] * beta[t, i]
    return lower


cdef double evaluated(
    const double[::1] y, const double[::1] counts, const double[:, ::1] terms, double total, double variance,
    double mean, int bias, const double* coef, Py_ssize_t d, double b, double[::1] z, double* least,
) noexcept nogil:
    """Objective at coefficients and b, of which z has the products with the rows and gets the margins."""
    cdef Py_ssize_t i, t, m = y.shape[0]
    cdef double objective
    for i in range(m):
        z[i] = y[i] * (z[i] + b)
        if counts[i] > 0.0:
            least[0] = min(least[0], z[i])
    objective = 0.5 * inner(coef, coef, d) + distribution(z, counts, total, variance, mean)
    for t in range(terms.shape[0]):
        objective += term_loss(&terms[t, 0], &z[0], &counts[0], m)
    return objective + 0.5 * b * b if bias == REGULARIZED else objective


cdef int check_terms(
    const double[::1] y, const double[::1] counts, const double[:, ::1] terms, int bias, const double[::1] alpha,
    const double[::1] z,
) except -1:
    cdef Py_ssize_t m = y.shape[0]
    if m == 0 or terms.shape[0] == 0 or terms.shape[1] != NUMBERS or bias < UNBIASED or bias > FREE:
        raise ValueError("rows, columns or terms are missing")
    if counts.shape[0] != m or alpha.shape[0] != m or z.shape[0] != m:
        raise ValueError("rows and numbers of rows differ in length")
    return 0


cdef int check_multipliers(
    const double[:, ::1] caps, const double[:, ::1] terms, const double[::1] sigma, double[:, ::1] beta, Py_ssize_t m,
) except -1:
    cdef Py_ssize_t n = terms.shape[0]
    if caps.shape[0] != n or beta.shape[0] != n or caps.shape[1] != m or beta.shape[1] != m or sigma.shape[0] != m:
        raise ValueError("multipliers, their caps and the terms do not fit each other")
    return 0


def values(
    const double[:, ::1] X, const double[::1] y, const double[::1] counts, const double[:, ::1] caps,
    const double[:, ::1] terms, double total, double variance, double mean, int bias,
    const double[::1] w, double b, const double[::1] own, const double[::1] sigma, double[:, ::1] beta,
    double[::1] alpha, double[::1] z, double[:, ::1] sums,
):
    """Make multipliers feasible, and evaluate them and coefficients.

    Parameters
    ----------
    X : (m, d); y, counts, own, sigma : (m,); caps : (T, m); terms : (T, 6); total : sum of the counts; bias : 0 without
    one, 1 where it is regularized, 2 where it is free: then without a variance; w, b : coefficients; own : numbers of
    the rows that they are made of; w and own None: those that the multipliers stand for, and so is a regularized b;
    sigma : multipliers of the variance. beta : (T, m), changed in place. Written: alpha : (m,), what the multipliers
    stand for; z : (m,), margins; sums : (3, d), of the rows times alpha, and where w is given, of the rows times `own`,
    and of the squares of the columns.

    Returns
    -------
    float, float, float, float, float
        Objective at w and b, b itself, dual value of the multipliers, minus infinity where shrinking them does not
        balance a free bias, smallest margin of a row that counts, and mean square of what w (and b) lack to be made of
        `own`, in units of its length times that of the column.
    """
    cdef Py_ssize_t m = X.shape[0], d = X.shape[1]
    cdef double lower, objective, least = INFINITY, held
    cdef bint given = own is not None
    cdef const double *coef
    check_terms(y, counts, terms, bias, alpha, z)
    check_multipliers(caps, terms, sigma, beta, m)
    if y.shape[0] != m or d == 0 or sums.shape[0] != 3 or sums.shape[1] != d or given != (w is not None):
        raise ValueError("coefficients and sums do not fit the rows")
    if given and (w.shape[0] != d or own.shape[0] != m):
        raise ValueError("coefficients and what they are made of do not fit the rows")
    with nogil:
        lower = make_feasible(y, counts, caps, terms, total, variance, mean, bias, sigma, beta, alpha, &z[0])
        if given:
            coef = &w[0]
            mdlearn_row_sums(&X[0, 0], m, d, &alpha[0], &own[0], &sums[0, 0], &sums[1, 0], &sums[2, 0])
        else:
            coef, b = &sums[0, 0], sum_of(&alpha[0], m) if bias == REGULARIZED else b
            mdlearn_row_sum(&X[0, 0], m, d, &alpha[0], &sums[0, 0])
        mdlearn_row_products(&X[0, 0], m, d, coef, &z[0])
        objective = evaluated(y, counts, terms, total, variance, mean, bias, coef, d, b, z, &least)
        lower -= 0.5 * inner(&sums[0, 0], &sums[0, 0], d)
        if bias == REGULARIZED:
            held = sum_of(&alpha[0], m)
            lower -= 0.5 * held * held
        held = missed(w, b - sum_of(&own[0], m), own, sums, bias == REGULARIZED) if given else 0.0
    return objective, b, lower, least, held


def feasible(
    const double[::1] y, const double[::1] counts, const double[:, ::1] caps, const double[:, ::1] terms, double total,
    double variance, double mean, int bias, const double[::1] sigma, double[:, ::1] beta, double[::1] alpha,
    double[::1] z,
):
    """Make multipliers feasible; return their dual value but for the squared norm, minus infinity as in `values`.

    Arguments are those of `values`; z : (m,), room.
    """
    cdef double lower
    check_terms(y, counts, terms, bias, alpha, z)
    check_multipliers(caps, terms, sigma, beta, y.shape[0])
    with nogil:
        lower = make_feasible(y, counts, caps, terms, total, variance, mean, bias, sigma, beta, alpha, &z[0])
    return lower


def at_multipliers(
    const double[::1] y, const double[::1] counts, const double[:, ::1] terms, double total, double variance,
    double mean, int bias, double b, const double[::1] alpha, const double[::1] w, double[::1] z,
):
    """Evaluate the coefficients w that feasible multipliers stand for, where z has the products of the rows with w.

    Arguments are those of `values`; z gets the margins.

    Returns
    -------
    float, float, float, float
        Objective, b, what the squared norm takes from the dual value, and the smallest margin of a row that counts.
    """
    cdef double objective, taken, least = INFINITY
    check_terms(y, counts, terms, bias, alpha, z)
    if w.shape[0] == 0:
        raise ValueError("there are no coefficients")
    with nogil:
        b = sum_of(&alpha[0], alpha.shape[0]) if bias == REGULARIZED else b
        objective = evaluated(y, counts, terms, total, variance, mean, bias, &w[0], w.shape[0], b, z, &least)
        taken = 0.5 * inner(&w[0], &w[0], w.shape[0]) + (0.5 * b * b if bias == REGULARIZED else 0.0)
    return objective, b, taken, least
