# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Pieces of losses for paths of leave-one-out: their ends and laws, and where a path begins (see loo_paths.pyx)."""

from libc.math cimport INFINITY, fabs


cdef struct LooProblem:
    Py_ssize_t m, n, terms
    const double *counts
    const double *kinks
    const double *ends  # of the lines below every kink, and starts of those above it
    const double *starts
    const unsigned char *jumps
    const double *heights
    const double *bends
    double kappa, total, softness
    const double *L
    const Py_ssize_t *piece
    const double *given
    const double *bend
    const double *answer
    const double *low
    const double *high


cdef struct LooPath:
    Py_ssize_t k, most, with_sum  # rows that changed, at most, and whether the sum of the margins is one of them
    double rest, less, force, force_of_sum
    Py_ssize_t *S
    Py_ssize_t *own
    double *x
    double *y
    double *slope_x
    double *slope_y
    double *matrix
    const double *zeros
    Py_ssize_t *place  # of every row in S, or -1


cdef inline bint is_vertical(const LooProblem *p, Py_ssize_t j) noexcept nogil:
    return j < p.m and (p.piece[j] & 1) == 1


cdef inline void piece_limits(
    const LooProblem *p, Py_ssize_t j, Py_ssize_t piece, double c, double *low, double *high
) noexcept nogil:
    """Ends of a piece: of u on a line, of mu on a vertical one."""
    cdef Py_ssize_t at = piece >> 1, m = p.m
    if piece & 1:
        high[0] = c * (p.heights[at * m + j] - p.bends[at * m + j] * p.ends[at * m + j])
        low[0] = c * (p.heights[(at + 1) * m + j] - p.bends[(at + 1) * m + j] * p.starts[at * m + j])
        return
    low[0] = p.starts[(at - 1) * m + j] if at > 0 else -INFINITY
    high[0] = p.ends[at * m + j] if at < p.terms else INFINITY


cdef inline Py_ssize_t next_piece(const LooProblem *p, Py_ssize_t piece, bint above) noexcept nogil:
    cdef Py_ssize_t kink
    if piece & 1:
        return piece - 1 if above else piece + 1
    kink = (piece >> 1) - (0 if above else 1)
    if p.jumps[kink]:
        return 2 * kink + 1
    return piece + 2 if above else piece - 2


cdef inline void row_law(
    const LooProblem *p, const LooPath *w, Py_ssize_t a, double *on_mu, double *on_u, double *value
) noexcept nogil:
    """Law of the a-th changed row: on_mu mu + on_u u = value."""
    cdef Py_ssize_t j = w.S[a], at, m = p.m
    cdef double c
    if j == m:
        on_mu[0], on_u[0], value[0] = 1.0, -w.less, 0.0
        return
    c = w.rest if a == 0 else p.counts[j]
    at = w.own[a] >> 1
    if w.own[a] & 1:
        on_mu[0], on_u[0], value[0] = p.softness / c, 1.0, p.kinks[at * m + j]
    else:
        on_mu[0], on_u[0] = 1.0, c * p.bends[at * m + j]
        value[0] = c * p.heights[at * m + j]


cdef inline void limited_value(
    const LooProblem *p, const LooPath *w, Py_ssize_t a, const double *x, const double *y, double share, bint slopes,
    double *found
) noexcept nogil:
    """What the a-th changed row's piece limits: u on a line, mu on a vertical one; or its change, for changes x, y."""
    cdef Py_ssize_t j = w.S[a]
    cdef bint up = is_vertical(p, j)
    cdef double given = 0.0 if slopes else p.given[j]
    cdef double other = given + x[a] - p.bend[j] * y[j]
    cdef double u = other if up else y[j]
    if not w.own[a] & 1:
        found[0] = u
        return
    found[0] = y[j] if up else other
    if a == 0:
        found[0] -= share * w.force
        if w.with_sum:
            found[0] += w.less * (y[p.m] - u)


cdef inline void begin_path(const LooProblem *p, LooPath *w, Py_ssize_t i) noexcept nogil:
    """Begin the path of row i at the optimum of all rows: the forces that keep it."""
    cdef Py_ssize_t j
    cdef bint up = is_vertical(p, i)
    cdef double other = p.given[i] - p.bend[i] * p.answer[i], on_mu, on_u, value, low, high
    cdef double u = other if up else p.answer[i], mu = p.answer[i] if up else other
    w.rest = p.counts[i] - 1.0
    w.with_sum = p.n > p.m
    w.less = p.kappa / (p.total - 1.0) if w.with_sum else 0.0
    w.k = 1 + w.with_sum
    w.S[0], w.x[0] = i, 0.0
    w.own[0] = p.piece[i] if w.rest > 0.0 else 0
    w.place[i] = 0
    if w.with_sum:
        w.S[1], w.x[1], w.own[1] = p.m, 0.0, 0
        w.force_of_sum = (p.kappa / p.total - w.less) * p.answer[p.m] + w.less * u
        mu += w.less * (p.answer[p.m] - u)
    for j in range(p.n):
        w.y[j] = p.answer[j]
    row_law(p, w, 0, &on_mu, &on_u, &value)
    w.force = mu - (value - on_u * u) / on_mu


cdef inline bint solve_small(double *matrix, double *x, Py_ssize_t k) noexcept nogil:
    """Solve by elimination with row exchanges; whether the system is regular to working precision."""
    cdef Py_ssize_t a, b, c, best
    cdef double size, factor, largest = 0.0
    for a in range(k * k):
        largest = max(largest, fabs(matrix[a]))
    for a in range(k):
        best = a
        for b in range(a + 1, k):
            if fabs(matrix[b * k + a]) > fabs(matrix[best * k + a]):
                best = b
        size = fabs(matrix[best * k + a])
        if not size > 1e-200 * largest:
            return False
        if best != a:
            for c in range(k):
                matrix[a * k + c], matrix[best * k + c] = matrix[best * k + c], matrix[a * k + c]
            x[a], x[best] = x[best], x[a]
        for b in range(a + 1, k):
            factor = matrix[b * k + a] / matrix[a * k + a]
            if factor != 0.0:
                for c in range(a + 1, k):
                    matrix[b * k + c] -= factor * matrix[a * k + c]
                x[b] -= factor * x[a]
    for a in range(k - 1, -1, -1):
        for c in range(a + 1, k):
            x[a] -= matrix[a * k + c] * x[c]
        x[a] /= matrix[a * k + a]
    return True
