from collections.abc import Sequence

import numpy as np

from mdlearn._solvers.callbacks import Callback

class Problem:
    def __init__(
        self, y: np.ndarray, offset: np.ndarray, terms: np.ndarray, spread: float, pull: float, ridge: float,
        constant: float, natives: Sequence[tuple[Callback, float, int]] = (), weights: np.ndarray | None = None,
        shifts: np.ndarray | None = None,
    ) -> None: ...

class Walk:
    scale: float
    carried: float
    t: int
    t0: int
    def __init__(self, eta0: float, t0: int, u: np.ndarray, total: np.ndarray, t: int = 0) -> None: ...

def walk_dense(X: np.ndarray, problem: Problem, walk: Walk, i: np.ndarray, j: np.ndarray) -> None: ...
def walk_csr(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, problem: Problem, walk: Walk, i: np.ndarray,
    j: np.ndarray,
) -> None: ...
