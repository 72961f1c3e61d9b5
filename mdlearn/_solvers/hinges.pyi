import numpy as np

def along(
    z: np.ndarray, dz: np.ndarray, counts: np.ndarray, offset: np.ndarray, terms: np.ndarray, t: float
) -> tuple[float, float]: ...
