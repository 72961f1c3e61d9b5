"""Dual coordinate ascent over rows as they are, dense or CSR, for one hinge or squared hinge of every row.

A sweep goes over all rows in random order, a pass over the free ones: those whose multiplier of the loss moved in the
last sweep, or that it left between its bounds. Margins at the visits of a sweep say what the duality gap is about.
A survey moves nothing: it says what the gap is, and which rows are free, those that have a part of it. There is none
with a variance, where every row has one.

The variance is a squared loss on centred rows r_i - v, v the mean signed row: a visit moves its multiplier s_i, too. With
w = u + tau v only the row itself is added to anything.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from mdlearn._solvers.clones cimport MDLEARN_PREFETCH, prefetch
from mdlearn._solvers.rows cimport add, check_csr, index_t, inner, real_t, sparse_add, sparse_inner


cdef extern from *:
    """
    /* Products and sums as `inner` and `add` make them, for wider vectors: the same bits. */
    MDLEARN_CLONES static double mdlearn_inner(const double *x, const double *w, Py_ssize_t d)
    {
        double p[8] = {0};
        Py_ssize_t j, k;
        for (j = 0; j + 8 <= d; j += 8)
            for (k = 0; k < 8; k++)
                p[k] += x[j + k] * w[j + k];
        for (; j < d; j++)
            p[0] += x[j] * w[j];
        return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
    }

    MDLEARN_CLONES static void mdlearn_add(const double *x, double *w, Py_ssize_t d, double by)
    {
        Py_ssize_t j;
        for (j = 0; j < d; j++)
            w[j] += by * x[j];
    }
    """
    double mdlearn_inner(const double *x, const double *w, Py_ssize_t d) noexcept nogil
    void mdlearn_add(const double *x, double *w, Py_ssize_t d, double by) noexcept nogil


cdef enum:
    # Places in a record of a row: eight numbers, one line of the cache.
    LABEL, CURVATURE, CAP, SOFTNESS, BETA, SHIFT, INVERSE, SPREAD, RECORD


cdef double LEFT_BY_ROUNDING = 1e-13
"""Share of a row's curvature that is left at least beside what its variance takes up."""


cdef class Ascent:
    """One column: what a visit reads and writes.

    Parameters
    ----------
    records : (m, 8) per row its label, |x|^2 (+ 1 with a bias) + softness, cap, softness and multiplier; with a variance
    v.r_i, 1 / (kappa c_i) (0 for a row of weight 0) and s_i, else 0; w : (d + 1,) u, the intercept last; order, free :
    (m,) row numbers, those of all in any order, and room for those that are free; kink : margin at which the loss
    begins; border : 1 with a bias that is a feature, else 0; norm : |v|^2, infinity without a variance; seed.

    Attributes
    ----------
    tau : what v is in w; along : u.v; lazy : gap of a row below which its s_i stays, and a survey leaves it out.
    loss, gain : sums of the last sweep or survey, at its margins: of the loss, and of what multipliers add to the dual
    value;
    visits : rows visited so far; n_free, n_between, n_capped : numbers of rows that are free, between their bounds, and
    at the upper one.
    """

    cdef double[:, ::1] records
    cdef double[::1] w
    cdef long long[::1] order, free
    cdef double kink, border, norm
    cdef uint64_t state
    cdef public double tau, along, lazy
    cdef readonly double loss, gain
    cdef double rest
    cdef readonly Py_ssize_t n_free, n_between, n_capped, visits

    def __init__(
        self, double[:, ::1] records, double[::1] w, long long[::1] order, long long[::1] free, double kink,
        double border, double norm, uint64_t seed,
    ):
        cdef Py_ssize_t i, m = records.shape[0]
        if records.shape[1] != RECORD or order.shape[0] != m or free.shape[0] != m or w.shape[0] == 0 or m == 0:
            raise ValueError("records, order, free rows and coefficients do not fit each other")
        for i in range(m):
            if not 0 <= order[i] < m:
                raise ValueError("a row is out of range")
        self.records, self.w, self.order, self.free = records, w, order, free
        self.kink, self.border, self.norm, self.state = kink, border, norm, seed | 1
        self.tau = self.along = self.lazy = 0.0

    def choose(self, const long long[::1] rows):
        """Take these rows as the free ones."""
        cdef Py_ssize_t k, n = rows.shape[0]
        if n > self.free.shape[0]:
            raise ValueError("there are more free rows than rows")
        for k in range(n):
            if not 0 <= rows[k] < self.free.shape[0]:
                raise ValueError("a row is out of range")
        self.free[:n] = rows
        self.n_free = n


