"""Selection by the leave-one-out (LOO) bound of the LDM paper's Theorem 3: pseudo-leave-one-out."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.margins.bounds import hessian_diagonal, loo_error_bound
from mdlearn.numerics.interruptible import finished
from mdlearn.objectives.base import Objective, Terms
from mdlearn.selection.paths.fits import solve_path
from mdlearn.selection.paths.grid import same_grid_key
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.selection.study import Study, StudyScores
from mdlearn.stages import Fitted


def score_by_loo_bound(study: Study, bar: ProgressBar) -> StudyScores:
    """Judge every point of a grid by 1 less its leave-one-out (LOO) bound, maybe negative; one fit per point.

    Raises ValueError for another scoring than accuracy, more than two classes, a free bias, and for objectives other
    than the hinge loss with margin mean and variance.
    """
    data, bias = study.data, study.call.bias
    if study.scoring.name != "accuracy" or study.scoring.values is None:
        raise ValueError(f"cv='pseudo-loo' bounds errors, so scoring is 'accuracy'; got {study.scoring.name!r}")
    if data.targets is not None or data.classes.shape[0] != 2:
        raise ValueError(f"cv='pseudo-loo' needs two classes; y has {data.classes.shape[0]}")
    if bias == "free":
        raise ValueError("cv='pseudo-loo' knows no free bias; give bias='none', as the paper has it, or 'regularized'")
    for task, _ in study.asked:
        _terms_scored_by_loo_bound(task, study.setting.complete(task), data.total)
    judged = StudyScores(np.full((len(study.points), 1), np.nan))
    diagonals: list[tuple[Any, float, np.ndarray]] = []
    for i, fitted in solve_path(study.setting, study.asked):
        judged.stopped = fitted.outcome.stopped
        if judged.stopped:
            break
        judged.note(fitted.outcome.certificate, fitted.shortfalls)
        judged.scores[i, 0] = _loo_bound_score(study, fitted, diagonals)
        bar.advance()
    return judged


def _terms_scored_by_loo_bound(task: Objective, params: dict[str, Any], total: float) -> Terms:
    """Terms of an objective for selection by the leave-one-out (LOO) bound; ValueError for other objectives."""
    try:
        terms = task.terms(params, total)
    except NotImplementedError:
        terms = Terms(ridge=0.0)
    loss = [t for t in terms.loss if t.weight > 0]
    plain = all(t.kind in ("hinge", "constraint") and t.side == 1 and t.threshold == 1 for t in loss)
    if type(task).row_terms is not Objective.row_terms or terms.coefficient_terms:
        plain = False
    if terms.ridge != 1 or terms.unit != 1 or terms.penalty > 0 or len(loss) > 1 or not plain:
        raise ValueError(
            f"cv='pseudo-loo' is the bound for ldm and svm: the hinge loss with margin mean and variance; objective "
            f"{task.name!r} is another, give cv='loo' or a number of folds"
        )
    return terms


def _loo_bound_score(study: Study, fitted: Fitted, diagonals: list[tuple[Any, float, np.ndarray]]) -> float:
    """Score of a fit by 1 less its leave-one-out (LOO) bound; `diagonals` keeps those of H by kernel and variance."""
    data, task = study.data, fitted.task
    own = {name: value for name, value in fitted.params.items() if name in task.parameters}
    terms = _terms_scored_by_loo_bound(task, own, data.total)
    key = (fitted.kernel.params, task.features_depend_on(own))
    known = [
        diagonal for other, variance, diagonal in diagonals if variance == terms.variance and same_grid_key(other, key)
    ]
    if not known:
        rng = np.random.default_rng([study.call.seed, 0, 1])
        features = finished(task.features(data, fitted.kernel, own, rng))
        G = finished(features.gram())
        if study.call.bias == "regularized":
            G = G + 1.0
        known = [hessian_diagonal(G, data.signs()[0], 0.5 * terms.variance, data.counts)]
        diagonals.append((key, terms.variance, known[0]))
    C = sum(t.weight for t in terms.loss)
    beta = np.zeros(data.counts.shape[0])
    if terms.loss:
        beta = np.clip(np.asarray(fitted.solutions[0].beta, dtype=float).reshape(-1), 0.0, C * data.counts)
    return 1.0 - loo_error_bound(beta, known[0], C, data.counts)
