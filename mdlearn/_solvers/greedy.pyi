import numpy as np

class Box:
    violation: float

    def __init__(
        self,
        H: np.ndarray,
        border: np.ndarray,
        omega: float,
        soft: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        u: np.ndarray,
        e: np.ndarray,
        work: np.ndarray,
    ) -> None: ...

def doubles(problem: Box, most: int, enough: float) -> int: ...
def pairs(problem: Box, most: int, enough: float) -> int: ...
def gather(H: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray, start: int, stop: int) -> None: ...
