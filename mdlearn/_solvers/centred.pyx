"""Coordinate ascent on CSR rows: hinge multipliers beta and variance multipliers s, two at a time, O(nnz) per update.

The variance is a squared loss on centred rows r_i - v; with w = u + tau v only the sparse part of a row is touched.
State: u = sum (s_i + side beta_i) r_i, tau = a - sum s_i, a_ = v.u, Y = sum (s_i + side beta_i) y_i + tau mean(y).
The bias is offset + live Y: fixed during a sweep (live = 0; the driver moves it between sweeps), Y itself (live = 1,
offset = 0), or between the two, where Y meets a resistance but is not held.
"""

from libc.math cimport INFINITY

from mdlearn._solvers.clones cimport MDLEARN_PREFETCH, prefetch
from mdlearn._solvers.rows cimport add, check_csr, check_order, index_t, inner, real_t, sparse_add, sparse_inner


cdef enum:
    # Places in a record of a coordinate: eight numbers, one line of the cache.
    LABEL, SQUARE, SHIFT, INVERSE, CAP, SOFTNESS, SIDE, KINK, RECORD


cdef class Centred:
    """Everything about a column that the loop reads, and the state that it writes.

    Parameters
    ----------
    records : (T, m, 8) what every coordinate is: sign, |x_i|^2, v.r_i, 1 / (kappa c_i) (any number without a variance
        term), cap, softness, side and kink. A record that begins where a line of the cache does is one visit to memory;
    norm : |v|^2; label_mean : mean of the signs; kappa : 0 without a variance term;
    beta : (T, m); s : (m,); u : (d,); keep : (T, m) marks of coordinates that moved.
    """

    cdef const double[:, :, ::1] records
    cdef double[:, ::1] beta
    cdef double[::1] s, u
    cdef unsigned char[:, ::1] keep
    cdef double norm, label_mean
    cdef readonly double kappa
    cdef public Py_ssize_t blank  # a column whose coefficient stays 0, or -1
    cdef public double tau, along, total, offset, live, lazy, loss, spread, gap

    def __init__(
        self, const double[:, :, ::1] records, double norm, double label_mean, double kappa, double[:, ::1] beta,
        double[::1] s, double[::1] u, unsigned char[:, ::1] keep,
    ):
        cdef Py_ssize_t T = beta.shape[0], m = beta.shape[1]
        if records.shape[0] != T or records.shape[1] != m or records.shape[2] != RECORD or s.shape[0] != m:
            raise ValueError("row records do not fit the multipliers")
        if keep.shape[0] != T or keep.shape[1] != m:
            raise ValueError("marks do not fit the multipliers")
        self.records, self.norm, self.label_mean, self.kappa = records, norm, label_mean, kappa
        self.beta, self.s, self.u, self.keep = beta, s, u, keep
        self.tau = self.along = self.total = self.offset = self.live = self.lazy = 0.0
        self.loss = self.spread = self.gap = 0.0
        self.blank = -1


cdef inline double price(double g, double old, double cap, double soft) noexcept nogil:
    """Contribution of one hinge multiplier to the duality gap, at slope g = side (threshold - z)."""
    cdef double plus = max(g, 0.0)
    if soft > 0.0:
        return 0.5 * plus * plus / soft + 0.5 * soft * old * old - old * g
    return cap * plus - old * g


cdef inline double move(Centred p, Py_ssize_t t, Py_ssize_t i, double dot) except? -1.0 nogil:
    """One exact two-variable step at the product `dot` = x_i.u; returns what u gets of x_i (0: nothing moved)."""
    cdef const double* r = &p.records[t, i, 0]
    cdef double y = r[LABEL], side = r[SIDE], cap = r[CAP], soft = r[SOFTNESS], old = p.beta[t, i]
    cdef double bias = p.offset + p.live * p.total
    cdef double z = y * dot + p.tau * r[SHIFT] + y * bias
    cdef double g = side * (r[KINK] - z), gs = 0.0, cross = 0.0, ratio = 0.0, n = 1.0, ds = 0.0, worth = 0.0
    cdef double slope = g - soft * old, h = r[SQUARE] + p.live + soft, tilt = 1.0 - y * p.label_mean, weight, new
    p.gap += price(g, old, cap, soft)
    p.loss += 0.5 * max(g, 0.0) * max(g, 0.0) / soft if soft > 0.0 else cap * max(g, 0.0)
    if p.kappa > 0.0:
        weight = 0.5 / r[INVERSE]
        gs = p.along + p.tau * p.norm + bias * p.label_mean - z
        if t == 0:
            p.spread += weight * gs * gs
        gs -= p.s[i] * r[INVERSE]
        worth = weight * gs * gs
        if t == 0:
            p.gap += worth
        cross = r[SQUARE] - r[SHIFT] + p.live * tilt
        n = 1.0 / (r[SQUARE] - 2.0 * r[SHIFT] + p.norm + r[INVERSE] + p.live * tilt * tilt)
        ratio = side * cross * n
        slope -= ratio * gs
        h -= ratio * side * cross
    if h > 0.0:
        new = min(max(old + slope / h, 0.0), cap)
    elif slope > 0.0:
        new = cap if cap < INFINITY else old
    else:
        new = 0.0
    p.keep[t, i] = new != old or (new > 0.0 and new < cap) or worth > p.lazy
    if new == old and worth <= p.lazy:
        return 0.0
    if p.kappa > 0.0:
        ds = gs * n - ratio * (new - old)
        p.s[i] += ds
        p.tau -= ds
        p.total -= ds * p.label_mean
    p.beta[t, i] = new
    ds += side * (new - old)
    p.along += ds * r[SHIFT]
    p.total += ds * y
    return ds * y


