"""Preconditioned conjugate gradients, in interruptible pieces."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

Map = Callable[[np.ndarray], np.ndarray]
FLAT = 1e-16
"""Curvature along a direction, in units of its length and that of its product, that is none."""


def conjugate_gradients(
    times: Map, solve: Map, target: np.ndarray, residual: float, energy: float, most: int
) -> Generator[None, None, np.ndarray]:
    """Solve a positive semidefinite system by conjugate gradients; stop at a direction without curvature.

    `times`, `solve`: product with the matrix, and with an approximate inverse; `target`: right-hand side, of any shape;
    `residual`, `energy`: shares of their first values at which the length of the residual, or its product with what
    `solve` makes of it, is small enough; `most`: most products.
    """
    X, R = np.zeros_like(target), target.copy()
    P = Z = solve(R)
    rho = first = float((R * Z).sum())
    start = float(np.linalg.norm(R))
    for _ in range(most):
        if float(np.linalg.norm(R)) <= residual * start or rho <= energy * first:
            break
        H = times(P)
        yield
        bend = float((P * H).sum())
        if not bend > FLAT * float(np.linalg.norm(P)) * float(np.linalg.norm(H)):  # or no number
            if not X.any():
                X = P * (rho / max(bend, 1e-300)) if bend > 0 else P
            break
        X = X + (rho / bend) * P
        R = R - (rho / bend) * H
        Z = solve(R)
        rho, old = float((R * Z).sum()), rho
        P = Z + (rho / old) * P
    return X
