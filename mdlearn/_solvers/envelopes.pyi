from typing import Any

import numpy as np

class Work:
    def __init__(
        self, k: int, n: int, M: np.ndarray, held: np.ndarray, columns: np.ndarray, change: np.ndarray, dsyrk: Any,
        dposv: Any,
    ) -> None: ...

def slopes(
    z: np.ndarray, centre: np.ndarray, steepness: np.ndarray, caps: np.ndarray, kink: float, u: np.ndarray,
    free: np.ndarray,
) -> int: ...
def minimum(
    z: np.ndarray, dz: np.ndarray, centre: np.ndarray, steepness: np.ndarray, caps: np.ndarray, kink: float,
    u: np.ndarray, start: float, bend: float, close: float,
) -> float: ...
def newton_steps(
    B: np.ndarray, A: np.ndarray, fixed: np.ndarray, centre: np.ndarray, steepness: np.ndarray, caps: np.ndarray,
    kink: float, w: np.ndarray, z: np.ndarray, u: np.ndarray, alpha: np.ndarray, free: np.ndarray, room: Work,
    most: int, target: float, close: float,
) -> tuple[bool, float]: ...
def stage(
    B: np.ndarray, A: np.ndarray, L: np.ndarray, fixed: np.ndarray, centre: np.ndarray, steepness: np.ndarray,
    caps: np.ndarray, softness: np.ndarray, kink: float, w: np.ndarray, z: np.ndarray, u: np.ndarray, alpha: np.ndarray,
    free: np.ndarray, room: Work, most: int, left: float, solved: float, growth: float, moves: int, part: float,
    close: float,
) -> tuple[int, float, float, float]: ...
