"""Result of a path: the models of all points, and what can be asked of them together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

import numpy as np

from mdlearn.data.labels import check_label_indicators, check_labels, check_model_labels, check_targets
from mdlearn.data.rows.rows import Rows
from mdlearn.data.validation import check_weights
from mdlearn.forms.proof import Certificate
from mdlearn.model.build import StoredCoefficients
from mdlearn.model.class_decisions import class_decision_values, labels_of_decisions
from mdlearn.model.model import Model
from mdlearn.model.record import kernel_scorer
from mdlearn.model.regression import RegressionModel
from mdlearn.numerics.blas_threads import blas_threads, blas_threads_for
from mdlearn.selection.paths.grid import grid_names
from mdlearn.selection.results import result_data_frame, result_vouched_column
from mdlearn.selection.scoring import scoring_of
from mdlearn.stages import Builder, Fitted


class Path(Sequence[Model]):
    """Result of a path: the models of the points of a grid, in the order of the grid.

    A model is built when it is asked for, so a path takes little memory; ``path[i]`` is a new object every time.

    Attributes
    ----------
    points : tuple of dict
        Hyper-parameters of every point, as the grid gives them.
    certificates : tuple of Certificate
    objective, lower_bound, gap : ndarray of shape (p,)
        Certified values of every point.
    converged : ndarray of shape (p,), bool
        Proven where the certificate names nobody who vouches for it (``vouched_by``).
    n_iter : ndarray of shape (p,), int
        Reports of the engine.
    elapsed : float
        Seconds of the whole path.
    """

    def __init__(self, points: list[dict[str, Any]], builder: Builder, fits: list[Fitted], elapsed: float) -> None:
        self.points = tuple(points)
        self.elapsed = elapsed
        self._builder, self._fits = builder, fits

    def __len__(self) -> int:
        return len(self._fits)

    @overload
    def __getitem__(self, i: int) -> Model: ...

    @overload
    def __getitem__(self, i: slice) -> list[Model]: ...

    def __getitem__(self, i: int | slice) -> Model | list[Model]:
        places = range(len(self))[i]
        if isinstance(places, range):
            return [self._model(j) for j in places]
        return self._model(places)

    def __iter__(self) -> Iterator[Model]:
        return map(self._model, range(len(self)))

    def __repr__(self) -> str:
        one = self._fits[0]
        names = ", ".join(grid_names(self.points))
        return f"Path({one.task.name!r}, {len(self)} points of {names}, largest gap={self.gap.max():.2g})"

    def _model(self, i: int) -> Model:
        return self._builder.model(self._fits[i])

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        """Certificate of every point."""
        return tuple(one.outcome.certificate for one in self._fits)

    @property
    def objective(self) -> np.ndarray:
        """Certified objective values, shape (p,)."""
        return np.array([one.objective for one in self.certificates])

    @property
    def lower_bound(self) -> np.ndarray:
        """Certified lower bounds, shape (p,)."""
        return np.array([one.lower_bound for one in self.certificates])

    @property
    def gap(self) -> np.ndarray:
        """Relative gaps, shape (p,)."""
        return np.array([one.gap for one in self.certificates])

    @property
    def converged(self) -> np.ndarray:
        """Whether every point reached `tol`, shape (p,)."""
        return np.array([one.converged for one in self.certificates])

    @property
    def n_iter(self) -> np.ndarray:
        """Reports of the engine, shape (p,)."""
        return np.array([one.outcome.n_iter for one in self._fits])

    def decision_function(self, X: Any) -> np.ndarray:
        """Return f(x) of every point.

        Values of the kernel are computed once for all points that share it, so this costs little more than for one
        model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            As for `Model.decision_function`.

        Returns
        -------
        ndarray of shape (p, n) or (p, n, k), float64
            The first for two classes and for regression.
        """
        A = self[0]._check(X)
        builder = self._builder
        k, by_class = builder.data.classes.shape[0], builder.call.multiclass != "none"
        out = np.empty((len(self), A.shape[0], k) if builder.data.several and by_class else (len(self), A.shape[0]))
        for group in self._alike:
            held = [builder.stored_coefficients(self._fits[i]) for i in group]
            p = held[0].intercept.shape[0]
            terms = max(builder.data.X.shape[0], p * len(group))
            with blas_threads(blas_threads_for(float(math.prod(A.shape)) * terms)):
                F = self._values(A, self._fits[group[0]], held)
            for j, (i, one) in enumerate(zip(group, held)):
                values = F[:, j * p : (j + 1) * p] + one.intercept
                out[i] = class_decision_values(values, k, builder.call.multiclass)
        return out

    @property
    def _alike(self) -> list[list[int]]:
        """Points whose decision values come from the same features."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i, one in enumerate(self._fits):
            groups.setdefault((id(one.kernel), id(one.mapping)), []).append(i)
        return list(groups.values())

    def _values(self, A: Rows, first: Fitted, held: list[StoredCoefficients]) -> np.ndarray:
        """Decision values of several fits without intercepts, side by side."""
        if held[0].coef is not None:
            coef = np.concatenate([one.coef for one in held if one.coef is not None])
            return A.dot(coef.T) if first.mapping is None else first.mapping.scorer(coef)(A)
        alpha = np.concatenate([one.alpha for one in held if one.alpha is not None])
        if first.kernel.name == "precomputed":
            return A.dot(alpha.T)
        rows = self._builder.data.rows
        return kernel_scorer(self._builder.data.X, alpha[:, rows].T.astype(float), first.kernel, first.mapping)(A)

    def predict(self, X: Any) -> np.ndarray:
        """Return labels (for regression, numbers) of every point.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d)
            As for `Model.decision_function`.

        Returns
        -------
        ndarray of shape (p, n)
        """
        F, kind = self.decision_function(X), self._builder.call.kind.model
        if kind is Model:
            return np.array([labels_of_decisions(self._builder.data.classes, f) for f in F])
        return F if kind is RegressionModel else np.array([model.predictions(f) for model, f in zip(self, F)])

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, scoring: str | Callable[..., Any] | None = None
    ) -> np.ndarray:
        """Return a score of every point on some rows, shape (p,); larger is better.

        Parameters
        ----------
        X, y : array-like
            Rows with their labels, or numbers for regression.
        sample_weight : array-like of shape (n,), optional
        scoring : str or callable, optional
            As for `mdlearn.cross_validate`; default "accuracy", for regression "r2".

        Returns
        -------
        ndarray of shape (p,)
        """
        data = self._builder.data
        call = self._builder.call
        chosen = scoring_of(scoring, call.kind.name, sample_weight is not None)
        chosen.check(call.objective, call.multiclass, data.classes.shape[0])
        if chosen.values is None:
            return np.array([chosen.call(model, X, y, sample_weight) for model in self])
        F = self.decision_function(X)
        n = F.shape[1]
        if data.indicators is not None:
            y = check_label_indicators(y, n)[1]
        elif data.targets is None:
            y = data.classes[check_model_labels(*check_labels(y, n), data.classes)]
        else:
            y = check_targets(y, n)
        weights = check_weights(sample_weight, n)
        return np.array([chosen.values(data.classes, f, y, weights) for f in F])

    def to_frame(self) -> Any:
        """Return a table with a row per point: hyper-parameters, certificate and n_iter; who vouches, if anyone does.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            Without pandas.
        """
        told = {name: [point.get(name) for point in self.points] for name in grid_names(self.points)}
        for name in ("objective", "lower_bound", "gap", "converged", "n_iter"):
            told[name] = getattr(self, name)
        return result_data_frame(told | result_vouched_column(self.certificates))
