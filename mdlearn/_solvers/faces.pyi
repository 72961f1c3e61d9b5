import numpy as np

class Face:
    worst: float
    free: int
    entering: int

    def __init__(
        self,
        R: np.ndarray,
        border: np.ndarray,
        omega: float,
        soft: np.ndarray,
        low: np.ndarray,
        high: np.ndarray,
        u: np.ndarray,
        e: np.ndarray,
        index: np.ndarray,
        work: np.ndarray,
    ) -> None: ...

def rows(face: Face) -> int: ...
def system(face: Face, A: np.ndarray, sides: np.ndarray, trace: float) -> None: ...
def step(face: Face, solved: np.ndarray) -> bool: ...
