import numpy as np

def columns(X: np.ndarray, T: np.ndarray) -> None: ...
def scatter(
    T: np.ndarray, counts: np.ndarray, weights: np.ndarray, room: np.ndarray, mean: np.ndarray, about: np.ndarray
) -> None: ...
def quadratic(
    T: np.ndarray, counts: np.ndarray, labels: np.ndarray, mean: np.ndarray, about: np.ndarray, kappa: float,
    weights: np.ndarray, room: np.ndarray, A: np.ndarray, L: np.ndarray, v: np.ndarray,
) -> bool: ...
