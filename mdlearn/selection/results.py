"""Results of cross_validate and select."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.forms.proof import Certificate
from mdlearn.model.class_decisions import labels_of_decisions
from mdlearn.model.file.schema import BUILT_IN_TASKS
from mdlearn.model.model import Model
from mdlearn.selection.folds import Fold
from mdlearn.selection.paths.grid import grid_names


@dataclass(eq=False, repr=False)
class CrossValidation:
    """Results of a cross-validation: scores of one objective on held-out rows.

    Attributes
    ----------
    scoring : str
        Name of the score.
    scores : ndarray of shape (n_folds,)
        Score of the held-out rows of every fold; NaN where there was no time. One score of all rows with "loo" and
        "pseudo-loo".
    decision : ndarray of shape (m,) or (m, k), or None
        Decision values of the caller's rows under the fit that held them out (the last one, where several did); NaN for
        rows that none held out. None with "pseudo-loo", where no rows are held out.
    folds : tuple of (train, test)
        Row numbers. Empty with "loo" and "pseudo-loo".
    certificates : tuple of Certificate
        Of the fits, in their order; with "loo", of those without a row: none where there is a closed form or a path.
    classes_ : ndarray of shape (k,)
        Sorted labels; none for regression.
    elapsed : float
        Seconds.
    task : str
        Name of the objective's task.
    """

    scoring: str
    scores: np.ndarray
    decision: np.ndarray | None
    folds: tuple[Fold, ...]
    certificates: tuple[Certificate, ...]
    classes_: np.ndarray
    elapsed: float
    task: str = "classification"

    def __repr__(self) -> str:
        n = self.scores.shape[0]
        spread = f" +- {self.std:.2g}, {n} scores" if n > 1 else ", 1 score"
        return f"CrossValidation({self.scoring}={self.mean:.4g}{spread})"

    @property
    def mean(self) -> float:
        """Mean of the scores that there are."""
        return float(result_mean_without_nan(self.scores))

    @property
    def std(self) -> float:
        """Standard deviation of the scores that there are, divisor n."""
        return float(result_std_without_nan(self.scores))

    @property
    def predictions(self) -> np.ndarray:
        """Labels (for regression, numbers) of the caller's rows under the fit that held them out, shape (m,).

        ValueError where some row was held out by none.
        """
        f = self.decision
        if self.task not in BUILT_IN_TASKS:
            raise ValueError(f"predictions of the task {self.task!r} take the models of all folds; see decision")
        if f is None or np.isnan(f).any():
            n = "all" if f is None else int(np.isnan(f.reshape(f.shape[0], -1)).any(axis=1).sum())
            raise ValueError(f"predictions need every row to be held out once; {n} rows were not, see decision")
        return labels_of_decisions(self.classes_, f) if self.classes_.shape[0] else f

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with one row per score: score, and by fold numbers of rows, gap and convergence.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            Without pandas.
        """
        table: dict[str, Any] = {"score": self.scores}
        if self.folds:
            table["n_train"] = [train.shape[0] for train, _ in self.folds]
            table["n_test"] = [test.shape[0] for _, test in self.folds]
            absent = len(self.folds) - len(self.certificates)
            table["gap"] = [*(one.gap for one in self.certificates), *[np.nan] * absent]
            table["converged"] = [*(one.converged for one in self.certificates), *[False] * absent]
            table |= result_vouched_column(self.certificates, absent)
        return result_data_frame(table, "fold")


@dataclass(eq=False, repr=False)
class Selection:
    """Results of a selection: scores of every point of a grid on held-out rows, the best point, and its model.

    Attributes
    ----------
    points : tuple of dict
        Hyper-parameters of every point, as the grid gives them.
    scoring : str
        Name of the score.
    scores : ndarray of shape (p, n_folds)
        As in `CrossValidation`.
    best_index : int
        Point of the best mean score. Points within rounding of it are equal: of these the one of smallest C, then
        lambda2, then lambda1, then the first of the grid.
    model : Model or None
        Fitted to all rows at the best point; None with ``refit=False``.
    folds : tuple of (train, test)
        Row numbers. Empty with "loo" and "pseudo-loo".
    certificates : tuple of Certificate
        Of the fits without held-out rows, fold by fold, and of each fold point by point; with "loo", none where
        there is a closed form or a path.
    elapsed : float
        Seconds.
    """

    points: tuple[dict[str, Any], ...]
    scoring: str
    scores: np.ndarray
    best_index: int
    model: Model | None
    folds: tuple[Fold, ...]
    certificates: tuple[Certificate, ...]
    elapsed: float

    def __repr__(self) -> str:
        n = len(self.points)
        best = {name: x.item() if isinstance(x, np.generic) else x for name, x in self.best_params.items()}
        return f"Selection({self.scoring}={self.best_score:.4g} at {best}, {n} point{'s' * (n > 1)})"

    @property
    def mean_scores(self) -> np.ndarray:
        """Mean over folds of the scores that there are, shape (p,)."""
        return result_mean_without_nan(self.scores)

    @property
    def std_scores(self) -> np.ndarray:
        """Standard deviation over folds, divisor n, shape (p,)."""
        return result_std_without_nan(self.scores)

    @property
    def best_params(self) -> dict[str, Any]:
        """Hyper-parameters of the best point, as the grid gives them."""
        return dict(self.points[self.best_index])

    @property
    def best_score(self) -> float:
        """Mean score of the best point."""
        return float(self.mean_scores[self.best_index])

    def to_frame(self) -> Any:
        """Return a pandas.DataFrame with one row per point: its hyper-parameters, mean, std and score of every fold.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            Without pandas.
        """
        table: dict[str, Any] = {name: [point.get(name) for point in self.points] for name in grid_names(self.points)}
        table |= {"mean_score": self.mean_scores, "std_score": self.std_scores}
        table |= {f"score_{j}": column for j, column in enumerate(self.scores.T)}
        return result_data_frame(table, "point")


def result_mean_without_nan(scores: np.ndarray) -> np.ndarray:
    """Mean of scores in the results of a selection, along the last axis, without NaN; NaN of none."""
    known = ~np.isnan(scores)
    n = known.sum(axis=-1)
    sums = np.where(known, scores, 0.0).sum(axis=-1)
    return np.divide(sums, n, out=np.full(np.shape(sums), np.nan), where=n > 0)


def result_std_without_nan(scores: np.ndarray) -> np.ndarray:
    """Standard deviation of scores in the results of a selection, without NaN, divisor n; NaN where one is infinite."""
    with np.errstate(invalid="ignore"):
        away = scores - result_mean_without_nan(scores)[..., None]
    known = np.sqrt(result_mean_without_nan(np.square(away)))
    return np.where(np.isinf(scores).any(axis=-1), np.nan, known)


def result_vouched_column(certificates: Sequence[Certificate], absent: int = 0) -> dict[str, list[str]]:
    """Column of a path's or another result that tells who vouches for each certificate; none where nobody does."""
    names = [one.vouched_by for one in certificates] + [""] * absent
    return {"vouched_by": names} if any(names) else {}


def result_data_frame(table: dict[str, Any], index: str | None = None) -> Any:
    """Data frame (pandas) from the columns of a path's or another result; ImportError says what is missing."""
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame needs pandas; install it, or read the arrays of this object") from None
    made = pandas.DataFrame(table)
    made.index.name = index
    return made
