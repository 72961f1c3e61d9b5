"""Semismooth Newton steps on hinges, or squared ones, over rows that lie column by column.

Row i with centre a_i, steepness s_i and cap c_i has the multiplier u_i = a_i + s_i (kink - z_i), cut off at 0 and at
c_i. A squared hinge is its own envelope: centre 0, no cap. Rows are padded with zeros to whole vectors, and all loops
do the same operations however wide these are: the bits are the same.
"""

from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcpy, memset

from mdlearn._solvers.narrow_loops cimport (
    mdlearn_adjoint, mdlearn_advance, mdlearn_along, mdlearn_envelopes, mdlearn_gram, mdlearn_recentre, mdlearn_scaled,
)
from mdlearn._solvers.narrow_matrices cimport check_shared, factor, give_shared, solve, take_shared
from mdlearn._solvers.rows cimport add, inner

cdef double SHORT_STEP = 0.01
"""Length of a step of which SHORT_STEPS in a row tell of envelopes that are too steep: steps zigzag between kinks."""
cdef double LEFT_BY_SAMPLE = 0.5
"""Share of the squared slope that a step by a sample's matrix leaves, above which the sample grows."""
cdef double DIAGONAL_FALL = 1e6
"""Fall of an entry of the diagonal of a sum, as rows are taken out again, from which it is made anew."""


