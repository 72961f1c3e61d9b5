import numpy as np

from mdlearn._solvers.callbacks import Callback

class SlopeTable:
    def __init__(self, knots: np.ndarray, starts: np.ndarray, low: float, scale: float) -> None: ...

class NearTable:
    def __init__(
        self, parts: np.ndarray, slopes: np.ndarray, low: float, scale: float, value: Callback, slope: Callback,
        bend: Callback,
    ) -> None: ...
    def losses(self, z: np.ndarray, counts: np.ndarray, low: float, high: float, less: float) -> float: ...
    def multipliers(
        self, z: np.ndarray, counts: np.ndarray, weight: float, side: int, low: float, high: float, most: float,
        out: np.ndarray,
    ) -> None: ...
    def bends(
        self, z: np.ndarray, counts: np.ndarray, weight: float, side: int, two: bool, low: float, high: float,
        out: np.ndarray,
    ) -> None: ...

class ConjugateTable:
    def __init__(self, near: NearTable, parts: np.ndarray, cap: float, first: float) -> None: ...

def bound(
    table: SlopeTable, value: Callback, slope: Callback, conjugate: Callback | None, beta: np.ndarray,
    counts: np.ndarray, weight: float, side: int, less: float, near: ConjugateTable | None = None,
) -> float: ...
def estimate(
    table: SlopeTable, value: Callback, slope: Callback, beta: np.ndarray, counts: np.ndarray, weight: float, side: int,
    less: float, near: ConjugateTable | None = None,
) -> float: ...
