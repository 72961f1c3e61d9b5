import numpy as np

class Ascent:
    tau: float
    along: float
    lazy: float
    loss: float
    gain: float
    n_free: int
    n_between: int
    n_capped: int
    visits: int

    def __init__(
        self, records: np.ndarray, w: np.ndarray, order: np.ndarray, free: np.ndarray, kink: float, border: float,
        seed: int, centre: np.ndarray | None = None, margins: np.ndarray | None = None, mean: float = 0.0,
        rate: float = 0.0,
    ) -> None: ...
    def choose(self, rows: np.ndarray) -> None: ...
    def settle_spread(self) -> None: ...

class Sweeps:
    most: int

    def __init__(
        self,
        most: int,
        share: float,
        visits: int,
        surveyed: float,
        lazy: float,
        tol: float,
        least: float,
        pull: np.ndarray | None = None,
        near: float = 0.0,
        settling: int = 0,
        settling_visits: int = 0,
    ) -> None: ...

def dense(X: np.ndarray, p: Ascent, whole: bool, start: int, stop: int) -> None: ...
def sparse(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, p: Ascent, whole: bool, start: int, stop: int
) -> None: ...
def dense_passes(X: np.ndarray, p: Ascent, most: int, share: float, visits: int) -> None: ...
def sparse_passes(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, p: Ascent, most: int, share: float, visits: int
) -> None: ...
def dense_survey(X: np.ndarray, p: Ascent, start: int, stop: int) -> None: ...
def sparse_survey(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, p: Ascent, start: int, stop: int
) -> None: ...
def sums_of_sweep(p: Ascent, s: Sweeps) -> tuple[float, float]: ...
def dense_sweeps(
    X: np.ndarray, p: Ascent, n: int, plain: int, s: Sweeps
) -> list[tuple[float, float, int, int, int, int]]: ...
def sparse_sweeps(
    data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, p: Ascent, n: int, plain: int, s: Sweeps
) -> list[tuple[float, float, int, int, int, int]]: ...
