"""Rows of one block of columns each, kept block after block, and the small systems of blocks with few rows.

    F       (n, L)   entries: what each row has in its block
    starts  (K + 1,) entries starts[k] to starts[k + 1] - 1 belong to block k
    N       (s,)     one lower triangle per block, as full matrices one after the other
    places  (K + 1,) where each matrix begins
"""

from libc.math cimport sqrt

from mdlearn._solvers.rows cimport add, inner, real_t

cdef double PIVOT = 1e-15
"""Least pivot of a factor, relative to the diagonal and per row: rounding of what is 1 at least."""


cdef int check(
    Py_ssize_t entries, Py_ssize_t width, const Py_ssize_t[::1] starts, Py_ssize_t blocks, Py_ssize_t columns,
    Py_ssize_t first, Py_ssize_t last,
) except -1:
    cdef Py_ssize_t k
    if starts.shape[0] != blocks + 1 or columns != width or blocks < 1:
        raise ValueError("entries, blocks and coefficients do not fit")
    if starts[0] != 0 or starts[blocks] != entries or not 0 <= first <= last <= entries:
        raise ValueError("the range of entries is out of bounds")
    for k in range(blocks):
        if starts[k] > starts[k + 1]:
            raise ValueError("blocks do not follow each other")
    return 0


def dot(
    const real_t[:, ::1] F, const Py_ssize_t[::1] starts, const double[:, ::1] W, double[::1] out,
    Py_ssize_t first, Py_ssize_t last,
):
    """out_e = F_e . W_k for first <= e < last, k the block of e."""
    cdef Py_ssize_t e, k = 0, L = F.shape[1]
    check(F.shape[0], L, starts, W.shape[0], W.shape[1], first, last)
    if out.shape[0] != F.shape[0]:
        raise ValueError("entries and values differ in number")
    with nogil:
        for e in range(first, last):
            while e >= starts[k + 1]:
                k += 1
            out[e] = inner(&F[e, 0], &W[k, 0], L)


def adjoint(
    const real_t[:, ::1] F, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] owner, const double[::1] v,
    double[:, ::1] out, Py_ssize_t first, Py_ssize_t last,
):
    """Add v_i F_e to line k of `out` for first <= e < last, k the block and i the owner of e; zeros cost nothing."""
    cdef Py_ssize_t e, k = 0, L = F.shape[1]
    cdef double by
    check(F.shape[0], L, starts, out.shape[0], out.shape[1], first, last)
    if owner.shape[0] != F.shape[0]:
        raise ValueError("entries and owners differ in number")
    for e in range(first, last):
        if not 0 <= owner[e] < v.shape[0]:
            raise ValueError("an entry belongs to no row")
    with nogil:
        for e in range(first, last):
            by = v[owner[e]]
            if by != 0.0:
                while e >= starts[k + 1]:
                    k += 1
                add(&F[e, 0], 1, &out[k, 0], L, by)


cdef int check_places(
    const Py_ssize_t[::1] starts, const Py_ssize_t[::1] places, Py_ssize_t entries, Py_ssize_t size,
) except -1:
    cdef Py_ssize_t k, n, blocks = starts.shape[0] - 1
    if places.shape[0] != blocks + 1 or blocks < 0 or starts[0] != 0 or places[0] != 0:
        raise ValueError("blocks and their matrices differ in number")
    for k in range(blocks):
        n = starts[k + 1] - starts[k]
        if n < 0 or places[k + 1] - places[k] != n * n:
            raise ValueError("a matrix does not fit its block")
    if starts[blocks] != entries or places[blocks] != size:
        raise ValueError("entries and matrices do not fit")
    return 0


def factor(
    const double[:, ::1] B, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] places, double[::1] N,
    Py_ssize_t first, Py_ssize_t last,
):
    """Write the Cholesky factor of I + B_k B_k' of the blocks first <= k < last; for few rows each."""
    cdef Py_ssize_t i, j, k, n, start
    cdef double pivot, diagonal
    cdef double* A
    check_places(starts, places, B.shape[0], N.shape[0])
    if not 0 <= first <= last < starts.shape[0]:
        raise ValueError("the range of blocks is out of bounds")
    if N.shape[0] == 0:
        return
    with nogil:
        for k in range(first, last):
            start, n = starts[k], starts[k + 1] - starts[k]
            A = &N[0] + places[k]
            for i in range(n):
                for j in range(i):
                    pivot = inner(&B[start + i, 0], &B[start + j, 0], B.shape[1]) - inner(A + i * n, A + j * n, j)
                    A[i * n + j] = pivot / A[j * n + j]
                diagonal = 1.0 + inner(&B[start + i, 0], &B[start + i, 0], B.shape[1])
                pivot = diagonal - inner(A + i * n, A + i * n, i)
                diagonal *= PIVOT * n
                if pivot < diagonal:
                    pivot = diagonal
                A[i * n + i] = sqrt(pivot)


def solve(
    const double[::1] N, const Py_ssize_t[::1] starts, const Py_ssize_t[::1] places, double[::1] v,
):
    """Overwrite v, one part per block, with the solution of its system."""
    cdef Py_ssize_t i, j, k, n
    cdef const double* A
    cdef double* x
    check_places(starts, places, v.shape[0], N.shape[0])
    if v.shape[0] == 0:
        return
    with nogil:
        for k in range(starts.shape[0] - 1):
            n = starts[k + 1] - starts[k]
            A, x = &N[0] + places[k], &v[0] + starts[k]
            for i in range(n):
                x[i] = (x[i] - inner(A + i * n, x, i)) / A[i * n + i]
            for i in range(n - 1, -1, -1):
                x[i] /= A[i * n + i]
                for j in range(i):
                    x[j] -= x[i] * A[i * n + j]
