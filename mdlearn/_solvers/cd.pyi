import numpy as np

class GramRows:
    def __init__(self, matrix: np.ndarray, kept: np.ndarray) -> None: ...
    @property
    def n_rows(self) -> int: ...

class DenseRows:
    def __init__(self, matrix: np.ndarray, kept: np.ndarray) -> None: ...
    @property
    def n_rows(self) -> int: ...

class Problem:
    offset: float

    def __init__(
        self, y: np.ndarray, sides: np.ndarray, kinks: np.ndarray, caps: np.ndarray, softness: np.ndarray,
        diagonal: np.ndarray, border: np.ndarray, omega: float, beta: np.ndarray, S: np.ndarray,
    ) -> None: ...

def sweep(rows: GramRows | DenseRows, problem: Problem, order: np.ndarray) -> None: ...
