"""A round of k-means over rows in memory: who is nearest, from products of matrices; and sums of rows by centre.

    X        (n, d)  rows
    centers  (K, d)
    upper    (n,)    at least the distance to the row's own centre
    lower    (n,)    at most the distance to any other centre
    labels   (n,)    the row's own centre, below 0 at the beginning
    counts   (n,)    weights
    sums     (K, d)  counts_i x_i summed over the rows of each centre
"""

from libc.math cimport INFINITY, sqrt

from mdlearn._solvers.rows cimport real_t


cdef inline double squared_distance(const double* x, const double* w, Py_ssize_t n) noexcept nogil:
    # Eight sums: one would wait for itself at every step.
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef Py_ssize_t j, whole = n - n % 8
    for j in range(0, whole, 8):
        a += (x[j] - w[j]) * (x[j] - w[j])
        b += (x[j + 1] - w[j + 1]) * (x[j + 1] - w[j + 1])
        c += (x[j + 2] - w[j + 2]) * (x[j + 2] - w[j + 2])
        d += (x[j + 3] - w[j + 3]) * (x[j + 3] - w[j + 3])
        e += (x[j + 4] - w[j + 4]) * (x[j + 4] - w[j + 4])
        f += (x[j + 5] - w[j + 5]) * (x[j + 5] - w[j + 5])
        g += (x[j + 6] - w[j + 6]) * (x[j + 6] - w[j + 6])
        h += (x[j + 7] - w[j + 7]) * (x[j + 7] - w[j + 7])
    for j in range(whole, n):
        a += (x[j] - w[j]) * (x[j] - w[j])
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


cdef inline void two_least(
    const real_t* a, const real_t* b, Py_ssize_t n, real_t* least, real_t* second,
) noexcept nogil:
    """The two smallest of a - b, found in eight lanes that compilers take together."""
    cdef real_t low[8]
    cdef real_t high[8]
    cdef real_t value, worse
    cdef Py_ssize_t j, k, whole = n - n % 8
    for j in range(8):
        low[j] = high[j] = <real_t>INFINITY
    for k in range(0, whole, 8):
        for j in range(8):
            value = a[k + j] - b[k + j]
            worse = value if value > low[j] else low[j]
            low[j] = value if value < low[j] else low[j]
            high[j] = worse if worse < high[j] else high[j]
    for k in range(whole, n):
        value = a[k] - b[k]
        worse = value if value > low[0] else low[0]
        low[0] = value if value < low[0] else low[0]
        high[0] = worse if worse < high[0] else high[0]
    for j in range(1, 8):
        worse = low[0] if low[0] > low[j] else low[j]
        low[0] = low[0] if low[0] < low[j] else low[j]
        value = high[0] if high[0] < high[j] else high[j]
        high[0] = value if value < worse else worse
    least[0], second[0] = low[0], high[0]


def assign(
    const double[:, ::1] X, const double[:, ::1] centers, const Py_ssize_t[::1] rows, const real_t[:, ::1] products,
    const real_t[::1] halves, double unit, double margin, const double[::1] counts,
    double[::1] upper, double[::1] lower, Py_ssize_t[::1] labels, double[:, ::1] sums,
):
    """Give some rows to their nearest centres, ties to the lowest index; bring bounds and sums up to date.

    Parameters
    ----------
    rows : (r,)
        Which rows.
    products : (r, K)
        Their inner products with the centres, divided by `unit`.
    halves : (K,)
        Half of the squared length of each centre, divided by `unit`.
    margin : float
        How far halves - products may be from exact numbers. What that leaves open, plain distances decide.

    Returns
    -------
    moved, unclear : int
        Rows that have another centre now, and rows that products left open.
    """
    cdef Py_ssize_t e, i, j, k, own, best, d = X.shape[1], K = centers.shape[0], n = X.shape[0]
    cdef Py_ssize_t moved = 0, unclear = 0
    cdef real_t least = 0, second = 0, cutoff
    cdef double square, nearest, rest, part
    if centers.shape[1] != d or sums.shape[0] != K or sums.shape[1] != d or K < 1:
        raise ValueError("rows, centres and sums do not fit")
    if products.shape[0] != rows.shape[0] or products.shape[1] != K or halves.shape[0] != K:
        raise ValueError("products do not fit rows and centres")
    if counts.shape[0] != n or upper.shape[0] != n or lower.shape[0] != n or labels.shape[0] != n:
        raise ValueError("rows, bounds and labels differ in number")
    for e in range(rows.shape[0]):
        if not 0 <= rows[e] < n or labels[rows[e]] >= K:
            raise ValueError("a row or its centre is out of bounds")
    with nogil:
        for e in range(rows.shape[0]):
            i, best = rows[e], 0
            two_least(&halves[0], &products[e, 0], K, &least, &second)
            while halves[best] - products[e, best] != least and best < K - 1:
                best += 1
            nearest = squared_distance(&X[i, 0], &centers[best, 0], d)
            rest = nearest + 2.0 * unit * (<double>second - <double>least - 2.0 * margin)
            if not second > least + 2.0 * margin:
                unclear += 1
                cutoff = <real_t>(least + 2.5 * margin)
                for k in range(K):
                    if k != best and halves[k] - products[e, k] <= cutoff:
                        square = squared_distance(&X[i, 0], &centers[k, 0], d)
                        if square < nearest or (square == nearest and k < best):
                            nearest, best = square, k
                rest = nearest
            upper[i], lower[i] = sqrt(nearest), sqrt(rest)
            own = labels[i]
            if best != own:
                labels[i] = best
                moved += 1
                for j in range(d):
                    part = counts[i] * X[i, j]
                    sums[best, j] += part
                    if own >= 0:
                        sums[own, j] -= part
    return moved, unclear


def add(
    const double[:, ::1] X, const double[::1] counts, const Py_ssize_t[::1] labels,
    const unsigned char[::1] wanted, double[:, ::1] sums, Py_ssize_t first, Py_ssize_t last,
):
    """Add counts_i x_i of rows first <= i < last to the sum of their centre, where that is wanted."""
    cdef Py_ssize_t i, j, k, d = X.shape[1], K = sums.shape[0], n = X.shape[0]
    if sums.shape[1] != d or wanted.shape[0] != K or counts.shape[0] != n or labels.shape[0] != n:
        raise ValueError("rows, centres and sums do not fit")
    if not 0 <= first <= last <= n:
        raise ValueError("the range of rows is out of bounds")
    for i in range(first, last):
        if not 0 <= labels[i] < K:
            raise ValueError("a row belongs to no centre")
    with nogil:
        for i in range(first, last):
            k = labels[i]
            if wanted[k]:
                for j in range(d):
                    sums[k, j] += counts[i] * X[i, j]
