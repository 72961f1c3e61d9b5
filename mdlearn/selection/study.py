"""Study behind cross_validate and select: fits without some rows, judged by those rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mdlearn.data.features.gram import FoldGramRows, GramMemory, StudyGramRows
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.object_rows import ObjectRows
from mdlearn.data.rows.rows import COPY_BYTES
from mdlearn.data.validation import Data, check_weights
from mdlearn.driver.limits import LimitShortfall
from mdlearn.forms.proof import Certificate
from mdlearn.numerics.memory import CACHE_BYTES, available_bytes
from mdlearn.objectives.declaration.grids import declared_grid
from mdlearn.selection.folds import Fold
from mdlearn.selection.paths.fits import solve_path
from mdlearn.selection.paths.grid import Asked, checked_grid_points, equal_grid_points
from mdlearn.selection.paths.path import Path
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.selection.scoring import Scoring, scoring_of
from mdlearn.stages import Call, CheckedCall, Fitted

LEAST_SHARED_ROWS = 1280
"""Rows from which kernels are searched one after the other: up to 1,024 of a fold have a whole matrix of their own."""
SHARED_MATRIX_SHARE = 0.25
"""Share of the option `cache`, and of the memory that is left, that kernel values shared by folds may take."""


def rows_of_study(X: Any, index: np.ndarray) -> Any:
    """Rows of a study's X, in the caller's kind of container; a view where they follow each other in an array."""
    n = index.shape[0]
    if isinstance(X, np.ndarray) and n and index[-1] - index[0] == n - 1 and (np.diff(index) == 1).all():
        return X[int(index[0]) : int(index[-1]) + 1]
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


@dataclass(eq=False)
class StudyScores:
    """Scores of the points of a study by held-out rows."""

    scores: np.ndarray  # shape (p, n_folds): NaN where a fit was not reached in time
    folds: tuple[Fold, ...] = ()
    # shape (m,) or (m, k), or None: decision values of the caller's rows under fits without them, if there is one
    # point; NaN where there are none
    values: np.ndarray | None = None
    # of all fits, fold by fold, and of each fold point by point
    certificates: list[Certificate] = field(default_factory=list)
    shortfalls: list[LimitShortfall] = field(default_factory=list)
    stopped: str = ""  # why there are no more fits; empty if all are done

    def note(self, certificate: Certificate, shortfalls: Sequence[LimitShortfall]) -> None:
        """Keep what a fit says of itself."""
        self.certificates.append(certificate)
        self.shortfalls.extend(shortfalls)

    def keep(self, rows: np.ndarray, values: np.ndarray, n_given: int) -> None:
        """Keep decision values of some of the caller's rows."""
        if self.values is None:
            self.values = np.full((n_given, *values.shape[1:]), np.nan)
        self.values[rows] = values


