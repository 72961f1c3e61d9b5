"""What a choice of hyper-parameters can change: every point of a grid, on the folds and on the test part.

A printed figure that no point of a grid reaches is not explained by how points were chosen; one that only the points
reach that are best on the test part was, perhaps, chosen there.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from mdlearn import Certificate, ConvergenceWarning, fit_path, select
from mdlearn_papers.comparing import ABSENT, errors_away
from mdlearn_papers.documents import Table
from mdlearn_papers.judging import Grid, measured
from mdlearn_papers.printed import Figures
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Record

SUFFIX = ", every point"
FIRST = 5
"""Splits whose scores on the folds are averaged, where one point is chosen for all splits."""


def surveyed(
    data: str,
    method: str,
    repeat: int,
    parts: Parts,
    objective: str,
    grid: Grid,
    *,
    cv: Any = 5,
    seed: int = 0,
    **fixed: Any,
) -> Record:
    """Score every point of a grid on the folds and, fitted to all training rows, on the test part.

    Parameters
    ----------
    data, method, repeat, parts, objective, grid, cv, seed, **fixed
        As for `mdlearn_papers.judging.judged`.

    Returns
    -------
    Record
        Of the method with `SUFFIX`; "validated" and "tested" are accuracies of all points, "own" is the number of the
        point that is chosen on the folds.
    """
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record counts fits that are not certified
        given = {"random_state": seed, "n_threads": 1, **fixed}
        found = select(objective, parts.X, parts.y, grid, cv=cv, refit=False, **given)
        path = fit_path(objective, parts.X, parts.y, list(found.points), **given)
        tested = path.score(parts.X_test, parts.y_test)
    every = (*found.certificates, *path.certificates)
    return Record(
        data,
        method + SUFFIX,
        repeat,
        {"validated": found.mean_scores.tolist(), "tested": tested.tolist(), "own": found.best_index},
        {},
        len(every),
        sum(one.converged for one in every),
        max(one.gap for one in every),
        time.perf_counter() - started,
    )


def reached(
    data: str,
    method: str,
    repeat: int,
    spaces: Iterable[Parts],
    objective: str,
    points: Sequence[Mapping[str, Any]],
    *,
    seed: int = 0,
    **fixed: Any,
) -> Record:
    """Score every point of a grid on the test part, fitted to all training rows; nothing is chosen.

    Parameters
    ----------
    data, method, repeat, objective, seed, **fixed
        As for `surveyed`.
    spaces : iterable of Parts
        The same rows in one or several spaces; all points are fitted in each.
    points : sequence of mappings

    Returns
    -------
    Record
        Of the method with `SUFFIX`; "tested" are accuracies and, for two classes, "auc" areas under the ROC curve.
    """
    started = time.perf_counter()
    scored: dict[str, list[float]] = {}
    every: list[Certificate] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record counts fits that are not certified
        for parts in spaces:
            path = fit_path(objective, parts.X, parts.y, points, random_state=seed, n_threads=1, **fixed)
            every += path.certificates
            for model in path:
                for key, value in measured(model, parts).items():
                    scored.setdefault(key, []).append(value)
    values = {name: scored[key] for name, key in (("tested", "accuracy"), ("auc", "auc")) if key in scored}
    good, gap = sum(one.converged for one in every), max(one.gap for one in every)
    return Record(data, method + SUFFIX, repeat, values, {}, len(every), good, gap, time.perf_counter() - started)


def choices(
    records: Sequence[Record],
    printed: Mapping[tuple[str, str], Figures],
    labels: Mapping[str, str],
    unit: float = 1.0,
) -> Table | None:
    """Accuracies that ways of choosing a point give, beside the printed one.

    Parameters
    ----------
    records : sequence of Record
        Others than those of `surveyed` are left out.
    printed : mapping of (label, method) to Figures
    labels : mapping of str to str
        Names of the data to what the paper prints.
    unit : float
        100 where the paper prints per cent.

    Returns
    -------
    Table or None
        None where there are no such records.
    """
    mine = [record for record in records if record.method.endswith(SUFFIX) and record.values]
    rows = []
    for data, method in dict.fromkeys((record.data, record.method) for record in mine):
        these = sorted((one for one in mine if (one.data, one.method) == (data, method)), key=lambda one: one.repeat)
        label, name = labels[data], method.removesuffix(SUFFIX)
        figures = printed.get((label, name))
        told = f"{figures.mean:g} ± {figures.std:g}" if figures else ABSENT
        rows.append([label, name, told, *(_cell(unit * one, figures, unit) for one in _chosen(these))])
    if not rows:
        return None
    splits = 1 + max(one.repeat for one in mine)
    caption = (
        f"Mean accuracy and standard deviation over up to {splits} splits, and in brackets the difference from the "
        "printed figure in standard errors. own: the point that is best on the folds of a split, as in the protocol; "
        f"one for all: the point that is best on the folds of the first {FIRST} splits together; best for all, worst "
        "for all: the points with the largest and smallest mean on the test parts; best of each: for every split the "
        "point that is best on its test part. The last three know the test parts: they say what a choice can reach."
    )
    ways = ["own", "one for all", "best for all", "worst for all", "best of each"]
    return Table(["data", "method", "printed", *ways], rows, caption)


def _chosen(records: Sequence[Record]) -> list[np.ndarray]:
    """Accuracies on the splits for every way of choosing, in the order of the columns."""
    tested = np.array([record.values["tested"] for record in records])
    validated = np.array([record.values["validated"] for record in records])
    own = [int(record.values["own"]) for record in records]
    means = tested.mean(axis=0)
    return [
        tested[np.arange(len(own)), own],
        tested[:, validated[:FIRST].mean(axis=0).argmax()],
        tested[:, means.argmax()],
        tested[:, means.argmin()],
        tested.max(axis=1),
    ]


def _cell(values: np.ndarray, figures: Figures | None, unit: float) -> str:
    digits = 2 if unit == 100.0 else 3
    spread = f" ± {values.std(ddof=1):.{digits}f}" if values.shape[0] > 1 else ""
    away = errors_away(values, figures) if figures else np.nan
    return f"{values.mean():.{digits}f}{spread}" + ("" if np.isnan(away) else f" ({away:+.1f})")
