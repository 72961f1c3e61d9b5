"""Cross-validation: how well an objective does on rows that it was not trained on."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mdlearn.errors import ConvergenceWarning
from mdlearn.forms.proof import State
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.objectives.base import Objective
from mdlearn.selection.folds import fold_units, make_folds
from mdlearn.selection.leave_one_out.bound import score_by_loo_bound
from mdlearn.selection.leave_one_out.scores import score_by_leave_one_out
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.selection.results import CrossValidation
from mdlearn.selection.study import Study, StudyScores
from mdlearn.solvers.base import Solver
from mdlearn.stages import DEFAULT_TOL, Call, checked_limits, checked_seed


def cross_validate(
    objective: str | type[Objective] | Objective,
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    scoring: str | Callable[..., float] | None = None,
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
) -> CrossValidation:
    """Cross-validate an objective: fit without some rows, score by these rows, for every fold.

    Parameters
    ----------
    objective, X, y
        As for `mdlearn.fit`. With ``kernel="precomputed"`` X is the Gram matrix of all rows.
    cv : int, str, iterable or splitter, default 5
        - A number of folds, at least 2: stratified (for regression, plain), drawn by `random_state`. Rows with the same
          numbers and the same label are in one fold, and folds are balanced by weight; so a weight is a repetition
          here too, and the order of rows does not matter.
        - "loo": leave one out. For quadratic objectives (uldm, lssvm, lsldm and plugins' alike) in closed form, without
          a single fit; for hinges and squared hinges (svm, ldm, lsvm, svr and alike) and logistic losses (l2lr, mlr)
          from one fit of all rows; for others one fit per distinct row. See Notes.
        - "pseudo-loo": 1 less the bound of the LDM paper's Theorem 3, for ldm and svm of two classes. See Notes.
        - An iterable of pairs (train, test) of row numbers or masks. Parts may overlap, and a row number that comes
          twice counts twice, as in scikit-learn.
        - An object with ``split(X, y)``, as scikit-learn's splitters are.
    scoring : str or callable, optional
        Larger is better. "accuracy", "balanced_accuracy" (mean over classes), "auc" or "roc_auc" (area under the ROC
        curve, for several classes the mean over classes, each by its own decision values against the rest), "f1" (of
        the second of two classes), "f1_macro", "f1_micro", "neg_log_loss" (objectives with probabilities); "r2" is for
        regression. Where scikit-learn is installed, any other name of its scorers will do. A callable is called with
        (model, X, y) of the held-out rows, and with ``sample_weight=`` where weights were given: scikit-learn's scorers
        will do. Default: "accuracy", for regression "r2".
    solver, solver_options, kernel, bias, multiclass, class_weight, tol, max_iter
        As for `mdlearn.fit`, for every fit. "balanced" class weights are those of the training rows.
    sample_weight : array-like of shape (m,), optional
        Repetition counts, in fits and in scores. Rows of weight 0 are in no fold.
    time_limit : float, optional
        Wall seconds for everything. Scores of fits that were not finished are NaN.
    random_state : int, optional
        Seed >= 0 of the folds and of every fit; None means 0.
    n_threads : int, optional
        As for `mdlearn.fit`; folds come one after the other.
    callback : callable, optional
        As for `mdlearn.fit`; True ends all folds (a last fit of `select` to all rows asks again).
    verbose : int, default 0
        1 shows the number of fits and the time that is left on standard error, 2 every report of every fit as well.
    **params
        Hyper-parameters of the objective and of the kernel.

    Returns
    -------
    CrossValidation

    Raises
    ------
    ValueError, TypeError
        As for `mdlearn.fit`; also for folds that have no training row of some class. Data are checked before any fit.

    Warns
    -----
    ConvergenceWarning
        Once, when some fits did not reach `tol`, or were not reached in time.

    Notes
    -----
    Leave-one-out leaves out one repetition of one row; held-out decision values of all rows give one score. What is
    made of the rows before the problem is written is kept: the width ``gamma="scale"`` of a kernel and, in closed form,
    the basis of uldm (with ``c_scaling``, also its scale). Parameters whose defaults depend on m, and "balanced" class
    weights, follow the smaller sample (the latter without a closed form).

    With hinges and squared hinges, beside a variance and a mean or not, and with logistic losses of explicit rows, rows
    are followed from the optimum of all rows (whatever `tol` is, to its last digits) to those without them, up to 4,096
    distinct rows: decision values are those of fits without each row to about 1e-7. There is no certificate for these.
    Rows whose path does not end are fitted, as all are with a named solver, class weights, a penalty, or features that
    are made of the rows.

    The bound of "pseudo-loo" is on the share of rows with z_i <= 0 where the dual variable of row i is fixed at 0 while
    the variance and the mean still know the row. It is no bound on the leave-one-out error when lambda1 > 0 or
    lambda2 > 0, as the paper claims, and can be far above 1; for lambda1 = lambda2 = 0 (svm) it is one.

    References
    ----------
    S. Abe, "Unconstrained large margin distribution machines", ICPRAM 2017. T. Zhang and Z.-H. Zhou, "Large margin
    distribution machine", KDD 2014, Theorem 3.
    """
    limits = checked_limits(time.perf_counter(), tol, max_iter, time_limit, callback, verbose, n_threads)
    call = Call.of(objective, kernel, solver, solver_options, bias, multiclass, limits, checked_seed(random_state))
    study = Study(call, X, y, sample_weight, class_weight, scoring)
    with blas_threads(1, pieces=study.setting.n_threads):
        study.ask([{}], params)
        judged = cross_validated_scores(study, cv, "cross_validate")
    for text in cross_validation_warnings(judged):
        warnings.warn(text, ConvergenceWarning, stacklevel=2)
    name, folds, certificates = study.scoring.name, judged.folds, tuple(judged.certificates)
    elapsed = time.perf_counter() - limits.started
    values, task = (judged.scores[0], judged.values), study.call.kind.name
    return CrossValidation(name, *values, folds, certificates, study.data.classes, elapsed, task)


def cross_validated_scores(study: Study, cv: Any, title: str) -> StudyScores:
    """Scores by cross-validation (or leave-one-out) of the points of a study, with a progress bar."""
    data, n, verbose = study.data, len(study.points), study.verbose
    weights, square = study.weights[data.rows], study.call.square
    if isinstance(cv, str) and cv == "loo":
        units = fold_units(data, weights, square)
        with ProgressBar(verbose, title, n * units.weights.shape[0]) as bar:
            return score_by_leave_one_out(study, units, bar)
    if isinstance(cv, str) and cv == "pseudo-loo":
        with ProgressBar(verbose, title, n) as bar:
            return score_by_loo_bound(study, bar)
    folds = make_folds(cv, study.X, study.y, data, weights, square, study.call.seed)
    study.check_folds(folds)
    with ProgressBar(verbose, title, n * len(folds)) as bar:
        return study.by_folds(folds, bar)


def cross_validation_warnings(judged: StudyScores) -> Iterator[str]:
    """Yield the warnings of a cross-validation that a caller should see, a sentence each."""
    short, n = judged.shortfalls, len(judged.certificates)
    if short:
        worst = max(short, key=lambda one: one.gap)
        yield f"{len(short)} of {n} fits did not reach the gap asked for; of the worst, {worst.text}"
    if judged.stopped:
        yield f"{judged.stopped} after {n} fits; scores that need others are NaN"
