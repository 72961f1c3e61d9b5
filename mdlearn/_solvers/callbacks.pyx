"""C functions of a margin that others bring: the pointer is taken once, and its owner is held as long as the pointer."""

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