cdef inline void shuffle(long long[::1] order, Py_ssize_t n, uint64_t* state) noexcept nogil:
    # Xorshift; a multiplication takes the place of a division.
    cdef Py_ssize_t k, j
    cdef uint64_t s = state[0]
    cdef long long held
    for k in range(n - 1, 0, -1):
        s ^= s << 13
        s ^= s >> 7
        s ^= s << 17
        j = <Py_ssize_t> (((s >> 32) * <uint64_t> (k + 1)) >> 32)
        held = order[k]
        order[k] = order[j]
        order[j] = held
    state[0] = s


cdef inline void forget(Ascent p) noexcept nogil:
    p.loss = p.gain = 0.0
    p.n_free = p.n_between = p.n_capped = 0


cdef inline void begin(Ascent p, bint whole) noexcept nogil:
    if whole:
        forget(p)
        shuffle(p.order, p.order.shape[0], &p.state)
    else:
        p.rest = 0.0
        shuffle(p.free, p.n_free, &p.state)


cdef inline double best(double* r, double slope, double curvature) noexcept nogil:
    """Multiplier between its bounds that ends a slope of such a curvature."""
    if curvature > 0.0:
        return min(max(r[BETA] + slope / curvature, 0.0), r[CAP])
    # A row of length zero: no multiplier changes its margin.
    return (r[CAP] if r[CAP] < INFINITY else r[BETA]) if slope > 0.0 else 0.0


cdef inline double move_both(Ascent p, double* r, double* g, bint whole) noexcept nogil:
    """Ascend along both multipliers of a row; set its slope g, and return the new one of the loss."""
    cdef double square = r[CURVATURE] - r[SOFTNESS], gs, weight, cross, n, ratio, left, new, worth, ds
    g[0] -= p.tau * r[SHIFT]
    if r[INVERSE] == 0.0:
        return best(r, g[0] - r[SOFTNESS] * r[BETA], r[CURVATURE])
    gs, weight = p.along + p.tau * p.norm + g[0] - p.kink, 0.5 / r[INVERSE]
    if whole:
        p.loss += weight * gs * gs
    gs -= r[SPREAD] * r[INVERSE]
    worth = weight * gs * gs
    cross = square - r[SHIFT]
    # Both differences are positive, but for the rounding of long rows.
    n = 1.0 / (max(cross - r[SHIFT] + p.norm, 0.0) + r[INVERSE])
    ratio = cross * n
    left = max(r[CURVATURE] - ratio * cross, LEFT_BY_ROUNDING * r[CURVATURE])
    new = best(r, g[0] - r[SOFTNESS] * r[BETA] - ratio * gs, left)
    if new != r[BETA] or worth > p.lazy:
        ds = gs * n - ratio * (new - r[BETA])
        r[SPREAD] += ds
        p.tau -= ds
        p.along += (ds + new - r[BETA]) * r[SHIFT]
    if whole:
        p.gain -= 0.5 * r[INVERSE] * r[SPREAD] * r[SPREAD]
    else:
        p.rest += worth
    return new


cdef inline double gap_of_loss(double* r, double g) noexcept nogil:
    """What the loss of a row contributes to the duality gap at a slope."""
    cdef double beta = r[BETA], ahead = max(g, 0.0)
    if r[SOFTNESS] > 0.0:
        return 0.5 * ahead * ahead / r[SOFTNESS] + 0.5 * r[SOFTNESS] * beta * beta - beta * g
    return r[CAP] * ahead - beta * g


