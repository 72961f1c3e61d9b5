"""Rows as coordinate descent sees them; see rows.pxd for the two inline functions."""


cdef class GramRows:
    """A symmetric matrix R (m, m) and the kept vector f = R q (m,)."""

    def __init__(self, const double[:, ::1] matrix, double[::1] kept):
        if matrix.shape[0] != matrix.shape[1] or kept.shape[0] != matrix.shape[0] or kept.shape[0] == 0:
            raise ValueError("a Gram matrix needs to be square, with one kept entry per row")
        self.matrix, self.kept = matrix, kept

    @property
    def n_rows(self):
        """Number of rows."""
        return self.matrix.shape[0]


cdef class DenseRows:
    """Rows X (m, d) of float64 or float32 with any strides, read only, and the kept vector w = X' q (d,)."""

    def __init__(self, matrix, double[::1] kept):
        if kept.shape[0] != matrix.shape[1] or matrix.shape[0] == 0 or kept.shape[0] == 0:
            raise ValueError("rows need at least one column, with one kept entry per column")
        self.is_single = matrix.itemsize == 4
        if self.is_single:
            self.single = matrix
        else:
            self.wide = matrix
        self.step = matrix.strides[1] // matrix.itemsize
        self.kept = kept

    @property
    def n_rows(self):
        """Number of rows."""
        return self.single.shape[0] if self.is_single else self.wide.shape[0]
