"""Public API: check once, write the form, choose an engine, drive it, hand back a Model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from operator import is_not
from typing import Any, Literal

import numpy as np

from mdlearn.data.features.kernels import Kernel
from mdlearn.driver.limits import LimitShortfall
from mdlearn.errors import ConvergenceWarning
from mdlearn.form_making import PathCache
from mdlearn.forms.penalised.constraints import Constraints
from mdlearn.forms.proof import State
from mdlearn.model.model import Model
from mdlearn.model.start import WarmStart
from mdlearn.numerics.blas_threads import blas_threads
from mdlearn.numerics.memory import memory_error_in_words
from mdlearn.objectives.base import Objective
from mdlearn.plugins.registry import find_row_blocks, registry
from mdlearn.solvers.base import Solver
from mdlearn.stages import DEFAULT_TOL, Call, CheckedCall, DecisionTolerance, checked_limits, checked_seed
from mdlearn.streaming.fitting import fit_streamed_blocks

GAPS_OF_DECISIONS = tuple(10.0**-k for k in range(2, 9))
"""Gaps at which a fit looks whether its decisions are proven."""
UNDECIDED_SHARE = 1e-3
"""Share of the rows whose decisions may stay unproven."""


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
    tol: float | Literal["decisions"] = DEFAULT_TOL,
    max_iter: int | None = None,
    time_limit: float | None = None,
    random_state: Any = None,
    n_threads: int | None = None,
    callback: Callable[[State], Any] | None = None,
    verbose: int = 0,
    warm_start: Model | None = None,
    X_decide: Any = None,
    bounds: Any = None,
    nonnegative: Any = None,
    monotone: Mapping[Any, int] | None = None,
    fairness: tuple[Any, float] | None = None,
    A_ub: Any = None,
    b_ub: Any = None,
    **params: Any,
) -> Model:
    """Fit a margin-distribution classifier (or what a plugin makes of the family) and certify it: the public API.

    Parameters
    ----------
    objective : str, Objective class or instance
        "ldm", "svm", ... (see `list_objectives`).
    X : array-like or sparse matrix of shape (m, d)
        Training rows; with ``kernel="precomputed"`` the Gram matrix of shape (m, m), dense. float32 and float64 are
        kept, in any memory layout: coefficients have the same type, sums are float64, and X is read where it lies
        (a memory map, too). CSR is used as it is, other sparse formats become CSR; data frames become arrays; integers,
        booleans and other floats become float64. A callable kernel gets float64 rows, to be read only.
        With y None: rows in blocks, an iterable of (X, y) or (X, y, weight), a function that returns one, or
        `RowBlocks`; then nothing of the size of the rows is kept. Plugins may know other kinds of X.
    y : array-like of shape (m,), or None
        Two or more labels: numbers, strings or booleans. With two, -1 and +1 are the two sorted labels. For an
        objective of regression finite numbers, kept in float64.
    solver : str, Solver class or instance, default "auto"
        Engine (see `list_solvers`); "auto" chooses by shape and needs, and the model says which and why.
    solver_options : mapping, optional
        The engine's own settings; "auto" chooses among the engines that know them.
    kernel : str or callable, default "linear"
        "linear", "rbf", "poly", "precomputed" or a plugin's (see `list_kernels`), or a callable k(A, B) that returns an
        array of shape (n, m). Parameters: ``gamma`` ("scale" = 1 / (d Var X) or a number), ``degree`` (3), ``coef0``
        (0), or what the plugin's kernel declares; and for a linear problem in place of the kernel's
        ``approximation="nystroem"`` (or "landmarks") with ``n_components`` points (500, or all distinct rows where
        these are fewer).
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
    tol : float or "decisions", default 1e-6
        Relative gap between the objective and its lower bound at which the fit stops. Engines with a published end
        (asgd, sgd) run to that end whatever the gap; they warn of a larger one only when `tol` is given. "decisions":
        the first of the gaps 1e-2, 1e-3, ..., 1e-9 at which at least 99.9 % of the rows are proven to have the label
        that the exact optimum gives them (`Model.certified`); each fit begins at the one before.
    max_iter : int, optional
        Most reports of the engine (interior point steps, rounds of sweeps) per problem.
    time_limit : float, optional
        Wall seconds from the entry of fit; the best point so far is returned.
    random_state : int, optional
        Seed >= 0; None means 0.
    n_threads : int, optional
        Threads for pieces of large products and factors, and for the problems of several classes, which are then solved
        at the same time; BLAS has one meanwhile. The same number gives the same bits. None: small fits have one thread.
        Where the rows of all classes, or of all pairs, have 1.8e7 entries together, their problems are solved at the
        same time, each by one thread, by as many as BLAS is set to; else pieces have that many where the largest
        product takes 4e9 multiplications. Shapes decide that, and BLAS is left as it was. BLAS has one number per
        process: while fits overlap, the smallest one asked for holds.
    callback : callable, optional
        Called with a State (iteration, objective, lower_bound, gap, elapsed, problem); True stops the fit. Always in
        the calling thread; problems that are solved at the same time take turns in no fixed order.
    verbose : int, default 0
        1 shows progress on standard error, 2 a line per report.
    warm_start : Model, optional
        A model of the same kind of problem, whose solution is where the engine begins: same objective, rows in number
        and order, classes, kernel and bias; hyper-parameters, weights, `tol` and `solver` may differ. What is certified
        is the same wherever a fit begins. Engines cd, hybrid, newton, interior, apg and smw (but not its published
        end) make use of it, unless w = 0 is the better beginning; asgd, sgd, direct and linprog begin as ever.
    X_decide : array-like or sparse matrix of shape (n, d), optional
        Rows whose labels count for ``tol="decisions"``. Default: the training rows.
    bounds : pair, or sequence of d pairs, optional
        Limits (lower, upper) of all coefficients, or of each; None is no limit. This and what follows are constraints
        on the coefficients of a linear kernel, for two classes or a regression; the intercept is free of them. The
        certificate includes them: the coefficients are feasible, and the bound is that of the constrained problem.
    nonnegative : list of columns, or True, optional
        Columns (numbers, or names of a data frame) whose coefficients are >= 0; True: all.
    monotone : mapping of columns to 1 or -1, optional
        Columns with which f may only rise (1) or fall (-1).
    fairness : tuple (group, epsilon), optional
        Of an array (m,) of two values: the mean decision values of both groups differ by epsilon at most. Means are by
        sample weight, times class weight where there is one.
    A_ub, b_ub : array-like or sparse matrix of shape (n, d), and array-like of shape (n,), optional
        Constraints A_ub w <= b_ub.
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
        When the certified gap did not reach `tol`, or decisions are not proven at the smallest gap, unless that is a
        published method's normal end.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014 (the LDM).
    """
    started, blocks = time.perf_counter(), find_row_blocks(X, y, sample_weight)
    given = tol, max_iter, time_limit, callback, verbose, n_threads
    limits = checked_limits(started, *given, decisions=blocks is None)
    if X_decide is not None and not isinstance(limits.tol, DecisionTolerance):
        raise ValueError("X_decide are rows for tol='decisions'; give that tol, or leave X_decide out")
    call = Call.of(objective, kernel, solver, solver_options, bias, multiclass, limits, checked_seed(random_state))
    constrained = bounds, nonnegative, monotone, fairness, A_ub, b_ub
    if any(map(partial(is_not, None), constrained)):
        if blocks is not None:
            raise ValueError("row blocks take no constraints; an objective of a plugin can declare them as LimitTerm")
        call = replace(call, constraints=Constraints(*constrained))
    if blocks is not None:
        if warm_start is not None:
            raise ValueError("row blocks take no warm_start; a checkpoint of RowBlocks goes on from an earlier run")
        with memory_error_in_words("the fit to row blocks"):
            model, shortfalls = fit_streamed_blocks(call, params, blocks, class_weight)
    else:
        model, shortfalls = certified_model(call, params, X, y, sample_weight, class_weight, warm_start, X_decide)
    for shortfall in shortfalls:
        warnings.warn(shortfall.text, ConvergenceWarning, stacklevel=2)
    return model


def certified_model(
    call: Call,
    params: Mapping[str, Any],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    class_weight: Any = None,
    warm_start: Model | None = None,
    X_decide: Any = None,
) -> tuple[Model, list[LimitShortfall]]:
    """Return the model of an API call and its shortfalls, for a warning of the caller's own kind."""
    task, kernel_given = call.task(params)
    start = None if warm_start is None else WarmStart(warm_start, task.name, call.bias, call.multiclass)
    setting = call.read(X, y, sample_weight, class_weight)
    with blas_threads(1, pieces=setting.n_threads):
        chosen = setting.kernel(kernel_given)
        handed = PathCache()
        if start is not None:
            start.check(setting.data, chosen.exact, setting.places)
            handed.starts = start.starts
        given = task, setting.complete(task), chosen, handed
        if isinstance(call.limits.tol, DecisionTolerance):
            return _decided_model(setting, given, X if X_decide is None else X_decide)
        fitted = setting.solve(*given)
        return setting.builder().model(fitted), fitted.shortfalls


