import numpy as np

def values(
    X: np.ndarray, y: np.ndarray, counts: np.ndarray, caps: np.ndarray, terms: np.ndarray, total: float,
    variance: float, mean: float, bias: int, w: np.ndarray | None, b: float, own: np.ndarray | None, sigma: np.ndarray,
    beta: np.ndarray, alpha: np.ndarray, z: np.ndarray, sums: np.ndarray,
) -> tuple[float, float, float, float, float]: ...
def feasible(
    y: np.ndarray, counts: np.ndarray, caps: np.ndarray, terms: np.ndarray, total: float, variance: float, mean: float,
    bias: int, sigma: np.ndarray, beta: np.ndarray, alpha: np.ndarray, z: np.ndarray,
) -> float: ...
def at_multipliers(
    y: np.ndarray, counts: np.ndarray, terms: np.ndarray, total: float, variance: float, mean: float, bias: int,
    b: float, alpha: np.ndarray, w: np.ndarray, z: np.ndarray,
) -> tuple[float, float, float, float]: ...
