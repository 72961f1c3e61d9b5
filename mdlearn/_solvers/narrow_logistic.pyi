import numpy as np

class NarrowLogistic:
    objective: float
    bound: float
    def __init__(
        self, T: np.ndarray, labels: np.ndarray, caps: np.ndarray, alpha: np.ndarray, fixed: np.ndarray | None,
        table: np.ndarray, vectors: np.ndarray, M: np.ndarray, room: np.ndarray, sharpness: float, kink: float,
        free: bool, least_bend: float, full: float, close: float, rounding: float, left_over: float, stride: int,
        far: float,
    ) -> None: ...
    def begin(self, w: np.ndarray) -> None: ...
    def steps(self, most: int, tol: float, least: float) -> int: ...
    def point(self, w: np.ndarray, beta: np.ndarray, alpha: np.ndarray) -> None: ...
