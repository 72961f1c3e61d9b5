"""What precision is worth: accuracy on held-out rows, changed predictions and seconds, tolerance by tolerance.

    python asv_bench/precision.py FOLDER [--sets A B] [--tracks svm lsvm l2lr ldm] [--C 0.1 1 10] [--rows N]

FOLDER holds data sets as for `contest.py`. Every set is split into FOLDS parts; a fit on all but one predicts that one.
The reference of a fit is the same one at the tolerance FINEST. Seconds are CPU seconds of one thread, relative to those
of the reference, as a geometric mean. Needs mdlearn[bench].
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

import numpy as np
from contest import TRACKS, Problem, read

import mdlearn

FOLDS, FINEST = 5, 1e-9
LADDER = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, FINEST)


def parameters(track: str, C: float, m: int) -> dict[str, float]:
    """The hyper-parameters at which all tracks weigh a loss by C."""
    return {"svm": {"C": C}, "ldm": {"C": C}, "lsvm": {"nu": 2.0 * C}, "l2lr": {"lam": 0.5 / (C * m)}}[track]


def folds(m: int) -> list[np.ndarray]:
    """Held-out rows of every fold."""
    return np.array_split(np.random.default_rng(1).permutation(m), FOLDS)


def judged(problem: Problem, track: str, C: float) -> np.ndarray:
    """Accuracy, share of predictions that differ from the reference, and seconds: shape (tolerances, 3)."""
    m = problem.y.shape[0]
    found = np.zeros((len(LADDER), 3))
    mdlearn.fit(track, problem.X, problem.y, max_iter=1, **parameters(track, C, m))  # nothing is cold
    for test in folds(m):
        train = np.setdiff1d(np.arange(m), test)
        X, y, truth = problem.X[train], problem.y[train], problem.y[test]
        told = []
        for k, tol in enumerate(LADDER):
            begun = time.process_time()
            model = mdlearn.fit(track, X, y, tol=tol, **parameters(track, C, train.shape[0]))
            found[k, 2] += time.process_time() - begun
            told.append(model.predict(problem.X[test]))
            found[k, 0] += float(np.sum(told[-1] == truth)) / m
        found[:, 1] += [float(np.sum(one != told[-1])) / m for one in told]
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Measure all cases and print a line per track and tolerance; return 1 where there was no case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", help="names of data sets, default all of the folder")
    parser.add_argument("--tracks", nargs="*", choices=tuple(TRACKS), default=list(TRACKS))
    parser.add_argument("--C", nargs="*", type=float, default=[0.1, 1.0, 10.0])
    parser.add_argument("--rows", type=int, default=5000, help="rows of a data set at most")
    given = parser.parse_args(argv)
    warnings.simplefilter("ignore")
    found: dict[str, list[np.ndarray]] = {track: [] for track in given.tracks}
    for path in sorted(given.folder.glob("*.npz")):
        problem = read(path, given.rows) if not given.sets or path.stem in given.sets else None
        for track in given.tracks if problem is not None else ():
            found[track] += [judged(problem, track, C) for C in given.C]
    for track, cases in found.items():
        if not cases:
            continue
        table = np.array(cases)
        loss = table[:, -1:, 0] - table[:, :, 0]
        spent = np.exp(np.log(table[:, :, 2] / table[:, -1:, 2]).mean(axis=0))
        for k, tol in enumerate(LADDER):
            accuracy, changed = table[:, k, 0].mean(), 100 * table[:, k, 1].mean()
            most, least = 100 * loss[:, k].max(), 100 * loss[:, k].min()
            print(
                f"{track:5s} tol={tol:<6g} accuracy {accuracy:.4f}, most lost {most:.2f} %, most gained {-least:.2f} "
                f"%, predictions changed {changed:.3f} %, seconds {spent[k]:.2f} ({len(cases)} cases)"
            )
    return 0 if any(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
