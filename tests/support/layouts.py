"""The same rows in many types and memory layouts; shared by several test files."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

F32, F64 = np.dtype(np.float32), np.dtype(np.float64)


def rows(m, d, seed=0, classes=2):
    """float32 rows away from the origin (rounding of the coefficients then shows), with overlapping labels."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    y = np.argmax(X[:, :classes] + rng.standard_normal((m, classes)), axis=1)
    return (X + 3.0).astype(np.float32), y


def sparse_rows(m=2100, d=30, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, d)) < 0.2, rng.standard_normal((m, d)), 0.0).astype(np.float32)
    y = np.where(X @ rng.standard_normal(d) + 0.5 * rng.standard_normal(m) > 0.1, 1, 0)
    return sp.csr_matrix(X), y


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def arrays(model):
    linear = [model.coef_] if model.kernel.name == "linear" else []
    return [*linear, model.intercept_, model.dual_coef_, model.duals]


def mapped(X, folder, name="x"):
    X.tofile(folder / name)
    return np.memmap(folder / name, X.dtype, "r", shape=X.shape)


def unaligned(X):
    table = np.zeros(X.shape[0], dtype=[("flag", "u1"), ("x", X.dtype, X.shape[1:])])
    table["x"] = X
    return table["x"]


LAYOUTS = {
    "fortran": lambda X, _: np.asfortranarray(X),
    "every other row and column": lambda X, _: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
    "negative strides": lambda X, _: np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1],
    "negative fortran": lambda X, _: np.asfortranarray(X[::-1, ::-1])[::-1, ::-1],
    "transposed": lambda X, _: np.ascontiguousarray(X.T).T,
    "memory map": mapped,
    "unaligned": lambda X, _: unaligned(X),
    "other byte order": lambda X, _: X.astype(X.dtype.newbyteorder()),
    "list": lambda X, _: X.tolist(),
    "matrix": lambda X, _: np.asmatrix(X),
}


def long_indices(A, what=("indices", "indptr")):
    A = A.copy()
    for name in what:
        setattr(A, name, getattr(A, name).astype(np.int64))
    return A


def frozen(A):
    A = A.copy()
    A.data.flags.writeable = A.indices.flags.writeable = A.indptr.flags.writeable = False
    return A


def swapped(A):
    B = A.copy()
    B.data = B.data.astype(B.dtype.newbyteorder())
    return B


def mapped_csr(A, folder):
    parts = [mapped(getattr(A, name), folder, name) for name in ("data", "indices", "indptr")]
    return sp.csr_matrix(tuple(parts), shape=A.shape)


MATRICES = {
    "int64": lambda A, _: long_indices(A),
    "int64 indices only": lambda A, _: long_indices(A, ("indices",)),
    "int64 ends only": lambda A, _: long_indices(A, ("indptr",)),
    "csc": lambda A, _: A.tocsc(),
    "csc int64": lambda A, _: long_indices(A.tocsc()),
    "coo": lambda A, _: A.tocoo(),
    "csr array": lambda A, _: sp.csr_array(A),
    "read-only": lambda A, _: frozen(A),
    "read-only int64": lambda A, _: frozen(long_indices(A)),
    "memory map": mapped_csr,
    "other byte order": lambda A, _: swapped(A),
    "dense": lambda A, _: A.toarray(),
}
