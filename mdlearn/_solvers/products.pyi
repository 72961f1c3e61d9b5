from typing import Any

import numpy as np

def add_dense(B: np.ndarray, weight: float, M: np.ndarray, capsule: Any) -> None: ...
def add_sparse(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, weights: np.ndarray, M: np.ndarray, first: int,
    last: int, bias: bool, most: int,
) -> int: ...
def write_symmetric(values: np.ndarray, G: np.ndarray, row: int, column: int) -> None: ...
