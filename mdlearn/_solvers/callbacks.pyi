from typing import Any

import numpy as np

class Callback:
    def __init__(self, capsule: Any, params: np.ndarray, owner: Any) -> None: ...

def evaluate(callback: Callback, t: np.ndarray, out: np.ndarray) -> None: ...
def losses(value: Callback, z: np.ndarray, counts: np.ndarray, low: float, high: float, less: float) -> float: ...
def slopes(
    slope: Callback, z: np.ndarray, counts: np.ndarray, weight: float, side: int, low: float, high: float,
    out: np.ndarray,
) -> None: ...
def bends(
    bend: Callback, slope: Callback | None, z: np.ndarray, counts: np.ndarray, weight: float, side: int, low: float,
    high: float, out: np.ndarray,
) -> None: ...
