"""Fits of every objective, at its defaults, to every data set of a folder as it is: no column is scaled.

``python asv_bench/defaults.py FOLDER [--objectives a,b] [--sets x,y] [--limit 15] [--tol 1e-6] [--jobs N]``
prints a line per fit (objective, set, rows, columns, classes, engine, iterations, gap, CPU seconds, wall seconds,
"converged" or the reason) and then how many fits converged, how many not, by objective. All installed objectives are
taken, those of plugins too (regression where labels are numbers). Rows with missing values are left out; where fewer
than FEWEST_ROWS have none, these are the column's median. Of sets with a fixed split the training part is used. The
limit is one of CPU seconds of one thread, so that a busy machine gives the same answer; wall seconds may be WALL times
that. With ``--wall`` it is one of wall seconds, and nothing is set, as for a user who calls ``mdlearn.fit(name, X, y)``
on a machine that does nothing else.

Files are ``.npz`` with `X, y`; or `X_train, y_train`; or `data, indices, indptr, shape, y` (CSR), also with `train_`
before each name and `y_train`; `train_idx` may give the training rows of several realisations, of which the first
counts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, issparse

import mdlearn
from mdlearn.plugins.registry import registry

WALL = 40.0
"""Wall seconds per CPU second after which a fit is stopped whatever it has computed."""
FEWEST_ROWS = 20
"""Complete rows below which missing values are filled in."""
TITLES = "objective", "set", "rows", "columns", "classes", "engine", "iterations", "gap", "cpu", "wall", "end"


def read(path: Path):
    """Training rows and labels of a file; missing values are NaN."""
    with np.load(path, allow_pickle=False) as file:
        keys = set(file.files)
        part = "train_" if "train_data" in keys else ""
        if part + "data" in keys:
            arrays = (file[f"{part}{name}"] for name in ("data", "indices", "indptr"))
            X = csr_matrix(tuple(arrays), shape=tuple(int(n) for n in file[part + "shape"]))
            return X, file["y_train" if part else "y"]
        if "X_train" in keys:
            return file["X_train"].astype(float), file["y_train"]
        X, y = file["X"].astype(float), file["y"]
        rows = file["train_idx"][0] if "train_idx" in keys else slice(None)
        return X[rows], y[rows]


def complete(X, y):
    """Rows without missing values; where these are too few, all rows, with the column's median for what is missing."""
    if issparse(X) or np.isfinite(X).all():
        return X, y
    rows = np.isfinite(X).all(axis=1)
    if rows.sum() >= FEWEST_ROWS:
        return X[rows], y[rows]
    return np.where(np.isfinite(X), X, np.nanmedian(X, axis=0)), y


def fit_one(objective: str, path: Path, limit: float, tol: float, wall_counts: bool = False):
    """Fit, and return a line of the table; None for regression on labels that are no numbers."""
    X, y = complete(*read(path))
    if y.dtype.kind not in "biuf" and registry().objectives[objective].task == "regression":
        return None
    started, clock = time.process_time(), time.perf_counter()

    def late(state) -> bool:
        return not wall_counts and time.process_time() - started > limit

    limits = {"time_limit": limit} if wall_counts else {"n_threads": 1, "time_limit": WALL * limit}

    engine, iterations, gap, end = "-", 0, np.nan, "converged"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = mdlearn.fit(objective, X, y, tol=tol, callback=late, **limits)
            engine, iterations, gap = model.solver, model.n_iter, model.certificate.gap
            if not model.certificate.converged:
                end = f"not converged ({model.certificate.kind})"
        except Exception as error:
            end = f"{type(error).__name__}: {error}"
    cpu, wall = time.process_time() - started, time.perf_counter() - clock
    if end == "converged" and (wall if wall_counts else cpu) > limit:
        end = "late"
    classes = np.unique(y).shape[0]
    return objective, path.stem, *X.shape, classes, engine, int(np.sum(iterations)), gap, cpu, wall, end


def line(values) -> str:
    """A line of the table, separated by tabs."""
    return "\t".join(
        f"{v:.2e}" if isinstance(v, float) and i == 7 else f"{v:.2f}" if isinstance(v, float) else str(v)
        for i, v in enumerate(values)
    )


def main() -> None:
    """Fit all, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--objectives", help="names, separated by commas; default: all")
    parser.add_argument("--sets", help="names of files without .npz, separated by commas; default: all")
    parser.add_argument("--limit", type=float, default=15.0, help="CPU seconds of a fit")
    parser.add_argument("--wall", action="store_true", help="wall seconds instead, and no number of threads is set")
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, help="file that gets the lines, too")
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # plugins that miss what they need say so elsewhere
        objectives = given.objectives.split(",") if given.objectives else mdlearn.list_objectives()
    sets = given.sets.split(",") if given.sets else [path.stem for path in given.folder.glob("*.npz")]
    paths = sorted((given.folder / f"{name}.npz" for name in sets), key=lambda path: path.stat().st_size)
    ends, misses = Counter(), []
    out = open(given.out, "a") if given.out else None
    print("\t".join(TITLES))
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("spawn")) as pool:
        works = [
            pool.submit(fit_one, o, path, given.limit, given.tol, given.wall) for path in paths for o in objectives
        ]
        for work in works:
            values = work.result()
            if values is None:
                continue
            print(line(values), flush=True)
            if out:
                print(line(values), file=out, flush=True)
            good = values[-1] == "converged"
            ends[values[0], good] += 1
            misses += [] if good else [values]
    total, missed, kind = sum(ends.values()), len(misses), "wall" if given.wall else "CPU"
    print(f"\n{total} fits, {total - missed} converged within {given.limit:g} {kind} seconds, {missed} did not:")
    for values in misses:
        print(line(values))
    for name in objectives:
        print(f"{name}: {ends[name, True]} of {ends[name, True] + ends[name, False]}")


if __name__ == "__main__":
    main()
