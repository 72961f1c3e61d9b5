"""Time to precision on data of your own: mdlearn beside scikit-learn's linear classifiers, problem by problem.

    python asv_bench/contest.py FOLDER [--sets A B] [--tracks svm lsvm l2lr ldm] [--C 0.01 1 100] [--rows N]
                                       [--seconds S] [--output FILE] [--picture FILE]

FOLDER holds data sets as ``name.npz`` with ``X`` and ``y`` (or ``X_train`` and ``y_train``), or a CSR matrix as
``data``, ``indices``, ``indptr`` and ``shape`` beside ``y``; columns are brought to [0, 1]. Every side minimises the
same objective along a ladder of tolerances. A run of a peer, of so many seconds and an excess over the optimum, is
answered by mdlearn's cheapest run that is no farther from the optimum; a case's ratio is the largest quotient of
seconds on the peer's ladder, below 1 where mdlearn is ahead. ``ldm`` has no peer: it stands beside the support vector
machine of the same C.

Seconds are CPU seconds of one thread, the least of several runs. Excesses are relative to the best bound that mdlearn
certified; a value below a bound is an error. Needs mdlearn[bench], and Matplotlib for the picture.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

import numpy as np
import scipy.sparse as sp

import mdlearn

TRACKS = {"svm": "hinge", "lsvm": "squared hinge", "l2lr": "logistic", "ldm": "hinge"}
LADDER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
FINEST, LOOSEST = 1e-7, 1e-1
"""Excess below which a run of a peer need not be matched, and above which it says nothing."""
REPEATED_SECONDS, MOST_RUNS = 2.0, 5
FEWEST_ROWS, FEWEST_OF_A_CLASS = 300, 3


@dataclass(eq=False)
class Problem:
    """Rows, labels and the signs of every class against the rest (of the second class alone where there are two)."""

    name: str
    X: Any
    y: np.ndarray
    signs: list[np.ndarray] = field(default_factory=list)

    def __post_init__(self) -> None:
        classes = np.unique(self.y)
        positive = classes[1:] if classes.shape[0] == 2 else classes
        self.signs = [np.where(self.y == one, 1.0, -1.0) for one in positive]

    def value(self, track: str, C: float, coef: np.ndarray, intercept: Any) -> float:
        """The objective of coefficients, summed over classes; of the logistic loss with a free bias."""
        W, b = np.atleast_2d(coef), np.broadcast_to(np.ravel(intercept), (len(self.signs),))
        total = 0.0
        for w, shift, y in zip(W, b, self.signs):
            z = y * (np.ravel(self.X @ w) + shift)
            excess = np.maximum(0.0, 1.0 - z)
            losses = {"hinge": excess, "squared hinge": excess**2, "logistic": np.logaddexp(0.0, -z)}
            total += 0.5 * float(w @ w) + C * float(losses[TRACKS[track]].sum())
            total += 0.0 if track == "l2lr" else 0.5 * float(shift) ** 2
        return total


@dataclass(frozen=True)
class Run:
    """One fit: who made it, its seconds and the value that it reached."""

    name: str
    seconds: float
    value: float


def read(path: Path, rows: int) -> Problem | None:
    """A data set with at most so many rows, drawn by a fixed seed; None where it is none for classifiers."""
    with np.load(path, allow_pickle=False) as held:
        names = set(held.files)
        before = "train_" if "train_data" in names else ""
        y_name = "y_train" if {"y_train", "X_train"} <= names or before else "y"
        if before + "data" in names:
            parts = tuple(held[before + one] for one in ("data", "indices", "indptr"))
            X: Any = sp.csr_matrix(parts, shape=tuple(held[before + "shape"])).astype(float)
        else:
            X = held["X_train" if "X_train" in names else "X"] if names & {"X", "X_train"} else np.empty(0)
            if X.ndim != 2 or X.dtype.kind not in "fiub":
                return None
        if y_name not in names:
            return None
        y = np.ravel(held[y_name])
    if not sp.issparse(X):
        whole = np.isfinite(X).all(axis=1)
        X, y = X[whole].astype(float), y[whole]
        low, high = X.min(axis=0), X.max(axis=0)
        X = (X - low) / np.where(high > low, high - low, 1.0)
    chosen = np.random.default_rng(0).permutation(y.shape[0])[:rows]
    X, y = X[chosen], y[chosen]
    counts = np.unique(y, return_counts=True)[1]
    few = y.shape[0] < FEWEST_ROWS or counts.shape[0] < 2 or counts.min() < FEWEST_OF_A_CLASS
    return None if few else Problem(path.stem, X, y)


def timed(fit: Callable[[], Any]) -> tuple[float, Any]:
    """Least CPU seconds of some runs, and what the last of them returned."""
    best, spent, made = math.inf, 0.0, None
    for _ in range(MOST_RUNS):
        begun = time.process_time()
        made = fit()
        took = time.process_time() - begun
        best, spent = min(best, took), spent + took
        if spent >= REPEATED_SECONDS:
            break
    return best, made


def own_runs(problem: Problem, track: str, C: float, seconds: float) -> tuple[list[Run], float]:
    """mdlearn's ladder, and the best bound on it."""
    m = problem.y.shape[0]
    params = {"svm": {"C": C}, "ldm": {"C": C}, "lsvm": {"nu": 2.0 * C}, "l2lr": {"lam": 0.5 / (C * m)}}[track]
    unit = C * m if track == "l2lr" else 1.0
    runs, bound = [], -math.inf
    for tol in LADDER:
        took, model = timed(lambda tol=tol: mdlearn.fit(track, problem.X, problem.y, tol=tol, **params))
        told = model.certificate
        bound = max(bound, unit * told.lower_bound)
        runs.append(Run(f"tol={tol:g}", took, unit * told.objective))
        if took > 0.5 * seconds:
            break
    return runs, bound


