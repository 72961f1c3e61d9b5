"""Leave-one-out (LOO): every row is judged by the fit without one repetition of it.

Where the form is a quadratic of margins, one decomposition answers for all rows and points. Where its losses are
hinges, squared hinges or logistic, rows without a multiplier leave the optimum as it is, and the others are followed
from the optimum of all rows to their own. Elsewhere, and for rows that this does not settle, a distinct row costs a
fit, which begins at the solution for all rows. What is made of the rows before the problem is written stays as all rows
make it: the width of a kernel, and in closed form a basis too. A row of weight w is w rows, of which one is left out;
so weights below 1 have nothing that could be.
"""

from __future__ import annotations

import numpy as np

from mdlearn.data.features.kernels import Kernel
from mdlearn.driver.limits import OUT_OF_TIME
from mdlearn.form_making import PathCache
from mdlearn.model.model import Model
from mdlearn.model.start import WarmStart
from mdlearn.objectives.base import Objective
from mdlearn.selection.folds import FoldUnits
from mdlearn.selection.leave_one_out.closed_form import ClosedFormLooValues, NoTimeForLooError
from mdlearn.selection.leave_one_out.row_paths import LooValuesByPaths
from mdlearn.selection.paths.grid import equal_grid_points
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.selection.study import Study, StudyScores, rows_of_study
from mdlearn.stages import CheckedCall

MOST_FITS = 20_000
"""Fits beyond which leaving out row by row is taken for a mistake."""


def score_by_leave_one_out(study: Study, units: FoldUnits, bar: ProgressBar) -> StudyScores:
    """Judge every point of a grid by leave-one-out (LOO); one score of all rows together.

    Raises ValueError for a scoring that needs models, weights below 1, a class of one row, or more than MOST_FITS fits.
    """
    if study.scoring.values is None:
        raise ValueError(
            "cv='loo' scores all held-out values together, so it needs a named scoring; give cv=LeaveOneOut() of "
            "scikit-learn for a callable"
        )
    judged = StudyScores(np.full((len(study.points), 1), np.nan))
    _check_loo_weights(study, units)
    n_units = units.weights.shape[0]
    filled = [study.setting.complete(task) for task, _ in study.asked]
    keys = [(given, task.features_depend_on(params)) for (task, given), params in zip(study.asked, filled)]
    open_points = list[tuple[int, Kernel, np.ndarray | None]]()
    for group in equal_grid_points(keys):
        kernel = study.setting.kernel(study.asked[group[0]][1])
        closed, paths = ClosedFormLooValues(study, kernel), LooValuesByPaths(study, kernel, units)
        for i in group:
            judged.stopped = judged.stopped or study.late()
            if judged.stopped:
                return judged
            try:
                values = closed.values(study.asked[i][0], filled[i])
                values = paths.values(study.asked[i][0]) if values is None else values
            except NoTimeForLooError:
                judged.stopped = OUT_OF_TIME
                return judged
            judged.stopped = paths.stopped
            if judged.stopped:
                return judged
            if values is None or np.isnan(values).any():
                open_points.append((i, kernel, values))
                continue
            _set_loo_score(study, judged, i, values)
            bar.advance(n_units)
    todo = [_open_units(units, values) for _, _, values in open_points]
    n_fits = sum(one.shape[0] for one in todo)
    if n_fits > MOST_FITS:
        raise ValueError(
            f"cv='loo' would take {n_fits} fits of {study.call.objective.name!r} ({n_units} distinct rows, "
            f"{len(open_points)} points whose rows are not followed from one optimum); give cv=5, or fewer rows"
        )
    for (i, kernel, values), which in zip(open_points, todo):
        bar.advance(n_units - which.shape[0])
        found = _loo_by_refits(study, judged, i, kernel, units, which, values, bar)
        if judged.stopped:
            break
        _set_loo_score(study, judged, i, found)
    return judged


