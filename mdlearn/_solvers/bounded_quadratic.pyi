import numpy as np

from mdlearn._solvers.known_rows import KnownRows

class Box:
    violation: float

    def __init__(
        self, H: np.ndarray | KnownRows, border: np.ndarray, omega: float, soft: np.ndarray, low: np.ndarray,
        high: np.ndarray, u: np.ndarray, e: np.ndarray, work: np.ndarray,
    ) -> None: ...

def doubles(problem: Box, most: int, enough: float) -> int: ...
def pairs(problem: Box, most: int, enough: float) -> int: ...
def gather(H: np.ndarray, rows: np.ndarray, columns: np.ndarray, out: np.ndarray, start: int, stop: int) -> None: ...

class Face:
    worst: float
    free: int
    entering: int

    def __init__(
        self, H: np.ndarray, border: np.ndarray, omega: float, soft: np.ndarray, low: np.ndarray, high: np.ndarray,
        u: np.ndarray, e: np.ndarray, index: np.ndarray, work: np.ndarray,
    ) -> None: ...

def rows(face: Face) -> int: ...
def system(face: Face, A: np.ndarray, sides: np.ndarray, trace: float) -> None: ...
def step(face: Face, solved: np.ndarray) -> bool: ...
