"""From what `cv` says to scores of every point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mdlearn.selection.folds import make_folds, units_of
from mdlearn.selection.loo.bound import by_bound
from mdlearn.selection.loo.held_out import by_rows
from mdlearn.selection.progress import ProgressBar
from mdlearn.selection.study import Judged, Study


def judge(study: Study, cv: Any, title: str) -> Judged:
    """Judge the points of a study, with a bar."""
    data, n, verbose = study.data, len(study.points), study.verbose
    weights, square = study.weights[data.rows], study.call.square
    if isinstance(cv, str) and cv == "loo":
        units = units_of(data, weights, square)
        with ProgressBar(verbose, title, n * units.weights.shape[0]) as bar:
            return by_rows(study, units, bar)
    if isinstance(cv, str) and cv == "pseudo-loo":
        with ProgressBar(verbose, title, n) as bar:
            return by_bound(study, bar)
    folds = make_folds(cv, study.X, study.y, data, weights, square, study.call.seed)
    study.check_folds(folds)
    with ProgressBar(verbose, title, n * len(folds)) as bar:
        return study.by_folds(folds, bar)


def warnings_of(judged: Judged) -> Iterator[str]:
    """What a caller should be warned of, a sentence each."""
    short, n = judged.shortfalls, len(judged.certificates)
    if short:
        worst = max(short, key=lambda one: one.gap)
        yield f"{len(short)} of {n} fits did not reach the gap asked for; of the worst, {worst.text}"
    if judged.stopped:
        yield f"{judged.stopped} after {n} fits; scores that need others are NaN"
