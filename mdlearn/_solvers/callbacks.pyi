from typing import Any

import numpy as np

class Callback:
    def __init__(self, capsule: Any, params: np.ndarray, owner: Any) -> None: ...

def evaluate(callback: Callback, t: np.ndarray, out: np.ndarray) -> None: ...
