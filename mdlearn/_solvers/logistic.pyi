from typing import Any

import numpy as np

def slopes(
    z: np.ndarray, caps: np.ndarray, sharpness: float, kink: float, u: np.ndarray, bends: np.ndarray
) -> float: ...
def loss(z: np.ndarray, counts: np.ndarray, sharpness: float, kink: float) -> float: ...
def entropy(beta: np.ndarray, caps: np.ndarray) -> float: ...
def minimum(
    z: np.ndarray, dz: np.ndarray, caps: np.ndarray, sharpness: float, kink: float, u: np.ndarray, start: float,
    bend: float, close: float,
) -> float: ...

class Work:
    def __init__(self, M: np.ndarray, held: np.ndarray, rows: np.ndarray, dsyrk: Any, dposv: Any) -> None: ...

def newton_step(
    B: np.ndarray, ridge: np.ndarray, fixed: np.ndarray, caps: np.ndarray, sharpness: float, kink: float, w: np.ndarray,
    z: np.ndarray, u: np.ndarray, bends: np.ndarray, alpha: np.ndarray, beta: np.ndarray, room: Work, loss: float,
    rounding: float, least_bend: float, full: float, close: float, left_over: float,
) -> tuple[float, float]: ...
