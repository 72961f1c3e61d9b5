"""Newton steps on logistic losses over rows that lie column by column, padded with zeros to whole vectors.

The multiplier of row i is the slope u_i of its loss. Along a step d it is taken to become u - bends * (R d): these
multipliers stand for the point which the step leads to, so that the bound does not lag behind the objective.

Over many columns a factor serves several steps: conjugate gradients with it make up for the second derivatives that
have changed, or that a sample of the rows has missed.

Steps far from the optimum go over rows of single precision where these are given. Before its point is read, or its
gap is small, a problem is refined: coefficients become those that ALPHA makes of the rows themselves, and all values
are computed anew.
"""

from libc.math cimport INFINITY, fabs, isfinite
from libc.string cimport memcmp, memcpy, memset

from mdlearn._solvers.logistic_loops cimport balance, length, mdlearn_logistic_entropy, mdlearn_logistic_slopes
from mdlearn._solvers.narrow_matrices cimport check_shared, factor, give_shared, solve, take_shared
from mdlearn._solvers.rows cimport add, inner

cdef double SHORT_BY_SAMPLE = 0.5
"""Length of a step by a sample's matrix below which the sample has missed rows that matter."""
cdef double STEP_ENERGY = 0.1, LEAST_STEP_ENERGY = 1e-4
"""Share of its first energy that a step by iterations may leave: at most, and at least; in between, the share of the
objective that it promises to take off. A tenth takes no more steps than 0.03, and one iteration less in each."""
cdef double RENEWAL_STEPS = 3.0
"""Steps like the last one whose iterations cost more than a new factor."""
cdef int ITERATIONS_BY_SAMPLE = 2
"""Iterations of a step that even a new factor of a sample needs."""
cdef double ROUGH_GAP = 1e-5
"""Share of the objective that a gap or the fall of a step is to have for steps in single precision: their values are
good to some 1e-7 of it. With 1e-4 and 1e-6 fits take 0.8 to 1.2 of the time (five sets), the former more on usps."""


