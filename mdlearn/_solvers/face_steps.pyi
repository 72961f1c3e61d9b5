import numpy as np

def ascend(
    L: np.ndarray, b: np.ndarray, p: np.ndarray, caps: np.ndarray, met: np.ndarray, order: np.ndarray
) -> int: ...
