"""Newton steps on hinges over narrow rows: tables of rows and coefficients, attributes, and products of these."""

from mdlearn._solvers.narrow_loops cimport mdlearn_margins
from mdlearn._solvers.narrow_matrices cimport half_solve
from mdlearn._solvers.rows cimport inner

cdef enum:
    # Rows of the table of a problem: numbers of every row of it.
    LABEL, CAP, SOFTNESS, STEEPNESS, CENTRE, Z, X, U, SIGNED, SLOPE, DZ, SDZ, FALL, ALPHA, BEST, HELD, TABLE
    # Rows of the table of its coefficients.
    W = 0, G, PUSHED, AW, STEP, SOLUTION, HALF, FIXED, BEST_PUSHED, SCRATCH, MORE_SCRATCH, HIGHEST, VECTORS
    TRIALS = 60, MOST_MOVES = 8, SHORT_STEPS = 3, LANES = 8, PIECE = 256, SAMPLE = 16


cdef class NarrowNewton:
    cdef const double[:, ::1] T, A, L
    cdef double[:, ::1] table
    cdef double[::1] space
    cdef double *vectors
    cdef double *M
    cdef double *sum
    cdef double *room
    cdef long long *free
    cdef Py_ssize_t rows, m, n, n_free, stride, wide, sample
    cdef double kink, growth, solved, close, slope
    cdef bint squared, factored, summed
    cdef int short_steps
    cdef readonly double objective, lower_bound, bound


cdef inline double* row(NarrowNewton p, int which) noexcept nogil:
    return &p.table[which, 0]


cdef inline double* vector(NarrowNewton p, int which) noexcept nogil:
    return p.vectors + which * (p.n + 8)


cdef inline void margins(NarrowNewton p, int source, int target) noexcept nogil:
    mdlearn_margins(&p.T[0, 0], p.m, p.n, p.m, vector(p, source), row(p, LABEL), row(p, target))


cdef inline void times(const double[:, ::1] A, const double* x, double* out, Py_ssize_t n) noexcept nogil:
    """A x, or x where A is empty."""
    cdef Py_ssize_t j
    for j in range(n):
        out[j] = inner(&A[j, 0], x, n) if A.shape[0] else x[j]


cdef inline double half_square(NarrowNewton p, const double* x) noexcept nogil:
    """1/2 x' A^-1 x."""
    if p.L.shape[0] == 0:
        return 0.5 * inner(x, x, p.n)
    return 0.5 * half_solve(&p.L[0, 0], p.n, p.n, x, vector(p, HALF))


cdef inline void add_spread(
    const double* z, const double[::1] counts, double kappa, double* out
) noexcept nogil:
    """Add the multipliers of a variance term at margins z, -kappa c (z - mean)."""
    cdef Py_ssize_t k, rows = counts.shape[0]
    cdef double total = 0.0, mean
    for k in range(rows):
        total += counts[k]
    mean = inner(&counts[0], z, rows) / total
    for k in range(rows):
        out[k] -= kappa * counts[k] * (z[k] - mean)