cdef class NarrowNewton:
    """Minimise 1/2 w'Aw - fixed'w + hinges of labels * (T'w), by a method of multipliers and Newton steps.

    Parameters
    ----------
    T : (n, m) columns, m a multiple of 8; labels, caps, softness, alpha : a number for each of the rows, whose padding
    is left out; A, L : (n, n), A = L L', or (0, 0) for the identity; fixed : (n,) or None; table : (17, m) and space :
    ((2 n + 268) (n + 8),), room; kink; squared; growth : of the steepness when multipliers move on; solved : share of
    the gap that half of the squared slope is below by then; close : share of a slope along a line that may be left.

    Attributes
    ----------
    objective, lower_bound, bound : at w; for the multipliers there; for the best ones so far.
    """

    def __init__(
        self, const double[:, ::1] T, const double[::1] labels, const double[::1] caps, const double[::1] softness,
        const double[::1] alpha, const double[:, ::1] A, const double[:, ::1] L, const double[::1] fixed,
        double[:, ::1] table, double[::1] space, double kink, bint squared, double growth, double solved, double close,
    ):
        cdef Py_ssize_t n = T.shape[0], m = T.shape[1], rows = labels.shape[0], width = n + 8, k, j, which
        if n == 0 or m == 0 or m % LANES or table.shape[0] != TABLE + 1 or table.shape[1] != m:
            raise ValueError("columns and table do not fit each other")
        if not m - LANES < rows <= m or caps.shape[0] != rows or softness.shape[0] != rows or alpha.shape[0] != rows:
            raise ValueError("rows and columns differ in length")
        if space.shape[0] != (VECTORS + 2 * n + PIECE) * width:
            raise ValueError("the room does not fit the columns")
        if n > 2 * PIECE and m > PIECE:
            raise ValueError("the room does not hold the free rows")
        if A.shape[0] != L.shape[0] or A.shape[1] != L.shape[1]:
            raise ValueError("the matrices do not fit the columns")
        if (A.shape[0] and (A.shape[0] != n or A.shape[1] != n)) or (fixed is not None and fixed.shape[0] != n):
            raise ValueError("the matrices do not fit the columns")
        self.T, self.A, self.L, self.table, self.space = T, A, L, table, space
        self.vectors = &space[0]
        self.M = self.vectors + VECTORS * width
        self.sum = self.M + n * width
        self.room = self.sum + n * width
        self.free = <long long*> &table[TABLE, 0]
        self.kink, self.squared, self.growth, self.solved = kink, squared, growth, solved
        self.rows, self.m, self.n, self.close, self.wide = rows, m, n, close, (n + 7) // 8 * 8
        for j in range(width):
            vector(self, FIXED)[j] = fixed[j] if fixed is not None and j < n else 0.0
        with nogil:
            memset(self.M, 0, n * width * sizeof(double))
            memcpy(row(self, LABEL), &labels[0], rows * sizeof(double))
            memcpy(row(self, CAP), &caps[0], rows * sizeof(double))
            memcpy(row(self, SOFTNESS), &softness[0], rows * sizeof(double))
            memcpy(row(self, ALPHA), &alpha[0], rows * sizeof(double))
            for which in range(TABLE):
                for k in range(rows, m):
                    table[which, k] = 0.0

    def begin(self, const double[::1] w, const double[::1] centre, double share, const double[::1] counts,
              double steepness):
        """Evaluate at w, or at 0: envelopes around `share` times centres, of such a steepness times counts."""
        cdef Py_ssize_t k, n = self.n
        cdef double *around = row(self, CENTRE)
        cdef double *steep = row(self, STEEPNESS)
        cdef const double *softness = row(self, SOFTNESS)
        if counts.shape[0] != self.rows or centre.shape[0] != self.rows or (w is not None and w.shape[0] != n):
            raise ValueError("the beginning does not fit the rows")
        self.bound, self.short_steps, self.sample, self.factored, self.summed = -INFINITY, 0, SAMPLE, False, False
        for k in range(n):
            vector(self, W)[k] = 0.0 if w is None else w[k]
        with nogil:
            for k in range(self.rows):
                if self.squared:
                    around[k], steep[k] = 0.0, 1.0 / softness[k] if softness[k] > 0.0 else 0.0
                else:
                    around[k], steep[k] = share * centre[k], steepness * counts[k]
            if w is None:
                memset(row(self, Z), 0, self.m * sizeof(double))
            else:
                margins(self, W, Z)
            evaluate(self)

    def share_first_factor(self, double[::1] shared):
        """Take the factor of the first step on squared hinges from a column whose rows weigh the same, or write it.

        shared : (2 + m + 2 n (n + 8),), of which the first number is 0 where there is none yet.
        """
        cdef const double* weights = row(self, SLOPE)
        cdef double* sum = check_shared(shared, self.m, self.n)
        cdef Py_ssize_t size = self.n * (self.n + 8) * sizeof(double)
        if self.A.shape[0] or not self.squared or choose_free(self):
            return
        self.factored = take_shared(shared, self.stride, 0.0, weights, self.m, self.M, self.n)
        if self.factored:
            memcpy(self.sum, sum, size)
            hold(self)
            return
        with nogil:
            many(self)
            self.factored = factor(self.M, self.n + 8, self.n, vector(self, SCRATCH))
        if self.factored:
            give_shared(shared, self.stride, 0.0, weights, self.m, self.M, self.n)
            memcpy(sum, self.sum, size)

    def steps(self, int most, double tol, double least):
        """Make so many steps, or until the gap is `tol` of the objective, or of `least`; return how many they were."""
        cdef int taken = 0
        with nogil:
            while taken < most:
                move_on(self)
                if taken and not self.objective - self.bound > tol * max(fabs(self.objective), least):
                    break
                if not step(self):
                    break
                taken += 1
        return taken

    def point(self, double[::1] w, double[::1] beta, double[::1] alpha, double[::1] sigma, const double[::1] counts,
              double kappa):
        """Write coefficients, best multipliers, what coefficients are made of, and multipliers of a variance term.

        Rows weigh `counts`, and the term kappa, 0 without one. Its multipliers are those of the coefficients that the
        best ones of the loss stand for.
        """
        cdef Py_ssize_t size = self.rows * sizeof(double)
        if w.shape[0] != self.n or beta.shape[0] != self.rows or alpha.shape[0] != self.rows:
            raise ValueError("rows and numbers differ in length")
        if sigma.shape[0] != self.rows or counts.shape[0] != self.rows:
            raise ValueError("rows and numbers differ in length")
        if (kappa > 0.0) != (self.A.shape[0] > 0):
            raise ValueError("a variance term comes with its matrix")
        with nogil:
            memcpy(&w[0], vector(self, W), self.n * sizeof(double))
            memcpy(&beta[0], row(self, BEST), size)
            memcpy(&alpha[0], row(self, ALPHA), size)
            memset(&sigma[0], 0, size)
            if kappa > 0.0:
                memcpy(vector(self, STEP), vector(self, BEST_PUSHED), self.n * sizeof(double))
                solve(&self.L[0, 0], self.n, self.n, vector(self, STEP))
                margins(self, STEP, DZ)
                add_spread(row(self, DZ), counts, kappa, &sigma[0])
                add_spread(row(self, Z), counts, kappa, &alpha[0])


