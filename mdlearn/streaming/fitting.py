"""Fitting to streamed row blocks: what is asked for is checked, then come the passes, then the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from mdlearn.data.kernel_functions import kernel_function_takes_objects
from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.driver.limits import LimitShortfall
from mdlearn.forms.proof import combine_proofs, fit_history
from mdlearn.model.build import model_without_rows
from mdlearn.model.model import Model
from mdlearn.model.task import task_of
from mdlearn.numerics import memory
from mdlearn.numerics.blas_threads import blas_threads, threads_for_product
from mdlearn.objectives.base import Objective
from mdlearn.plugins.registry import registry
from mdlearn.solvers.base import Solver
from mdlearn.stages import Call
from mdlearn.streaming.descent import StreamedDescent
from mdlearn.streaming.engines.block_engine import BlockEngine
from mdlearn.streaming.engines.newton_state_machine import BlockNewton, NewtonState
from mdlearn.streaming.engines.proximal_state_machine import BlockProximal, ProximalState
from mdlearn.streaming.first_passes import StreamedProblem, make_first_passes
from mdlearn.streaming.passes import Passes

TREE_MATRICES = 12
"""Matrices of a column that are in memory at once: one for each level of the tree of sums."""
CHECKPOINT_LAYOUT = 3
"""Which arrays a checkpoint holds: a file of another version of mdlearn, with others, is refused in a sentence."""


def fit_streamed_blocks(
    call: Call, params: Mapping[str, Any], blocks: RowBlocks, class_weight: Any
) -> tuple[Model, list[LimitShortfall]]:
    """Fit the model of a call to streamed row blocks; return it and what it fell short of."""
    task, given = call.task(params)
    _refuse_fit_to_blocks(call, task, given)
    stochastic = call.engine if call.engine is not None and call.engine.takes_blocks else None
    solver = "newton" if stochastic is None else stochastic.name
    passes = Passes(solver, call.limits, blocks, _streamed_fit_arguments(call, task, given, class_weight, blocks))
    n_threads = call.limits.n_threads
    with blas_threads(1, pieces=n_threads or 1):  # how many rows there are is known afterwards
        begun = make_first_passes(call, task, given, class_weight, passes)
    summary = begun.summary
    with blas_threads(1, pieces=n_threads or threads_for_product(summary.n_rows, summary.n_features)):
        return _fit_by_passes(stochastic, begun, passes)


def _fit_by_passes(
    stochastic: Solver | None, begun: StreamedProblem, passes: Passes
) -> tuple[Model, list[LimitShortfall]]:
    """Fit to streamed row blocks by passes: a model of coefficients, for nothing is known of single rows."""
    call, form, summary = begun.call, begun.form, begun.summary
    engine = _engine_of_streamed_fit(stochastic, begun, passes)
    parts, W = passes.run(engine, summary)
    title, worst = f"solver {passes.solver!r} over row blocks", max(parts, key=lambda one: one.gap)
    published, exact = stochastic is not None and not passes.stopped, summary.dtype == np.float64
    shortfall = passes.shortfall(title, worst, published, exact, passes.stopped)
    reason = "asked for, over row blocks"
    if stochastic is None:
        reason = f"{'proximal steps, ' if form.proximal else ''}sums over row blocks"
    scales = [(form.unit * engine.zero(t)[0], False) for t in range(len(engine.groups))]
    model = model_without_rows(
        begun.task.name,
        begun.params,
        (call.bias, call.multiclass, begun.task.probabilities),
        (passes.solver, reason),
        (passes.done, fit_history(passes.history, parts, scales)),
        combine_proofs(parts, scales, call.limits.tol),
        summary.classes,
        W if form.bias != "none" else np.hstack([W, np.zeros((W.shape[0], 1))]),
        summary.dtype,
        summary.names,
        begun.kernel,
        summary.mapping,
        task_of(begun.task).model,
    )
    return model, [] if shortfall is None else [shortfall]


def _engine_of_streamed_fit(stochastic: Solver | None, begun: StreamedProblem, passes: Passes) -> BlockEngine:
    """Engine of a streamed fit to row blocks, in the state where an earlier run has left it.

    One problem for all classes where the call asks for that under a penalty, else one for each column.
    """
    form, tol, found = begun.form, begun.call.limits.tol, passes.resume()
    if stochastic is not None:
        return StreamedDescent(stochastic, begun, found, passes.done)
    memory.require(
        8.0 * TREE_MATRICES * len(form.columns) * form.size**2,
        f"sums of {form.size} x {form.size} matrices over row blocks",
        "give fewer columns, or solver='asgd'",
    )
    if form.proximal:
        places = range(len(form.columns))
        groups = [tuple(places)] if begun.call.multiclass == "joint" else [(j,) for j in places]
        n = form.size * len(groups[0])
        memory.require(32.0 * n * n, f"matrices of {n} coefficients", "use fewer columns")
        state = ProximalState.read(found) if found else ProximalState.first(form, groups)
        return BlockProximal(form, groups, tol, state, passes.blocks.held)
    steps = NewtonState.read(found) if found else NewtonState.first(form)
    return BlockNewton(form, tol, steps, passes.blocks.held)


def _refuse_fit_to_blocks(call: Call, task: Objective, given: Mapping[str, Any]) -> None:
    """Raise ValueError for a fit to row blocks that takes all rows at once."""
    if call.kernel == "precomputed":
        raise ValueError("row blocks hold rows; give the Gram matrix of all rows as X, with y, or another kernel")
    if kernel_function_takes_objects(call.maker):
        raise ValueError(
            f"kernel {call.maker.name!r} compares objects, not row blocks; give a list of all of them, and y"
        )
    if call.kernel != "linear" and given.get("approximation") is None:
        raise ValueError(
            "row blocks need kernel='linear', or an approximation of the kernel (approximation='nystroem'); got "
            f"{call.kernel!r}"
        )
    kind = task_of(task)
    if kind.y not in ("numbers", "none") and not kind.by_class:
        raise ValueError(f"objective {task.name!r} is one of {kind.name}, which takes no row blocks; give X and y")
    if call.engine is not None and call.engine.takes_blocks:
        return
    others = sorted(name for name, cls in registry().solvers.items() if cls.takes_blocks)
    if call.options:
        told = f"row blocks take no solver_options but those of {' and '.join(others)}; got {sorted(call.options)}"
        raise ValueError(told)
    if call.engine is not None and call.engine.name != "newton":
        names = " or ".join(map(repr, others))
        raise ValueError(f"row blocks need solver='newton' (or 'auto'), {names}; got {call.engine.name!r}")


def _streamed_fit_arguments(
    call: Call, task: Objective, given: Mapping[str, Any], class_weight: Any, blocks: RowBlocks
) -> dict[str, Any]:
    """Arguments of a streamed fit by name, which a checkpoint belongs to."""
    weights = dict(class_weight) if hasattr(class_weight, "items") else class_weight
    solver = "newton" if call.engine is None else call.engine.name
    asked = {"bias": call.bias, "multiclass": call.multiclass, "tol": call.limits.tol, "held": blocks.held}
    asked |= {"random_state": call.seed, "kernel": call.kernel, "solver": solver, "solver_options": call.options}
    asked["layout"] = CHECKPOINT_LAYOUT
    return {"objective": task.name, **task.given, **given, "class_weight": repr(weights), **asked}
