"""Labels and rows as they are read: two numbers, which of them every row has, and the squared lengths of rows."""

from libc.math cimport isfinite

from mdlearn._solvers.rows cimport inner

ctypedef fused label_t:
    double
    long long


def two_labels(const label_t[:] labels, Py_ssize_t[::1] codes):
    """Return the smaller and the larger of two labels; None where there are not two, or where one is not finite.

    Written: codes, 1 in the rows of the larger one and 0 in the others.
    """
    cdef Py_ssize_t i, m = labels.shape[0], found = 0
    cdef label_t low, high
    if codes.shape[0] != m or m == 0:
        raise ValueError("labels and codes differ in length, or there are none")
    with nogil:
        low = high = labels[0]
        for i in range(m):
            if labels[i] != low:
                high = labels[i]
                break
        if low > high:
            low, high = high, low
        for i in range(m):
            codes[i] = labels[i] == high
            found += codes[i] + (labels[i] == low)
    if found != m or not isfinite(<double> low) or not isfinite(<double> high):
        return None
    return low, high


def row_squares(const double[:, ::1] X, double[::1] out):
    """Write the squared length of every row, and return their sum."""
    cdef Py_ssize_t i, m = X.shape[0], d = X.shape[1]
    cdef double total = 0.0
    if out.shape[0] != m:
        raise ValueError("there need to be as many numbers as rows")
    with nogil:
        for i in range(m):
            out[i] = inner(&X[i, 0], &X[i, 0], d) if d > 0 else 0.0
            total += out[i]
    return total
