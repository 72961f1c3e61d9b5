"""The public entry: check once, write the form, choose an engine, drive it, hand back a Model."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.arguments import DEFAULT_TOL, limits_of, one_of, seed_of
from mdlearn.data.checks import check_data, check_regression
from mdlearn.data.kernels import make_kernel, split_parameters
from mdlearn.forms.history import State
from mdlearn.forms.margin import BIASES
from mdlearn.forms.problem import Form, as_one
from mdlearn.forms.proof import Solution
from mdlearn.model.build import build_model
from mdlearn.model.model import Model
from mdlearn.model.pairs import PAIRWISE, pairs_of
from mdlearn.model.start import WarmStart
from mdlearn.objectives.base import Objective
from mdlearn.plugins.manager import find, origin, registry
from mdlearn.solvers.base import Solver
from mdlearn.solvers.choice import choose
from mdlearn.solvers.driver import Driver, Maker
from mdlearn.solvers.supervised import Supervised, takes
from mdlearn.solvers.threads import blas_threads

READERS = {"classification": check_data, "regression": check_regression}
"""What reads X and y, by the objective's task."""


def fit(
    objective: str | type[Objective] | Objective,
    X: Any,
    y: Any,
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
    warm_start: Model | None = None,
    **params: Any,
) -> Model:
    """Fit a margin-distribution classifier (or what a plugin makes of the family) and certify it.

    Parameters
    ----------
    objective : str, Objective class or instance
        "ldm", "svm", ... (see `list_objectives`).
    X : array-like or sparse matrix of shape (m, d)
        Training rows; with ``kernel="precomputed"`` the Gram matrix of shape (m, m), dense. float32 and float64 are
        kept, in any memory layout: coefficients have the same type, sums are float64, and X is read where it lies
        (a memory map, too). CSR is used as it is, other sparse formats become CSR; data frames become arrays; integers,
        booleans and other floats become float64. A callable kernel gets float64 rows, to be read only.
    y : array-like of shape (m,)
        Two or more labels: numbers, strings or booleans. With two, -1 and +1 are the two sorted labels. For an
        objective of regression finite numbers, kept in float64.
    solver : str, Solver class or instance, default "auto"
        Engine (see `list_solvers`); "auto" chooses by shape and needs, and the model says which and why.
    solver_options : mapping, optional
        The engine's own settings.
    kernel : str or callable, default "linear"
        "linear", "rbf", "poly", "precomputed" or a plugin's (see `list_kernels`), or a callable k(A, B) that returns an
        array of shape (n, m). Parameters: ``gamma`` ("scale" = 1 / (d Var X) or a number), ``degree`` (3), ``coef0``
        (0), or what the plugin's kernel declares.
    bias : {"none", "regularized", "free"}, optional
        Default: the objective's own ("regularized" for ldm and svm).
    multiclass : {"auto", "ovr", "ovo", "joint", "fuzzy-min", "fuzzy-avg"}, default "auto"
        More than two classes: one problem per class against the rest ("ovr"), one per pair of classes with votes
        ("ovo") or with fuzzy memberships by minimum or average, or one problem for all ("joint"). "auto" is the
        objective's own first choice.
    sample_weight : array-like of shape (m,), optional
        Repetition counts >= 0 (any real numbers); an integer weight equals repeated rows.
    class_weight : mapping or "balanced", optional
        Factor per label that multiplies `sample_weight`; "balanced" is sum(w) / (k * weighted count).
    tol : float, default 1e-6
        Relative gap between the objective and its lower bound at which the fit stops. Engines with a published end
        (asgd, sgd) run to that end whatever the gap; they warn of a larger one only when `tol` is given.
    max_iter : int, optional
        Most reports of the engine (interior point steps, rounds of sweeps) per problem.
    time_limit : float, optional
        Wall seconds from the entry of fit; the best point so far is returned.
    random_state : int, optional
        Seed >= 0; None means 0.
    n_threads : int, optional
        Threads for BLAS and for the problems of several classes, which are then solved at the same time. The same
        number gives the same bits. None: BLAS as found, one problem after the other. BLAS has one number per process:
        while fits overlap, the smallest one asked for holds.
    callback : callable, optional
        Called with a State (iteration, objective, lower_bound, gap, elapsed, problem); True stops the fit. Always in
        the calling thread; with `n_threads`, several problems take turns in no fixed order.
    verbose : int, default 0
        1 shows progress on standard error, 2 a line per report.
    warm_start : Model, optional
        A model of the same kind of problem, whose solution is where the engine begins: same objective, rows in number
        and order, classes, kernel and bias; hyper-parameters, weights, `tol` and `solver` may differ. What is certified
        is the same wherever a fit begins. Engines cd, newton, interior, apg and smw (but not its published end) make
        use of it, unless w = 0 is the better beginning; asgd, sgd, direct and linprog begin as ever.
    **params
        Hyper-parameters of the objective and of the kernel.

    Returns
    -------
    Model

    Raises
    ------
    ValueError, TypeError
        One sentence: what was given, what is needed.
    InsufficientMemory
        When the fit would not fit in memory, before anything large is allocated.

    Warns
    -----
    ConvergenceWarning
        When the certified gap did not reach `tol`, unless that is a published method's normal end.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014 (the LDM).
    """
    started = time.perf_counter()
    cls_or_instance = find("objective", objective)
    maker = find("kernel", kernel)
    kernel_given, own, kernel_names = split_parameters(maker, params, cls_or_instance)
    task = _instance(cls_or_instance, own, kernel_names)
    limits = limits_of(started, tol, max_iter, time_limit, callback, verbose, n_threads)
    seed = seed_of(random_state)
    bias = one_of("bias", task.default_bias if bias is None else bias, BIASES)
    ways = task.multiclass if task.task == "classification" else ("none",)
    multiclass = one_of("multiclass", multiclass, ("auto", *ways))
    multiclass = ways[0] if multiclass == "auto" else multiclass
    if not task.kernels and kernel != "linear":
        raise ValueError(f"objective {task.name!r} is linear; got kernel={kernel!r}, give kernel='linear'")
    if task.needs_rows and isinstance(kernel, str) and kernel == "precomputed":
        raise ValueError(f"objective {task.name!r} needs rows, not kernel='precomputed'; give X and another kernel")
    start = None if warm_start is None else WarmStart(warm_start, task.name, bias, multiclass)
    engine = None if isinstance(solver, str) and solver == "auto" else _solver(find("solver", solver))
    given = _options(solver_options, engine)

    square = isinstance(kernel, str) and kernel == "precomputed"
    with blas_threads(limits.n_threads):
        data = READERS[task.task](X, y, sample_weight, class_weight, square=square)
        chosen = make_kernel(maker, kernel_given, data.X, data.counts)
        filled, k = task.complete(task.resolve(data.total), data), data.classes.shape[0]
        pieces = [data]
        if k > 2 and multiclass in PAIRWISE:
            pieces = [data.pair(low, high, square) for low, high in pairs_of(k)]
        if start is not None:
            start.check(data, chosen, pieces)
        starts = None if start is None else start.starts

        def maker(j: int) -> Maker:
            def make() -> Generator[None, Any, Form]:
                rng = np.random.default_rng([seed, j, 1])
                form = yield from task.problem(pieces[j], chosen, bias, filled, rng, solved)
                form = as_one(form) if multiclass == "joint" else form
                task.check_form(form, filled)
                return form

            return make

        def solved(form: Form) -> list[Solution]:
            runner, _ = _engine(engine, form)
            return Driver(runner, runner.solver.check_options(given), limits, seed).run(form).solutions

        form = _finish(maker(0)(), limits.deadline)
        runner, reason = _engine(engine, form)
        later = [maker(j) for j in range(1, len(pieces))]
        outcome = Driver(runner, runner.solver.check_options(given), limits, seed, starts).run(form, later)
        if not later:
            outcome = replace(outcome, solutions=[task.arranged(one, form) for one in outcome.solutions])
        places = [piece.rows for piece in (pieces if later else pieces * len(outcome.solutions))]
        kinds, ran = (bias, multiclass, task.probabilities), (runner.solver.name, reason)
        way = form.features.mapping()
        return build_model(task.name, {**filled, **chosen.params}, data, places, chosen, kinds, ran, outcome, way)


