import numpy as np

class Pairs:
    def __init__(
        self, K: np.ndarray, spans: np.ndarray, starts: np.ndarray, target: np.ndarray, low: np.ndarray,
        high: np.ndarray, constant: float, paired: bool, square: np.ndarray, columns: np.ndarray, places: np.ndarray,
    ) -> None: ...

def ascend(pairs: Pairs, u: np.ndarray, levels: np.ndarray, tol: float, first: int, most: int) -> int: ...
def values(pairs: Pairs, u: np.ndarray, first: int, out: np.ndarray) -> None: ...