cdef inline double move(Ascent p, double* r, Py_ssize_t i, double f, bint whole) noexcept nogil:
    """Ascend along the multipliers of a row at the product f of u and x; return what u gets of it."""
    cdef double g = p.kink - r[LABEL] * f, old = r[BETA], step = -r[SPREAD], new
    if p.norm < INFINITY:
        new = move_both(p, r, &g, whole)
    else:
        new = best(r, g - r[SOFTNESS] * old, r[CURVATURE])
    if not whole:
        p.rest += gap_of_loss(r, g)
    step += r[SPREAD] + (new - old)
    r[BETA] = new
    p.visits += 1
    if whole:
        if g > 0.0:
            p.loss += 0.5 * g * g / r[SOFTNESS] if r[SOFTNESS] > 0.0 else r[CAP] * g
        p.gain += new * (p.kink - 0.5 * r[SOFTNESS] * new)
        if 0.0 < new < r[CAP]:
            p.n_between += 1
        elif new > 0.0:
            p.n_capped += 1
        if new != old or 0.0 < new < r[CAP]:
            p.free[p.n_free] = i
            p.n_free += 1
    return r[LABEL] * step


cdef inline void look_at(Ascent p, double* r, Py_ssize_t i, double f) noexcept nogil:
    """Add up what a row contributes at the product f of u and x; it is free where that is much, or between bounds."""
    cdef double g = p.kink - r[LABEL] * f, beta = r[BETA]
    if g > 0.0:
        p.loss += 0.5 * g * g / r[SOFTNESS] if r[SOFTNESS] > 0.0 else r[CAP] * g
    p.gain += beta * (p.kink - 0.5 * r[SOFTNESS] * beta)
    p.n_between += 0.0 < beta < r[CAP]
    p.n_capped += beta >= r[CAP] > 0.0
    if 0.0 < beta < r[CAP] or gap_of_loss(r, g) > p.lazy:
        p.free[p.n_free] = i
        p.n_free += 1


cdef inline Py_ssize_t place(Ascent p, Py_ssize_t k, bint whole) noexcept nogil:
    return p.order[k] if whole else p.free[k]


cdef inline double product(const real_t* x, const double* w, Py_ssize_t d) noexcept nogil:
    if real_t is double:
        return mdlearn_inner(x, w, d)
    else:
        return inner(x, w, d)


cdef inline void grow(const real_t* x, double* w, Py_ssize_t d, double by) noexcept nogil:
    if real_t is double:
        mdlearn_add(x, w, d, by)
    else:
        add(x, 1, w, d, by)


cdef void visit_dense(
    const real_t[:, :] X, Ascent p, bint whole, Py_ssize_t start, Py_ssize_t stop
) noexcept nogil:
    cdef Py_ssize_t i, k, d = X.shape[1]
    cdef double step
    cdef double* w = &p.w[0]
    if start == 0:
        begin(p, whole)
    for k in range(start, stop):
        if k + 2 < stop:
            i = place(p, k + 2, whole)
            MDLEARN_PREFETCH(&p.records[i, 0])
            prefetch(&X[i, 0], d * sizeof(real_t))
        i = place(p, k, whole)
        step = move(p, &p.records[i, 0], i, product(&X[i, 0], w, d) + p.border * w[d], whole)
        if step != 0.0:
            grow(&X[i, 0], w, d, step)
            w[d] += p.border * step


cdef void visit_sparse(
    const real_t* data, const index_t* indices, const index_t[::1] indptr, Ascent p, bint whole, Py_ssize_t start,
    Py_ssize_t stop,
) noexcept nogil:
    cdef Py_ssize_t i, k, first, length, d = p.w.shape[0] - 1
    cdef double step
    cdef double* w = &p.w[0]
    if start == 0:
        begin(p, whole)
    for k in range(start, stop):
        if k + 4 < stop:
            # Rows come in random order: without a hint every one waits for memory, and so does what belongs to it.
            MDLEARN_PREFETCH(&indptr[place(p, min(k + 8, stop - 1), whole)])
            i = place(p, k + 4, whole)
            MDLEARN_PREFETCH(&p.records[i, 0])
            first, length = indptr[i], indptr[i + 1] - indptr[i]
            prefetch(data + first, length * sizeof(real_t))
            prefetch(indices + first, length * sizeof(index_t))
        i = place(p, k, whole)
        first, length = indptr[i], indptr[i + 1] - indptr[i]
        step = sparse_inner(data + first, indices + first, w, length) + p.border * w[d]
        step = move(p, &p.records[i, 0], i, step, whole)
        if step != 0.0:
            sparse_add(data + first, indices + first, w, length, step)
            w[d] += p.border * step


