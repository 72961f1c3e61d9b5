"""Fits of one objective at the points of a grid, which share what does not depend on the point."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from mdlearn.arguments import DEFAULT_TOL, limits_of, seed_of
from mdlearn.errors import convergence_warning
from mdlearn.forms.history import State
from mdlearn.forms.start import starts_of
from mdlearn.objectives.base import Objective
from mdlearn.selection.points import points_of
from mdlearn.selection.result import Path
from mdlearn.solvers.base import Solver
from mdlearn.solvers.threads import blas_threads
from mdlearn.stages import Call, Fitted, Handed


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
    fits: list[Fitted] = []
    with blas_threads(limits.n_threads):
        setting = call.read(X, y, sample_weight, class_weight)
        for task, given in asked:
            handed = Handed()
            if fits:
                last = fits[-1].outcome.solutions
                handed.starts = lambda form, j, n, last=last: [starts_of(s, form.features) for s in last[j : j + n]]
            fits.append(setting.solve(task, setting.complete(task), setting.kernel(given), handed))
    for one in fits:
        for shortfall in one.shortfalls:
            warnings.warn(shortfall.text, convergence_warning(), stacklevel=2)
    return Path(points, setting.builder(fits), fits, time.perf_counter() - limits.started)
