import numpy as np

class Centred:
    kappa: float
    blank: int
    tau: float
    along: float
    total: float
    offset: float
    live: float
    lazy: float
    loss: float
    spread: float
    gap: float
    def __init__(
        self, records: np.ndarray, norm: float, label_mean: float, kappa: float, beta: np.ndarray, s: np.ndarray,
        u: np.ndarray, keep: np.ndarray,
    ) -> None: ...

def sweep(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, p: Centred, order: np.ndarray) -> None: ...
def sweep_blocks(
    F: np.ndarray, place: np.ndarray, blocks: np.ndarray, couplings: np.ndarray, p: Centred, order: np.ndarray
) -> None: ...
