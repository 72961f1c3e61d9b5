import numpy as np

def dot(
    F: np.ndarray,
    starts: np.ndarray,
    W: np.ndarray,
    out: np.ndarray,
    first: int,
    last: int,
) -> None: ...
def adjoint(
    F: np.ndarray,
    starts: np.ndarray,
    owner: np.ndarray,
    v: np.ndarray,
    out: np.ndarray,
    first: int,
    last: int,
) -> None: ...
def factor(
    B: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    N: np.ndarray,
    first: int,
    last: int,
) -> None: ...
def solve(
    N: np.ndarray,
    starts: np.ndarray,
    places: np.ndarray,
    v: np.ndarray,
) -> None: ...
