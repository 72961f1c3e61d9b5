import numpy as np

from mdlearn._solvers.gaussian import RowMaker

class KnownRows:
    values: np.ndarray
    place: np.ndarray
    count: int
    missing: int

    def __init__(
        self, values: np.ndarray, place: np.ndarray, order: np.ndarray, diagonal: np.ndarray,
        maker: RowMaker | None = None,
    ) -> None: ...
    @property
    def compiled(self) -> bool: ...
    @property
    def index(self) -> np.ndarray: ...
    def allow(self, n: int) -> None: ...
    def room(self, n: int) -> np.ndarray: ...
    def note(self, index: np.ndarray) -> None: ...

class SelectedRows(RowMaker):
    def __init__(self, whole: KnownRows, index: np.ndarray) -> None: ...
