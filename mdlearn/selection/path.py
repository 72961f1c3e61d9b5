"""Fits of one objective at the points of a grid, which share what does not depend on the point."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from mdlearn.arguments import DEFAULT_TOL, limits_of, seed_of
from mdlearn.errors import convergence_warning
from mdlearn.forms.history import State
from mdlearn.forms.problem import Form
from mdlearn.forms.start import Start, starts_of
from mdlearn.objectives.base import Objective
from mdlearn.selection.order import Route, grouped, place_of
from mdlearn.selection.points import points_of
from mdlearn.selection.result import Path
from mdlearn.solvers.base import Solver
from mdlearn.solvers.driver import Prepared, Starts
from mdlearn.solvers.threads import blas_threads
from mdlearn.stages import Call, Fitted, Handed, Setting


def fit_path(
    objective: str | type[Objective] | Objective,
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]] | None = None,
    *,
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
) -> Path:
    """Fit an objective at every point of a grid of hyper-parameters.

    The answer at every point is that of `fit`, with a certificate of its own.
    """
    limits = limits_of(time.perf_counter(), tol, max_iter, time_limit, callback, verbose, n_threads)
    call = Call.of(objective, kernel, solver, solver_options, bias, multiclass, limits, seed_of(random_state))
    if grid is None:
        raise ValueError("give a grid")
    points = points_of(grid, params)
    asked = [call.task({**params, **point}) for point in points]
    with blas_threads(limits.n_threads):
        setting = call.read(X, y, sample_weight, class_weight)
        found = dict(walked(setting, asked))
        fits = [found[i] for i in range(len(asked))]
        builder = setting.builder(fits)
    for one in fits:
        for shortfall in one.shortfalls:
            warnings.warn(shortfall.text, convergence_warning(), stacklevel=2)
    return Path(points, builder, fits, time.perf_counter() - limits.started)


def walked(setting: Setting, asked: list[tuple[Objective, dict[str, Any]]]) -> Iterator[tuple[int, Fitted]]:
    """Number and fit of every point, group by group, where the points of a group have the same features."""
    total = setting.data.total
    filled = [setting.complete(task) for task, _ in asked]
    found: dict[int, Fitted] = {}
    keys = [(given, task.features_depend_on(params)) for (task, given), params in zip(asked, filled)]
    for group in grouped(keys):
        kernel = setting.kernel(asked[group[0]][1])
        route = Route([place_of(asked[i][0], filled[i], total) for i in group])
        handed = Handed(prepared=Prepared(len(group)))
        solved: list[int] = []
        for j in route.order:
            near = route.nearest(j, solved)
            handed.starts = None if near is None else _starts(found[group[near]])
            found[group[j]] = setting.solve(asked[group[j]][0], filled[group[j]], kernel, handed)
            handed.prepared.left -= 1
            solved.append(j)
            yield group[j], found[group[j]]


def _starts(fitted: Fitted) -> Starts:
    """Starts of the problems of a form, from those of another one."""
    solutions = fitted.outcome.solutions

    def starts(form: Form, first: int, n: int) -> Sequence[Sequence[Start]]:
        return [starts_of(one, form.features) for one in solutions[first : first + n]]

    return starts
