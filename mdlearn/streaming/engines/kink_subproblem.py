"""Subproblem over rows near a kink, all others held at the bound where they are: the central path in memory."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.margin import MarginForm
from mdlearn.numerics.cholesky import NotPositiveDefinite
from mdlearn.solvers.common.primal_dual import PrimalDualOnRows
from mdlearn.solvers.interior_point.central_path import CentralPath
from mdlearn.solvers.systems.row_and_gram import RowSystem
from mdlearn.solvers.systems.weighted_gram import RunningWeightedGram
from mdlearn.streaming.sums.pass_sums import GatherPassRows
from mdlearn.streaming.sums.streamed_form import StreamedForm

MOST_STEPS = 100
COMPLEMENTARITY_END = 1e-13
"""Complementarity, relative to its largest, at which the path ends."""
STALL_STEPS = 12


def kink_problem(
    form: StreamedForm, j: int, near: GatherPassRows, Q: np.ndarray, fixed: np.ndarray
) -> PrimalDualOnRows:
    """Write the subproblem of a column over rows near a kink; `fixed` is what all others add to the gradient."""
    column = replace(form.columns[j].column, y=near.y, counts=near.counts)
    features = LinearFeatures(DenseRows(near.X[:, : form.width]))
    whole = MarginForm(features, (column,), form.bias, form.ridge)
    system = RowSystem(whole, column)
    system.sum = RunningWeightedGram(features.rows, system.bias, Q, None)  # the variance is that of all rows
    return PrimalDualOnRows(whole, column, system, fixed)


def minimise_kink_problem(
    state: PrimalDualOnRows, element: np.ndarray, width: float
) -> Generator[None, None, tuple[np.ndarray, np.ndarray]]:
    """Solve the subproblem over the rows near a kink, by interior point steps from a given element.

    `element` of shape (n,); `width`: margins are about this far from their optimal ones. Yields None, and
    returns the element and its multipliers, shape (T, N).
    """
    if not state.column.y.shape[0]:
        yield from state.system.factor(np.zeros(0))
        return state.system.solve(state.fixed), np.zeros_like(state.column.caps)
    path = CentralPath(state)
    path.start_at(element, state.margins(element), 0.25 * width * state.column.caps)
    largest = least = path.complementarity()
    found, stalled = (path.element, path.beta), 0
    for _ in range(MOST_STEPS):
        if not path.alive or stalled >= STALL_STEPS or least <= COMPLEMENTARITY_END * largest:
            break
        try:
            yield from path.step()
        except NotPositiveDefinite:
            break
        # It may rise at first, while the gradient does not vanish yet.
        left = path.complementarity()
        stalled = 0 if path.falling or left < 0.9 * least else stalled + 1
        largest, least = max(largest, left), min(least, left)
        if path.alive and left < 10.0 * least:
            found = path.element, path.beta
    return found
