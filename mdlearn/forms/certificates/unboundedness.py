"""Unboundedness: whether a problem without a ridge has an optimum, known before iterating or seen meanwhile.

With a variance term, the objective can only fall without end along directions W that raise all margins of a column
alike, z_k = t_k > 0. Far out, their slope is beta |W|_2,1 - a sum_k t_k. Without a penalty any such direction will do:
a least squares problem tells. With one, the shortest of them decides; it is found by reweighted least squares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.forms.certificates.separability import LARGEST_ROWS, separability_rows, separation_value
from mdlearn.forms.joint.composite_point import row_lengths
from mdlearn.forms.joint.margin_composite import MarginComposite
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.numerics.cholesky import nearly_inverse_by_cholesky

SOLVED_MATRIX = 1500
"""Rows or columns up to which a matrix of this size is solved; beyond, an iteration has to do."""
ROUNDING_OF_MARGINS = 1e-8
"""Largest difference of margins, in units of their mean, that is rounding."""
MOST_REFINEMENTS = 3
CLEAR = 0.01
"""Difference that is none."""
MOST_ROUNDS, FEWEST_ROUNDS, SLOW, WORK = 60, 3, 1e-4, 1e10
"""Reweighted least squares: most and fewest rounds, the relative progress at which they end, operations they take."""
SETTLED, RESTLESS, STRANGE_GAP = 1e-4, 0.01, 0.7
"""Gap below which it is strange that margins still move by this share of the largest, and of their last move."""
STRANGE_STEPS = 15
"""Steps after which a larger gap is strange, too."""
LARGEST_PROGRAM = 5e5
"""Non-zero entries of the rows up to which a linear program is asked (seconds)."""
SURE_MARGIN = 1e-9
"""Margin, in units of the largest, above which a row is on its side in spite of rounding."""


def check_unboundedness(form: MarginForm, told: str, ways: str) -> None:
    """Check for unboundedness: ValueError when an objective without a ridge has no optimal coefficients.

    `form`: with logistic or no terms; everything else is held by its own terms; `told`, `ways`: what the user gave, and
    what to do, for the message.
    """
    mean = max(column.mean for column in form.columns)
    if form.ridge > 0 or (form.penalty > 0 and mean == 0):
        return
    if form.penalty == 0:
        receding = _is_unbounded_without_penalty(form)
    else:
        groups = (form.columns,) if form.joint else [(column,) for column in form.columns]
        receding = any(_is_unbounded_despite_penalty(form, group) for group in groups)
    if receding:
        fall = "unbounded below" if mean > 0 else "without an optimum (it falls along a direction without end)"
        raise ValueError(f"with {told} the objective is {fall} on these rows; {ways}")


def check_unboundedness_in_bias(form: MarginForm, told: str, ways: str) -> None:
    """Check for unboundedness in a free bias: ValueError when the mean drives it without end.

    Arguments are those of `check_unboundedness`.
    """
    if form.bias == "free" and any(column.unbounded_in_bias for column in form.columns):
        raise ValueError(
            f"with {told} and bias='free' the objective is unbounded below: the margin mean outweighs what the loss of "
            f"the smaller class can hold; {ways}"
        )


def _is_unbounded_without_penalty(form: MarginForm) -> bool:
    """Unboundedness without ridge and penalty: whether some column falls along a direction without end."""
    varied = [column for column in form.columns if column.variance > 0]
    if varied:
        rows = _UnboundedDirections(form, varied)
        if rows.solution(np.ones(rows.width)) is not None:
            return True
    return any(is_unbounded(form, column) for column in form.columns if column.variance == 0)


def _is_unbounded_despite_penalty(form: MarginForm, columns: Sequence[Column]) -> bool:
    """Unboundedness despite a penalty: whether equal margins in each column gain more; False if it is too large.

    Minimise |W|_2,1 over sum t_k = 1: the quadratic sum_j |W_j|^2 / weight_j with weight_j = |W_j| touches it from
    above at the last W, and is minimised by one least squares problem for all columns.
    """
    problem = MarginComposite(form, columns)
    if problem.steepness(problem.settle(np.zeros(problem.shape))) <= 1.0:
        return False  # a tangent has a minimum with the penalty
    gain, rows = columns[0].mean, _UnboundedDirections(form, columns)
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
        price = float(penalty @ row_lengths(W))
        if gain > price * (1.0 + ROUNDING_OF_MARGINS):
            return True
        if price > last * (1.0 - SLOW):
            return False
        last, size = price, row_lengths(W)
        weight = np.where(held, np.maximum(size, 1e-10 * size.max()), weight)
    return False


class _UnboundedDirections:
    """Directions of unboundedness: coefficients of least weighted length that give a column's rows the margin 1."""

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
        V = nearly_inverse_by_cholesky(B.T @ B)(B.T @ Y[chosen])
        return bool((np.abs(B @ V - Y[chosen]).max(axis=0) > CLEAR).all())

    def _solver(self, root: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return Y -> the least squares solution V of X diag(root) V = Y, of least length."""
        if not self.exact:
            return lambda Y: self._iterate(root, Y)
        if self.m <= self.width:
            wide = nearly_inverse_by_cholesky(self._gram(root))
            return lambda Y: root[:, None] * self.affine.adjoint(wide(Y))
        narrow = nearly_inverse_by_cholesky(self._normal(root))
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


class UnboundednessWatch:
    """Watch for unboundedness of logistic terms without a ridge: on separable rows there is no optimum.

    Other forms pass: a ridge holds every direction, and squared terms reach their least value.
    """

    def __init__(self, form: MarginForm, column: Column) -> None:
        self.form, self.column = form, column
        self.moved, self.steps = np.inf, 0
        self.waiting = form.ridge == 0 and {t.kind for t in column.terms if t.weight > 0} == {"logistic"}

    def examine(self, z: np.ndarray, moved: float, gap: float) -> None:
        """Raise ValueError when margins z prove that there is no optimum; `moved` is the last change of the largest.

        The smallest gap says nothing here: the bound reaches the infimum, too. But margins go on moving then.
        """
        if not self.waiting:
            return
        largest, used = float(np.abs(z).max()), z[self.column.counts > 0]
        # Rows of zeros have margin 0 whatever w is.
        if self.column.variance == 0 and largest > 0 and ((used > SURE_MARGIN * largest) | (used == 0)).all():
            raise _unboundedness_error()
        restless = moved > RESTLESS * largest and moved > STRANGE_GAP * self.moved
        self.moved, self.steps = moved, self.steps + 1
        if (gap < SETTLED and restless) or (not gap < SETTLED and self.steps >= STRANGE_STEPS):
            self._ask()

    def conclude(self, gap: float) -> None:
        """Raise ValueError when a fit ends without a bound because there is no optimum."""
        if self.waiting and not gap < SETTLED:
            self._ask()

    def _ask(self) -> None:
        self.waiting = False
        if is_unbounded(self.form, self.column):
            raise _unboundedness_error()


def check_unbounded_multipliers(form: MarginForm, column: Column, beta: np.ndarray) -> None:
    """Check for unboundedness: ValueError where multipliers that prove a bound are at their ends, without an optimum.

    At an optimum those of logistic terms are inside; far out along a direction without end they go to 0.
    """
    kinds = {t.kind for t in column.terms if t.weight > 0}
    at_end = (beta <= 0) | (beta >= column.caps)
    if kinds == {"logistic"} and (at_end & (column.counts > 0)).any() and is_unbounded(form, column):
        raise _unboundedness_error()


def is_unbounded(form: MarginForm, column: Column) -> bool:
    """Unboundedness without a ridge: whether v Var(z) - a mean(z) + logistic terms fall along a direction without end.

    With a variance term, margins can only grow all alike: a least squares problem. Else a linear program says whether
    ``sum caps max(0, -z) - a mean(z)``, the slope far out, is negative for some w; without a mean term, whether some
    margins are positive and none is negative. False where the program would be too large.
    """
    signed = separability_rows(form, column, LARGEST_PROGRAM)
    if signed is None:
        return False
    m, used = signed.shape[0], column.counts > 0
    if column.variance > 0:
        if signed.shape[0] * signed.shape[1] > LARGEST_ROWS:
            return False
        rows = signed.toarray()
        w = np.linalg.lstsq(rows, np.ones(m), rcond=None)[0]
        return bool(np.abs(rows @ w - 1.0).max() < SURE_MARGIN)
    pull = column.pull[used]
    if not pull.any():
        # A direction that is possible at all takes some margin to 1.
        return separation_value(signed, np.ones(m), np.full(m, np.inf)) > 0.5
    # Gains are cut off at margin 1, so that the program is bounded: the sign of its value stays the same.
    return separation_value(signed, pull, column.caps[:, used].sum(axis=0)) > 1e-7 * float(pull.sum())


def _unboundedness_error() -> ValueError:
    """Error for unboundedness of an objective without a squared norm on separable rows."""
    return ValueError(
        "without a squared norm in the objective there is no optimum on these training rows: they can be separated, so "
        "that it falls along a direction without end; give the squared norm a positive weight"
    )