cdef class NarrowLogistic:
    """Minimise 1/2 |w|^2 - fixed'w + logistic losses of labels * (T'w), without the last coefficient where it is free.

    Parameters
    ----------
    T : (n, m) columns, m a multiple of 8; labels, caps, alpha : a number for each of the rows, whose padding is left
    out; fixed : (n,) or None; table : (13, m), vectors : (12, n + 8) and room : (n + 8, 256), room; M : (n, n + 8) of
    zeros; sharpness; kink; free : whether the last coefficient has no ridge; least_bend : second derivative that the
    loss is taken to have at least along it; full : share of its slope that a step of length 1 may leave; close : that
    another length may; rounding : share of the objective that it may rise by; left_over : share of their sum that
    multipliers of a free bias may miss theirs by; stride : of the rows that matrices come from at first; far : share of
    the objective that a step is to promise for that; price : iterations of conjugate gradients that cost as much as a
    matrix of all rows, 0 where each step has a matrix of its own; S : (n, m) or None, the columns in single precision,
    with zeros up to a multiple of 16: for a beginning whose coefficients alpha makes.

    Attributes
    ----------
    objective, bound : at w; of the best multipliers so far.
    """

    def __init__(
        self, const double[:, ::1] T, const double[::1] labels, const double[::1] caps, const double[::1] alpha,
        const double[::1] fixed, double[:, ::1] table, double[:, ::1] vectors, double[:, ::1] M, double[:, ::1] room,
        double sharpness, double kink, bint free, double least_bend, double full, double close, double rounding,
        double left_over, Py_ssize_t stride, double far, double price, const float[:, ::1] S,
    ):
        cdef Py_ssize_t n = T.shape[0], m = T.shape[1], rows = labels.shape[0], k, j, which
        if n == 0 or m == 0 or m % LANES or table.shape[0] != TABLE or table.shape[1] != m or stride < 1:
            raise ValueError("columns and table do not fit each other")
        if not m - LANES < rows <= m or caps.shape[0] != rows or alpha.shape[0] != rows:
            raise ValueError("rows and columns differ in length")
        if vectors.shape[0] != VECTORS or vectors.shape[1] != n + 8 or room.shape[0] != n + 8 or room.shape[1] != PIECE:
            raise ValueError("the room does not fit the columns")
        if M.shape[0] != n or M.shape[1] != n + 8 or (fixed is not None and fixed.shape[0] != n):
            raise ValueError("the matrices do not fit the columns")
        if S is not None and (S.shape[0] != n or S.shape[1] != (m + SINGLE_LANES - 1) // SINGLE_LANES * SINGLE_LANES):
            raise ValueError("the columns in single precision are not those of the others")
        self.S, self.T, self.table, self.vectors, self.room, self.M = S, T, table, vectors, room, M
        self.rows, self.m, self.n, self.free, self.stride, self.far = rows, m, n, free, stride, far
        self.sharpness, self.kink, self.least_bend, self.left_over = sharpness, kink, least_bend, left_over
        self.full, self.close, self.rounding, self.price = full, close, rounding, price
        for j in range(n):
            vectors[FIXED, j] = fixed[j] if fixed is not None else 0.0
            vectors[RIDGE, j] = 0.0 if free and j == n - 1 else 1.0
        with nogil:
            memcpy(row(self, LABEL), &labels[0], rows * sizeof(double))
            memcpy(row(self, CAP), &caps[0], rows * sizeof(double))
            memcpy(row(self, ALPHA), &alpha[0], rows * sizeof(double))
            for which in range(TABLE):
                for k in range(rows, m):
                    table[which, k] = 0.0

    def begin(self, const double[::1] w):
        """Evaluate at w."""
        cdef Py_ssize_t j
        if w.shape[0] != self.n:
            raise ValueError("the beginning does not fit the columns")
        self.bound, self.factored, self.fresh = -INFINITY, False, False
        self.rough = self.loose = self.S is not None
        with nogil:
            memcpy(vector(self, W), &w[0], self.n * sizeof(double))
            memset(row(self, Z), 0, self.m * sizeof(double))
            for j in range(self.n):
                if w[j] != 0.0:
                    margins(self, W, Z)
                    break
            evaluate(self)
            memcpy(row(self, BEST), row(self, U), self.m * sizeof(double))
            slope(self)

    def share_first_factor(self, double[::1] shared):
        """Take the factor of the first step from a column whose rows weigh the same, or write it.

        shared : (2 + m + 2 n (n + 8),), of which the first number is 0 where there is none yet.
        """
        cdef const double* weights = row(self, BENDS)
        cdef double *M = &self.M[0, 0]
        check_shared(shared, self.m, self.n)
        self.factored = take_shared(shared, self.stride, self.least_bend, weights, self.m, M, self.n)
        if self.factored:
            weigh(self)
            self.fresh, self.rough_factor = True, self.S is not None
            return
        renew(self)
        if self.factored:
            give_shared(shared, self.stride, self.least_bend, weights, self.m, M, self.n)

    def steps(self, int most, double tol, double least):
        """Make so many steps, or until the gap is `tol` of the objective, or of `least`; return how many they were."""
        cdef int taken = 0
        with nogil:
            while taken < most:
                if self.rough and not open_by(self, max(tol, ROUGH_GAP), least):
                    refine(self)
                if not step(self):
                    if not self.rough:
                        break
                    refine(self)
                    self.factored = False
                    continue
                taken += 1
                if self.rough and not open_by(self, ROUGH_GAP, least):
                    refine(self)
                if not open_by(self, tol, least):
                    break
        return taken

    def refine(self):
        """Compute all values anew, and steps from now on, with the rows themselves."""
        with nogil:
            if self.loose:
                refine(self)

    def point(self, double[::1] w, double[::1] beta, double[::1] alpha):
        """Write coefficients, best multipliers, and what coefficients are made of."""
        if w.shape[0] != self.n or beta.shape[0] != self.rows or alpha.shape[0] != self.rows:
            raise ValueError("rows and numbers differ in length")
        with nogil:
            memcpy(&w[0], vector(self, W), self.n * sizeof(double))
            memcpy(&beta[0], row(self, BEST), self.rows * sizeof(double))
            memcpy(&alpha[0], row(self, ALPHA), self.rows * sizeof(double))


cdef inline bint open_by(NarrowLogistic p, double tol, double least) noexcept nogil:
    """Whether the gap is beyond a share of the objective, or of `least`."""
    return p.objective - p.bound > tol * max(fabs(p.objective), least)


cdef void refine(NarrowLogistic p) noexcept nogil:
    """Make coefficients of ALPHA, and leave single precision."""
    cdef const double *best = row(p, BEST)
    cdef bint rough = p.rough
    p.rough = p.loose = p.fresh = False
    stand_for(p, row(p, ALPHA))
    memcpy(vector(p, W), vector(p, STANDS), (p.n - p.free) * sizeof(double))
    if rough and p.bound > -INFINITY:
        if memcmp(best, row(p, ALPHA), p.m * sizeof(double)):
            stand_for(p, best)
        p.bound = dual_value(p, best) - 0.5 * inner(vector(p, STANDS), vector(p, STANDS), p.n - p.free)
    margins(p, W, Z)
    evaluate(p)


cdef void look(NarrowLogistic p) noexcept nogil:
    """Multipliers, second derivatives and loss at the margins that there are."""
    p.loss = mdlearn_logistic_slopes(row(p, Z), row(p, CAP), p.sharpness, p.kink, row(p, U), row(p, BENDS), p.m)


cdef void evaluate(NarrowLogistic p) noexcept nogil:
    """Multipliers, second derivatives, loss and objective."""
    look(p)
    total(p)


cdef void total(NarrowLogistic p) noexcept nogil:
    """Objective at coefficients whose loss is known."""
    cdef double *w = vector(p, W)
    p.objective = 0.5 * inner(w, w, p.n - p.free) - inner(vector(p, FIXED), w, p.n) + p.loss
    p.at_slope = False


cdef void stand_for(NarrowLogistic p, const double* u) noexcept nogil:
    """Write the coefficients that multipliers stand for, and what they pull a free bias with."""
    cdef Py_ssize_t j
    cdef double *element = vector(p, STANDS)
    adjoint(p, u, STANDS)
    for j in range(p.n):
        element[j] += vector(p, FIXED)[j]


cdef double dual_value(NarrowLogistic p, const double* beta) noexcept nogil:
    """Dual value of multipliers, without its quadratic part."""
    cdef Py_ssize_t k
    cdef double total = 0.0
    for k in range(p.m):
        total += beta[k]
    return p.kink * total - mdlearn_logistic_entropy(beta, row(p, CAP), p.m) / p.sharpness


cdef void take(NarrowLogistic p, double value, const double* u) noexcept nogil:
    """Take multipliers u of such a dual value, without its quadratic part, where they say more than the best ones."""
    value -= 0.5 * inner(vector(p, STANDS), vector(p, STANDS), p.n - p.free)
    if value > p.bound:
        p.bound = value
        memcpy(row(p, BEST), u, p.m * sizeof(double))


cdef void slope(NarrowLogistic p) noexcept nogil:
    """Slope of the objective, and the bound of the multipliers at w, whose losses and conjugates add up to u'z."""
    cdef Py_ssize_t j
    stand_for(p, row(p, U))
    for j in range(p.n):
        p.vectors[G, j] = p.vectors[RIDGE, j] * p.vectors[W, j] - p.vectors[STANDS, j]
    if not p.free:
        take(p, p.loss + inner(row(p, U), row(p, Z), p.m), row(p, U))
    p.at_slope = True


cdef void weigh(NarrowLogistic p) noexcept nogil:
    """Write the weights of the rows in a matrix by every so many-th."""
    cdef Py_ssize_t j, k
    memset(row(p, FACTORED), 0, p.m * sizeof(double))
    for j in range((p.m + p.stride - 1) // p.stride):
        k = j * p.stride
        p.table[FACTORED, k] = p.stride * p.table[BENDS, k]


cdef void renew(NarrowLogistic p) noexcept nogil:
    """Factor the present second derivatives."""
    weigh(p)
    matrix(p)
    p.rough_factor = p.rough
    p.factored = p.fresh = factor(&p.M[0, 0], p.n + 8, p.n, vector(p, SCRATCH))


cdef inline double solved(NarrowLogistic p) noexcept nogil:
    """Solve with the factor for the residual; return its energy."""
    cdef double *s = vector(p, SOLVED)
    memcpy(s, vector(p, RESIDUAL), p.n * sizeof(double))
    solve(&p.M[0, 0], p.n + 8, p.n, s)
    return inner(vector(p, RESIDUAL), s, p.n)


cdef int iterate(NarrowLogistic p) noexcept nogil:
    """Go on towards the step by conjugate gradients with the factor while that pays; return their number.

    Written: the part of the step, of its change of margins, and the residual, solved for, that it leaves.
    """
    cdef Py_ssize_t j
    cdef int used = 0
    cdef double *v = vector(p, ALONG)
    cdef double *product = vector(p, PRODUCT)
    cdef double rho, enough, last, bend, size
    for j in range(p.n):
        p.vectors[RESIDUAL, j], p.vectors[STEP, j] = -p.vectors[G, j], 0.0
    memset(row(p, DZ), 0, p.m * sizeof(double))
    rho = solved(p)
    if not p.price > 0.0 or (p.fresh and p.stride == 1):
        return 0
    enough = rho * min(max(0.5 * rho / fabs(p.objective), LEAST_STEP_ENERGY), STEP_ENERGY)
    memcpy(v, vector(p, SOLVED), p.n * sizeof(double))
    while rho > enough and used <= p.price:
        curvature(p, ALONG, Q, PRODUCT)
        for j in range(p.n):
            product[j] += p.vectors[RIDGE, j] * v[j]
        bend = inner(v, product, p.n)
        if not bend > 0.0:
            break
        size = rho / bend
        add(v, 1, vector(p, STEP), p.n, size)
        add(row(p, Q), 1, row(p, DZ), p.m, size)
        add(product, 1, vector(p, RESIDUAL), p.n, -size)
        last, rho, used = rho, solved(p), used + 1
        for j in range(p.n):
            v[j] = p.vectors[SOLVED, j] + (rho / last) * v[j]
    return used


cdef bint direction(NarrowLogistic p) noexcept nogil:
    """Write the step, its change of margins, and the multipliers that it leads to; say whether there is one.

    With the residual r of what iterations leave, and a factor F of some other second derivatives, they are those of
    the step and F^-1 r: R' of them makes the coefficients.
    """
    cdef Py_ssize_t k
    cdef int used, least
    cdef bint worn
    cdef double *towards = row(p, TOWARDS)
    cdef double *dz = row(p, DZ)
    cdef const double *q = row(p, Q)
    cdef const double *u = row(p, U)
    cdef const double *bends = row(p, BENDS)
    cdef const double *held = row(p, FACTORED)
    if not p.factored:
        renew(p)
        if not p.factored:
            return False
    used = iterate(p)
    margins(p, SOLVED, Q)
    add(vector(p, SOLVED), 1, vector(p, STEP), p.n, 1.0)
    for k in range(p.m):
        towards[k] = u[k] - bends[k] * dz[k] - held[k] * q[k]
        dz[k] += q[k]
    p.exact = p.fresh and p.stride == 1
    least = ITERATIONS_BY_SAMPLE if p.stride > 1 else 0
    worn = not p.price > 0.0 or RENEWAL_STEPS * (used - least) * p.stride > p.price
    if worn and p.fresh and p.price > 0.0:  # another sample would be as bad
        worn = RENEWAL_STEPS * used > p.price
        p.stride = 1 if worn else p.stride
    p.factored, p.fresh = not worn, False
    return True


cdef bint step(NarrowLogistic p) noexcept nogil:
    """Make a Newton step with a line search, and evaluate where it ends; say whether there was one."""
    cdef Py_ssize_t j, k
    cdef double t = 1.0, start, bend, left, rise, loss = p.loss
    cdef double *z = row(p, Z)
    cdef double *dz = row(p, DZ)
    cdef double *before = row(p, BEFORE)
    cdef const double *u = row(p, U)
    cdef const double *d = vector(p, STEP)
    if not p.at_slope:
        slope(p)
    if not direction(p):
        return False
    start, bend = inner(vector(p, G), d, p.n), inner(d, d, p.n - p.free)
    memcpy(before, u, p.m * sizeof(double))
    for k in range(p.m):
        z[k] += dz[k]
    look(p)
    left = start + bend + inner(before, dz, p.m) - inner(u, dz, p.m)
    rise = start + 0.5 * bend + (p.loss - loss) + inner(before, dz, p.m)
    # A small slope alone may be that of the other side: margins that go through all kinks at once.
    if not (fabs(left) <= p.full * fabs(start) and rise <= p.rounding * fabs(p.objective)):
        for k in range(p.m):
            z[k] -= dz[k]
        t = length(z, dz, row(p, CAP), p.sharpness, p.kink, before, p.m, start, bend, p.close)
        t = t if t < INFINITY else 0.0
        for k in range(p.m):
            z[k] += t * dz[k]
        look(p)
    if not (t > 0.0 and isfinite(p.loss)):
        return False
    for j in range(p.n):
        p.vectors[W, j] += t * d[j]
    for k in range(p.m):
        p.table[ALPHA, k] = p.table[TOWARDS, k] - (1.0 - t) * (p.table[TOWARDS, k] - p.table[ALPHA, k])
    # Margins lose digits on a far step that is cut short, and coefficients follow ALPHA by an exact factor alone.
    p.loose = p.loose or (p.S is not None and (p.rough_factor or t != 1.0))
    total(p)
    if p.rough and not -0.5 * start > ROUGH_GAP * fabs(p.objective):
        refine(p)
    if p.exact:
        linear(p)
        return True
    if p.price > 0.0:
        if t < SHORT_BY_SAMPLE:
            p.stride, p.factored = 1, False
        if not -0.5 * start > p.far * fabs(p.objective):
            linear(p)
        return True
    slope(p)
    if not -0.5 * start > p.far * fabs(p.objective) or t < SHORT_BY_SAMPLE:
        p.stride = 1
        if p.free:  # multipliers at w do not balance yet
            memcpy(row(p, TOWARDS), u, p.m * sizeof(double))
            linear(p)
    return True


cdef void linear(NarrowLogistic p) noexcept nogil:
    """Try the multipliers that a step leads to, once they are within their bounds, for a better bound."""
    cdef Py_ssize_t k
    cdef double *beta = row(p, TOWARDS)
    cdef const double *caps = row(p, CAP)
    for k in range(p.m):
        beta[k] = min(max(beta[k], 0.0), caps[k])
    if p.free and not balance(row(p, LABEL), 1, caps, p.rows, -p.vectors[FIXED, p.n - 1], p.left_over, beta):
        return
    stand_for(p, beta)
    take(p, dual_value(p, beta), beta)
