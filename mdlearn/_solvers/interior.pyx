"""Element-wise parts of the interior point engine: passes over T terms and m rows that NumPy makes in twenty.

Arrays of all functions: z and other values per row (m,), sides (T,), everything else (T, m). The slope of an entry is
a = side * (z - kink): its loss is cap * max(0, -a). Rows start ... stop - 1 are worked on.
"""

from libc.math cimport INFINITY


cdef int check(
    const double[:, :] kinks, const double[::1] sides, const double[:, ::1] caps, const double[::1] z,
    Py_ssize_t start, Py_ssize_t stop,
) except -1:
    if kinks.shape[0] != sides.shape[0] or caps.shape[0] != sides.shape[0]:
        raise ValueError("kinks, sides and caps differ in their number of terms")
    if kinks.shape[1] != z.shape[0] or caps.shape[1] != z.shape[0]:
        raise ValueError("kinks, caps and z differ in length")
    if not 0 <= start <= stop <= z.shape[0]:
        raise ValueError("no such rows")
    return 0


def smoothed(
    const double[:, :] kinks, const double[::1] sides, const double[:, ::1] caps, const double[::1] z, double width,
    double[:, ::1] beta, double[::1] force, double[::1] weight, Py_ssize_t start, Py_ssize_t stop,
):
    """Slopes and curvatures of hinges rounded off over |a| < width; returns how many entries lie there.

    beta becomes cap * clip(1/2 - a / (2 width), 0, 1); force sum_t side beta; weight sum_t of the curvatures
    cap / (2 width) within the band.
    """
    cdef Py_ssize_t i, t, inside = 0
    cdef double u, own, total, curvature
    check(kinks, sides, caps, z, start, stop)
    if beta.shape[0] != sides.shape[0] or beta.shape[1] != z.shape[0]:
        raise ValueError("beta and caps differ in shape")
    if force.shape[0] != z.shape[0] or weight.shape[0] != z.shape[0]:
        raise ValueError("force, weight and z differ in length")
    if not width > 0.0:
        raise ValueError("width needs to be positive")
    with nogil:
        for i in range(start, stop):
            total = 0.0
            curvature = 0.0
            for t in range(sides.shape[0]):
                u = 0.5 - 0.5 * sides[t] * (z[i] - kinks[t, i]) / width
                if u <= 0.0:
                    own = 0.0
                elif u >= 1.0:
                    own = caps[t, i]
                else:
                    own = caps[t, i] * u
                    curvature += caps[t, i]
                    inside += caps[t, i] > 0.0
                beta[t, i] = own
                total += sides[t] * own
            force[i] = total
            weight[i] = 0.5 * curvature / width
    return inside


def along(
    const double[:, :] kinks, const double[::1] sides, const double[:, ::1] caps, const double[::1] z,
    const double[::1] change, double step, double width, Py_ssize_t start, Py_ssize_t stop,
):
    """First and second derivative by the step length of the rounded hinges at margins z + step * change."""
    cdef Py_ssize_t i, t
    cdef double u, slope = 0.0, curvature = 0.0
    check(kinks, sides, caps, z, start, stop)
    if change.shape[0] != z.shape[0]:
        raise ValueError("change and z differ in length")
    if not width > 0.0:
        raise ValueError("width needs to be positive")
    with nogil:
        for i in range(start, stop):
            for t in range(sides.shape[0]):
                u = 0.5 - 0.5 * sides[t] * (z[i] + step * change[i] - kinks[t, i]) / width
                if u >= 1.0:
                    slope -= sides[t] * caps[t, i] * change[i]
                elif u > 0.0:
                    slope -= sides[t] * caps[t, i] * u * change[i]
                    curvature += caps[t, i] * change[i] * change[i]
    return slope, 0.5 * curvature / width


cdef class Path:
    """Multipliers and slacks of an interior point and their changes, all (T, m).

    Parameters
    ----------
    caps, softness : boxes and conjugate weights; beta, upper : multipliers and what they are below their caps;
    s, xi : slacks of the lower and the upper bound; db, ds, dxi : changes of beta, s and xi.
    """

    cdef const double[:, ::1] caps, softness
    cdef double[:, ::1] beta, upper, s, xi, db, ds, dxi

    def __init__(self, caps, softness, beta, upper, s, xi, db, ds, dxi):
        for values in (softness, beta, upper, s, xi, db, ds, dxi):
            if values.shape != caps.shape:
                raise ValueError("values of all terms and rows differ in shape")
        self.caps, self.softness, self.beta, self.upper, self.s, self.xi = caps, softness, beta, upper, s, xi
        self.db, self.ds, self.dxi = db, ds, dxi


cdef int alike(Path p, const double[:, ::1] values, Py_ssize_t start, Py_ssize_t stop) except -1:
    if values.shape[0] != p.caps.shape[0] or values.shape[1] != p.caps.shape[1]:
        raise ValueError("values of all terms and rows differ in shape")
    if not 0 <= start <= stop <= values.shape[1]:
        raise ValueError("no such rows")
    return 0


cdef inline double over(double a, double b) noexcept nogil:
    return a / b if b != 0.0 else a * INFINITY


