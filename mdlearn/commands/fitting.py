"""``python -m mdlearn fit``: a model from a file of rows."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.commands.reading import Options, read_for_fit
from mdlearn.commands.tables import Table
from mdlearn.model.file.persistence import is_model, save
from mdlearn.model.model import Model
from mdlearn.outputs import Output
from mdlearn.selection.validation import cross_validate


def run_fit(given: argparse.Namespace) -> int:
    """Fit a model on a file, print what it is worth, save it."""
    # Before the work, not after.
    Output(given.output, reads=[given.data], replaces=is_model, force=given.force)
    options = Options(given.data_format, given.delimiter, given.header, given.target, given.features)
    table = read_for_fit(given.data, options, np.float32 if given.float32 else np.float64)
    if given.verbose:
        print(f"read {given.data}: {_size(table)}", file=sys.stderr)
    call = _call(given)
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(given.objective, table.named, table.y, **call)
        seconds = time.perf_counter() - started
        judged = None if given.cv is None else cross_validate(given.objective, table.X, table.y, cv=given.cv, **call)
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    # How columns were found and numbers rounded has to be the same at predict.
    save(model, given.output, {**table.notes, "float32": given.float32})
    lines = _told(given, table, model, seconds)
    if judged is not None:
        scores = judged.scores[~np.isnan(judged.scores)]
        note = "" if scores.shape[0] == given.cv else f"; {scores.shape[0]} folds were finished"
        lines[f"{given.cv}-fold {judged.scoring}"] = f"{judged.mean:.6g} +- {judged.std:.2g}{note}"
    print("\n".join(f"{title + ':':<19}{text}" for title, text in lines.items()))
    return 0


def _call(given: argparse.Namespace) -> dict[str, Any]:
    """Keyword arguments that fit and cross_validate share."""
    return {
        "solver": given.solver,
        "solver_options": dict(given.solver_option),
        "kernel": given.kernel,
        "bias": given.bias,
        "class_weight": given.class_weight,
        "tol": given.tol,
        "max_iter": given.max_iter,
        "time_limit": given.time_limit,
        "random_state": given.seed,
        "n_threads": given.threads,
        "verbose": given.verbose,
        **dict(given.param),
    }


def _told(given: argparse.Namespace, table: Table, model: Model, seconds: float) -> dict[str, str]:
    """What is printed, by title."""
    proof = model.certificate
    shape = f"{table.X.shape[0]} rows, {table.X.shape[1]} columns"
    return {
        "data": f"{given.data}: {shape}, {len(model.classes_) or 'no'} labels",
        "model": ", ".join([model.objective, *map(_setting, model.params.items())]),
        "kernel, bias": f"{model.kernel.name}, {model.bias}",
        "engine": f"{model.solver} ({model.solver_reason})",
        "objective": f"{proof.objective:.10g}",
        "lower bound": f"{proof.lower_bound:.10g}",
        "relative gap": f"{proof.gap:.3g} ({proof.kind}; tol {proof.tol:g})",
        "converged": "yes" if proof.converged else "no",
        "iterations": f"{model.n_iter}",
        "seconds": f"{seconds:.3f}",
        f"training {model.measure}": f"{model.score(table.X, table.y):.6g}",
        "saved to": given.output,
    }


def _size(table: Table) -> str:
    values = f", {table.X.nnz} values" if hasattr(table.X, "nnz") else ""
    return f"{table.X.shape[0]} rows, {table.X.shape[1]} columns{values}"


def _setting(item: tuple[str, Any]) -> str:
    name, value = item
    return f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