cdef inline Py_ssize_t row_of(long long coordinate, Py_ssize_t m) noexcept nogil:
    # Terms are few; a division would take as long as a dozen entries.
    while coordinate >= m:
        coordinate -= m
    return coordinate


def sweep(
    const real_t[::1] data, const index_t[::1] indices, const index_t[::1] indptr, Centred p,
    const long long[::1] order,
):
    """Visit the coordinates in `order` once, without the GIL; p's sums of loss, spread and gap are added to.

    No row may have a column twice.
    """
    cdef Py_ssize_t k, i, t, start, length, m = p.beta.shape[1], n = order.shape[0]
    cdef double step
    if p.blank >= p.u.shape[0]:
        raise ValueError("the column that stays 0 is none of the problem's")
    check_csr(data.shape[0], indices.shape[0], indptr, m, 0, m)
    check_order(order, p.beta.shape[0] * m)
    # Rows may all be empty.
    cdef const real_t* entries = &data[0] if data.shape[0] else NULL
    cdef const index_t* places = &indices[0] if data.shape[0] else NULL
    cdef double* u = &p.u[0] if p.u.shape[0] else NULL
    with nogil:
        for k in range(n):
            if k + 4 < n:
                # Rows come in random order: without a hint every one waits for memory, and so does all that belongs
                # to it.
                MDLEARN_PREFETCH(&indptr[row_of(order[min(k + 8, n - 1)], m)])
                i = row_of(order[k + 4], m)
                t = (order[k + 4] - i) // m if order[k + 4] >= m else 0
                MDLEARN_PREFETCH(&p.records[t, i, 0])
                MDLEARN_PREFETCH(&p.beta[t, i])
                if p.kappa > 0.0:
                    MDLEARN_PREFETCH(&p.s[i])
                start, length = indptr[i], indptr[i + 1] - indptr[i]
                prefetch(places + start, length * sizeof(index_t))
                prefetch(entries + start, length * sizeof(real_t))
            i = row_of(order[k], m)
            t = (order[k] - i) // m if order[k] >= m else 0
            start, length = indptr[i], indptr[i + 1] - indptr[i]
            step = move(p, t, i, sparse_inner(entries + start, places + start, u, length))
            if step != 0.0:
                sparse_add(entries + start, places + start, u, length, step)
                if p.blank >= 0:
                    u[p.blank] = 0.0


def sweep_blocks(
    const real_t[:, ::1] F, const long long[:, ::1] place, const long long[:, ::1] blocks,
    const double[:, ::1] couplings, Centred p, const long long[::1] order,
):
    """`sweep` for rows of dense blocks: row i has the entries F[place[i, j]] in block blocks[i, j].

    Without couplings (shape (0, 0)), p's u is the vector of coefficients. With couplings P = A A' of shape (K, K), it is
    A times these (mdlearn.data.features.smoothed_clusters), so that an update moves all blocks.
    """
    cdef Py_ssize_t k, i, t, j, l, ahead, m = p.beta.shape[1], n = order.shape[0], L = F.shape[1], K
    cdef double dot, step = 0.0
    K = p.u.shape[0] // L
    if place.shape[0] != m or blocks.shape[0] != m or blocks.shape[1] != place.shape[1] or K * L != p.u.shape[0]:
        raise ValueError("the blocks do not fit the problem")
    if couplings.shape[0] != 0 and (couplings.shape[0] != K or couplings.shape[1] != K):
        raise ValueError("the couplings do not fit the blocks")
    check_order(order, p.beta.shape[0] * m)
    for k in range(n):
        for j in range(place.shape[1]):
            i = order[k] % m
            if place[i, j] < 0 or place[i, j] >= F.shape[0] or blocks[i, j] < 0 or blocks[i, j] >= K:
                raise ValueError("a block is out of range")
    with nogil:
        for k in range(n):
            if k + 2 < n:
                ahead = order[k + 2] % m
                for j in range(0, L, 16):
                    MDLEARN_PREFETCH(&F[place[ahead, 0], j])
            t = order[k] // m
            i = order[k] - t * m
            dot = 0.0
            for j in range(place.shape[1]):
                dot += inner(&F[place[i, j], 0], &p.u[blocks[i, j] * L], L)
            step = move(p, t, i, dot)
            if step == 0.0:
                continue
            for j in range(place.shape[1]):
                if couplings.shape[0] == 0:
                    add(&F[place[i, j], 0], 1, &p.u[blocks[i, j] * L], L, step)
                else:
                    for l in range(K):
                        add(&F[place[i, j], 0], 1, &p.u[l * L], L, step * couplings[l, blocks[i, j]])
