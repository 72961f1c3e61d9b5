"""One row by dual coordinate ascent: what its multipliers become, what sums get, and what a sweep makes of these."""

from libc.math cimport INFINITY, fabs
from libc.stdint cimport uint64_t

from mdlearn._solvers.clones cimport MDLEARN_PREFETCH  # and what makes clones
from mdlearn._solvers.rows cimport add, inner, real_t


cdef extern from *:
    """
    /* Share of a row's curvature that is left at least beside what its variance takes up. */
    static const double LEFT_BY_ROUNDING = 1e-13;

    /* The larger and the smaller of two numbers, the second where one of them is none. Never a branch: each wrong
       guess of where a multiplier ends would wait for the product of a row. */
    #if defined(__SSE2__) || defined(_M_X64)
    #include <emmintrin.h>
    #define MDLEARN_OF_TWO(which, a, b) _mm_cvtsd_f64(which(_mm_set_sd(a), _mm_set_sd(b)))
    static inline double mdlearn_larger(double a, double b) { return MDLEARN_OF_TWO(_mm_max_sd, a, b); }
    static inline double mdlearn_smaller(double a, double b) { return MDLEARN_OF_TWO(_mm_min_sd, a, b); }
    #else
    static inline double mdlearn_larger(double a, double b) { return a > b ? a : b; }
    static inline double mdlearn_smaller(double a, double b) { return a < b ? a : b; }
    #endif

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
    const double LEFT_BY_ROUNDING
    double mdlearn_larger(double a, double b) noexcept nogil
    double mdlearn_smaller(double a, double b) noexcept nogil
    double mdlearn_inner(const double *x, const double *w, Py_ssize_t d) noexcept nogil
    void mdlearn_add(const double *x, double *w, Py_ssize_t d, double by) noexcept nogil


cdef enum:
    # Places in a record of a row: eight numbers, one line of the cache.
    LABEL, CURVATURE, CAP, SOFTNESS, BETA, SHIFT, INVERSE, SPREAD, RECORD


cdef class Ascent:
    cdef double[:, ::1] records
    cdef double[::1] w
    cdef const double[::1] centre
    cdef double[::1] margins
    cdef long long[::1] order, free
    cdef double kink, border, norm, mean, rate, lift
    cdef bint fresh
    cdef uint64_t state
    cdef public double tau, along, lazy
    cdef readonly double loss, gain
    cdef double rest
    cdef readonly Py_ssize_t n_free, n_between, n_capped, visits


cdef class Sweeps:
    cdef public int most
    cdef int settling
    cdef double share, surveyed, lazy, tol, least, near
    cdef Py_ssize_t visits, settling_visits
    cdef const double[::1] pull


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
        # A quotient would wait for the slope, which waits for the row's product.
        return mdlearn_smaller(r[CAP], mdlearn_larger(0.0, r[BETA] + slope * (1.0 / curvature)))
    # A row of length zero: no multiplier changes its margin.
    return (r[CAP] if r[CAP] < INFINITY else r[BETA]) if slope > 0.0 else 0.0


cdef inline double move_both(Ascent p, double* r, double* g, bint whole, double* step) noexcept nogil:
    """Ascend along both multipliers of a row; set its slope g and what u gets, and return the new one of the loss."""
    cdef double square = r[CURVATURE] - r[SOFTNESS], gs, weight, cross, n, ratio, left, new, worth, ds, t, mean, moved
    cdef double old = r[BETA]
    g[0] -= p.tau * r[SHIFT]
    if r[INVERSE] == 0.0:
        new = best(r, g[0] - r[SOFTNESS] * old, r[CURVATURE])
        step[0] = new - old
        return new
    weight = 0.5 / r[INVERSE]
    # The mean margin less the kink, and all else that no product of the row is in: it need not wait for that.
    mean = p.along + p.tau * p.norm - p.kink
    t = r[SPREAD] * r[INVERSE] - p.lift
    cross = square - r[SHIFT]
    # Both differences are positive, but for the rounding of long rows.
    n = 1.0 / (max(cross - r[SHIFT] + p.norm, 0.0) + r[INVERSE])
    ratio = cross * n
    left = max(r[CURVATURE] - ratio * cross, LEFT_BY_ROUNDING * r[CURVATURE])
    gs = g[0] + (mean - t)
    worth = weight * gs * gs
    new = best(r, (g[0] - r[SOFTNESS] * old) - ratio * gs, left)
    moved = new - old
    ds = gs * n - ratio * moved
    if whole:
        p.loss += weight * (g[0] + mean) * (g[0] + mean)
    else:
        p.rest += worth
    step[0] = 0.0
    if moved != 0.0 or worth > p.lazy:
        r[SPREAD] += ds
        t += ds * r[INVERSE]
        p.tau -= ds
        step[0] = ds + moved
        p.along += step[0] * r[SHIFT]
    if whole:
        p.gain -= weight * t * t
    return new


cdef inline double gap_of_loss(double* r, double g) noexcept nogil:
    """What the loss of a row contributes to the duality gap at a slope."""
    cdef double beta = r[BETA], ahead = mdlearn_larger(0.0, g)
    if r[SOFTNESS] > 0.0:
        return 0.5 * ahead * ahead / r[SOFTNESS] + 0.5 * r[SOFTNESS] * beta * beta - beta * g
    return r[CAP] * ahead - beta * g


cdef inline double move(Ascent p, double* r, Py_ssize_t i, double f, bint whole) noexcept nogil:
    """Ascend along the multipliers of a row at the product f of u and x; return what u gets of it."""
    cdef double g = p.kink - r[LABEL] * f, old = r[BETA], step, new
    cdef bint between
    if p.norm < INFINITY:
        new = move_both(p, r, &g, whole, &step)
    else:
        new = best(r, g - r[SOFTNESS] * old, r[CURVATURE])
        step = new - old
    if not whole:
        p.rest += gap_of_loss(r, g)
    r[BETA] = new
    p.visits += 1
    if whole:
        if r[SOFTNESS] > 0.0:
            if g > 0.0:
                p.loss += 0.5 * g * g / r[SOFTNESS]
        else:
            p.loss += mdlearn_larger(r[CAP] * g, 0.0)  # no number, but 0, at an infinite cap
        p.gain += new * (p.kink - 0.5 * r[SOFTNESS] * new)
        # Numbers in the place of branches: a wrong guess costs as much as ten entries of a row.
        between = (new > 0.0) & (new < r[CAP])
        p.n_between += between
        p.n_capped += (new > 0.0) & (not between)
        if (new != old) | between:
            p.free[p.n_free] = i
            p.n_free += 1
    return r[LABEL] * step


cdef inline void look_at(Ascent p, double* r, Py_ssize_t i, double f) noexcept nogil:
    """Add up what a row contributes at the product f of u and x; it is free where that is much, or between bounds."""
    cdef double g = p.kink - r[LABEL] * f, beta = r[BETA], ahead, weight, t
    cdef bint above = beta > 0.0, below = beta < r[CAP]
    if p.norm < INFINITY:
        g -= p.tau * r[SHIFT]
        p.margins[i] = p.kink - g
        if r[INVERSE] > 0.0:
            weight, t = 0.5 / r[INVERSE], p.along + p.tau * p.norm - p.margins[i]
            p.loss += weight * t * t
            t = r[SPREAD] * r[INVERSE] - p.lift
            p.gain -= weight * t * t
    else:
        r[SHIFT] = r[LABEL] * f
    # No branch depends on a row's margin. A limit of infinity, without softness, times 0 is no number.
    ahead = mdlearn_larger(0.0, g)
    p.loss += 0.5 * ahead * ahead / r[SOFTNESS] if r[SOFTNESS] > 0.0 else mdlearn_larger(r[CAP] * g, 0.0)
    p.gain += beta * (p.kink - 0.5 * r[SOFTNESS] * beta)
    p.n_between += above & below
    p.n_capped += above & (not below)
    p.free[p.n_free] = i
    p.n_free += (above & below) | (gap_of_loss(r, g) > p.lazy)


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


cdef inline double end_sweep(Ascent p, Sweeps s, double* sums) noexcept nogil:
    """Objective and bound at the sums of a sweep or survey; return by how much their gap is beyond the limit."""
    cdef Py_ssize_t n = p.w.shape[0]
    cdef double total = p.mean - p.tau, half, gap
    if p.norm < INFINITY:
        mdlearn_add(&p.centre[0], &p.w[0], n, -total)
        p.tau, p.along = p.mean, mdlearn_inner(&p.w[0], &p.centre[0], n)
        p.lift += total * p.rate
        gap = p.along + p.mean * p.norm
        half = 0.5 * (mdlearn_inner(&p.w[0], &p.w[0], n) + p.mean * (p.along + gap))
        sums[0], sums[1] = half + p.loss - p.mean * gap, p.gain + 0.5 * total * total * p.rate - half
    else:
        half = 0.5 * mdlearn_inner(&p.w[0], &p.w[0], n)
        sums[0], sums[1] = half + p.loss, p.gain - half
        if s.pull is not None:
            sums[0] -= mdlearn_inner(&p.w[0], &s.pull[0], s.pull.shape[0])
    gap = fabs(sums[0] - sums[1])  # margins at visits can say less than the bound does
    p.lazy = s.lazy * gap / p.records.shape[0]
    return gap - s.tol * max(fabs(sums[1] + gap), s.least)


cdef inline bint is_near(Ascent p, Sweeps s, const double* sums) noexcept nogil:
    """Whether free rows are to settle on their kinks, beside a variance."""
    cdef double gap = fabs(sums[0] - sums[1])
    return p.norm < INFINITY and gap <= s.near * max(fabs(sums[1] + gap), s.least)