class Study:
    """Study of a grid's points: data and scoring, checked before the first fit.

    `call`: fits show progress of their own only where every report is asked for; `setting`: the call with all rows;
    `X`, `y`, `class_weight`: as given; X as something that rows can be taken from; `weights` (shape (n_given,)):
    weights of the caller's rows, without class weights; `weighted` says that they were given; `truth` (shape
    (n_given,), or (n_given, k) for several labels a row): labels or targets of the caller's rows; anything where the
    weight is 0; `points`: hyper-parameters of every point; `asked`: objective and kernel parameters of every point.
    """

    def __init__(self, call: Call, X: Any, y: Any, sample_weight: Any, class_weight: Any, scoring: Any) -> None:
        self.verbose = call.limits.verbose
        self.call = replace(call, limits=replace(call.limits, verbose=self.verbose if self.verbose > 1 else 0))
        self.scoring: Scoring = scoring_of(scoring, call.kind.name, sample_weight is not None)
        X = self.call.rows(X)
        self.setting = self.call.read(X, y, sample_weight, class_weight)
        self.scoring.check(call.objective, call.multiclass, self.setting.data.classes.shape[0])
        if hasattr(X, "tocsr"):
            X = X.tocsr()
        elif not hasattr(X, "to_numpy") and not isinstance(X, ObjectRows):
            X = np.asarray(X)
        self.X, self.y, self.class_weight = X, y, class_weight
        data = self.setting.data
        self.weights, self.weighted = check_weights(sample_weight, data.n_given), sample_weight is not None
        known = data.truth()
        self.truth = np.zeros((data.n_given, *known.shape[1:]), dtype=known.dtype)
        self.truth[data.rows] = known
        self.points: list[dict[str, Any]] = []
        self.asked: list[Asked] = []

    def ask(self, grid: Any, params: Mapping[str, Any]) -> None:
        """Set the points of a grid; None: those of the objective's own grid. `params` are what all points have."""
        grid = declared_grid(self.call.task(params)[0], self.data.total) if grid is None else grid
        self.points, self.asked = checked_grid_points(self.call, grid, params)

    @property
    def data(self) -> Data:
        """All rows, checked."""
        return self.setting.data

    def without(self, kept: np.ndarray) -> CheckedCall:
        """Return the call, checked again, with `kept` as the weights of the caller's rows."""
        return self.call.read(self.X, self.y, kept, self.class_weight)

    def late(self) -> str:
        """Why there is no time for another fit; empty if there is."""
        return "time_limit reached" if time.perf_counter() >= self.call.limits.deadline else ""

    def score(self, values: np.ndarray, rows: np.ndarray) -> float:
        """Score of decision values of some of the caller's rows."""
        assert self.scoring.values is not None
        return self.scoring.values(self.data.classes, values, self.truth[rows], self.weights[rows])

    def check_folds(self, folds: Sequence[Fold]) -> None:
        """ValueError where held-out rows cannot be scored."""
        for j, (_, test) in enumerate(folds):
            missing = np.setdiff1d(self.data.classes, self.truth[test])
            if self.scoring.all_classes and missing.shape[0]:
                raise ValueError(
                    f"scoring={self.scoring.name!r} needs held-out rows of every class, and fold {j} has none of class "
                    f"{missing.tolist()[0]!r}; give fewer folds, other folds or another scoring"
                )

    def by_folds(self, folds: tuple[Fold, ...], bar: ProgressBar) -> StudyScores:
        """Fit every point to the training rows of every fold."""
        judged = StudyScores(np.full((len(self.points), len(folds)), np.nan), folds)
        memory, settings = GramMemory(), dict[int, CheckedCall]()
        noted: dict[tuple[int, int], tuple[Certificate, list[LimitShortfall]]] = {}
        groups = self._groups_by_kernel()
        for group, kernel in groups:
            shared = None if kernel is None else self._shared_gram_rows(kernel, memory)
            for j, (train, test) in enumerate(folds):
                judged.stopped = judged.stopped or self.late()
                if judged.stopped:
                    break
                began = time.perf_counter()
                setting = settings.get(j) or self.without(
                    self.weights * np.bincount(train, minlength=self.data.n_given)
                )
                if len(groups) > 1:
                    settings[j] = setting
                found = self._fitted_group(judged, group, setting, memory, shared, bar)
                if found:
                    reached = sorted(found)
                    fits = [found[i] for i in reached]
                    noted |= {(j, i): (found[i].outcome.certificate, found[i].shortfalls) for i in reached}
                    points = [self.points[i] for i in reached]
                    path = Path(points, setting.builder(fits), fits, time.perf_counter() - began)
                    self._judge(judged, j, reached, path, test)
        for place in sorted(noted):
            judged.note(*noted[place])
        return judged

    def _fitted_group(
        self,
        judged: StudyScores,
        group: list[int],
        setting: CheckedCall,
        memory: GramMemory,
        shared: StudyGramRows | None,
        bar: ProgressBar,
    ) -> dict[int, Fitted]:
        """Fits of a group of points to the rows of one fold, by position; all, unless one is stopped."""
        found: dict[int, Fitted] = {}
        fold = None
        if shared is not None:
            fold = FoldGramRows(shared, np.searchsorted(self.data.rows, setting.data.rows))
        for i, fitted in solve_path(setting, [self.asked[i] for i in group], memory, fold):
            judged.stopped = fitted.outcome.stopped
            if judged.stopped:
                break
            found[group[i]] = fitted
            bar.advance()
        return found

    def _groups_by_kernel(self) -> list[tuple[list[int], Kernel | None]]:
        """Positions of the points of one kernel after the other, with those of which folds share rows; else of all."""
        X, every, given = self.data.X, list(range(len(self.points))), [given for _, given in self.asked]
        few = self.setting.pairs is None and LEAST_SHARED_ROWS <= X.shape[0] and 8.0 * X.n_entries <= COPY_BYTES
        if self.call.kernel != "rbf" or not few:
            return [(every, None)]
        found = list[tuple[list[int], Kernel | None]]()
        for group in equal_grid_points(given):
            exact = len(group) > 1 and given[group[0]].get("approximation") is None
            kernel = self.setting.kernel(given[group[0]]) if exact else None
            found.append((group, kernel if kernel is not None and StudyGramRows.suits(kernel, X) else None))
        return found if any(kernel is not None for _, kernel in found) else [(every, None)]

    def _shared_gram_rows(self, kernel: Kernel, memory: GramMemory) -> StudyGramRows:
        """Rows of a kernel's matrix that all folds share, as many as memory has room for."""
        room = min(float(self.call.options.get("cache", np.inf)), available_bytes())
        return StudyGramRows(kernel, self.data.X, memory, min(CACHE_BYTES, SHARED_MATRIX_SHARE * room))

    def _judge(self, judged: StudyScores, j: int, reached: list[int], path: Path, test: np.ndarray) -> None:
        """Score the models of one fold."""
        X, y = rows_of_study(self.X, test), self.truth[test]
        if self.scoring.values is None:
            weights = self.weights[test] if self.weighted else None
            for i, model in zip(reached, path):
                judged.scores[i, j] = self.scoring.call(model, X, y, weights)
                if np.isnan(judged.scores[i, j]):
                    raise ValueError(
                        f"scoring returned NaN in fold {j} at {self.points[i]}; it needs to return a number"
                    )
        if self.scoring.values is not None or len(self.points) == 1:
            for i, values in zip(
                reached, _study_decisions(path, X, test.shape[0] * max(1, self.data.classes.shape[0]))
            ):
                if self.scoring.values is not None:
                    judged.scores[i, j] = self.score(values, test)
                if len(self.points) == 1:
                    judged.keep(test, values, self.data.n_given)


def _study_decisions(path: Path, X: Any, n_values: int) -> Iterator[np.ndarray]:
    """Decision values of every model of a study, at most `n_values` at once; together where they take little memory."""
    if 8.0 * len(path) * n_values <= COPY_BYTES:
        yield from path.decision_function(X)
    else:
        yield from (model.decision_function(X) for model in path)
