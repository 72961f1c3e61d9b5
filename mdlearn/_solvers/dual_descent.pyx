"""Dual coordinate ascent over rows as they are, dense or CSR, for one hinge or squared hinge of every row.

A sweep goes over all rows in random order, a pass over the free ones: those whose multiplier of the loss moved in the
last sweep, or that it left between its bounds. Margins at the visits of a sweep say what the duality gap is about.
A survey moves nothing: it says what the gap is, and which rows are free, those whose loss has a part of it.

The variance is a squared loss on centred rows r_i - v, v the mean signed row: a visit moves its multiplier s_i, too. With
w = u + tau v only the row itself is added to anything. After a sweep all s_i move by multiples of the weights c_i, to
the sum 0, and u and tau with them, so that w stays: a single number says how far.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from mdlearn._solvers.clones cimport MDLEARN_PREFETCH, prefetch
from mdlearn._solvers.rows cimport (
    check_csr, entries_from, entry_t, index_t, n_stored, real_t, schar, sparse_add, sparse_inner,
)


cdef class Ascent:
    """One column: what a visit reads and writes.

    Parameters
    ----------
    records : (m, 8) per row its label, |x|^2 (+ 1 with a bias) + softness, cap, softness and multiplier; with a variance
    room for v.r_i, which the first sweep writes, 1 / (kappa c_i) (0 for a row of weight 0) and s_i, before `lift` c_i
    kappa is taken from it, else the margin at the last survey, and 0; w : (d + 1,) u, the intercept last; order, free :
    (m,) row numbers, those of all in any order, and room for those that are free; kink : margin at which the loss begins;
    border : 1 with a bias that is a feature, else 0; seed; with a variance also centre : (d + 1,) v, margins : (m,) room
    for those of a survey, mean : weight of the mean, which tau is while the s_i sum to 0; rate : 1 / (kappa sum c_i).

    Attributes
    ----------
    tau : what v is in w; along : u.v; lazy : gap of a row below which its s_i stays, and a survey leaves it out.
    lift : what all s_i have moved by since they were written, as above.
    loss, gain : sums of the last sweep or survey, at its margins: of the loss, and of what multipliers add to the dual
    value;
    visits : rows visited so far; n_free, n_between, n_capped : numbers of rows that are free, between their bounds, and
    at the upper one.
    """

    def __init__(
        self, double[:, ::1] records, double[::1] w, long long[::1] order, long long[::1] free, double kink,
        double border, uint64_t seed, const double[::1] centre = None, double[::1] margins = None, double mean = 0.0,
        double rate = 0.0,
    ):
        cdef Py_ssize_t i, m = records.shape[0]
        if records.shape[1] != RECORD or order.shape[0] != m or free.shape[0] != m or w.shape[0] == 0 or m == 0:
            raise ValueError("records, order, free rows and coefficients do not fit each other")
        if centre is not None and (margins is None or centre.shape[0] != w.shape[0] or margins.shape[0] != m):
            raise ValueError("the mean row and margins do not fit the rows")
        for i in range(m):
            if not 0 <= order[i] < m:
                raise ValueError("a row is out of range")
        self.records, self.w, self.order, self.free = records, w, order, free
        self.kink, self.border, self.norm, self.state = kink, border, INFINITY, seed | 1
        self.centre, self.margins, self.mean, self.rate = centre, margins, mean, rate
        self.tau = self.along = self.lazy = self.lift = 0.0
        self.fresh = centre is not None
        if self.fresh:
            self.tau, self.norm = mean, mdlearn_inner(&centre[0], &centre[0], centre.shape[0])

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

    def settle_spread(self):
        """Write into the records what all s_i have moved by, and return u.v anew."""
        cdef Py_ssize_t i
        if self.lift != 0.0:
            for i in range(self.records.shape[0]):
                if self.records[i, INVERSE] > 0.0:
                    self.records[i, SPREAD] -= self.lift / self.records[i, INVERSE]
        self.lift = 0.0
        self.along = mdlearn_inner(&self.w[0], &self.centre[0], self.w.shape[0])


cdef class Sweeps:
    """Limits of passes and sweeps, one for all of a column.

    Beside a variance the visits of a sweep leave the free rows off their kinks: near the gap that is asked for passes
    over these follow, and a survey.

    Parameters
    ----------
    most, share, visits : of passes, as for `dense_passes`; surveyed : share of free rows up to which a survey follows
    their passes; lazy : share of the mean gap of a row below which a survey leaves it out; tol, least : relative gap
    at which sweeps end, and the smallest value that it is relative to; pull : (n,) what a mean term pulls the first n
    coefficients with, or None; near, settling, settling_visits : relative gap from which such passes follow, most of
    them, and visits.
    """

    def __init__(
        self, int most, double share, Py_ssize_t visits, double surveyed, double lazy, double tol, double least,
        const double[::1] pull = None, double near = 0.0, int settling = 0, Py_ssize_t settling_visits = 0,
    ):
        self.near, self.settling, self.settling_visits = near, settling, settling_visits
        self.most, self.share, self.visits, self.surveyed = most, share, visits, surveyed
        self.lazy, self.tol, self.least, self.pull = lazy, tol, least, pull


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
        if p.fresh:
            p.records[i, SHIFT] = p.records[i, LABEL] * (product(&X[i, 0], &p.centre[0], d) + p.border * p.centre[d])
        step = move(p, &p.records[i, 0], i, product(&X[i, 0], w, d) + p.border * w[d], whole)
        if step != 0.0:
            grow(&X[i, 0], w, d, step)
            w[d] += p.border * step
    p.fresh = p.fresh and stop < p.order.shape[0]


cdef void visit_sparse(
    const entry_t* data, const index_t* indices, const index_t[::1] indptr, Ascent p, bint whole, Py_ssize_t start,
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
            if entry_t is not schar:
                prefetch(data + first, length * sizeof(entry_t))
            prefetch(indices + first, length * sizeof(index_t))
        i = place(p, k, whole)
        first, length = indptr[i], indptr[i + 1] - indptr[i]
        if p.fresh:
            step = sparse_inner(entries_from(data, first), indices + first, &p.centre[0], length)
            p.records[i, SHIFT] = p.records[i, LABEL] * (step + p.border * p.centre[d])
        step = sparse_inner(entries_from(data, first), indices + first, w, length) + p.border * w[d]
        step = move(p, &p.records[i, 0], i, step, whole)
        if step != 0.0:
            sparse_add(entries_from(data, first), indices + first, w, length, step)
            w[d] += p.border * step
    p.fresh = p.fresh and stop < p.order.shape[0]


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
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, bint whole,
    Py_ssize_t start, Py_ssize_t stop,
):
    """The same over rows of a CSR matrix whose columns are below that of the intercept; no row has one twice.

    Here and below, an empty `data` of int8 stands for entries that are all 1.
    """
    check_csr(n_stored(data, indices), indices.shape[0], indptr, p.records.shape[0], 0, p.records.shape[0])
    check_visits(p, whole, start, stop)
    # Rows may all be empty.
    cdef const entry_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if indices.shape[0] else NULL
    with nogil:
        visit_sparse(entries, places, indptr, p, whole, start, stop)


cdef void pass_over_dense(const real_t[:, :] X, Ascent p, int most, double share, Py_ssize_t visits) noexcept nogil:
    cdef int turn
    cdef double first = 0.0
    cdef Py_ssize_t end = p.visits + visits
    for turn in range(most):
        visit_dense(X, p, False, 0, p.n_free)
        first = p.rest if turn == 0 else first
        if (turn and not p.rest > share * first) or p.visits + p.n_free > end:
            break


cdef void pass_over_sparse(
    const entry_t* data, const index_t* indices, const index_t[::1] indptr, Ascent p, int most, double share,
    Py_ssize_t visits,
) noexcept nogil:
    cdef int turn
    cdef double first = 0.0
    cdef Py_ssize_t end = p.visits + visits
    for turn in range(most):
        visit_sparse(data, indices, indptr, p, False, 0, p.n_free)
        first = p.rest if turn == 0 else first
        if (turn and not p.rest > share * first) or p.visits + p.n_free > end:
            break


def dense_passes(const real_t[:, :] X, Ascent p, int most, double share, Py_ssize_t visits):
    """Passes over the free rows: at most so many, and visits, until their part of the gap is a `share` of the first."""
    check_dense(X, p)
    with nogil:
        pass_over_dense(X, p, most, share, visits)


def sparse_passes(
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, int most, double share,
    Py_ssize_t visits,
):
    """The same over rows of a CSR matrix."""
    check_csr(n_stored(data, indices), indices.shape[0], indptr, p.records.shape[0], 0, p.records.shape[0])
    cdef const entry_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if indices.shape[0] else NULL
    with nogil:
        pass_over_sparse(entries, places, indptr, p, most, share, visits)


cdef int check_survey(Ascent p, Py_ssize_t start, Py_ssize_t stop) except -1:
    if p.fresh and stop > start:
        raise ValueError("a survey beside a variance follows a sweep")
    if start and p.n_free > start:
        raise ValueError("a survey goes over the rows in their order")
    return check_visits(p, True, start, stop)


cdef void survey_dense(const real_t[:, :] X, Ascent p, Py_ssize_t start, Py_ssize_t stop) noexcept nogil:
    cdef Py_ssize_t i, d = X.shape[1]
    if start == 0:
        forget(p)
    for i in range(start, stop):
        look_at(p, &p.records[i, 0], i, product(&X[i, 0], &p.w[0], d) + p.border * p.w[d])


cdef void survey_sparse(
    const entry_t* data, const index_t* indices, const index_t[::1] indptr, Ascent p, Py_ssize_t start, Py_ssize_t stop
) noexcept nogil:
    cdef Py_ssize_t i, first, d = p.w.shape[0] - 1
    cdef double f
    if start == 0:
        forget(p)
    for i in range(start, stop):
        first = indptr[i]
        f = sparse_inner(entries_from(data, first), indices + first, &p.w[0], indptr[i + 1] - first) + p.border * p.w[d]
        look_at(p, &p.records[i, 0], i, f)


def dense_survey(const real_t[:, :] X, Ascent p, Py_ssize_t start, Py_ssize_t stop):
    """Survey the rows start <= i < stop: sums, and the rows that are free."""
    check_dense(X, p)
    check_survey(p, start, stop)
    with nogil:
        survey_dense(X, p, start, stop)


def sparse_survey(
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, Py_ssize_t start,
    Py_ssize_t stop,
):
    """The same over rows of a CSR matrix whose columns are below that of the intercept."""
    check_csr(n_stored(data, indices), indices.shape[0], indptr, p.records.shape[0], 0, p.records.shape[0])
    check_survey(p, start, stop)
    cdef const entry_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if indices.shape[0] else NULL
    with nogil:
        survey_sparse(entries, places, indptr, p, start, stop)


cdef int check_sweeps(Ascent p, Sweeps s) except -1:
    if s.pull is not None and not 0 < s.pull.shape[0] <= p.w.shape[0]:
        raise ValueError("coefficients and what they are pulled with do not fit")
    return 0


def sums_of_sweep(Ascent p, Sweeps s):
    """Objective and bound at the sums of a sweep or survey; s_i of a variance then sum to 0."""
    cdef double sums[2]
    check_sweeps(p, s)
    end_sweep(p, s, sums)
    return sums[0], sums[1]


def dense_sweeps(const real_t[:, :] X, Ascent p, int n, int plain, Sweeps s):
    """Sweep n times over all rows, after passes over the free ones but for the first `plain` times.

    A survey follows passes over few rows in the place of a sweep, but for a variance; one looks again where margins at
    visits say that the gap meets `tol`, or is near beside a variance, and the sweeps end once it does. Returns of each
    sweep the objective, the bound, numbers of visits in passes, of rows visited and surveyed in the sweep, and of rows
    between their bounds.
    """
    cdef Py_ssize_t m = p.records.shape[0], free, before, visited, surveyed
    cdef double sums[2]
    cdef double beyond = 1.0
    cdef list found = []
    check_dense(X, p)
    check_sweeps(p, s)
    while n > 0 and beyond > 0.0:
        n -= 1
        with nogil:
            free, before, surveyed = p.n_free, p.visits, 0
            if plain <= 0 and free > 0:
                pass_over_dense(X, p, s.most, s.share, s.visits)
            visited = 0 if p.norm == INFINITY and p.visits > before and free <= s.surveyed * m else m
            before = p.visits - before
            if visited:
                visit_dense(X, p, True, 0, m)
                beyond = end_sweep(p, s, sums)
            if is_near(p, s, sums):
                before -= p.visits
                pass_over_dense(X, p, s.settling, 0.0, s.settling_visits)
                before += p.visits
                end_sweep(p, s, sums)
                beyond = 0.0
            elif p.norm < INFINITY:
                beyond = 1.0
            if not visited or beyond <= 0.0:
                survey_dense(X, p, 0, m)
                surveyed, beyond = m, end_sweep(p, s, sums)
        plain -= 1
        found.append((sums[0], sums[1], before, visited, surveyed, p.n_between))
    return found


def sparse_sweeps(
    const entry_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Ascent p, int n, int plain,
    Sweeps s,
):
    """The same over rows of a CSR matrix."""
    cdef Py_ssize_t m = p.records.shape[0], free, before, visited, surveyed
    cdef double sums[2]
    cdef double beyond = 1.0
    cdef list found = []
    check_csr(n_stored(data, indices), indices.shape[0], indptr, m, 0, m)
    check_sweeps(p, s)
    cdef const entry_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if indices.shape[0] else NULL
    while n > 0 and beyond > 0.0:
        n -= 1
        with nogil:
            free, before, surveyed = p.n_free, p.visits, 0
            if plain <= 0 and free > 0:
                pass_over_sparse(entries, places, indptr, p, s.most, s.share, s.visits)
            visited = 0 if p.norm == INFINITY and p.visits > before and free <= s.surveyed * m else m
            before = p.visits - before
            if visited:
                visit_sparse(entries, places, indptr, p, True, 0, m)
                beyond = end_sweep(p, s, sums)
            if is_near(p, s, sums):
                before -= p.visits
                pass_over_sparse(entries, places, indptr, p, s.settling, 0.0, s.settling_visits)
                before += p.visits
                end_sweep(p, s, sums)
                beyond = 0.0
            elif p.norm < INFINITY:
                beyond = 1.0
            if not visited or beyond <= 0.0:
                survey_sparse(entries, places, indptr, p, 0, m)
                surveyed, beyond = m, end_sweep(p, s, sums)
        plain -= 1
        found.append((sums[0], sums[1], before, visited, surveyed, p.n_between))
    return found