cdef void evaluate(NarrowNewton p) noexcept nogil:
    """Multipliers, slope, objective and bounds at the margins that there are."""
    cdef Py_ssize_t j, n = p.n
    cdef double *w = vector(p, W)
    cdef double *g = vector(p, G)
    cdef double *pushed = vector(p, PUSHED)
    cdef double *Aw = vector(p, AW)
    cdef double *fixed = vector(p, FIXED)
    cdef double sums[2]
    mdlearn_envelopes(
        row(p, LABEL), row(p, CAP), row(p, SOFTNESS), row(p, STEEPNESS), row(p, CENTRE), row(p, Z), p.kink, p.squared,
        p.m, row(p, X), row(p, U), row(p, SIGNED), row(p, SLOPE), sums,
    )
    mdlearn_adjoint(&p.T[0, 0], p.m, n, p.m, row(p, SIGNED), pushed)
    times(p.A, w, Aw, n)
    for j in range(n):
        pushed[j] += fixed[j]
        g[j] = Aw[j] - pushed[j]
    p.slope = half_square(p, g)
    p.objective = 0.5 * inner(w, Aw, n) - inner(fixed, w, n) + sums[0]
    p.lower_bound = sums[1] - half_square(p, pushed)
    if p.lower_bound > p.bound:
        p.bound = p.lower_bound
        memcpy(row(p, BEST), row(p, U), p.m * sizeof(double))
        memcpy(vector(p, BEST_PUSHED), pushed, n * sizeof(double))


cdef void move_on(NarrowNewton p) noexcept nogil:
    """Take the multipliers as centres of steeper envelopes, as often as the slope is small beside the gap."""
    cdef int turn
    if p.squared:
        return
    for turn in range(MOST_MOVES):
        if not p.slope <= p.solved * (p.objective - p.lower_bound):
            return
        mdlearn_recentre(row(p, U), p.growth, p.m, row(p, CENTRE), row(p, STEEPNESS))
        evaluate(p)


cdef void add_rows(NarrowNewton p, Py_ssize_t count, const double* held, double* M) noexcept nogil:
    """Add to M the products r r' of the first `count` chosen rows, at their steepness less what is held of them."""
    cdef Py_ssize_t j, k, start, size, padded, n = p.n
    cdef double *slope = row(p, SLOPE)
    cdef double *weights = row(p, FALL)
    cdef double *block = p.room
    cdef const double* column
    cdef const long long* free = p.free
    for start in range(0, count, 256):
        size = min(count - start, PIECE)
        padded = (size + 7) // 8 * 8
        for k in range(padded):
            weights[k] = p.stride * slope[free[start + k]] if k < size else 0.0
        if held:
            for k in range(size):
                weights[k] -= held[free[start + k]]
        for j in range(n):
            column = &p.T[j, 0]
            for k in range(size):
                block[j * PIECE + k] = column[free[start + k]]
            for k in range(size, padded):
                block[j * PIECE + k] = 0.0
        mdlearn_gram(block, PIECE, n, padded, weights, block + n * PIECE, M, n + 8)


