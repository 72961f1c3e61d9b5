"""Approximate second derivatives of all columns at once: mean_j M + R, with one decomposition for a whole fit.

M are the moments of the rows, R the ridge, and mean_j the mean second derivative of column j: only these numbers change
from step to step.
"""

from __future__ import annotations

import numpy as np

from mdlearn.forms.joint.decision_values import DecisionComposite
from mdlearn.numerics.conjugate_gradients import Map
from mdlearn.solvers.proximal_gradient.newton_steps import SINGULAR


class Preconditioner:
    """Solutions with (1 - theta) mean_j / share + theta along axes U with U' (share M + R) U = I, U' R U = diag(theta).

    Where there are too many columns for a matrix, only diagonals are solved with.

    Parameters
    ----------
    problem : Scores
        After `prepare`.
    """

    def __init__(self, problem: DecisionComposite) -> None:
        ridge, self.axes = problem.ridge, None
        squares, self.share = problem.squares, 1.0
        if ridge.any() and squares.any():
            self.share = float(ridge.sum()) / float(squares.sum())
        if problem.moments is not None:
            self.axes, theta = _axes(self.share * problem.moments, ridge)
        else:
            whole = self.share * squares + ridge
            theta = np.divide(ridge, whole, out=np.zeros_like(ridge), where=whole > 0)
            self.scale = np.divide(1.0, whole, out=np.zeros_like(whole), where=whole > 0)
        # Far from kinks nothing bends a free bias, and a slope that is rounding would move it without end.
        self.theta = np.clip(theta, SINGULAR, 1.0)

    def solve(self, means: np.ndarray) -> Map:
        """Return R -> the solutions, one per column, for mean second derivatives of shape (k,)."""
        bends = np.multiply.outer(1.0 - self.theta, means / self.share) + self.theta[:, None]
        inverse = np.divide(1.0, bends, out=np.zeros_like(bends), where=bends > 0)
        axes = self.axes
        if axes is None:
            return lambda R: self.scale[:, None] * inverse * R
        return lambda R: axes @ (inverse * (axes.T @ R))


def _axes(M: np.ndarray, ridge: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """U and theta with U' (M + R) U = I and U' R U = diag(theta); U leaves out what M + R does not hold."""
    from scipy.linalg import LinAlgError, cholesky, solve_triangular

    S = M + np.diag(ridge)
    diagonal = np.diagonal(S)
    scale = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0)
    S *= np.multiply.outer(scale, scale)
    whitening = None
    try:
        L = cholesky(S, lower=True, check_finite=False)
        if float(np.diagonal(L).min()) ** 2 > SINGULAR:
            whitening = solve_triangular(L, np.diag(scale), lower=True, check_finite=False).T
    except LinAlgError:
        pass
    if whitening is None:
        values, vectors = np.linalg.eigh(S)
        held = values > SINGULAR * float(values[-1])
        whitening = scale[:, None] * vectors[:, held] / np.sqrt(values[held])
    theta, turn = np.linalg.eigh(whitening.T @ (ridge[:, None] * whitening))
    return whitening @ turn, theta
