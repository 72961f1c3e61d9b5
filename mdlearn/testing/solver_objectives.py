"""Objectives on which `check_solver` tries what an engine declares to take and no registered objective asks for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.validation import Data
from mdlearn.forms.losses import HingeTerm, LogisticTerm, Term, Terms
from mdlearn.forms.row_terms import RowTerms
from mdlearn.objectives.base import Objective
from mdlearn.solvers.base import Solver

LOSSES: dict[str, tuple[Term, ...]] = {
    "squares": (HingeTerm(0.7, power=2, threshold=0.0), HingeTerm(0.7, power=2, side=-1, threshold=0.0)),
    "hinges": (HingeTerm(0.7, threshold=-0.2), HingeTerm(0.7, side=-1, threshold=0.2)),
    "squared hinge": (HingeTerm(0.7, power=2),),
    "hinge": (HingeTerm(0.7),),
    "logistic": (LogisticTerm(0.7, 1.0, 0.0),),
}
"""Losses, of which the first one that an engine takes makes the objective."""


class SolverTrialObjective(Objective):
    """1/2 |w|^2 + a loss of margins, for trials of a solver."""

    loss: ClassVar[tuple[Term, ...]] = ()

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Loss of the class."""
        return Terms(loss=self.loss)


class SolverTrialRegression(SolverTrialObjective):
    """Trial of a solver on residuals: margins with an offset."""

    words: ClassVar[str] = "regression"
    task: ClassVar[Any] = "regression"


class SolverTrialRowTerms(SolverTrialObjective):
    """Trial of a solver on weights and thresholds by row."""

    words: ClassVar[str] = "terms by row"
    needs_rows: ClassVar[bool] = True

    def row_terms(self, data: Data, params: dict[str, Any]) -> RowTerms | None:
        """Costs and thresholds that follow from the entries of a row."""
        X = data.X.block(slice(None))
        return RowTerms(np.exp(0.5 * X[:, 0]), 0.3 * X[:, 1])


def solver_trial_objectives(engine: Solver) -> Iterator[list[Objective]]:
    """Lists of objectives for trials of a solver, one of which it is to take: with an offset, and with terms by row."""
    kinds: tuple[tuple[bool, Any], ...] = (
        (engine.offsets, SolverTrialRegression),
        (engine.by_row, SolverTrialRowTerms),
    )
    for declared, cls in kinds:
        if declared:
            yield [
                type(cls.__name__, (cls,), {"name": f"{cls.words} of {name}", "loss": loss, "__module__": __name__})()
                for name, loss in LOSSES.items()
            ]
