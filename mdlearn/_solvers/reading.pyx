"""Labels as they are read: two numbers, and which of them every row has."""

from libc.math cimport isfinite

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
