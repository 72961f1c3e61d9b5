"""Fits of one objective at the points of a grid, which share what does not depend on the point."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.features.gram import FoldGramRows, GramMemory
from mdlearn.driver.driver import Prepared
from mdlearn.driver.limits import Limits
from mdlearn.errors import ConvergenceWarning
from mdlearn.form_making import PathCache
from mdlearn.forms.proof import State
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.objectives.base import Objective
from mdlearn.objectives.declaration.grids import declared_grid
from mdlearn.selection.paths.grid import GridRoute, checked_grid_points, equal_grid_points, grid_term_weights
from mdlearn.selection.paths.path import Path
from mdlearn.selection.progress_bar import ProgressBar
from mdlearn.solvers.base import Solver
from mdlearn.stages import DEFAULT_TOL, Call, CheckedCall, Fitted, checked_limits, checked_seed


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
    """Fit a path: one objective at every point of a grid of hyper-parameters.

    The answer at every point is that of `fit`: certified on its own, to the same `tol`. Points share what does not
    depend on them: checks of the data, the kernel matrix or kernel columns, clusters and landmarks, factorisations, and
    each begins at the solution of a neighbour. So they are solved in an order of their own, and returned in that of the
    grid.

    Parameters
    ----------
    objective : str, Objective class or instance
        As for `fit`.
    X, y : array-like
        As for `fit`.
    grid : mapping or sequence of mappings, optional
        Names of hyper-parameters of the objective or the kernel to sequences of values, of which all combinations are
        taken (the last name varies fastest); or a sequence of such grids, of which the union is taken. There a value
        may stand alone: a mapping of names to single values is a point.
        Default: the objective's own grid (`Objective.grid`), for the parameters that `params` leaves open.
    solver, solver_options, kernel, bias, multiclass, sample_weight, class_weight
        As for `fit`; the same for all points.
    tol, max_iter, random_state, n_threads
        As for `fit`; the same for all points. Every point has the seed of `random_state`.
    time_limit : float, optional
        Wall seconds for the whole path. Points that are not reached are returned as w = 0, with the certificate of
        that (`converged` is False), and one warning.
    callback : callable, optional
        As for `fit`, for every point; `State.point` is its position in the grid. True stops the path, as a time limit
        does.
    verbose : int, default 0
        1 shows one progress bar over the points on standard error, 2 a line per report as well.
    **params
        Hyper-parameters that all points have in common.

    Returns
    -------
    Path
        A sequence of models in the order of the grid.

    Raises
    ------
    ValueError, TypeError
        As `fit`, and for a grid that is empty or names something unknown; before the first fit.

    Warns
    -----
    ConvergenceWarning
        Once, when some points did not reach `tol`.
    """
    limits = checked_limits(time.perf_counter(), tol, max_iter, time_limit, callback, verbose, n_threads)
    own = replace(limits, verbose=limits.verbose if limits.verbose > 1 else 0)
    call = Call.of(objective, kernel, solver, solver_options, bias, multiclass, own, checked_seed(random_state))
    points, asked = checked_grid_points(call, [{}] if grid is None else grid, params)
    setting = call.read(X, y, sample_weight, class_weight)
    if grid is None:
        points, asked = checked_grid_points(call, declared_grid(call.task(params)[0], setting.data.total), params)
    with blas_threads(1, pieces=setting.n_threads):
        found: dict[int, Fitted] = {}
        with ProgressBar(limits.verbose, f"path of {call.objective.name!r}", len(points)) as bar:
            for i, fitted in solve_path(setting, asked):
                found[i] = fitted
                bar.advance(note=f"gap {fitted.outcome.certificate.gap:.1e}")
        fits = [found[i] for i in range(len(points))]
        builder = setting.builder(fits)
    _warn_of_path_shortfalls(found, limits)
    return Path(points, builder, fits, time.perf_counter() - limits.started)


def solve_path(
    setting: CheckedCall,
    asked: Sequence[tuple[Objective, dict[str, Any]]],
    memory: GramMemory | None = None,
    fold: FoldGramRows | None = None,
) -> Iterator[tuple[int, Fitted]]:
    """Yield (position, fit) of the points of a path as they are done, group by group of equal features.

    Once a fit was stopped, those after it are not begun: their answer is w = 0.

    `asked`: objective and kernel parameters of every point; `memory`: of kernel matrices, shared with other paths,
    and `fold`: rows of these, for points with the same kernel.
    """
    limits, total = setting.call.limits, setting.data.total
    filled = [setting.complete(task) for task, _ in asked]
    keys = [(given, task.features_depend_on(params)) for (task, given), params in zip(asked, filled)]
    memory = memory or GramMemory()
    for group in equal_grid_points(keys):
        kernel = setting.kernel(asked[group[0]][1])
        route = GridRoute([grid_term_weights(asked[i][0], filled[i], total) for i in group])
        handed = PathCache(prepared=Prepared(len(group)), shared=len(group) > 1, memory=memory)
        shared_kernel = None if fold is None else fold.shared_kernel(kernel)
        if shared_kernel is not None:
            kernel, handed.fold = shared_kernel, fold
        solved = dict[int, Fitted]()
        for t, j in enumerate(route.order):
            i, near = group[j], route.before(t)
            handed.starts = None if near is None or limits.over else solved[near].starts
            own = limits if limits.callback is None else replace(limits, callback=_path_callback(limits.callback, i))
            solved[j] = fitted = setting.solve(asked[i][0], filled[i], kernel, handed, own)
            handed.prepared.left -= 1
            if fitted.outcome.stopped:
                limits = limits.ended()
            yield i, fitted


def _path_callback(callback: Callable[[State], Any], i: int) -> Callable[[State], Any]:
    """Callback of the fits of a path, which adds to each state the point that it belongs to."""
    return lambda state: callback(replace(state, point=i))


def _warn_of_path_shortfalls(found: dict[int, Fitted], limits: Limits) -> None:
    """Warn once of all fits of a path without their gap: what stopped the path, or the worst's reason."""
    short = {i: one for i, fitted in found.items() for one in fitted.shortfalls}
    if not short:
        return
    worst = max(short.values(), key=lambda one: one.gap)
    told = next((one for i, one in short.items() if found[i].outcome.stopped), worst)
    warnings.warn(
        f"{len(short)} of {len(found)} points of the path stopped early, the worst at {worst.measure} {worst.gap:.2g} "
        f"instead of {limits.tol:.2g} ({told.reason}); {told.advice}",
        ConvergenceWarning,
        stacklevel=3,
    )
