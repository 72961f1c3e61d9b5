"""What a path returns: the models of all points, and what can be asked of them together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np

from mdlearn.forms.proof import Certificate
from mdlearn.model.model import Model
from mdlearn.stages import Builder, Fitted


class Path(Sequence[Model]):
    """The models of the points of a grid, in the order of the grid.

    A model is built when it is first asked for.

    Attributes
    ----------
    points : tuple of dict
        Hyper-parameters of every point, as the grid gives them.
    certificates : tuple of Certificate
    objective, lower_bound, gap : ndarray of shape (p,)
        Certified values of every point.
    converged : ndarray of shape (p,), bool
    n_iter : ndarray of shape (p,), int
        Reports of the engine.
    elapsed : float
        Seconds of the whole path.
    """

    def __init__(self, points: list[dict[str, Any]], builder: Builder, fits: list[Fitted], elapsed: float) -> None:
        self.points = tuple(points)
        self.elapsed = elapsed
        self._builder, self._fits = builder, fits
        self._models: dict[int, Model] = {}

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
        names = ", ".join(self.points[0])
        return f"Path({one.task.name!r}, {len(self)} points of {names}, largest gap={self.gap.max():.2g})"

    def _model(self, i: int) -> Model:
        if i not in self._models:
            self._models[i] = self._builder.model(self._fits[i])
        return self._models[i]

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
        """Return f(x) of every point: shape (p, n) for two classes and for regression, (p, n, k) else."""
        return np.array([model.decision_function(X) for model in self])

    def predict(self, X: Any) -> np.ndarray:
        """Return labels (for regression, numbers) of every point, shape (p, n)."""
        return np.array([model.predict(X) for model in self])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> np.ndarray:
        """Return what `Model.score` returns for every point, shape (p,)."""
        return np.array([model.score(X, y, sample_weight) for model in self])
