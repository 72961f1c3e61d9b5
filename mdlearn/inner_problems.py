"""Inner problems: convex problems that an engine of a plugin has solved by another engine, as steps of its own."""

from __future__ import annotations

import time
from collections.abc import Generator
from functools import partial
from typing import Any

from mdlearn.data.features.kernel_features import Features, KernelFeatures
from mdlearn.driver.choice import chosen_driver
from mdlearn.forms.problem import Form, problems_of
from mdlearn.forms.proof import Solution, Start, starts_of
from mdlearn.plugins.registry import find, registry, requested_solver
from mdlearn.stages import checked_limits, checked_seed


def solve_inner(
    form: Form,
    *,
    tol: float = 1e-6,
    start: Solution | None = None,
    solver: Any = "auto",
    solver_options: dict[str, Any] | None = None,
    max_iter: int | None = None,
    seed: int = 0,
) -> Generator[None, None, Solution]:
    """Solve a convex problem within an engine's `iterate`: ``solution = yield from solve_inner(form)``.

    For methods that solve a row of convex problems: CCCP, reweighting, alternating steps. The generator yields
    heartbeats, which the engine passes on: time limit, Ctrl-C and callback of the fit end the inner work as they end
    the engine's own. Preparations that features keep (a Gram matrix, lengths of rows) are shared by all inner problems
    over the same features.

    Parameters
    ----------
    form : MarginForm of one column, or Problem
        For example ``dataclasses.replace(form, columns=(column,))`` with a column made from the engine's own.
    tol : float, default 1e-6
        Relative gap to reach.
    start : Solution, optional
        What an earlier inner problem over the same features came to: where engines that can begin there do.
    solver : str, Solver class or instance, default "auto"
        The inner engine, as in `mdlearn.fit`.
    solver_options : dict, optional
        Its options.
    max_iter : int, optional
        Most reports of the inner engine; default: its own number.
    seed : int, default 0
        For engines that draw random numbers.

    Yields
    ------
    None
        A heartbeat.

    Returns
    -------
    Solution
        With `certificate`: `converged` says whether `tol` was reached. No warning is given where it was not.

    Raises
    ------
    ValueError
        When the form has several problems, the engine cannot take it, or `start` belongs to other features.
    TypeError
        For arguments of another type.
    """
    limits = checked_limits(time.perf_counter(), tol, max_iter, None, None, 0, None)
    count = len(problems_of(form))
    if count != 1:
        raise ValueError(f"solve_inner takes a form of one problem; got one of {count}, give one column at a time")
    engine, given = requested_solver(solver, solver_options)
    begins = [] if start is None else _inner_problem_starts(form.features, start)
    starts = (lambda other, first, n: [begins]) if begins else None
    solvers, named = registry().solvers, partial(find, "solver")
    driver, _ = chosen_driver(engine, given, form, solvers, named, limits, checked_seed(seed), starts)
    return (yield from driver.alone(form))


def _inner_problem_starts(features: Features, start: Solution) -> list[Start]:
    """Starts of an inner problem from a solution over the same features."""
    kind_fits = (start.coef is None) == isinstance(features, KernelFeatures)
    found = starts_of(start, features) if kind_fits else []
    if len(found) != 1:
        raise ValueError("start is the solution of a problem over other features; give one over the same, or none")
    return found
