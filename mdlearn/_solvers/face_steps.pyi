import numpy as np

def ascend(
    L: np.ndarray, b: np.ndarray, p: np.ndarray, caps: np.ndarray, met: np.ndarray, order: np.ndarray
) -> int: ...
def step_over_dense(
    X: np.ndarray, records: np.ndarray, w: np.ndarray, kink: float, border: float, trace: float, M: np.ndarray,
    numbers: np.ndarray, met: np.ndarray, places: np.ndarray, moved: np.ndarray,
) -> bool: ...
