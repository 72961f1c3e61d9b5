import numpy as np

def dot(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, w: np.ndarray, out: np.ndarray, first: int, last: int
) -> None: ...
def adjoint(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, v: np.ndarray, out: np.ndarray, first: int, last: int
) -> None: ...
def dot_and_adjoint(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    w: np.ndarray,
    last_w: float,
    weights: np.ndarray,
    z: np.ndarray,
    out: np.ndarray,
    first: int,
    last: int,
) -> None: ...
def squares(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, weights: np.ndarray, out: np.ndarray, first: int,
    last: int,
) -> None: ...
def row_squares(data: np.ndarray, indptr: np.ndarray, out: np.ndarray, first: int, last: int) -> float: ...
def column_squares(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, v: np.ndarray, out: np.ndarray, first: int, last: int
) -> None: ...
def columns(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, T: np.ndarray, first: int, last: int
) -> None: ...
def write(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rows: np.ndarray, out: np.ndarray
) -> None: ...
def gather(X: np.ndarray, indptr: np.ndarray, data: np.ndarray, indices: np.ndarray) -> int: ...
