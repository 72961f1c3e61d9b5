import numpy as np

def gaussians(K: np.ndarray, left: np.ndarray, right: np.ndarray, scale: float) -> None: ...
def add_products(
    A: np.ndarray,
    B: np.ndarray,
    left: np.ndarray,
    right: np.ndarray,
    scale: float,
    above: np.ndarray,
    beside: np.ndarray,
    across: np.ndarray,
    down: np.ndarray,
) -> None: ...