def _decided_model(
    setting: CheckedCall, given: tuple[Objective, dict[str, Any], Kernel, PathCache], X_decide: Any
) -> tuple[Model, list[LimitShortfall]]:
    """Return the API's first model of smaller and smaller gaps that proves its decisions; each fit begins at the last.

    `given`: what `CheckedCall.solve` gets.
    """
    limits, handed, builder = setting.call.limits, given[-1], setting.builder()
    gaps = *GAPS_OF_DECISIONS, float(limits.tol)
    handed.prepared.left, handed.shared = len(gaps), True
    for tol in gaps:
        fitted = setting.solve(*given, replace(limits, tol=tol))
        model, handed.starts = builder.model(fitted), fitted.starts
        handed.prepared.left -= 1
        if model.unproven:
            raise ValueError(f"tol='decisions' needs bounds of decision values: {model.unproven}")
        missing = 1.0 - float(model.certified(X_decide).mean())
        if missing <= UNDECIDED_SHARE:
            return model, []
        if fitted.shortfalls:
            return model, fitted.shortfalls
    title, measure = f"{model.objective!r}", "a share of unproven decisions of"
    ended, advice = f"at the gap {model.certificate.gap:.2g}", "give the rows that matter as X_decide, or tol=a number"
    return model, [LimitShortfall(title, measure, missing, UNDECIDED_SHARE, ended, advice)]


def list_objectives() -> list[str]:
    """List the names of all objectives, for users of the API: built-in ones and those of plugins.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(registry().objectives)


def list_solvers() -> list[str]:
    """List the names of all engines, for users of the API: built-in ones and those of plugins.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(registry().solvers)


def list_kernels() -> list[str]:
    """List the names of all kernels, for users of the API; "precomputed" stands for a Gram matrix given as X.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(registry().kernels)


__all__ = ["fit", "list_kernels", "list_objectives", "list_solvers"]