def list_objectives() -> list[str]:
    """Names of all objectives, built-in and from plugins."""
    return sorted(registry().objectives)


def list_solvers() -> list[str]:
    """Names of all engines, built-in and from plugins."""
    return sorted(registry().solvers)


def list_kernels() -> list[str]:
    """Names of all kernels, built-in and from plugins; "precomputed" stands for a Gram matrix given as X."""
    return sorted(registry().kernels)


def _finish(work: Generator[None, Any, Any], deadline: float) -> Any:
    """Run work to its end, with Ctrl-C possible at every step; it is told when the time is up."""
    late = None
    while True:
        try:
            work.send(late)
        except StopIteration as done:
            return done.value
        late = time.perf_counter() >= deadline


def _instance(found: Any, own: dict[str, Any], kernel_names: tuple[str, ...]) -> Objective:
    unknown = [name for name in own if name not in found.parameters]
    if unknown:
        valid = ", ".join((*found.parameters, *kernel_names)) or "none"
        raise ValueError(f"objective {found.name!r} has no parameter {unknown[0]!r} here; valid: {valid}")
    if isinstance(found, type):
        task: Objective = found(**own)
        return task
    return type(found)(**{**found.given, **own})


def _solver(found: Any) -> Solver:
    engine: Solver = found() if isinstance(found, type) else found
    return engine


def _options(given: Any, engine: Solver | None) -> dict[str, Any]:
    """Options as a dict, their names checked as far as the engine is known before any work."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"solver_options needs to be a mapping of option names to values; got {given!r}")
    if engine is not None:
        engine.check_options(dict(given))
    known = {name for cls in registry().solvers.values() for name in cls.options}
    unknown = [name for name in given if engine is None and name not in known]
    if unknown:
        raise ValueError(f"no solver has an option {unknown[0]!r}; known solver_options: {', '.join(sorted(known))}")
    return dict(given)


def _engine(engine: Solver | None, form: Form) -> tuple[Supervised, str]:
    """The engine to run and why; ValueError lists the engines that can when the chosen one cannot."""
    reason = "asked for"
    if engine is None:
        rule = choose(form)
        engine, reason = _solver(find("solver", rule.solver)), rule.reason
    runner = Supervised(engine, origin(engine))
    refusal = runner.refusal(form)
    if refusal is not None:
        able = [name for name, cls in registry().solvers.items() if takes(cls, form)]
        instead = f"use one of {', '.join(able)}" if able else "no other engine can"
        raise ValueError(f"solver {engine.name!r} cannot take this problem: {refusal}; {instead}")
    return runner, reason


__all__ = ["fit", "list_kernels", "list_objectives", "list_solvers"]
