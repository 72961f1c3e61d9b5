"""Leave-one-out (LOO): every row is judged by the fit without one repetition of it. Beside it, the LDM paper's bound.

Where the form is a quadratic of margins, one decomposition answers for all rows and points; elsewhere every
distinct row costs a fit, which begins at the solution for all rows. What is made of the rows before the problem is
written stays as all rows make it: the width of a kernel, and in closed form a basis too. A row of weight w is w rows,
of which one is left out; so weights below 1 have nothing that could be.
"""

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
from mdlearn.margins.bounds import hessian_diagonal, loo_error_bound
from mdlearn.margins.closed_form_loo import (
    ClosedFormLooDecomposition,
    ClosedFormLooQuadratic,
    decompose_gram_for_closed_form_loo,
    decompose_rows_for_closed_form_loo,
)
from mdlearn.model.class_decisions import class_decision_scores
from mdlearn.model.model import Model
from mdlearn.model.start import WarmStart
from mdlearn.numerics import memory
from mdlearn.numerics.interruptible import finished
from mdlearn.numerics.symmetric_eigenvalues import symmetric_eigen_seconds
from mdlearn.objectives.base import Objective, Terms
from mdlearn.selection.folds import FoldUnits
from mdlearn.selection.paths.fits import solve_path
from mdlearn.selection.paths.grid import equal_grid_points, same_grid_key
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.selection.study import Study, StudyScores, rows_of_study
from mdlearn.solvers.quadratic.spectrum import spectrum_loss_coefficients, spectrum_steepness
from mdlearn.stages import CheckedCall, Fitted

MOST_FITS = 20_000
"""Fits beyond which leaving out row by row is taken for a mistake."""
DECOMPOSED_WIDTH = 2
"""Columns per row up to which the rows themselves are decomposed, not their Gram matrix: small values stay exact."""


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
    filled = [study.setting.complete(task) for task, _ in study.asked]
    keys = [(given, task.features_depend_on(params)) for (task, given), params in zip(study.asked, filled)]
    open_points = []
    for group in equal_grid_points(keys):
        kernel = study.setting.kernel(study.asked[group[0]][1])
        answers = _LooValuesWithoutRefits(study, kernel)
        for i in group:
            judged.stopped = judged.stopped or study.late()
            if judged.stopped:
                return judged
            try:
                values = answers.values(study.asked[i][0], filled[i])
            except _NoTimeForLooError:
                judged.stopped = "time_limit reached"
                return judged
            if values is None:
                open_points.append((i, kernel))
                continue
            _set_loo_score(study, judged, i, values)
            bar.advance(bar.total // len(study.points))
    n_fits = len(open_points) * units.weights.shape[0]
    if n_fits > MOST_FITS:
        raise ValueError(
            f"cv='loo' would take {n_fits} fits of {study.call.objective.name!r} ({units.weights.shape[0]} distinct "
            f"rows, {len(open_points)} points without a closed form); give cv=5, or fewer rows"
        )
    for i, kernel in open_points:
        found = _loo_by_refits(study, judged, i, kernel, units, bar)
        if judged.stopped:
            break
        _set_loo_score(study, judged, i, found)
    return judged


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


class _NoTimeForLooError(Exception):
    """Error in selection by leave-one-out (LOO): a decomposition would not end in time."""


class _LooValuesWithoutRefits:
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
            form = yield from task.problem(less, self.features[j], self.kernel, call.bias, filled, _ask_loo_refits)
        except _LooNeedsRefitsError:
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
            raise _NoTimeForLooError

    def _paired(self, task: Objective, filled: dict[str, Any], pieces: list[np.ndarray]) -> np.ndarray:
        """Class scores: rows of other classes than a pair's are in none of its fits."""
        study, setting = self.study, self.study.setting
        fitted = setting.solve(task, filled, self.kernel, PathCache())
        model = setting.builder().model(fitted)
        F = model._scores(model.kernel.rows_of(rows_of_study(study.X, setting.data.rows))) + model.intercept_
        place = np.full(setting.data.n_given, -1)
        place[setting.data.rows] = np.arange(setting.data.rows.shape[0])
        for p, (rows, values) in enumerate(zip(setting.places, pieces)):
            F[place[rows], p] = values[:, 0]
        return class_decision_scores(F, setting.data.classes.shape[0], study.call.multiclass)


def _loo_by_refits(
    study: Study, judged: StudyScores, i: int, kernel: Kernel, units: FoldUnits, bar: ProgressBar
) -> np.ndarray:
    """Leave-one-out (LOO) values in selection by refits: of every row, without one repetition of it."""
    task, data = study.asked[i][0], study.data
    whole = study.setting.solve(task, study.setting.complete(task), kernel, PathCache())
    judged.stopped = whole.outcome.stopped
    model = study.setting.builder().model(whole)
    first = model.decision_function(rows_of_study(study.X, data.rows[:1]))
    values = np.empty((data.rows.shape[0], *first.shape[1:]))
    for unit in range(units.weights.shape[0]):
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


class _LooNeedsRefitsError(Exception):
    """Error in selection by leave-one-out (LOO): a form needs the solution of another one first."""


def _ask_loo_refits(form: Any) -> Any:
    """Ask for refits in selection by leave-one-out (LOO): raise _LooNeedsRefitsError."""
    raise _LooNeedsRefitsError


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
