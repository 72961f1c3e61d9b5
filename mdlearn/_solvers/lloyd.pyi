import numpy as np

def assign(
    X: np.ndarray, centers: np.ndarray, rows: np.ndarray, products: np.ndarray, halves: np.ndarray, unit: float,
    margin: float, counts: np.ndarray, upper: np.ndarray, lower: np.ndarray, labels: np.ndarray, sums: np.ndarray,
) -> tuple[int, int]: ...
def add(
    X: np.ndarray, counts: np.ndarray, labels: np.ndarray, wanted: np.ndarray, sums: np.ndarray, first: int, last: int
) -> None: ...