cdef int check_visits(Ascent p, bint whole, Py_ssize_t start, Py_ssize_t stop) except -1:
    if not 0 <= start <= stop <= (p.order.shape[0] if whole else p.n_free):
        raise ValueError("the range of visits is out of bounds")
    return 0


cdef int check_dense(const real_t[:, :] X, Ascent p) except -1:
    if p.records.shape[0] != X.shape[0] or p.w.shape[0] != X.shape[1] + 1 or X.shape[1] == 0:
        raise ValueError("rows and problem differ in shape")
    if X.strides[1] != sizeof(real_t):
        raise ValueError("entries of a row need to lie one after the other")
    return 0


def dense(const real_t[:, :] X, Ascent p, bint whole, Py_ssize_t start, Py_ssize_t stop):
    """Visit the rows at places start <= k < stop of a sweep over all rows, or of a pass over the free ones."""
    check_dense(X, p)
    check_visits(p, whole, start, stop)
    with nogil:
        visit_dense(X, p, whole, start, stop)


def sparse(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, bint whole,
    Py_ssize_t start, Py_ssize_t stop,
):
    """The same over rows of a CSR matrix whose columns are below that of the intercept; no row has one twice."""
    check_csr(data.shape[0], indices.shape[0], indptr, p.records.shape[0], 0, p.records.shape[0])
    check_visits(p, whole, start, stop)
    # Rows may all be empty.
    cdef const real_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if data.shape[0] else NULL
    with nogil:
        visit_sparse(entries, places, indptr, p, whole, start, stop)


def dense_passes(const real_t[:, :] X, Ascent p, int most, double share, Py_ssize_t visits):
    """Passes over the free rows: at most so many, and visits, until their part of the gap is a `share` of the first."""
    cdef int turn
    cdef double first = 0.0
    cdef Py_ssize_t end = p.visits + visits
    check_dense(X, p)
    with nogil:
        for turn in range(most):
            visit_dense(X, p, False, 0, p.n_free)
            first = p.rest if turn == 0 else first
            if (turn and not p.rest > share * first) or p.visits + p.n_free > end:
                break


def sparse_passes(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, int most, double share,
    Py_ssize_t visits,
):
    """The same over rows of a CSR matrix."""
    cdef int turn
    cdef double first = 0.0
    cdef Py_ssize_t end = p.visits + visits
    check_csr(data.shape[0], indices.shape[0], indptr, p.records.shape[0], 0, p.records.shape[0])
    cdef const real_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if data.shape[0] else NULL
    with nogil:
        for turn in range(most):
            visit_sparse(entries, places, indptr, p, False, 0, p.n_free)
            first = p.rest if turn == 0 else first
            if (turn and not p.rest > share * first) or p.visits + p.n_free > end:
                break


cdef int check_survey(Ascent p, Py_ssize_t start, Py_ssize_t stop) except -1:
    if p.norm < INFINITY:
        raise ValueError("a survey takes no variance term")
    if start and p.n_free > start:
        raise ValueError("a survey goes over the rows in their order")
    return check_visits(p, True, start, stop)


def dense_survey(const real_t[:, :] X, Ascent p, Py_ssize_t start, Py_ssize_t stop):
    """Survey the rows start <= i < stop: sums, and the rows that are free."""
    cdef Py_ssize_t i, d = X.shape[1]
    check_dense(X, p)
    check_survey(p, start, stop)
    with nogil:
        if start == 0:
            forget(p)
        for i in range(start, stop):
            look_at(p, &p.records[i, 0], i, product(&X[i, 0], &p.w[0], d) + p.border * p.w[d])


def sparse_survey(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, Py_ssize_t start,
    Py_ssize_t stop,
):
    """The same over rows of a CSR matrix whose columns are below that of the intercept."""
    cdef Py_ssize_t i, first, d = p.w.shape[0] - 1
    cdef double f
    check_csr(data.shape[0], indices.shape[0], indptr, p.records.shape[0], 0, p.records.shape[0])
    check_survey(p, start, stop)
    cdef const real_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if data.shape[0] else NULL
    with nogil:
        if start == 0:
            forget(p)
        for i in range(start, stop):
            first = indptr[i]
            f = sparse_inner(entries + first, places + first, &p.w[0], indptr[i + 1] - first) + p.border * p.w[d]
            look_at(p, &p.records[i, 0], i, f)
