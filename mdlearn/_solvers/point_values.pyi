from typing import Any

import numpy as np

def values(
    X: np.ndarray | None, y: np.ndarray, counts: np.ndarray, caps: np.ndarray, terms: np.ndarray, total: float,
    variance: float, mean: float, bias: int, w: np.ndarray | None, b: float, own: np.ndarray | None, sigma: np.ndarray,
    beta: np.ndarray, alpha: np.ndarray, z: np.ndarray, sums: np.ndarray,
    rows: Any = None,
) -> tuple[float, float, float, float, float]: ...
