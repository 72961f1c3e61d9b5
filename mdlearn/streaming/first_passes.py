"""First passes over row blocks: rows are checked and counted, and what makes features of them is found on a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_approximation import approximate_kernel
from mdlearn.data.features.kernels import ARGUMENTS, PARAMETERS, Kernel, kernel_gamma_of_variance, make_kernel
from mdlearn.data.row_blocks.sample import DrawRowBlockSample
from mdlearn.data.row_blocks.summary import ClassMoments, EntrySpread, Summary
from mdlearn.data.validation import Data
from mdlearn.errors import call_with_error_notes, came, faulty, steps_with_error_notes
from mdlearn.forms.margin import check_bounded_in_bias, check_terms_of_unknown_labels
from mdlearn.model.class_decisions import EACH_LABEL
from mdlearn.model.task import task_of
from mdlearn.numerics import memory
from mdlearn.objectives.base import Objective
from mdlearn.objectives.declaration.parameters_and_terms import (
    complete_declared_parameters,
    declared_need_of_all_rows,
    declared_objective_terms,
    declared_row_terms,
    resolve_declared_parameters,
)
from mdlearn.stages import Call
from mdlearn.streaming.passes import Passes
from mdlearn.streaming.sums.certificate import ZeroPass, form_at_zero
from mdlearn.streaming.sums.row_terms import BlockRowTerms
from mdlearn.streaming.sums.streamed_form import StreamedForm, check_streamed_form_refusal, streamed_form_refusal


@dataclass(frozen=True, eq=False)
class StreamedProblem:
    """Problem over row blocks as the first passes find it, before any step."""

    call: Call
    task: Objective
    params: dict[str, Any]  # hyper-parameters, those of the kernel included
    kernel: Kernel  # what the model is one of
    summary: Summary
    form: StreamedForm


def make_first_passes(
    call: Call, task: Objective, given: dict[str, Any], class_weight: Any, passes: Passes
) -> StreamedProblem:
    """Make the first passes: count, find the features if these are not the columns, and write the form.

    `given`: parameters of the kernel, as given.
    """
    known = passes.found("rows")
    scan = passes.blocks.scan(class_weight, y=task_of(task).y)
    summary = Summary.read(known) if known else passes.needed(scan)
    passes.rows = summary.arrays()
    if summary.classes.shape[0] > 2 and call.multiclass not in ("ovr", "joint", EACH_LABEL):
        told = f"not multiclass={call.multiclass!r}; give multiclass='ovr'"
        raise ValueError(f"row blocks of several classes need one score per class, {told}")
    filled = resolve_declared_parameters(task, summary.total)
    # What answers does not know of the methods of a class that is derived from its own.
    answering = next(base for base in type(task).__mro__ if "needs_all_rows" in vars(base))
    need = task.needs_all_rows(filled) or declared_need_of_all_rows(type(task), answering)
    check_streamed_form_refusal(task.name, need)
    kernel, place = Kernel("linear"), None
    if task.feature_map is not None:
        data = _sample_in_first_pass(passes, summary, call.seed)
        filled = complete_declared_parameters(task, filled, data)
        find = partial(task.place, data, filled, np.random.default_rng([call.seed, 0, 1]))
        place = passes.finish(steps_with_error_notes(task, "objective", "place", find))
        if not isinstance(place, FeatureMap):
            raise faulty(task, "objective", "place", f"returned {came(place)}, a FeatureMap is needed")
    elif call.kernel != "linear":
        kernel = _kernel_from_first_passes(call, given, passes, summary)
        place = kernel.explicit
    if place is not None:
        memory.require(8.0 * summary.n_sums * place.width, f"sums of {place.width} features", "ask for fewer")
        there = summary.mapped(place, np.zeros((summary.n_sums, place.width)))
        sums = passes.in_time(passes.blocks.fold(ClassMoments(summary.n_sums), there), after=0)
        passes.complete = sums is not None
        summary = there if sums is None else summary.mapped(place, sums["moments"])
    form = form_of_first_passes(task, filled, summary, call.bias)
    if summary.level is not None or form.by_row is not None:
        form = form_at_zero(form, passes.needed(passes.blocks.fold(ZeroPass(form), summary)))
    columns = [one.averaged for one in form.columns]
    for column in columns:
        call_with_error_notes(task, "objective", "check_column", filled, column, call.bias)
    check_bounded_in_bias(call.bias, columns)
    return StreamedProblem(call, task, {**filled, **kernel.params}, kernel.exact, summary, form)


def form_of_first_passes(task: Objective, params: dict[str, Any], summary: Summary, bias: str) -> StreamedForm:
    """Write the form that the first passes lead to: an objective's `terms` over their sums; ValueError without one."""
    terms = declared_objective_terms(task, params, summary.total)
    check_streamed_form_refusal(task.name, streamed_form_refusal(terms))
    if type(task).row_terms is Objective.row_terms:
        if summary.y == "some labels":
            check_terms_of_unknown_labels(terms, None)
        return StreamedForm.of(terms, summary, bias)
    say = partial(declared_row_terms, task, params, terms.loss)
    return StreamedForm.of(terms, summary, bias, BlockRowTerms(task, say, terms, summary))


def _sample_in_first_pass(passes: Passes, summary: Summary, seed: int) -> Data:
    """Draw a sample of the rows, or take all where they are few."""
    data: Data = passes.needed(passes.blocks.fold(DrawRowBlockSample.of(seed, summary), summary))["sample"].data(
        summary
    )
    return data


def _kernel_from_first_passes(call: Call, given: dict[str, Any], passes: Passes, summary: Summary) -> Kernel:
    """Find the approximate kernel in first passes, with points of a sample; gamma="scale" is that of all rows."""
    own = {name: value for name, value in given.items() if name not in ARGUMENTS}
    named = call.kernel if isinstance(call.kernel, str) else ""
    if "gamma" in PARAMETERS.get(named, ()) and own.get("gamma", "scale") == "scale":
        mean = float(summary.moment.sum()) / (summary.total * summary.width)
        spread = passes.needed(passes.blocks.fold(EntrySpread(mean), summary))["spread"]
        own["gamma"] = kernel_gamma_of_variance(float(spread) / (summary.total * summary.width), mean, summary.width)
    data = _sample_in_first_pass(passes, summary, call.seed)
    kernel = make_kernel(call.maker, own, data.X, data.counts)
    how, n = (given.get(name) for name in ARGUMENTS)
    made: Kernel = passes.finish(approximate_kernel(kernel, str(how), n, data.X, data.counts, call.seed))
    return made
