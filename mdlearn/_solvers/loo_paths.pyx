# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""Paths from the optimum of all rows to those without one repetition of a row, for piecewise quadratic losses.

`mdlearn.selection.leave_one_out.pivots` has the problem and its symbols. At first all rows that are off their pieces
take the next ones at once. Where that does not end soon, a force that keeps the optimum of all rows is taken away step
by step: in between, every answer is linear in its share t, and the first row to reach an end of its piece takes the
next one.
"""

from libc.math cimport NAN

from mdlearn._solvers.loo_pieces cimport (
    LooPath, LooProblem, begin_path, is_vertical, limited_value, next_piece, piece_limits, row_law, solve_small,
)

cdef enum:
    ROWS_AT_ONCE = 128  # rows that one compiled loop without branches looks at
    JUMPS = 2  # changes of all pieces at once that may leave as many rows off as before, until a path is followed


cdef void _system(const LooProblem *p, const LooPath *w, double *right, bint slopes) noexcept nogil:
    """Write the system of the changed rows, and its right-hand side without force, or per unit of t."""
    cdef Py_ssize_t a, b, j, k = w.k, n = p.n, first = w.S[0]
    cdef double on_mu, on_u, value, E, F
    cdef bint up, leaves = is_vertical(p, first)
    cdef double *row
    for a in range(k):
        j = w.S[a]
        up = is_vertical(p, j)
        row_law(p, w, a, &on_mu, &on_u, &value)
        E = on_u if up else on_mu
        F = (on_mu if up else on_u) - E * p.bend[j]
        row = w.matrix + a * k
        for b in range(k):
            row[b] = F * p.L[w.S[b] * n + j]
        row[a] += E
        right[a] = 0.0 if slopes else value - E * p.given[j] - F * p.answer[j]
        if slopes and a == 0:
            right[a] = on_mu * w.force
        if not w.with_sum:
            continue
        if a == 0:  # less (s - u_i), beside mu_i
            for b in range(k):
                row[b] += on_mu * w.less * p.L[w.S[b] * n + p.m]
            if not slopes:
                right[a] -= on_mu * w.less * p.answer[p.m]
            _add_left_out(p, w, row, right + a, -on_mu * w.less, leaves, slopes)
        elif a == 1:
            if slopes:
                right[a] = w.force_of_sum
            _add_left_out(p, w, row, right + a, w.less, leaves, slopes)


cdef void _add_left_out(
    const LooProblem *p, const LooPath *w, double *row, double *right, double factor, bint leaves, bint slopes
) noexcept nogil:
    """Add `factor` times u of the row that is left out to one equation."""
    cdef Py_ssize_t b, i = w.S[0]
    if leaves:
        row[0] += factor
        if not slopes:
            right[0] -= factor * p.given[i]
        factor *= -p.bend[i]
    for b in range(w.k):
        row[b] += factor * p.L[w.S[b] * p.n + i]
    if not slopes:
        right[0] -= factor * p.answer[i]


cdef void _respond(
    const LooProblem *p, const LooPath *w, const double *x, const double *about, double *out, Py_ssize_t reach
) noexcept nogil:
    """Write what inputs of the changed rows add to answers `about`, four inputs at once: of rows up to `reach`.

    Also those of the row that is left out, and of the sum of the margins.
    """
    cdef Py_ssize_t a, j, n = p.n, k = w.k
    cdef const double *r0
    cdef const double *r1
    cdef const double *r2
    cdef const double *r3
    cdef double x0, x1, x2, x3
    for a in range(0, k, 4):
        r0 = r1 = r2 = r3 = p.L + w.S[a] * n
        x0, x1, x2, x3 = x[a], 0.0, 0.0, 0.0
        if a + 1 < k:
            r1, x1 = p.L + w.S[a + 1] * n, x[a + 1]
        if a + 2 < k:
            r2, x2 = p.L + w.S[a + 2] * n, x[a + 2]
        if a + 3 < k:
            r3, x3 = p.L + w.S[a + 3] * n, x[a + 3]
        if a > 0:
            about = out
        for j in range(reach):
            out[j] = about[j] + (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j])
        j = w.S[0]
        if j >= reach:
            out[j] = about[j] + (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j])
        j = p.m
        if w.with_sum and j >= reach:
            out[j] = about[j] + (x0 * r0[j] + x1 * r1[j]) + (x2 * r2[j] + x3 * r3[j])


cdef double _first_end(
    const LooProblem *p, const LooPath *w, double t, Py_ssize_t reach, Py_ssize_t *row, bint *above
) noexcept nogil:
    """Largest part of t, as far as to 0, without a row that leaves its piece; and that row, or -1."""
    cdef Py_ssize_t a, j, chunk, first, stop, hits
    cdef double part = t, own, value, rate, low, high, end
    row[0] = -1
    for chunk in range((reach + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        first, hits = chunk * ROWS_AT_ONCE, 0
        stop = min(first + ROWS_AT_ONCE, reach)
        for j in range(first, stop):
            end = w.y[j] - part * w.slope_y[j]
            hits += (end > p.high[j]) | (end < p.low[j])
        if hits == 0:
            continue
        for j in range(first, stop):
            rate = -w.slope_y[j]
            if w.place[j] >= 0 or rate == 0.0:
                continue
            own = ((p.high[j] if rate > 0 else p.low[j]) - w.y[j]) / rate
            if own < part:
                part, row[0], above[0] = max(own, 0.0), j, rate > 0
    for a in range(w.k):
        j = w.S[a]
        if j == p.m or (a == 0 and w.rest == 0.0):
            continue
        limited_value(p, w, a, w.x, w.y, t, False, &value)
        limited_value(p, w, a, w.slope_x, w.slope_y, 1.0, True, &rate)
        rate = -rate
        if rate == 0.0:
            continue
        piece_limits(p, j, w.own[a], w.rest if a == 0 else p.counts[j], &low, &high)
        own = ((high if rate > 0 else low) - value) / rate
        if own < part:
            part, row[0], above[0] = max(own, 0.0), j, rate > 0
    return part


cdef Py_ssize_t _pivot_all(const LooProblem *p, LooPath *w, double room) noexcept nogil:
    """Move every row that is off its piece to the next one; how many, or -1 if they are too many."""
    cdef Py_ssize_t a, j, chunk, first, stop, hits, moved = 0, before = w.k
    cdef double value, low, high
    for a in range(before):
        j = w.S[a]
        if j == p.m or (a == 0 and w.rest == 0.0):
            continue
        limited_value(p, w, a, w.x, w.y, 0.0, False, &value)
        piece_limits(p, j, w.own[a], w.rest if a == 0 else p.counts[j], &low, &high)
        if not (low - room <= value <= high + room):
            w.own[a] = next_piece(p, w.own[a], value > high)
            moved += 1
    for chunk in range((p.m + ROWS_AT_ONCE - 1) // ROWS_AT_ONCE):
        first, hits = chunk * ROWS_AT_ONCE, 0
        stop = min(first + ROWS_AT_ONCE, p.m)
        for j in range(first, stop):
            hits += (w.y[j] > p.high[j] + room) | (w.y[j] < p.low[j] - room)
        if hits == 0:
            continue
        for j in range(first, stop):
            if w.place[j] >= 0 or (p.low[j] - room <= w.y[j] <= p.high[j] + room):
                continue
            if w.k == w.most:
                return -1
            _add(p, w, j)
            w.own[w.k - 1] = next_piece(p, p.piece[j], w.y[j] > p.high[j])
            moved += 1
    return moved


cdef inline void _add(const LooProblem *p, LooPath *w, Py_ssize_t j) noexcept nogil:
    """Make a row one of those that changed, on the piece that it has."""
    w.place[j], w.S[w.k], w.x[w.k], w.own[w.k] = w.k, j, 0.0, p.piece[j]
    w.k += 1


cdef inline void _drop(LooPath *w, Py_ssize_t a) noexcept nogil:
    """Leave out a row that has come back to its piece of the optimum of all rows: its input is 0 there."""
    w.place[w.S[a]] = -1
    w.k -= 1
    if a < w.k:
        w.S[a], w.own[a], w.x[a] = w.S[w.k], w.own[w.k], w.x[w.k]
        w.place[w.S[a]] = a


cdef void _forget(const LooProblem *p, LooPath *w) noexcept nogil:
    """Leave no row among those that changed."""
    cdef Py_ssize_t a
    for a in range(w.k):
        if w.S[a] < p.m:
            w.place[w.S[a]] = -1
    w.k = 0


cdef bint _end(const LooProblem *p, LooPath *w) noexcept nogil:
    """Compute answers of the pieces as they are, without any force; whether there are some."""
    _system(p, w, w.x, False)
    if not solve_small(w.matrix, w.x, w.k):
        return False
    _respond(p, w, w.x, p.answer, w.y, p.n)
    return True


cdef bint _jump(const LooProblem *p, LooPath *w, Py_ssize_t i, double room) noexcept nogil:
    """Move all rows that are off their pieces at once, a few times; whether the end is an optimum."""
    cdef Py_ssize_t moved, least = p.m, left = JUMPS
    begin_path(p, w, i)
    while left > 0 and _end(p, w):
        moved = _pivot_all(p, w, room)
        if moved <= 0:
            return moved == 0
        left -= moved >= least
        least = min(least, moved)
    return False


cdef bint _within(const LooProblem *p, const LooPath *w, double room) noexcept nogil:
    """Whether every row is on its piece, but for rounding."""
    cdef Py_ssize_t a, j
    cdef double value, low, high
    for j in range(p.m):
        if w.place[j] < 0 and not (p.low[j] - room <= w.y[j] <= p.high[j] + room):
            return False
    for a in range(w.k):
        j = w.S[a]
        if j == p.m or (a == 0 and w.rest == 0.0):
            continue
        limited_value(p, w, a, w.x, w.y, 0.0, False, &value)
        piece_limits(p, j, w.own[a], w.rest if a == 0 else p.counts[j], &low, &high)
        if not (low - room <= value <= high + room):
            return False
    return True


cdef bint _some_inside(const LooProblem *p, const LooPath *w) noexcept nogil:
    """Whether some multiplier is between the ends of a kink; else an intercept outside of |w| may not be unique."""
    cdef Py_ssize_t a, j
    cdef double value, low, high
    for j in range(p.m):
        if w.place[j] < 0 and is_vertical(p, j) and _between(w.y[j], p.low[j], p.high[j]):
            return True
    for a in range(w.k):
        j = w.S[a]
        if j == p.m or not w.own[a] & 1:
            continue
        limited_value(p, w, a, w.x, w.y, 0.0, False, &value)
        piece_limits(p, j, w.own[a], w.rest if a == 0 else p.counts[j], &low, &high)
        if _between(value, low, high):
            return True
    return False


cdef inline bint _between(double value, double low, double high) noexcept nogil:
    cdef double near = 1e-6 * (high - low)
    return low + near < value < high - near


cdef bint _follow(const LooProblem *p, LooPath *w, Py_ssize_t i, Py_ssize_t reach) noexcept nogil:
    """Follow the path of row i to its end, among rows up to `reach`; whether it has one."""
    cdef Py_ssize_t a, j, row, step
    cdef double t = 1.0, part
    cdef bint above = False
    begin_path(p, w, i)
    for step in range(4 * w.most):
        _system(p, w, w.slope_x, True)
        if not solve_small(w.matrix, w.slope_x, w.k):
            return False
        _respond(p, w, w.slope_x, w.zeros, w.slope_y, reach)
        part = _first_end(p, w, t, reach, &row, &above)
        t -= part
        for j in range(reach):
            w.y[j] -= part * w.slope_y[j]
        if i >= reach:
            w.y[i] -= part * w.slope_y[i]
        if w.with_sum and p.m >= reach:
            w.y[p.m] -= part * w.slope_y[p.m]
        for a in range(w.k):
            w.x[a] -= part * w.slope_x[a]
        if row < 0:
            return _end(p, w)
        if w.place[row] < 0:
            if w.k == w.most:
                return False
            _add(p, w, row)
        a = w.place[row]
        w.own[a] = next_piece(p, w.own[a], above)
        if a > w.with_sum and w.own[a] == p.piece[row]:
            _drop(w, a)
    return False


cdef double _without(
    const LooProblem *p, LooPath *w, Py_ssize_t i, double room, bint inside, Py_ssize_t near
) noexcept nogil:
    """Value u of row i without one repetition of it; NaN where no optimum is found."""
    cdef bint found = _jump(p, w, i, room)
    cdef double u = NAN
    if not found and near < p.m:
        _forget(p, w)
        found = _follow(p, w, i, near) and _within(p, w, room)
    if not found:
        _forget(p, w)
        found = _follow(p, w, i, p.m) and _within(p, w, room)
    if found and (not inside or _some_inside(p, w)):
        u = w.y[i]
        if is_vertical(p, i):
            u = w.x[0] + p.given[i] - p.bend[i] * u
    _forget(p, w)
    return u


def follow_loo_paths(
    const double[::1] counts, const double[:, ::1] kinks, const double[:, ::1] ends, const double[:, ::1] starts,
    const unsigned char[::1] jumps, const double[:, ::1] heights, const double[:, ::1] bends, double kappa,
    double softness, double total, const double[:, ::1] L, const Py_ssize_t[::1] piece, const double[::1] given,
    const double[::1] bend, const double[::1] answer, const double[::1] low, const double[::1] high,
    const Py_ssize_t[::1] rows, Py_ssize_t near, double room, bint inside, Py_ssize_t[:, ::1] S, Py_ssize_t[::1] place,
    double[:, ::1] x, double[:, ::1] y, double[:, ::1] matrix, double[::1] out,
):
    """Write u of each of some rows without one repetition of it; NaN where no optimum is found.

    Rows are in the order of their distance to the ends of their pieces, and a path is followed among the first `near`
    of them; where its end is not an optimum, among all. `inside` asks for a multiplier between the ends of a kink,
    without which the optimum may not be unique; `total` is the sum of the counts. Working space for at most `most`
    changed rows: S (2, most), place (m,), x (2, most), y (3, n) and matrix (most, most).
    """
    cdef Py_ssize_t m = counts.shape[0], n = L.shape[0], terms = kinks.shape[0], most = S.shape[1], r
    cdef LooProblem p
    cdef LooPath w
    if L.shape[1] != n or not m <= n <= m + 1 or kinks.shape[1] != m or jumps.shape[0] != terms or terms < 1:
        raise ValueError("arrays of a leave-one-out path do not fit each other")
    if ends.shape[0] != terms or ends.shape[1] != m or starts.shape[0] != terms or starts.shape[1] != m:
        raise ValueError("kinks of a leave-one-out path do not fit their ends")
    if heights.shape[0] != terms + 1 or heights.shape[1] != m or bends.shape[0] != terms + 1 or bends.shape[1] != m:
        raise ValueError("lines of a leave-one-out path do not fit its kinks")
    if piece.shape[0] != m or given.shape[0] != n or bend.shape[0] != n or answer.shape[0] != n or not softness > 0:
        raise ValueError("the optimum of a leave-one-out path does not fit its rows")
    if low.shape[0] != m or high.shape[0] != m or out.shape[0] != rows.shape[0] or m < 1:
        raise ValueError("limits or rows of a leave-one-out path do not fit")
    if S.shape[0] != 2 or place.shape[0] != m or x.shape[0] != 2 or x.shape[1] != most or y.shape[0] != 3:
        raise ValueError("working space of a leave-one-out path is too small")
    if y.shape[1] != n or matrix.shape[0] != most or matrix.shape[1] != most or most < 2:
        raise ValueError("working space of a leave-one-out path is too small")
    for r in range(rows.shape[0]):
        if not 0 <= rows[r] < m:
            raise ValueError("a row of a leave-one-out path is out of range")
    for r in range(m):
        place[r] = -1
        if not 0 <= piece[r] <= 2 * terms:
            raise ValueError("a piece of a leave-one-out path is out of range")
    for r in range(n):
        y[2, r] = 0.0
    p.m, p.n, p.terms, p.kappa, p.total, p.softness = m, n, terms, kappa, total, softness
    p.ends, p.starts = &ends[0, 0], &starts[0, 0]
    p.counts, p.kinks, p.jumps, p.heights, p.bends = &counts[0], &kinks[0, 0], &jumps[0], &heights[0, 0], &bends[0, 0]
    p.L, p.piece, p.given, p.bend = &L[0, 0], &piece[0], &given[0], &bend[0]
    p.answer, p.low, p.high = &answer[0], &low[0], &high[0]
    w.most, w.S, w.own, w.place, w.k = most, &S[0, 0], &S[1, 0], &place[0], 0
    w.x, w.slope_x, w.y, w.slope_y, w.zeros = &x[0, 0], &x[1, 0], &y[0, 0], &y[1, 0], &y[2, 0]
    w.matrix = &matrix[0, 0]
    with nogil:
        for r in range(rows.shape[0]):
            out[r] = _without(&p, &w, rows[r], room, inside, min(max(near, 1), m))
