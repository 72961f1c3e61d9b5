"""C functions of a margin that others bring, and sums over rows that call them row by row.

The pointer is taken once, and its owner is held as long as the pointer.
"""

from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid

cdef const char* SIGNATURE = "double (double, void *)"


cdef class Callback:
    """A C function of that signature with its parameters.

    Parameters
    ----------
    capsule : PyCapsule whose name is the signature; params : what the second argument points to (null if empty);
    owner : whatever keeps the function alive beside the capsule.
    """

    def __init__(self, capsule, double[::1] params, owner):
        if not PyCapsule_IsValid(capsule, SIGNATURE):
            raise TypeError("a callback needs a capsule named 'double (double, void *)'")
        self.function = <function_t>PyCapsule_GetPointer(capsule, SIGNATURE)
        self.params = params
        self.data = &params[0] if params.shape[0] > 0 else NULL
        self.owner = (capsule, owner)


def evaluate(Callback callback not None, const double[::1] t, double[::1] out):
    """Write the function's value at every entry of t (n,) into out (n,), without the GIL."""
    cdef Py_ssize_t k
    if t.shape[0] != out.shape[0]:
        raise ValueError("t and out differ in length")
    if callback.function == NULL:
        raise ValueError("the callback was not initialised")
    with nogil:
        for k in range(t.shape[0]):
            out[k] = callback.function(t[k], callback.data)


def losses(
    Callback value not None, const double[::1] z, const double[::1] counts, double low, double high, double less,
):
    """Return the sum of counts times f(t) - less, at margins z that are clipped to [low, high]."""
    cdef Py_ssize_t i
    cdef double total = 0.0
    if counts.shape[0] != z.shape[0]:
        raise ValueError("margins and counts differ in length")
    with nogil:
        for i in range(z.shape[0]):
            total += counts[i] * (value.function(min(max(z[i], low), high), value.data) - less)
    return total


def slopes(
    Callback slope not None, const double[::1] z, const double[::1] counts, double weight, int side, double low,
    double high, double[::1] out,
):
    """Write multipliers at margins z, clipped to [low, high]: weight times counts times how far f falls to its side."""
    cdef Py_ssize_t i
    if counts.shape[0] != z.shape[0] or out.shape[0] != z.shape[0]:
        raise ValueError("margins, counts and multipliers differ in length")
    with nogil:
        for i in range(z.shape[0]):
            out[i] = weight * counts[i] * max(-side * slope.function(min(max(z[i], low), high), slope.data), 0.0)


def bends(
    Callback bend not None, Callback slope, const double[::1] z, const double[::1] counts, double weight, int side,
    double low, double high, double[::1] out,
):
    """Write second derivatives at margins z, clipped to [low, high]; those of the other side are 0, told by `slope`.

    Without `slope` the loss has no other side.
    """
    cdef Py_ssize_t i
    cdef double t, fall
    cdef bint two = slope is not None
    if counts.shape[0] != z.shape[0] or out.shape[0] != z.shape[0]:
        raise ValueError("margins, counts and second derivatives differ in length")
    with nogil:
        for i in range(z.shape[0]):
            t = min(max(z[i], low), high)
            if two:
                fall = slope.function(t, slope.data)
                if not (fall <= 0.0 if side > 0 else fall > 0.0):
                    out[i] = 0.0
                    continue
            out[i] = weight * counts[i] * max(bend.function(t, bend.data), 0.0)
