"""Some rows of a symmetric matrix, in the order in which they were computed."""

from mdlearn._solvers.gaussian cimport RowMaker


cdef class KnownRows:
    """Rows of an (m, m) matrix that are known; loops that need another one compute it, or end and say which.

    Parameters
    ----------
    values : (m, m), the first `count` rows of which are known; memory of others need not be there yet
    place : (m,), -1 everywhere: where in `values` a row is, or -1
    order : (m,) of its own: numbers of the known rows, in their order in `values`
    diagonal : (m,), that of the matrix
    maker : RowMaker or None
        What computes single rows in compiled code.

    Attributes
    ----------
    count : int
    missing : int
        The row that a loop ended without, or -1.
    """

    def __init__(self, values, place, order, const double[::1] diagonal, RowMaker maker=None):
        cdef Py_ssize_t m = diagonal.shape[0], k
        self.values, self.place, self.numbers = values, place, order
        self.table, self.at, self.order = values, place, order
        if self.table.shape[0] != m or self.table.shape[1] != m or self.at.shape[0] != m or self.order.shape[0] != m:
            raise ValueError("known rows need a square matrix, and places and a diagonal as long as its own")
        if maker is not None and maker.length != m:
            raise ValueError("known rows need a maker of as many entries")
        for k in range(m):
            if self.at[k] != -1:
                raise ValueError("known rows begin with none")
        self.diagonal, self.maker, self.count, self.missing, self.allowed = diagonal, maker, 0, -1, 0

    @property
    def compiled(self):
        """Whether loops can compute rows."""
        return self.maker is not None

    @property
    def index(self):
        """Numbers of the known rows, in their order in `values`."""
        return self.numbers[: self.count]

    def allow(self, Py_ssize_t n):
        """Let the next loop compute up to n rows: so many take no time that Ctrl-C could be late by."""
        self.allowed, self.missing = n, -1

    def room(self, Py_ssize_t n):
        """Return the part of `values` where the next n rows belong."""
        return self.values[self.count : self.count + n]

    def note(self, const long long[::1] index):
        """Take note of rows, none of them known, that were written where `room` says."""
        cdef Py_ssize_t k
        for k in range(index.shape[0]):
            if not 0 <= index[k] < self.at.shape[0] or self.at[index[k]] >= 0:
                raise ValueError("an index is out of range, or of a row that is known")
            self.at[index[k]], self.order[self.count] = self.count, index[k]
            self.count += 1

    def compute(self, const long long[::1] index):
        """Compute those of some rows that are not known; there needs to be a maker."""
        cdef Py_ssize_t k
        if self.maker is None:
            raise ValueError("rows cannot be computed without a maker")
        check_index(self, index)
        with nogil:
            for k in range(index.shape[0]):
                self.allowed = 1
                self.row(index[k])

    cdef const double* row(self, Py_ssize_t k) noexcept nogil:
        # NULL where the row is not there and must not be computed now.
        if self.at[k] < 0:
            if self.maker is None or self.allowed <= 0:
                self.missing = k
                return NULL
            self.maker.fill(k, &self.table[self.count, 0])
            self.at[k], self.order[self.count] = self.count, k
            self.count += 1
            self.allowed -= 1
        return &self.table[self.at[k], 0]


cdef int check_index(KnownRows known, const long long[::1] index) except -1:
    cdef Py_ssize_t k
    for k in range(index.shape[0]):
        if not 0 <= index[k] < known.at.shape[0]:
            raise ValueError("an index is out of range")
    return 0


cdef class SelectedRows(RowMaker):
    """Rows of the matrix between some rows of another one, gathered from `KnownRows` that loops can add to.

    Parameters
    ----------
    whole : KnownRows with a maker
    index : (n,), the rows of the other matrix
    """

    def __init__(self, KnownRows whole not None, const long long[::1] index):
        if whole.maker is None:
            raise ValueError("selected rows need known rows to which loops can add")
        check_index(whole, index)
        self.whole, self.index, self.length = whole, index, index.shape[0]

    cdef void fill(self, Py_ssize_t i, double* out) noexcept nogil:
        cdef Py_ssize_t k, n = self.length
        cdef const double* row
        cdef const long long* index = &self.index[0]
        self.whole.allowed = 1
        row = self.whole.row(index[i])
        for k in range(n):
            out[k] = row[index[k]]