def weigh(Path p, double[:, ::1] d, double[::1] weight, Py_ssize_t start, Py_ssize_t stop):
    """d = 1 / (s / beta + softness + xi / upper), weight = sum_t d; returns the complementarity sum and max d."""
    cdef Py_ssize_t i, t
    cdef double stiffness, total, gap = 0.0, largest = 0.0
    alike(p, d, start, stop)
    if weight.shape[0] != p.caps.shape[1]:
        raise ValueError("weight and caps differ in length")
    with nogil:
        for i in range(start, stop):
            total = 0.0
            for t in range(p.caps.shape[0]):
                d[t, i] = 0.0
                if not p.caps[t, i] > 0.0:
                    continue
                stiffness = over(p.s[t, i], p.beta[t, i]) + p.softness[t, i]
                gap += p.beta[t, i] * p.s[t, i]
                if p.caps[t, i] < INFINITY:
                    stiffness += over(p.xi[t, i], p.upper[t, i])
                    gap += p.upper[t, i] * p.xi[t, i]
                d[t, i] = over(1.0, stiffness)
                total += d[t, i]
            weight[i] = total
            if not total <= largest:  # not a number counts as too large
                largest = total if total > largest else INFINITY
    return gap, largest


def forces(
    Path p, const double[:, :] kinks, const double[::1] sides, const double[::1] z, double centring,
    const double[:, ::1] d, double[:, ::1] h, double[::1] force, Py_ssize_t start, Py_ssize_t stop,
):
    """Right-hand sides of a step: h of every entry, force = sum_t side d h.

    With c1 = centring - beta s - db ds and c2 = centring - upper xi + db dxi, h = -(a + softness beta + xi - s)
    + c1 / beta - c2 / upper; slacks cancel in it. The predictor has centring and all changes 0.
    """
    cdef Py_ssize_t i, t
    cdef double own, total
    check(kinks, sides, p.caps, z, start, stop)
    alike(p, d, start, stop)
    alike(p, h, start, stop)
    if force.shape[0] != p.caps.shape[1]:
        raise ValueError("force and caps differ in length")
    with nogil:
        for i in range(start, stop):
            total = 0.0
            for t in range(p.caps.shape[0]):
                h[t, i] = 0.0
                if not p.caps[t, i] > 0.0:
                    continue
                own = over(centring - p.db[t, i] * p.ds[t, i], p.beta[t, i])
                own -= sides[t] * (z[i] - kinks[t, i]) + p.softness[t, i] * p.beta[t, i]
                if p.caps[t, i] < INFINITY:
                    own -= over(centring + p.db[t, i] * p.dxi[t, i], p.upper[t, i])
                h[t, i] = own
                total += sides[t] * d[t, i] * own
            force[i] = total


def slacks(Path p, double centring, const double[:, ::1] change, Py_ssize_t start, Py_ssize_t stop):
    """Put `change` in the place of db, with the changes of the slacks that belong to it.

    Returns the inverse of the longest step that leaves everything positive, and the largest change of a multiplier.
    """
    cdef const double[:, ::1] caps = p.caps
    cdef double[:, ::1] beta = p.beta, upper = p.upper, s = p.s, xi = p.xi, db = p.db, ds = p.ds, dxi = p.dxi
    cdef Py_ssize_t i, t
    cdef double new, worst = 0.0, largest = 0.0
    alike(p, change, start, stop)
    with nogil:
        for t in range(caps.shape[0]):
            for i in range(start, stop):
                if not caps[t, i] > 0.0:
                    continue
                new = change[t, i]
                ds[t, i] = over(centring - db[t, i] * ds[t, i] - s[t, i] * new, beta[t, i]) - s[t, i]
                if beta[t, i] > 0.0 and -new > worst * beta[t, i]:
                    worst = over(-new, beta[t, i])
                if s[t, i] > 0.0 and -ds[t, i] > worst * s[t, i]:
                    worst = over(-ds[t, i], s[t, i])
                if caps[t, i] < INFINITY:
                    dxi[t, i] = over(centring + db[t, i] * dxi[t, i] + xi[t, i] * new, upper[t, i]) - xi[t, i]
                    if upper[t, i] > 0.0 and new > worst * upper[t, i]:
                        worst = over(new, upper[t, i])
                    if xi[t, i] > 0.0 and -dxi[t, i] > worst * xi[t, i]:
                        worst = over(-dxi[t, i], xi[t, i])
                db[t, i] = new
                new = -new if new < 0.0 else new
                if not new <= largest:
                    largest = new if new > largest else INFINITY
    return worst, largest


def ahead(Path p, double step, Py_ssize_t start, Py_ssize_t stop):
    """Complementarity sum after a step."""
    cdef const double[:, ::1] caps = p.caps
    cdef double[:, ::1] beta = p.beta, upper = p.upper, s = p.s, xi = p.xi, db = p.db, ds = p.ds, dxi = p.dxi
    cdef Py_ssize_t i, t
    cdef double gap = 0.0
    alike(p, beta, start, stop)
    with nogil:
        for t in range(caps.shape[0]):
            for i in range(start, stop):
                if caps[t, i] > 0.0:
                    gap += (beta[t, i] + step * db[t, i]) * (s[t, i] + step * ds[t, i])
                    if caps[t, i] < INFINITY:
                        gap += (upper[t, i] - step * db[t, i]) * (xi[t, i] + step * dxi[t, i])
    return gap


def advance(Path p, double step, Py_ssize_t start, Py_ssize_t stop):
    """Take a step, in place."""
    cdef const double[:, ::1] caps = p.caps
    cdef double[:, ::1] beta = p.beta, upper = p.upper, s = p.s, xi = p.xi, db = p.db, ds = p.ds, dxi = p.dxi
    cdef Py_ssize_t i, t
    alike(p, beta, start, stop)
    with nogil:
        for t in range(caps.shape[0]):
            for i in range(start, stop):
                if caps[t, i] > 0.0:
                    beta[t, i] += step * db[t, i]
                    s[t, i] += step * ds[t, i]
                    if caps[t, i] < INFINITY:
                        upper[t, i] -= step * db[t, i]
                        xi[t, i] += step * dxi[t, i]
