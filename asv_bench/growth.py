"""How seconds grow with rows and with columns: mdlearn beside LinearSVC and SGDClassifier.

    python asv_bench/growth.py [--series rows columns] [--tracks svm lsvm l2lr ldm] [--most 1e6] [--picture FILE]

``rows``: 50 dense columns (Gaussians), m from 1,000 up. ``columns``: 5,000 sparse rows with d / 100 words each, five
at least, d from 10 up. Labels of both are noisy, C = 1. mdlearn and LinearSVC run along a ladder of tolerances; the
seconds told are those of the loosest one that is within PRECISION of the best bound that mdlearn has proven.
SGDClassifier runs at its defaults, and its excess over that bound is printed beside it. The exponent is the slope of
log seconds over log stored entries.

Seconds are CPU seconds of one thread, the least of several runs. Needs mdlearn[bench], and Matplotlib for the picture.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

from benchmarks.scaling import exponent
from benchmarks.workloads import gaussians, words
from contest import TRACKS, Problem, own_runs, peers, timed

ROWS, COLUMNS = (1_000, 10_000, 100_000, 1_000_000), (10, 100, 1_000, 10_000, 100_000)
WIDTH, SPARSE_ROWS, SHARE, FEWEST_WORDS = 50, 5_000, 0.01, 5
PRECISION = 1e-3
"""Relative excess over the optimum that is asked for."""
LONGEST = 120.0
"""Seconds of a fit after which a ladder ends, and that a solver may need by what it needed for the size before."""
SGD_LOSSES = {"svm": "hinge", "l2lr": "log_loss"}
"""On squared hinges its default steps diverge."""


class Size(NamedTuple):
    """One problem of a series: its size along the axis, stored entries, and what makes it."""

    size: int
    entries: int
    problem: Problem


class Time(NamedTuple):
    """Seconds of a solver for a problem; NaN where none of its tolerances is precise enough."""

    seconds: float
    excess: float


def drawn(series: str, least: float, most: float) -> Iterator[Size]:
    """Problems of a series, from the smallest on."""
    if series == "rows":
        for m in (m for m in ROWS if least <= m <= most):
            X, y = gaussians(m, WIDTH)
            yield Size(m, X.size, Problem(f"{m} x {WIDTH}", X, y))
    else:
        for d in (d for d in COLUMNS if least <= d <= most):
            X, y = words(SPARSE_ROWS, d, per_row=max(FEWEST_WORDS, round(SHARE * d)))
            yield Size(d, X.nnz, Problem(f"{SPARSE_ROWS} x {d}", X, y))


def precise(runs: list[tuple[float, float]]) -> Time:
    """The cheapest of (seconds, excess) that is precise enough."""
    return min((Time(*run) for run in runs if run[1] <= PRECISION), default=Time(math.nan, math.nan))


def rivals(problem: Problem, track: str) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """LinearSVC, where it has the loss (squared hinges by its primal solver), and SGDClassifier at its defaults."""
    from sklearn.linear_model import SGDClassifier

    if track != "l2lr":
        yield from islice(peers(problem, track, 1.0), 1)
    if track in SGD_LOSSES:
        alpha = 1.0 / problem.y.shape[0]
        one = SGDClassifier(loss=SGD_LOSSES[track], alpha=alpha, random_state=0)
        yield "SGDClassifier", [lambda: [one.fit(problem.X, problem.y)]]


def measured(size: Size, track: str, before: tuple[Size, dict[str, Time]] | None) -> dict[str, Time]:
    """Seconds and excess of all solvers that do not need too long, as `before` tells."""
    problem = size.problem
    mine, bound = own_runs(problem, track, 1.0, LONGEST)
    floor = bound if track != "ldm" else own_runs(problem, "svm", 1.0, LONGEST)[1]
    found = {"mdlearn": precise([(run.seconds, run.value / bound - 1.0) for run in mine])}
    for name, ladder in rivals(problem, track):
        if before is not None:
            last = before[1].get(name.split()[0])
            if last is None or last.seconds * size.entries / before[0].entries > LONGEST:
                continue
        runs = []
        for fit in ladder:
            took, (model,) = timed(fit)
            value = problem.value(track if track != "ldm" else "svm", 1.0, model.coef_, model.intercept_)
            runs.append((took, value / floor - 1.0))
            if took > LONGEST or runs[-1][1] <= PRECISION:
                break
        kind = name.split()[0]
        best = Time(*runs[0]) if kind == "SGDClassifier" else precise(runs)
        if kind not in found or not found[kind].seconds <= best.seconds:
            found[kind] = best
    return found


def line(track: str, size: Size, found: dict[str, Time]) -> str:
    """A line of the table."""
    told = "  ".join(f"{name} {time.seconds:.3g} s ({time.excess:.0e})" for name, time in found.items())
    return f"{track:5s} {size.problem.name:18s} {size.entries:>11,d} entries  {told}"


def draw(found: dict[tuple[str, str], list[tuple[Size, dict[str, Time]]]], path: Path) -> None:
    """Draw seconds over rows and over columns, a panel per series and track."""
    from matplotlib.figure import Figure

    series, tracks = ([key[i] for key in found] for i in (0, 1))
    series, tracks = list(dict.fromkeys(series)), list(dict.fromkeys(tracks))
    figure = Figure(figsize=(3.2 * len(tracks), 3.2 * len(series)), layout="constrained")
    panels = figure.subplots(len(series), len(tracks), squeeze=False, sharey=True)
    for (kind, track), points in found.items():
        axes = panels[series.index(kind), tracks.index(track)]
        for k, (name, marker) in enumerate((("mdlearn", "o"), ("LinearSVC", "s"), ("SGDClassifier", "^"))):
            known = [(size.size, times[name].seconds) for size, times in points if name in times]
            if known:
                axes.plot(*zip(*known), marker=marker, color=f"C{k}", label=name)
        axes.set(xscale="log", yscale="log", xlabel=kind, title=track if track != "ldm" else "ldm (others: svm)")
        axes.grid(alpha=0.3)
    for row in panels:
        row[0].set_ylabel("CPU seconds")
    panels[0, 0].legend()
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--series", nargs="*", choices=("rows", "columns"), default=["rows", "columns"])
    parser.add_argument("--tracks", nargs="*", choices=tuple(TRACKS), default=list(TRACKS))
    parser.add_argument("--least", type=float, default=0.0, help="smallest number of rows, or of columns")
    parser.add_argument("--most", type=float, default=math.inf, help="the largest one")
    parser.add_argument("--picture", type=Path, help="draw seconds over sizes")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    found: dict[tuple[str, str], list[tuple[Size, dict[str, Time]]]] = {}
    for series in given.series:
        for size in drawn(series, given.least, given.most):
            for track in given.tracks:
                points = found.setdefault((series, track), [])
                times = measured(size, track, points[-1] if points else None)
                points.append((size, times))
                print(line(track, size, times), flush=True)
    for (series, track), points in found.items():
        for name in points[0][1]:
            known = [(size.entries, times[name].seconds) for size, times in points if name in times]
            known = [(entries, seconds) for entries, seconds in known if seconds == seconds]
            if len(known) > 1:
                print(f"{series}, {track}, {name}: exponent {exponent(*zip(*known)):.2f} in stored entries")
    if given.picture is not None:
        draw(found, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
