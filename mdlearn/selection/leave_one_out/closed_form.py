"""Leave-one-out (LOO) values of forms that are quadratic in the margins: one decomposition for all rows and points."""

from __future__ import annotations

import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.form_making import PathCache
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.problem import as_joint_problem
from mdlearn.margins.closed_form_loo import (
    ClosedFormLooDecomposition,
    ClosedFormLooQuadratic,
    decompose_gram_for_closed_form_loo,
    decompose_rows_for_closed_form_loo,
)
from mdlearn.model.class_decisions import class_decision_scores
from mdlearn.numerics import memory
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen_seconds
from mdlearn.objectives.base import Objective
from mdlearn.selection.study import Study, rows_of_study
from mdlearn.solvers.quadratic.spectrum import spectrum_loss_coefficients, spectrum_steepness
from mdlearn.stages import CheckedCall, Fitted

DECOMPOSED_WIDTH = 2
"""Columns per row up to which the rows themselves are decomposed, not their Gram matrix: small values stay exact."""


def loo_needs_no_refits(form: Any) -> bool:
    """Whether selection by leave-one-out (LOO) has a closed form: quadratic in margins, with a squared norm."""
    if not isinstance(form, MarginForm) or form.joint or form.ridge != 1 or form.penalty > 0 or form.coefficient_terms:
        return False
    return all(
        column.quadratic
        and column.level
        and column.by_row is None
        and column.kappa + float(spectrum_steepness(column).sum()) > 0
        for column in form.columns
    )


def decompose_for_loo_scores(
    features: Features, counts: np.ndarray, bias: str
) -> Generator[None, None, ClosedFormLooDecomposition]:
    """Decompose rows for selection by leave-one-out: O(m n min(m, n)), O(m^3) for a Gram matrix of m rows.

    Raises InsufficientMemory where that would not fit.
    """
    m = counts.shape[0]
    explicit = isinstance(features, LinearFeatures) and features.width <= DECOMPOSED_WIDTH * m
    width = features.width if explicit else m
    memory.require(32.0 * m * width, f"leave-one-out with {m} x {width} numbers", "give cv=5")
    if not explicit:
        G = yield from features.gram()
        return decompose_gram_for_closed_form_loo(np.asarray(G, dtype=np.float64), counts, bias)
    assert isinstance(features, LinearFeatures)
    A = np.empty((m, width + 1))
    for span in features.rows.spans():
        A[span, :-1] = features.rows.block(span)
        yield
    if features.ridge is not None:
        A[:, :-1] /= np.sqrt(features.ridge)
    return decompose_rows_for_closed_form_loo(A, counts, bias)


class NoTimeForLooError(Exception):
    """Error in selection by leave-one-out (LOO): a decomposition would not end in time."""


class ClosedFormLooValues:
    """Values of selection by leave-one-out (LOO) in closed form, same features: one decomposition per piece."""

    def __init__(self, study: Study, kernel: Kernel) -> None:
        self.study, self.kernel = study, kernel
        self.features: dict[int, Any] = {}
        self.known: dict[int, ClosedFormLooDecomposition] = {}

    def values(self, task: Objective, filled: dict[str, Any]) -> np.ndarray | None:
        """Decision values (m,) or (m, k) of all rows, each without itself; None where there is no closed form."""
        setting = self.study.setting
        before = task.resolve(setting.data.total - 1.0)
        same = (filled[name] is old or np.array_equal(filled[name], old) for name, old in before.items())
        if self.study.class_weight is not None or not all(same):
            return None  # one row less changes more than the sums
        pieces: list[np.ndarray] = []
        for j in range(len(setting.pieces)):
            found = finished(self._piece(j, task, filled))
            if found is None:
                return None
            pieces.append(found)
        if len(pieces) == 1:
            return pieces[0][:, 0] if pieces[0].shape[1] == 1 else pieces[0]
        return self._paired(task, filled, pieces)

    def _piece(self, j: int, task: Objective, filled: dict[str, Any]) -> Generator[None, Any, np.ndarray | None]:
        """Values of the rows of a piece, shape (m, columns)."""
        call, piece = self.study.call, self.study.setting.pieces[j]
        if j not in self.features:
            rng = np.random.default_rng([call.seed, j, 1])
            self.features[j] = yield from task.features(piece, self.kernel, filled, rng)
        # Terms may depend on the total weight, which is one less.
        less = replace(piece, counts=piece.counts * ((piece.total - 1.0) / piece.total))
        try:
            form = yield from task.problem(less, self.features[j], self.kernel, call.bias, filled, ask_loo_refits)
        except LooNeedsRefitsError:
            return None
        form = as_joint_problem(form) if call.multiclass == "joint" else form
        if not loo_needs_no_refits(form):
            return None
        assert isinstance(form, MarginForm)
        if j not in self.known:
            self._check_time(form.features, piece.counts.shape[0])
            self.known[j] = yield from decompose_for_loo_scores(form.features, piece.counts, call.bias)
        found = []
        for one in form.columns:
            weights = ClosedFormLooQuadratic(one.total, one.variance, one.mean, *spectrum_loss_coefficients(one))
            found.append(one.y * self.known[j].margins(one.y, weights))
        return np.column_stack(found)

    def _check_time(self, features: Any, m: int) -> None:
        """Raise where the decomposition, one call of LAPACK, would go on after the time limit."""
        left = self.study.call.limits.deadline - time.perf_counter()
        order = min(m, features.width)
        if np.isfinite(left) and symmetric_eigen_seconds(order) * max(1.0, 0.5 * m / order) > left:
            raise NoTimeForLooError

    def _paired(self, task: Objective, filled: dict[str, Any], pieces: list[np.ndarray]) -> np.ndarray:
        """Class scores of all rows."""
        fitted = self.study.setting.solve(task, filled, self.kernel, PathCache())
        return paired_loo_scores(self.study, self.study.setting, fitted, pieces)


def paired_loo_scores(study: Study, setting: CheckedCall, fitted: Fitted, pieces: list[np.ndarray]) -> np.ndarray:
    """Class scores for leave-one-out (LOO): rows of other classes than a pair's are in none of its fits."""
    model = setting.builder().model(fitted)
    F = model._scores(model.kernel.rows_of(rows_of_study(study.X, setting.data.rows))) + model.intercept_
    place = np.full(setting.data.n_given, -1)
    place[setting.data.rows] = np.arange(setting.data.rows.shape[0])
    for p, (rows, values) in enumerate(zip(setting.places, pieces)):
        F[place[rows], p] = values[:, 0]
    return class_decision_scores(F, setting.data.classes.shape[0], study.call.multiclass)


class LooNeedsRefitsError(Exception):
    """Error in selection by leave-one-out (LOO): a form needs the solution of another one first."""


def ask_loo_refits(form: Any) -> Any:
    """Ask for refits in selection by leave-one-out (LOO): raise LooNeedsRefitsError."""
    raise LooNeedsRefitsError
