import numpy as np

def smoothed(
    kinks: np.ndarray,
    sides: np.ndarray,
    caps: np.ndarray,
    z: np.ndarray,
    width: float,
    beta: np.ndarray,
    force: np.ndarray,
    weight: np.ndarray,
    start: int,
    stop: int,
) -> int: ...
def along(
    kinks: np.ndarray,
    sides: np.ndarray,
    caps: np.ndarray,
    z: np.ndarray,
    change: np.ndarray,
    step: float,
    width: float,
    start: int,
    stop: int,
) -> tuple[float, float]: ...

class Path:
    def __init__(
        self,
        caps: np.ndarray,
        softness: np.ndarray,
        beta: np.ndarray,
        upper: np.ndarray,
        s: np.ndarray,
        xi: np.ndarray,
        db: np.ndarray,
        ds: np.ndarray,
        dxi: np.ndarray,
    ) -> None: ...

def weigh(p: Path, d: np.ndarray, weight: np.ndarray, start: int, stop: int) -> tuple[float, float]: ...
def forces(
    p: Path,
    kinks: np.ndarray,
    sides: np.ndarray,
    z: np.ndarray,
    centring: float,
    d: np.ndarray,
    h: np.ndarray,
    force: np.ndarray,
    start: int,
    stop: int,
) -> None: ...
def slacks(p: Path, centring: float, change: np.ndarray, start: int, stop: int) -> tuple[float, float]: ...
def ahead(p: Path, step: float, start: int, stop: int) -> float: ...
def advance(p: Path, step: float, start: int, stop: int) -> None: ...
