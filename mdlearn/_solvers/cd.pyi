import numpy as np

from mdlearn._solvers.rows import DenseRows, GramRows

class Problem:
    offset: float

    def __init__(
        self,
        y: np.ndarray,
        sides: np.ndarray,
        kinks: np.ndarray,
        caps: np.ndarray,
        softness: np.ndarray,
        diagonal: np.ndarray,
        border: np.ndarray,
        omega: float,
        beta: np.ndarray,
        S: np.ndarray,
    ) -> None: ...

def sweep_gram(rows: GramRows, problem: Problem, order: np.ndarray) -> None: ...
def sweep_dense(rows: DenseRows, problem: Problem, order: np.ndarray) -> None: ...
