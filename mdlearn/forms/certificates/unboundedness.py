"""Whether a problem without a ridge has an optimum: known before iterating (MDLM paper, where (2.14) is unbounded).

With a variance term, the objective can only fall without end along directions W that raise all margins of a column
alike, z_k = t_k > 0. Far out, their slope is beta |W|_2,1 - a sum_k t_k. Without a penalty any such direction will do:
a least squares problem tells. With one, the shortest of them decides; it is found by reweighted least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.forms.certificates.without_ridge import recedes
from mdlearn.forms.joint.margins import MarginComposite
from mdlearn.forms.joint.point import lengths
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.cholesky import nearly_inverse

SOLVED_MATRIX = 1500
"""Rows or columns up to which a matrix of this size is solved; beyond, an iteration has to do."""
ROUNDING_OF_MARGINS = 1e-8
"""Largest difference of margins, in units of their mean, that is rounding."""
MOST_REFINEMENTS = 3
CLEAR = 0.01
"""Difference that is none."""
MOST_ROUNDS, FEWEST_ROUNDS, SLOW, WORK = 60, 3, 1e-4, 1e10
"""Reweighted least squares: most and fewest rounds, the relative progress at which they end, operations they take."""


def check_existence(form: MarginForm, told: str, ways: str) -> None:
    """Raise ValueError when no coefficients are optimal.

    Parameters
    ----------
    form : MarginForm
        With logistic or no terms; everything else is held by its own terms.
    told, ways : str
        What the user gave, and what to do, for the message.
    """
    mean = max(column.mean for column in form.columns)
    if form.ridge > 0 or (form.penalty > 0 and mean == 0):
        return
    if form.penalty == 0:
        receding = _recede(form)
    else:
        groups = (form.columns,) if form.joint else [(column,) for column in form.columns]
        receding = any(_outruns(form, group) for group in groups)
    if receding:
        fall = "unbounded below" if mean > 0 else "without an optimum (it falls along a direction without end)"
        raise ValueError(f"with {told} the objective is {fall} on these rows; {ways}")


def check_bias(form: MarginForm, told: str, ways: str) -> None:
    """Raise ValueError when the mean drives a free bias without end, which neither ridge nor penalty hinders.

    Parameters
    ----------
    form : MarginForm
        With logistic or no terms.
    told, ways : str
        What the user gave, and what to do, for the message.
    """
    if form.bias == "free" and any(column.unbounded_in_bias for column in form.columns):
        raise ValueError(
            f"with {told} and bias='free' the objective is unbounded below: the margin mean outweighs what the loss of "
            f"the smaller class can hold; {ways}"
        )


def _recede(form: MarginForm) -> bool:
    """Whether some column falls along a direction without end."""
    varied = [column for column in form.columns if column.variance > 0]
    if varied:
        rows = _Alike(form, varied)
        if rows.solution(np.ones(rows.width)) is not None:
            return True
    return any(recedes(form, column) for column in form.columns if column.variance == 0)


def _outruns(form: MarginForm, columns: Sequence[Column]) -> bool:
    """Whether a direction with equal margins in each column gains more than its penalty; False where it is too large.

    Minimise |W|_2,1 over sum t_k = 1: the quadratic sum_j |W_j|^2 / weight_j with weight_j = |W_j| touches it from
    above at the last W, and is minimised by one least squares problem for all columns.
    """
    problem = MarginComposite(form, columns)
    if problem.steepness(problem.settle(np.zeros(problem.shape))) <= 1.0:
        return False  # a tangent has a minimum with the penalty
    gain, rows = columns[0].mean, _Alike(form, columns)
    penalty = np.full(rows.width, form.penalty)
    if form.bias == "free":
        penalty[-1] = 0.0
    weight, last = np.ones(rows.width), np.inf
    for _ in range(rows.rounds):
        U = rows.solution(weight)
        if U is None:
            return False
        held = penalty > 0
        cost = (U[held] ** 2 / weight[held, None]).sum(axis=0)
        t = np.divide(1.0, cost, out=np.zeros_like(cost), where=np.isfinite(cost) & (cost > 0))
        if (cost == 0).any():
            return True
        if not t.any():
            return False
        W = np.where(t > 0, U, 0.0) * (t / t.sum())
        price = float(penalty @ lengths(W))
        if gain > price * (1.0 + ROUNDING_OF_MARGINS):
            return True
        if price > last * (1.0 - SLOW):
            return False
        last, size = price, lengths(W)
        weight = np.where(held, np.maximum(size, 1e-10 * size.max()), weight)
    return False


class _Alike:
    """Coefficients that give all rows of a column the margin 1, of least weighted length."""

    def __init__(self, form: MarginForm, columns: Sequence[Column]) -> None:
        assert isinstance(form.features, LinearFeatures)
        self.affine, self.columns, self.bias = AffineRows(form.features.rows, form.bias != "none"), columns, form.bias
        self.m, self.width = form.features.n_rows, self.affine.width
        squares = self.affine.column_squares(np.ones(self.m))
        m, p = self.m, self.width
        self.exact = min(m, p) <= SOLVED_MATRIX
        self.rounds = (
            max(FEWEST_ROUNDS, min(MOST_ROUNDS, int(WORK / (float(min(m, p)) ** 2 * max(m, p)))))
            if self.exact
            else FEWEST_ROUNDS
        )
        self.scale = 1.0 / np.sqrt(np.where(squares > 0, squares, 1.0))

    def solution(self, weight: np.ndarray) -> np.ndarray | None:
        """Return (p, k), infinite for columns without such coefficients; None where there are none at all."""
        Y = np.array([c.y for c in self.columns]).T
        first = bool((weight == 1.0).all())
        root = self.scale.copy() if first else np.sqrt(weight)
        if self.bias == "free" and not first:
            root[-1] = 1e3 * float(root[:-1].max())
        if first and self._contradicted(root, Y):
            return None
        solve = self._solver(root)
        U = root[:, None] * solve(Y)
        for _ in range(MOST_REFINEMENTS):
            U += root[:, None] * solve(Y - self.affine.dot(U))
        far = np.abs(self.affine.dot(U) - Y).max(axis=0) > ROUNDING_OF_MARGINS
        U[:, far] = np.inf
        return None if far.all() else U

    def _contradicted(self, root: np.ndarray, Y: np.ndarray) -> bool:
        """Whether no column can be solved even for some of many rows, which is cheaper to find out."""
        some = self.width + self.width // 4 + 16
        if self.m < 2 * some or self.width > SOLVED_MATRIX:
            return False
        chosen = np.linspace(0, self.m - 1, some).astype(np.intp)
        B = self.affine.block(chosen) * root
        V = nearly_inverse(B.T @ B)(B.T @ Y[chosen])
        return bool((np.abs(B @ V - Y[chosen]).max(axis=0) > CLEAR).all())

    def _solver(self, root: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return Y -> the least squares solution V of X diag(root) V = Y, of least length."""
        if not self.exact:
            return lambda Y: self._iterate(root, Y)
        if self.m <= self.width:
            wide = nearly_inverse(self._gram(root))
            return lambda Y: root[:, None] * self.affine.adjoint(wide(Y))
        narrow = nearly_inverse(self._normal(root))
        return lambda Y: narrow(root[:, None] * self.affine.adjoint(Y))

    def _gram(self, root: np.ndarray) -> np.ndarray:
        G = np.empty((self.m, self.m))
        for span in self.affine.rows.spans():
            G[span] = self.affine.dot((root**2)[:, None] * self.affine.block(span).T).T
        return G

    def _normal(self, root: np.ndarray) -> np.ndarray:
        M = np.zeros((self.width, self.width))
        for span in self.affine.rows.spans():
            B = self.affine.block(span) * root
            M += B.T @ B
        return M

    def _iterate(self, root: np.ndarray, Y: np.ndarray) -> np.ndarray:
        from scipy.sparse import linalg

        operator = linalg.LinearOperator(
            (self.m, self.width),
            matvec=lambda v: self.affine.dot(root * v.ravel()),
            rmatvec=lambda v: root * self.affine.adjoint(v.ravel()),
            dtype=np.float64,
        )
        solved = [linalg.lsqr(operator, y, atol=1e-12, btol=1e-12, iter_lim=200)[0] for y in Y.T]
        return np.array(solved).T
