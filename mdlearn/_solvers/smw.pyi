import numpy as np

def advance(
    y: np.ndarray, counts: np.ndarray, terms: np.ndarray, alpha: float, z: np.ndarray, u: np.ndarray, f: np.ndarray
) -> tuple[float, float, float]: ...
def multipliers(
    y: np.ndarray, counts: np.ndarray, terms: np.ndarray, u: np.ndarray, beta: np.ndarray, alpha: np.ndarray
) -> None: ...
