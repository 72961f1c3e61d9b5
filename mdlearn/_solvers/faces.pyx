"""Newton steps on a face of a dense quadratic with bounds: which rows move, their system, and the step along it.

    maximise  e0'u - 1/2 u'(R + omega border border' + diag(soft)) u,   low <= u <= high

The system itself is LAPACK's. The gradient e is kept up to date; every step ends where the value is highest along it.
"""

from libc.math cimport INFINITY


cdef class Face:
    """Everything that the steps read and write.

    Parameters
    ----------
    R : (m, m) symmetric; border : (m,); omega : factor of the border; soft : (m,) >= 0; low, high : (m,) bounds;
    u : (m,) within them, written to; e : (m,) the gradient, written to; index : (m,) and work : (2, m) of the steps'
    own.
    """

    cdef const double[:, ::1] R
    cdef const double[::1] border, soft, low, high
    cdef double omega
    cdef double[::1] u, e, moved, change
    cdef long long[::1] index
    cdef readonly double worst
    cdef readonly Py_ssize_t free, entering

    def __init__(
        self, const double[:, ::1] R, const double[::1] border, double omega, const double[::1] soft,
        const double[::1] low, const double[::1] high, double[::1] u, double[::1] e, long long[::1] index,
        double[:, ::1] work,
    ):
        cdef Py_ssize_t m = R.shape[0]
        if R.shape[1] != m or work.shape[0] != 2 or work.shape[1] != m or index.shape[0] != m:
            raise ValueError("a quadratic needs a square matrix, with an index and two rows of work as long as its own")
        if border.shape[0] != m or soft.shape[0] != m or low.shape[0] != m or high.shape[0] != m:
            raise ValueError("the vectors of a quadratic need one entry per row")
        if u.shape[0] != m or e.shape[0] != m:
            raise ValueError("the vectors of a quadratic need one entry per row")
        self.R, self.border, self.omega, self.soft, self.low, self.high, self.u, self.e, self.index = (
            R, border, omega, soft, low, high, u, e, index
        )
        self.moved, self.change = work[0], work[1]
        self.worst, self.free, self.entering = INFINITY, 0, 0


cdef Py_ssize_t chosen(Face p) noexcept nogil:
    cdef Py_ssize_t k, n = 0
    cdef double violation
    cdef bint inside
    p.worst, p.free, p.entering = 0.0, 0, 0
    for k in range(p.u.shape[0]):
        inside = p.low[k] < p.u[k] < p.high[k]
        violation = max(p.e[k] if p.u[k] < p.high[k] else 0.0, -p.e[k] if p.u[k] > p.low[k] else 0.0)
        p.worst = max(p.worst, violation)
        p.free += inside
        if inside or violation > 0.0:
            p.index[n] = k
            n += 1
    p.entering = n - p.free
    return n


cdef void fill(Face p, double[:, ::1] A, double[:, ::1] sides, double trace) noexcept nogil:
    cdef Py_ssize_t a, b, n = A.shape[0]
    cdef double largest = 0.0
    cdef const double* row
    for a in range(n):
        row = &p.R[p.index[a], 0]
        for b in range(a + 1):
            A[a, b] = row[p.index[b]]
        sides[0, a], sides[1, a] = p.e[p.index[a]], p.border[p.index[a]]
        largest = max(largest, A[a, a])
    for a in range(n):
        A[a, a] += p.soft[p.index[a]] + trace * largest


cdef bint along(Face p, const double[:, ::1] solved) noexcept nogil:
    cdef Py_ssize_t a, k, n = solved.shape[1], m = p.u.shape[0]
    cdef double by = 0.0, across = 0.0, length, total = 0.0, slope = 0.0, bend = 0.0, d
    cdef const double* row
    for a in range(n):
        k = p.index[a]
        by += p.border[k] * solved[0, a]
        across += p.border[k] * solved[1, a]
    # The border is a matrix of rank one beside the factor.
    length = p.omega * by / (1.0 + p.omega * across)
    p.change[:] = 0.0
    for a in range(n):
        k = p.index[a]
        d = p.u[k] + solved[0, a] - length * solved[1, a]
        d = min(max(d, p.low[k]), p.high[k]) - p.u[k]
        p.moved[a] = d
        total += p.border[k] * d
        slope += p.e[k] * d
        if d != 0.0:
            row = &p.R[k, 0]
            for k in range(m):
                p.change[k] += d * row[k]
    for k in range(m):
        p.change[k] += p.omega * total * p.border[k]
    for a in range(n):
        k = p.index[a]
        p.change[k] += p.soft[k] * p.moved[a]
        bend += p.change[k] * p.moved[a]
    if not slope > 0.0:
        return False
    length = 1.0 if slope >= bend else slope / bend
    for k in range(m):
        p.e[k] -= length * p.change[k]
    for a in range(n):
        k = p.index[a]
        p.u[k] = min(max(p.u[k] + length * p.moved[a], p.low[k]), p.high[k])
    return True


def rows(Face face):
    """Number of rows that a step moves: those inside their boxes (`free`) and those at a bound that want to leave it
    (`entering`). `worst` is the largest gradient that points inside.
    """
    cdef Py_ssize_t n
    with nogil:
        n = chosen(face)
    return n


def system(Face face, double[:, ::1] A, double[:, ::1] sides, double trace):
    """Lower triangle of the quadratic of the rows that `rows` has found, and what is on the right: gradient and border.

    The border itself is left out of A; `trace` of the largest entry is added to the diagonal.
    """
    cdef Py_ssize_t n = face.free + face.entering
    if A.shape[0] != n or A.shape[1] != n or sides.shape[0] != 2 or sides.shape[1] != n:
        raise ValueError("the system of a step needs a square matrix and two right sides, a row per row that moves")
    with nogil:
        fill(face, A, sides, trace)


def step(Face face, const double[:, ::1] solved):
    """Go as far along a step as the value rises, given the solutions of `system`; say whether it rises at all."""
    cdef bint gains
    if solved.shape[0] != 2 or solved.shape[1] != face.free + face.entering:
        raise ValueError("a step needs both solutions, an entry per row that moves")
    with nogil:
        gains = along(face, solved)
    return gains
