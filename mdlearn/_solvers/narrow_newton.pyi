import numpy as np

class NarrowNewton:
    objective: float
    lower_bound: float
    bound: float
    def __init__(
        self, T: np.ndarray, labels: np.ndarray, caps: np.ndarray, softness: np.ndarray, alpha: np.ndarray,
        A: np.ndarray, L: np.ndarray, fixed: np.ndarray | None, table: np.ndarray, space: np.ndarray, kink: float,
        squared: bool, growth: float, solved: float, close: float,
    ) -> None: ...
    def begin(
        self, w: np.ndarray | None, centre: np.ndarray, share: float, counts: np.ndarray, steepness: float
    ) -> None: ...
    def share_first_factor(self, shared: np.ndarray) -> None: ...
    def steps(self, most: int, tol: float, least: float) -> int: ...
    def point(
        self, w: np.ndarray, beta: np.ndarray, alpha: np.ndarray, sigma: np.ndarray, counts: np.ndarray, kappa: float
    ) -> None: ...
