"""Dual coordinate ascent over rows as they are, dense or CSR, for one hinge or squared hinge of every row.

A sweep goes over all rows in random order, a pass over the free ones: those that moved in the last sweep, or that it
left between their bounds. Margins at the visits of a sweep say what the duality gap is about.
"""

from libc.math cimport INFINITY
from libc.stdint cimport uint64_t

from mdlearn._solvers.rows cimport add, check_csr, index_t, inner, real_t, sparse_add, sparse_inner


cdef extern from *:
    """
    #if defined(__GNUC__) || defined(__clang__)
    #define MDLEARN_PREFETCH(address) __builtin_prefetch(address)
    #else
    #define MDLEARN_PREFETCH(address) ((void)0)
    #endif
    """
    void MDLEARN_PREFETCH(const void *address) noexcept nogil


cdef enum:
    # Places in a record of a row: eight numbers, one line of the cache.
    LABEL, CURVATURE, CAP, SOFTNESS, BETA, RECORD = 8


cdef class Ascent:
    """One column: what a visit reads and writes.

    Parameters
    ----------
    records : (m, 8) per row its label, |x|^2 (+ 1 with a bias) + softness, cap, softness and multiplier; the rest 0;
    w : (d + 1,) coefficients that the multipliers stand for, the intercept last; order, free : (m,) row numbers, those
    of all in any order, and room for those that are free; kink : margin at which the loss begins; border : 1 with a bias
    that is a feature, else 0; seed.

    Attributes
    ----------
    loss, gain : sums of the last sweep, at its margins: of the loss, and of what multipliers add to the dual value;
    visits : rows visited so far; n_free, n_between, n_capped : numbers of rows that are free, between their bounds, and at the upper one.
    """

    cdef double[:, ::1] records
    cdef double[::1] w
    cdef long long[::1] order, free
    cdef double kink, border
    cdef uint64_t state
    cdef readonly double loss, gain
    cdef double rest
    cdef readonly Py_ssize_t n_free, n_between, n_capped, visits

    def __init__(
        self, double[:, ::1] records, double[::1] w, long long[::1] order, long long[::1] free, double kink,
        double border, uint64_t seed,
    ):
        cdef Py_ssize_t i, m = records.shape[0]
        if records.shape[1] != RECORD or order.shape[0] != m or free.shape[0] != m or w.shape[0] == 0 or m == 0:
            raise ValueError("records, order, free rows and coefficients do not fit each other")
        for i in range(m):
            if not 0 <= order[i] < m:
                raise ValueError("a row is out of range")
        self.records, self.w, self.order, self.free = records, w, order, free
        self.kink, self.border, self.state = kink, border, seed | 1


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


cdef inline void begin(Ascent p, bint whole) noexcept nogil:
    if whole:
        p.loss = p.gain = 0.0
        p.n_free = p.n_between = p.n_capped = 0
        shuffle(p.order, p.order.shape[0], &p.state)
    else:
        p.rest = 0.0
        shuffle(p.free, p.n_free, &p.state)


cdef inline double move(Ascent p, double* r, Py_ssize_t i, double f, bint whole) noexcept nogil:
    """Ascend along one multiplier at the decision value f; return what w gets of the row."""
    cdef double g = p.kink - r[LABEL] * f, old = r[BETA], slope = g - r[SOFTNESS] * old, new
    if r[CURVATURE] > 0.0:
        new = min(max(old + slope / r[CURVATURE], 0.0), r[CAP])
    else:  # a row of length zero: no multiplier changes its margin
        new = (r[CAP] if r[CAP] < INFINITY else old) if slope > 0.0 else 0.0
    r[BETA] = new
    p.visits += 1
    if not whole:  # what the row contributes to the duality gap
        p.rest += (0.5 * max(g, 0.0) * max(g, 0.0) / r[SOFTNESS] + 0.5 * r[SOFTNESS] * old * old if r[SOFTNESS] > 0.0
                   else r[CAP] * max(g, 0.0)) - old * g
    else:
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
    return r[LABEL] * (new - old)


cdef inline Py_ssize_t place(Ascent p, Py_ssize_t k, bint whole) noexcept nogil:
    return p.order[k] if whole else p.free[k]


cdef inline void prefetch(const void* start, Py_ssize_t size) noexcept nogil:
    cdef Py_ssize_t k
    for k in range(0, min(size, 2048), 64):
        MDLEARN_PREFETCH(<const char*> start + k)


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
        step = move(p, &p.records[i, 0], i, inner(&X[i, 0], w, d) + p.border * w[d], whole)
        if step != 0.0:
            add(&X[i, 0], 1, w, d, step)
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


def dense(const real_t[:, :] X, Ascent p, bint whole, Py_ssize_t start, Py_ssize_t stop):
    """Visit the rows at places start <= k < stop of a sweep over all rows, or of a pass over the free ones."""
    if p.records.shape[0] != X.shape[0] or p.w.shape[0] != X.shape[1] + 1 or X.shape[1] == 0:
        raise ValueError("rows and problem differ in shape")
    if X.strides[1] != sizeof(real_t):
        raise ValueError("entries of a row need to lie one after the other")
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
    if p.records.shape[0] != X.shape[0] or p.w.shape[0] != X.shape[1] + 1 or X.shape[1] == 0:
        raise ValueError("rows and problem differ in shape")
    if X.strides[1] != sizeof(real_t):
        raise ValueError("entries of a row need to lie one after the other")
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
