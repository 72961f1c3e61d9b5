"""Grid search: `select`, the point of a grid that does best on held-out rows."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.driver.limits import Limits
from mdlearn.errors import ConvergenceWarning
from mdlearn.form_making import PathCache
from mdlearn.forms.proof import State
from mdlearn.model.model import Model
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.objectives.base import Objective
from mdlearn.selection.cross_validation import cross_validated_scores, cross_validation_warnings
from mdlearn.selection.results import Selection, result_mean_without_nan
from mdlearn.selection.study import Study, StudyScores
from mdlearn.solvers.base import Solver
from mdlearn.stages import DEFAULT_TOL, Call, checked_limits, checked_seed

TIES = ("C", "nu", "lambda2", "lambda1")
"""Parameters that decide between equal scores, the smallest value first."""
EQUAL = 1e-12
"""Difference of mean scores, relative to the larger of 1 and the best, that rounding makes."""

SCORING_SHARE = 0.8
"""Part of the time limit that scoring may take where a fit is to follow."""


def select(
    objective: str | type[Objective] | Objective,
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
    *,
    cv: Any = 5,
    scoring: str | Callable[..., float] | None = None,
    refit: bool = True,
    solver: str | type[Solver] | Solver = "auto",
    solver_options: Mapping[str, Any] | None = None,
    kernel: str | Callable[[np.ndarray, np.ndarray], np.ndarray] = "linear",
    bias: str | None = None,
    multiclass: str = "auto",
    sample_weight: Any = None,
    class_weight: Any = None,
    tol: float = DEFAULT_TOL,
    max_iter: int | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[State], Any] | None = None,
    verbose: int = 0,
    **params: Any,
) -> Selection:
    """Grid search: score every point of a grid on held-out rows, choose the best and fit it to all rows.

    Within a fold the points share what `mdlearn.fit_path` shares.

    Parameters
    ----------
    objective, X, y
        As for `mdlearn.fit`. With ``kernel="precomputed"`` X is the Gram matrix of all rows.
    grid : mapping or sequence of mappings, optional
        As for `mdlearn.fit_path`: names of hyper-parameters to values, of which all combinations are taken, or a
        sequence of such grids. Default: the objective's own grid.
    cv, scoring
        As for `mdlearn.cross_validate`.
    refit : bool, default True
        Whether to fit the best point to all rows.
    solver, solver_options, kernel, bias, multiclass, sample_weight, class_weight, tol, max_iter
        As for `mdlearn.cross_validate`.
    time_limit : float, optional
        Wall seconds for everything; with `refit` a fifth of it is kept for the last fit. When it ends early, points are
        compared by the folds that all of them have, or, where there is no such fold, by the scores that there are.
    random_state, n_threads, callback, verbose
        As for `mdlearn.cross_validate`.
    **params
        Hyper-parameters of objective and kernel that all points have.

    Returns
    -------
    Selection
        Ties go to the smallest C, then the smallest lambda2, then the smallest lambda1, then to the first point of the
        grid; so a grid over other names should begin with what is wanted first. Defaults of a point count as values.

    Raises
    ------
    ValueError, TypeError
        As for `mdlearn.cross_validate`.

    Warns
    -----
    ConvergenceWarning
        Once for the fits of the folds, when some did not reach `tol` or were not reached in time, and for the last fit.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014, and S. Abe, "Unconstrained large margin
    distribution machines", ICPRAM 2017, choose parameters by 5-fold cross-validation.
    """
    limits = checked_limits(time.perf_counter(), tol, max_iter, time_limit, callback, verbose, n_threads)
    if not isinstance(refit, (bool, np.bool_)):
        raise TypeError(f"refit needs to be True or False; got {refit!r}")
    first, seed = _grid_search_limits(limits) if refit else limits, checked_seed(random_state)
    call = Call.of(objective, kernel, solver, solver_options, bias, multiclass, first, seed)
    study = Study(call, X, y, sample_weight, class_weight, scoring)
    with blas_threads(1, pieces=study.setting.n_threads):
        study.ask(grid, params)
        judged = cross_validated_scores(study, cv, "select")
        best = best_of_grid_search(judged, study)
        model, texts = None, list(cross_validation_warnings(judged))
        if refit:
            model, more = _refit_best_of_grid_search(study, best, limits)
            texts += more
    for text in texts:
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    elapsed = time.perf_counter() - limits.started
    points, folds, certificates = tuple(study.points), judged.folds, tuple(judged.certificates)
    return Selection(points, study.scoring.name, judged.scores, best, model, folds, certificates, elapsed)


def _refit_best_of_grid_search(study: Study, best: int, limits: Limits) -> tuple[Model, list[str]]:
    """Fit the grid search's best point to all rows; return the model and its warnings."""
    task, given = study.asked[best]
    limits = replace(limits, verbose=study.call.limits.verbose)
    setting = replace(study.setting, call=replace(study.call, limits=limits))
    fitted = setting.solve(task, setting.complete(task), setting.kernel(given), PathCache())
    return setting.builder().model(fitted), [one.text for one in fitted.shortfalls]


def best_of_grid_search(judged: StudyScores, study: Study) -> int:
    """Position of the grid search's best mean score; of equal ones the one that `TIES` says, then the first."""
    scores = judged.scores
    whole = ~np.isnan(scores).any(axis=0)
    means = result_mean_without_nan(scores[:, whole] if whole.any() else scores)
    means = np.where(np.isnan(means), -np.inf, means)
    top = float(means.max())
    near = means >= top - EQUAL * max(1.0, abs(top)) if np.isfinite(top) else means == top
    total = study.data.total

    def rank(i: int) -> tuple[float, ...]:
        values = study.asked[i][0].resolve(total)
        return (*(float(values[name]) for name in TIES if name in values), float(i))

    return min(np.flatnonzero(near).tolist(), key=rank)


def _grid_search_limits(limits: Limits) -> Limits:
    """Limits of a grid search with SCORING_SHARE of the time; the fit of the best point has the rest."""
    if np.isinf(limits.deadline):
        return limits
    return replace(limits, deadline=limits.started + SCORING_SHARE * (limits.deadline - limits.started))