cdef void hold(NarrowNewton p) noexcept nogil:
    """Note what the sum is of, and how large its diagonal has been."""
    cdef Py_ssize_t i
    cdef double *highest = vector(p, HIGHEST)
    for i in range(p.n):
        highest[i] = max(highest[i] if p.summed else 0.0, p.sum[i * (p.n + 9)])
    memcpy(row(p, HELD), row(p, SLOPE), p.m * sizeof(double))
    p.summed = True


cdef bint update(NarrowNewton p) noexcept nogil:
    """Add rows to the sum that came, and take out those that went, where these are few; say whether it is the sum."""
    cdef Py_ssize_t i, k, found = 0
    cdef const double* slope = row(p, SLOPE)
    cdef const double* held = row(p, HELD)
    for k in range(p.m):
        p.free[found] = k
        found += slope[k] != held[k]
    if found < p.n_free:
        add_rows(p, found, held, p.sum)
        for i in range(p.n):
            if not DIAGONAL_FALL * p.sum[i * (p.n + 9)] >= vector(p, HIGHEST)[i]:
                found = p.n_free
        if found < p.n_free:
            return True
    choose_free(p)
    p.summed = False
    return False


cdef void many(NarrowNewton p) noexcept nogil:
    """Write A + the sum over free rows of steepness r r' into the lower triangle of M; keep that of squared hinges."""
    cdef Py_ssize_t i, j, start, size, n = p.n, width = n + 8
    cdef double *M = p.sum if p.squared else p.M
    if not (p.summed and update(p)):
        for i in range(n):
            for j in range(width):  # sums are written beyond the diagonal
                M[i * width + j] = 0.0 if j > i else p.A[i, j] if p.A.shape[0] else <double> (i == j)
        if p.stride == 1 and 4 * p.n_free >= 3 * p.m:  # no copy of the free ones
            for start in range(0, p.m, 256):
                size = min(p.m - start, PIECE)
                mdlearn_gram(&p.T[0, start], p.m, n, size, row(p, SLOPE) + start, p.room, M, width)
        else:
            add_rows(p, p.n_free, NULL, M)
    if p.squared:
        hold(p)
        memcpy(p.M, M, n * width * sizeof(double))


cdef void few(NarrowNewton p) noexcept nogil:
    """Write the products of the free rows, + 1 / steepness on the diagonal, into M; the rows stay in the room."""
    cdef Py_ssize_t i, j, k, n = p.n, wide = p.wide
    cdef double *rows = p.room
    cdef double *M
    for k in range(p.n_free):
        i = p.free[k]
        for j in range(wide):
            rows[k * wide + j] = p.table[LABEL, i] * p.T[j, i] if j < n else 0.0
    for k in range(p.n_free):
        M = p.M + k * (n + 8)
        mdlearn_adjoint(rows, wide, k + 1, wide, rows + k * wide, M)
        M[k] += 1.0 / p.table[STEEPNESS, p.free[k]]
        vector(p, SOLUTION)[k] = inner(rows + k * wide, vector(p, G), n)


cdef bint direction(NarrowNewton p, bint by_rows) noexcept nogil:
    """Write the Newton step against the slope; say whether there is one."""
    cdef Py_ssize_t j, k, n = p.n, order = p.n_free if by_rows else p.n
    cdef double *g = vector(p, G)
    cdef double *d = vector(p, STEP)
    cdef double *x = vector(p, SOLUTION)
    if by_rows:
        few(p)
    else:
        if not p.factored:
            many(p)
        memcpy(x, g, n * sizeof(double))
    if not (p.factored or factor(p.M, n + 8, order, vector(p, SCRATCH))):
        return False
    p.factored = False
    solve(p.M, n + 8, order, x)
    for j in range(n):
        d[j] = -g[j] if by_rows else -x[j]
    if by_rows:
        for k in range(order):
            add(p.room + k * p.wide, 1, d, n, x[k])
    return True


