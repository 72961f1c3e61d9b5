# Rows as all loops see them: products and updates in float64, whatever their entries are, and checks of CSR arrays.
#
# Sums have four or eight parts: one alone would wait for itself at every step.

ctypedef fused real_t:
    float
    double

ctypedef signed char schar

ctypedef fused entry_t:
    schar  # CSR rows whose stored entries are all 1 come without them, as an empty array of int8
    float
    double

ctypedef fused index_t:
    int
    long long


cdef inline double inner(const real_t* x, const double* w, Py_ssize_t n) noexcept nogil:
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0, e = 0.0, f = 0.0, g = 0.0, h = 0.0
    cdef Py_ssize_t j, whole = n - n % 8
    for j in range(0, whole, 8):
        a += x[j] * w[j]
        b += x[j + 1] * w[j + 1]
        c += x[j + 2] * w[j + 2]
        d += x[j + 3] * w[j + 3]
        e += x[j + 4] * w[j + 4]
        f += x[j + 5] * w[j + 5]
        g += x[j + 6] * w[j + 6]
        h += x[j + 7] * w[j + 7]
    for j in range(whole, n):
        a += x[j] * w[j]
    return ((a + e) + (c + g)) + ((b + f) + (d + h))


cdef inline double strided_inner(const real_t* x, Py_ssize_t step, const double* w, Py_ssize_t n) noexcept nogil:
    cdef double total = 0.0
    cdef Py_ssize_t j
    if step == 1:
        return inner(x, w, n)
    for j in range(n):
        total += x[j * step] * w[j]
    return total


cdef inline Py_ssize_t n_stored(const entry_t[::1] data, const index_t[::1] indices) except -1:
    """Number of stored entries."""
    if entry_t is schar:
        if data.shape[0]:
            raise ValueError("entries of int8 are all 1, and none is read")
        return indices.shape[0]
    else:
        return data.shape[0]


cdef inline const entry_t* entries_from(const entry_t* x, Py_ssize_t first) noexcept nogil:
    if entry_t is schar:
        return NULL
    else:
        return x + first


cdef inline double sparse_inner(const entry_t* x, const index_t* at, const double* w, Py_ssize_t n) noexcept nogil:
    cdef double a = 0.0, b = 0.0, c = 0.0, d = 0.0
    cdef Py_ssize_t j, whole = n - n % 4
    for j in range(0, whole, 4):
        if entry_t is schar:
            a += w[at[j]]
            b += w[at[j + 1]]
            c += w[at[j + 2]]
            d += w[at[j + 3]]
        else:
            a += x[j] * w[at[j]]
            b += x[j + 1] * w[at[j + 1]]
            c += x[j + 2] * w[at[j + 2]]
            d += x[j + 3] * w[at[j + 3]]
    for j in range(whole, n):
        if entry_t is schar:
            a += w[at[j]]
        else:
            a += x[j] * w[at[j]]
    return (a + b) + (c + d)


cdef inline void add(const real_t* x, Py_ssize_t step, double* w, Py_ssize_t n, double by) noexcept nogil:
    cdef Py_ssize_t j
    if step == 1:  # the compiler then sees two plain arrays
        for j in range(n):
            w[j] += by * x[j]
    else:
        for j in range(n):
            w[j] += by * x[j * step]


cdef inline void sparse_add(const entry_t* x, const index_t* at, double* w, Py_ssize_t n, double by) noexcept nogil:
    # No column comes twice in a row; the compiler cannot know, and would wait for every sum to be stored.
    cdef double a, b, c, d
    cdef Py_ssize_t j, whole = n - n % 4
    for j in range(0, whole, 4):
        if entry_t is schar:
            a = w[at[j]] + by
            b = w[at[j + 1]] + by
            c = w[at[j + 2]] + by
            d = w[at[j + 3]] + by
        else:
            a = w[at[j]] + by * x[j]
            b = w[at[j + 1]] + by * x[j + 1]
            c = w[at[j + 2]] + by * x[j + 2]
            d = w[at[j + 3]] + by * x[j + 3]
        w[at[j]] = a
        w[at[j + 1]] = b
        w[at[j + 2]] = c
        w[at[j + 3]] = d
    for j in range(whole, n):
        if entry_t is schar:
            w[at[j]] += by
        else:
            w[at[j]] += by * x[j]


cdef inline int check_csr(
    Py_ssize_t entries, Py_ssize_t indices, const index_t[::1] indptr, Py_ssize_t rows, Py_ssize_t first,
    Py_ssize_t last,
) except -1:
    if indptr.shape[0] != rows + 1 or indices < entries:
        raise ValueError("the arrays of the CSR matrix and those of its rows do not fit")
    if not 0 <= first <= last <= rows:
        raise ValueError("the range of rows is out of bounds")
    # That rows follow each other, and where their columns are, is looked at once, at the door.
    if indptr[first] < 0 or indptr[last] > entries:
        raise ValueError("indptr does not fit data and indices")
    return 0


cdef inline int check_order(const long long[::1] order, Py_ssize_t below) except -1:
    cdef Py_ssize_t k
    for k in range(order.shape[0]):
        if not 0 <= order[k] < below:
            raise ValueError("a row or coordinate is out of range")
    return 0
