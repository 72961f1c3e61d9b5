"""Axes of the rows, for fewer rows than columns without a penalty: the same problem along as many axes.

With X' = Q R, Q orthonormal, W = Q V has the decision values X W = R' V and the norm of V; what W has beside the
columns of Q changes no decision value and only adds to the norm. So the optimum is found in V, whose second derivatives
are smaller and, but for rows that depend on each other, have no directions that only the ridge holds.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.decision_values import DecisionComposite
from mdlearn.solvers.common.orthogonal import OrthogonalFactors

FACTORED_OPERATIONS = 4e9
"""Operations of the factorisation up to which it is worth its price: some tenths of a second."""


class RowAxes:
    """Axes that the rows span: coefficients of a problem, and the same along these; intercepts stay.

    `Q` (shape (d, n)): orthonormal.
    """

    def __init__(self, Q: np.ndarray) -> None:
        self.Q = Q

    def along(self, W: np.ndarray) -> np.ndarray:
        """Return V, for W of shape (p, k)."""
        return np.vstack([self.Q.T @ W[: self.Q.shape[0]], W[self.Q.shape[0] :]])

    def back(self, V: np.ndarray) -> np.ndarray:
        """Return W, for V as of `along`."""
        return np.vstack([self.Q @ V[: self.Q.shape[1]], V[self.Q.shape[1] :]])


def along_row_axes(problem: Composite) -> Generator[None, None, tuple[Composite, RowAxes | None]]:
    """Write a problem along the axes that its rows span, where there are fewer rows than columns; else as it is."""
    if not isinstance(problem, DecisionComposite):
        return problem, None
    m, d = problem.rows.shape
    ridge = problem.ridge[:d]
    if (
        m >= d
        or 4.0 * m * m * d > FACTORED_OPERATIONS
        or problem.beta.any()
        or not ridge[0] > 0
        or (ridge != ridge[0]).any()
    ):
        return problem, None
    columns = np.empty((d, m), order="F")
    for span in problem.rows.spans():
        columns[:, span] = problem.rows.block(span).T
        yield
    reflections = yield from OrthogonalFactors.of(columns)
    Q = reflections.apply(np.eye(m))
    yield
    other = problem.over(DenseRows(np.ascontiguousarray(np.triu(reflections.R).T)))
    if problem.first is not None:
        other.first = RowAxes(Q).along(problem.first)
    return other, RowAxes(Q)