cdef bint choose_free(NarrowNewton p) noexcept nogil:
    """Find the free rows that the matrix comes from; say whether that is the matrix of their products."""
    cdef Py_ssize_t k, stride, found = 0
    cdef long long* free = p.free
    cdef const double* slope = row(p, SLOPE)
    for k in range(p.m):
        free[found] = k
        found += slope[k] > 0.0
    stride = 1 if p.squared else max(found // (p.sample * p.n), 1)
    if stride > 1:  # any step that descends will do: the matrix comes from every so many-th of many free rows
        found = (found + stride - 1) // stride
        for k in range(found):
            free[k] = free[k * stride]
    p.n_free, p.stride = found, stride
    return p.A.shape[0] == 0 and 2 * found < p.n


cdef bint step(NarrowNewton p) noexcept nogil:
    """Make a Newton step with a line search, and evaluate where it ends; say whether there was one."""
    cdef Py_ssize_t j, k, stride, n = p.n, found
    cdef long long* free = p.free
    cdef const double* slope = row(p, SLOPE)
    cdef double *d = vector(p, STEP)
    cdef double *w = vector(p, W)
    cdef double t, before = p.slope
    cdef bint by_rows = choose_free(p)
    found, stride = p.n_free, p.stride
    if not direction(p, by_rows):
        return False
    margins(p, STEP, DZ)
    mdlearn_scaled(row(p, STEEPNESS), row(p, DZ), p.m, row(p, SDZ))
    times(p.A, d, vector(p, AW), n)
    t = length(p, inner(d, vector(p, G), n), inner(d, vector(p, AW), n))
    if not t < INFINITY:
        return False
    if stride == 1:
        mdlearn_scaled(slope, row(p, DZ), p.m, row(p, FALL))
    else:
        memset(row(p, FALL), 0, p.m * sizeof(double))
        for k in range(found):
            p.table[FALL, free[k]] = stride * slope[free[k]] * p.table[DZ, free[k]]
    if by_rows:  # both are the same, but steep envelopes lose the digits of the first
        for k in range(found):
            p.table[FALL, free[k]] = -vector(p, SOLUTION)[k]
    for j in range(n):
        w[j] += t * d[j]
    mdlearn_advance(row(p, U), row(p, FALL), row(p, DZ), t, p.m, row(p, Z), row(p, ALPHA))
    p.short_steps = p.short_steps + 1 if t < SHORT_STEP and not p.squared else 0
    if p.short_steps >= SHORT_STEPS:
        p.short_steps = 0
        for k in range(p.m):
            p.table[STEEPNESS, k] /= p.growth * p.growth
    evaluate(p)
    if stride > 1 and p.slope > LEFT_BY_SAMPLE * before:
        p.sample *= 4  # where rows are alike, or in an order, a sample's steps zigzag
    return True


cdef double length(NarrowNewton p, double start, double bend) noexcept nogil:
    """Length of the step that ends its slope, `start` at 0; `bend` is the second derivative of all but the loss."""
    cdef int trial
    cdef double low = 0.0, high = INFINITY, t = 1.0, value, curve
    cdef double sums[2]
    if not start < 0.0:
        return INFINITY
    for trial in range(TRIALS):
        mdlearn_along(row(p, CAP), row(p, X), row(p, DZ), row(p, SDZ), p.m, t, sums)
        value, curve = start + t * bend + sums[0], bend + sums[1]
        if not fabs(value) > p.close * fabs(start):
            break
        if value < 0.0:
            low = t
        else:
            high = t
        t = t - value / curve if curve > 0.0 else 8.0 * t
        if not low < t < high:
            t = 0.5 * (low + high) if high < INFINITY else 8.0 * low
        if t == low or t == high:
            break
    return t if isfinite(t) else INFINITY