def _open_units(units: FoldUnits, values: np.ndarray | None) -> np.ndarray:
    """Units whose rows have no leave-one-out (LOO) values yet."""
    if values is None:
        return np.arange(units.weights.shape[0])
    return np.unique(units.of[np.isnan(values.reshape(values.shape[0], -1)).any(axis=1)])


def _set_loo_score(study: Study, judged: StudyScores, i: int, values: np.ndarray) -> None:
    """Set the leave-one-out (LOO) score of point i in a selection, and keep the values of a single point."""
    rows = study.data.rows
    judged.scores[i, 0] = study.score(values, rows)
    if len(study.points) == 1:
        judged.keep(rows, values, study.data.n_given)


def _check_loo_weights(study: Study, units: FoldUnits) -> None:
    """Raise ValueError unless selection by leave-one-out (LOO) can take one repetition from every row and class."""
    data = study.data
    if data.partial:
        raise ValueError("cv='loo' needs rows of known labels; give a number of folds, which hold out those alone")
    light = np.flatnonzero(units.weights[units.of] < 1.0)
    if light.shape[0]:
        raise ValueError(
            f"cv='loo' leaves out one repetition of a row, and row {data.rows[light[0]]} has the weight "
            f"{units.weights[units.of[light[0]]]:g}; give weights of at least 1, or cv=5"
        )
    per_class = np.bincount(units.codes, weights=units.weights)
    if data.targets is None and data.indicators is None and float(per_class.min()) <= 1.0:
        label = data.classes.tolist()[int(per_class.argmin())]
        raise ValueError(f"cv='loo' needs two rows of every class, repetitions included; class {label!r} has one")
    if data.total < 2:
        raise ValueError("cv='loo' needs two rows, repetitions included; there is one")


def _loo_by_refits(
    study: Study,
    judged: StudyScores,
    i: int,
    kernel: Kernel,
    units: FoldUnits,
    which: np.ndarray,
    settled: np.ndarray | None,
    bar: ProgressBar,
) -> np.ndarray:
    """Leave-one-out (LOO) values in selection by refits of some units, beside those that are settled."""
    task, data = study.asked[i][0], study.data
    whole = study.setting.solve(task, study.setting.complete(task), kernel, PathCache())
    judged.stopped = whole.outcome.stopped
    model = study.setting.builder().model(whole)
    first = model.decision_function(rows_of_study(study.X, data.rows[:1]))
    values = np.empty((data.rows.shape[0], *first.shape[1:])) if settled is None else settled.copy()
    for unit in which.tolist():
        judged.stopped = judged.stopped or study.late()
        if judged.stopped:
            break
        mine = np.flatnonzero(units.of == unit)
        setting = study.without(_weights_for_loo_refit(study.weights, data.rows[mine]))
        handed = _loo_start_cache(setting, task, kernel, model)
        fitted = setting.solve(task, setting.complete(task), kernel, handed)
        judged.stopped = fitted.outcome.stopped
        judged.note(fitted.outcome.certificate, fitted.shortfalls)
        one = setting.builder().model(fitted)
        values[mine] = one.decision_function(rows_of_study(study.X, data.rows[mine[:1]]))
        bar.advance()
    return values


def _loo_start_cache(setting: CheckedCall, task: Objective, kernel: Kernel, model: Model) -> PathCache:
    """Start of a leave-one-out (LOO) refit in selection: a model of all rows, unless it made its own features."""
    handed = PathCache()
    if not model.extras:
        start = WarmStart(model, task.name, setting.call.bias, setting.call.multiclass)
        start.check(setting.data, kernel, setting.places)
        handed.starts = start.starts
    return handed


def _weights_for_loo_refit(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Weights for a leave-one-out (LOO) refit, with one repetition less of some equal rows."""
    less, due = weights.copy(), 1.0
    for row in rows.tolist():
        taken = min(due, float(less[row]))
        less[row] -= taken
        due -= taken
    return less