def peers(problem: Problem, track: str, C: float) -> Iterator[tuple[str, list[Callable[[], Any]]]]:
    """Ladders of other solvers for the same objective; each fit returns an estimator, or one per class."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    X, y = problem.X, problem.y

    def linear(**given: Any) -> Callable[[], Any]:
        return lambda: [LinearSVC(C=C, max_iter=3000, random_state=0, **given).fit(X, y)]

    def logistic(solver: str, tol: float) -> Callable[[], Any]:
        one = LogisticRegression(C=C, tol=tol, solver=solver, max_iter=2000)
        if len(problem.signs) == 1:
            return lambda: [one.fit(X, y)]
        return lambda: OneVsRestClassifier(one).fit(X, y).estimators_

    if track in ("svm", "ldm"):
        yield "LinearSVC", [linear(loss="hinge", tol=tol) for tol in (1e-1, 1e-2, 1e-3, 1e-4)]
    elif track == "lsvm":
        for dual in (False, True):
            yield f"LinearSVC dual={dual}", [linear(dual=dual, tol=tol) for tol in (1e-1, 1e-2, 1e-4)]
    else:
        for solver in ("lbfgs", "newton-cholesky", "newton-cg"):
            if solver == "newton-cholesky" and (sp.issparse(X) or X.shape[1] > 3000):
                continue
            yield f"LogisticRegression {solver}", [logistic(solver, tol) for tol in (1e-2, 1e-4, 1e-6)]


def peer_runs(problem: Problem, track: str, C: float, seconds: float) -> list[Run]:
    """All runs of all peers; a ladder ends where a fit takes too long."""
    runs = []
    for name, ladder in peers(problem, track, C):
        for k, fit in enumerate(ladder):
            took, parts = timed(fit)
            coef = np.vstack([part.coef_ for part in parts])
            intercept = np.ravel([part.intercept_ for part in parts])
            runs.append(Run(f"{name}, step {k + 1}", took, problem.value(track, C, coef, intercept)))
            if took > seconds:
                break
    return runs


def judged(problem: Problem, track: str, C: float, seconds: float) -> dict[str, Any] | None:
    """A case: its ratio, and the runs that it comes from; None where no run of a peer says anything."""
    mine, bound = own_runs(problem, track, C, seconds)
    theirs = peer_runs(problem, track, C, seconds)
    floor = bound if track != "ldm" else own_runs(problem, "svm", C, seconds)[1]

    def excess(value: float, least: float) -> float:
        return (value - least) / max(abs(least), 1e-300)

    for run in theirs:
        if excess(run.value, floor) < -1e-9:
            raise SystemExit(f"{problem.name}, {track}, C={C:g}: {run} is below a certified bound of {floor!r}")
    ratio, against = 0.0, None
    for run in theirs:
        reached = max(excess(run.value, floor), 0.0)
        if reached <= LOOSEST:
            enough = max(reached, FINEST) * (1.0 + 1e-7)
            able = [one.seconds for one in mine if excess(one.value, bound) <= enough]
            quotient = min(able, default=math.inf) / run.seconds
            if quotient > ratio:
                ratio, against = quotient, run.name
    if against is None:
        return None
    shape = {"m": problem.y.shape[0], "d": problem.X.shape[1], "classes": len(problem.signs)}
    ladders = {"mdlearn": [vars(run) for run in mine], "peers": [vars(run) for run in theirs]}
    return {"set": problem.name, "track": track, "C": C, **shape, "ratio": ratio, "against": against, **ladders}


def summary(cases: list[dict[str, Any]]) -> str:
    """A line per track."""
    lines = []
    for track in dict.fromkeys(case["track"] for case in cases):
        ratios = np.array([case["ratio"] for case in cases if case["track"] == track])
        mean = math.exp(float(np.log(np.minimum(ratios, 100.0)).mean()))
        lines.append(
            f"{track}: ahead in {np.mean(ratios <= 1.0):.0%} of {ratios.shape[0]} cases, geometric mean {mean:.2f}, "
            f"median {np.median(ratios):.2f}, largest {ratios.max():.1f}"
        )
    return "\n".join(lines)


def draw(cases: list[dict[str, Any]], path: Path) -> None:
    """Draw, for every track, the share of cases with at most a ratio."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.5), layout="constrained")
    axes = figure.subplots()
    for track in dict.fromkeys(case["track"] for case in cases):
        ratios = np.sort([min(case["ratio"], 100.0) for case in cases if case["track"] == track])
        share = np.arange(1, ratios.shape[0] + 1) / ratios.shape[0]
        axes.step(ratios, share, where="post", label=f"{track} ({ratios.shape[0]} cases)")
    axes.axvline(1.0, color="grey", linewidth=0.8)
    axes.set(xscale="log", ylim=(0.0, 1.02), ylabel="share of cases")
    axes.set_xlabel("seconds of mdlearn over those of the fastest peer run that is no better")
    axes.legend()
    axes.grid(alpha=0.3)
    figure.savefig(path)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the contest; return 1 where there was no case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", help="names of data sets, default all of the folder")
    parser.add_argument("--tracks", nargs="*", choices=tuple(TRACKS), default=list(TRACKS))
    parser.add_argument("--C", nargs="*", type=float, default=[0.01, 1.0, 100.0])
    parser.add_argument("--rows", type=int, default=20000, help="rows of a data set at most")
    parser.add_argument("--seconds", type=float, default=60.0, help="seconds of a fit after which a ladder ends")
    parser.add_argument("--output", type=Path, help="write the cases as JSON lines")
    parser.add_argument("--picture", type=Path, help="draw the ratios")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    cases = []
    for path in sorted(given.folder.glob("*.npz")):
        problem = read(path, given.rows) if not given.sets or path.stem in given.sets else None
        if problem is None:
            continue
        for track in given.tracks:
            for C in given.C:
                case = judged(problem, track, C, given.seconds)
                if case is not None:
                    cases.append(case)
                    told = f"{case['ratio']:6.2f} against {case['against']}"
                    print(f"{problem.name:20s} {track:5s} C={C:<6g} {told}", flush=True)
    if given.output is not None:
        given.output.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    if given.picture is not None and cases:
        draw(cases, given.picture)
    print(summary(cases) if cases else "no data set there is one for classifiers")
    return 0 if cases else 1


if __name__ == "__main__":
    sys.exit(main())
