"""``python -m mdlearn compare``: every objective on every data set of a folder, in one table."""

from __future__ import annotations

import argparse
import operator
import re
import sys
import time
import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.data.validation import check_number
from mdlearn.errors import ConvergenceWarning, did_you_mean
from mdlearn.experiments.comparison_tables import WRITERS, Comparison, ComparisonCell, ComparisonSettings
from mdlearn.experiments.data_set_files import DataSetHalves, find_data_sets, load_data_set, split_data_set
from mdlearn.experiments.processes import worker_pool
from mdlearn.model.model import Model
from mdlearn.model.task import task_of
from mdlearn.output_files import OutputFile
from mdlearn.plugins.registry import find, registry
from mdlearn.selection.metrics import accuracy, auc, f1_macro
from mdlearn.selection.progress_bar import ProgressBar


def run_compare(given: argparse.Namespace) -> int:
    """Compare objectives on data sets, and print or write the table; after Ctrl-C, that of the results so far."""
    check_number(given.seed, "--seed", low=0)
    check_number(given.time_limit, "--time-limit", low=0.0)
    there = find_data_sets(given.data)
    sets = _entries_to_compare(there, given.sets, "data set")
    chosen = _entries_to_compare(registry().objectives, given.objectives, "objective")
    objectives = [name for name, cls in chosen.items() if task_of(cls).name == "classification"]
    if given.objectives is not None and len(objectives) < len(chosen):
        other = next(name for name in chosen if name not in objectives)
        raise ValueError(f"objective {other!r} is a {task_of(chosen[other]).name}; compare takes classifiers")
    find("kernel", given.kernel)
    threads = None if given.jobs == 1 else 1
    settings = ComparisonSettings(given.repeats, given.seed, given.time_limit, given.kernel, given.max_rows, threads)
    out = None if given.out is None else OutputFile(given.out, there.values(), force=given.force, streams=True)
    found = Comparison(settings)
    work = [
        partial(compare_one, name, path, objective, settings) for name, path in sets.items() for objective in objectives
    ]
    try:
        shown = int(sys.stderr.isatty())
        with closing(_compare_all(work, given.jobs)) as results, ProgressBar(shown, "compare", len(work)) as bar:
            for cell in results:
                found.cells.append(cell)
                bar.advance(note=f"{cell.data} {cell.objective}")
    finally:
        text = WRITERS[given.format](found)
        if out is None:
            print(text, end="", flush=True)
        else:
            out.write(text.encode())
            print(f"table of {len(found.cells)} of {len(work)} results: {out.path}", file=sys.stderr)
    return 0


def _entries_to_compare(known: dict[str, Any], wanted: Sequence[str] | None, what: str) -> dict[str, Any]:
    """Data sets or objectives to compare, all where None; ValueError lists the known ones."""
    for name in wanted or ():
        if name not in known:
            raise ValueError(
                f"{what} {name!r} is unknown; known {what}s: {', '.join(known)}{did_you_mean(name, known)}"
            )
    return known if wanted is None else {name: known[name] for name in wanted}


def compare_one(name: str, path: Path, objective: str, settings: ComparisonSettings) -> ComparisonCell:
    """Fit one of the objectives to compare on the training half of every split of a set; judge it on the test half."""
    try:
        data = load_data_set(path)
        shape = data.shape
    except Exception as error:  # whatever is wrong with a file, the other files go on
        return ComparisonCell(name, objective, notes=(_compare_error_note(error),))
    fits: list[tuple[Model, float, float]] = []
    notes, seconds = [], 0.0
    for repeat in range(settings.repeats):
        try:
            split = split_data_set(data, settings.seed, repeat, settings.max_rows)
            started = time.perf_counter()
            try:
                model, warned = _fit_to_compare(objective, split, settings)
            finally:
                seconds += time.perf_counter() - started
            predicted = model.predict(split.X_test)
            fits.append((model, accuracy(split.y_test, predicted), _compared_auc_or_macro_f1(model, split, predicted)))
        except Exception as error:  # an objective that fails, for whatever reason, has that as its entry
            notes.append(_compare_error_note(error))
            continue
        notes.extend(warned)
        if model.certificate.vouched_by:
            notes.append(f"its gap is not proven; {model.certificate.vouched_by} says so")
    failed = settings.repeats - len(fits)
    if fits and failed:
        notes.append(f"{failed} of {settings.repeats} fits failed; values are of the others")
    last = fits[-1][0] if fits else None
    return ComparisonCell(
        name,
        objective,
        shape,
        last.solver if last else "",
        last.multiclass if last and shape[2] > 2 else "",
        tuple(right for _, right, _ in fits),
        tuple(second for _, _, second in fits),
        max((model.certificate.gap for model, _, _ in fits), default=np.nan),
        seconds,
        tuple(dict.fromkeys(notes)),
    )


def _fit_to_compare(objective: str, split: DataSetHalves, settings: ComparisonSettings) -> tuple[Model, list[str]]:
    """Fit a model to compare to the training half, and return it with its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit(
            objective,
            split.X,
            split.y,
            kernel=settings.kernel,
            random_state=settings.seed,
            time_limit=settings.time_limit,
            n_threads=settings.n_threads,
        )
    return model, [_compare_warning_note(model, warning) for warning in caught]


def _compared_auc_or_macro_f1(model: Model, split: DataSetHalves, predicted: np.ndarray) -> float:
    """Quality by which models are compared: AUC for two classes, macro F1 of the predictions for more."""
    if model.classes_.shape[0] == 2:
        return auc(split.y_test == model.classes_[1], model.decision_function(split.X_test))
    return f1_macro(split.y_test, predicted)


def _compare_error_note(error: Exception) -> str:
    """Note in a comparison about an error: its message, with its kind where mdlearn did not word it itself."""
    text = " ".join(str(error).split())
    worded = isinstance(error, (ValueError, TypeError, MemoryError))
    return text if text and worded else f"{type(error).__name__}: {text}"


def _compare_warning_note(model: Model, warning: warnings.WarningMessage) -> str:
    """Note in a comparison about a warning, without the figures that are in the table anyway."""
    text = " ".join(str(warning.message).split())
    if issubclass(warning.category, ConvergenceWarning):
        found = re.search(r"\((.*)\);", text)
        return f"{model.solver} did not reach the gap asked for: {found[1] if found else text}"
    return f"{warning.category.__name__}: {text}"


def _compare_all(work: Sequence[Callable[[], ComparisonCell]], jobs: int) -> Generator[ComparisonCell, None, None]:
    """Results of a comparison in the order of the work; several jobs run in processes that end with it."""
    if jobs == 1:
        yield from map(operator.call, work)
        return
    with worker_pool(jobs) as pool:
        yield from pool.imap(operator.call, work)
