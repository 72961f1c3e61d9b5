"""Support vector machines with the Gaussian kernel beside scikit-learn's SVC: seconds, excess and memory of each fit.

    python asv_bench/kernels.py [FOLDER] [--sets A B] [--rows N] [--C 1 10] [--output FILE]
    python asv_bench/kernels.py [FOLDER] [--sets A B] [--rows N] [--C 1 10] --alone lssvm lsldm [--solver NAME]
    python asv_bench/kernels.py [FOLDER] [--sets A B] [--rows N] [--C 1 10] --predict 5000 [--classes] [--sparse]
    python asv_bench/kernels.py [FOLDER] [--sets A B] [--rows N] --C .1 1 10 100 1000 --search 5

Without a folder the rows are drawn: a checkerboard with 5 % of its labels turned. With one, data sets are those of
`asv_bench/contest.py`, the last class against the rest. gamma is 1 / (d Var X), the bias free. SVC runs at its default
tolerance; mdlearn answers at `tol=1e-3` and, where that is farther from the optimum than SVC, at 1e-4, 1e-5 and 1e-6.
Objectives that are asked for alone have no peer: what is printed is what a gap of 1e-6 takes.

With `--predict` so many further rows are predicted by models of N rows, in turn in one process: the median quotient of
seconds, and the largest deviation of decision values from scikit-learn's kernel times mdlearn's coefficients. With
`--classes` all classes are told apart, one against one on both sides; with `--sparse` rows are CSR. Seconds are wall
seconds where OMP_NUM_THREADS is above 1.

With `--search` all C times five widths (1/16 to 16 of gamma above) are searched over so many folds, by `mdlearn.select`
and GridSearchCV, the latter without a last fit as well: seconds, the best mean accuracy of both, and the largest
difference of mean accuracies of any point.

Each fit has a process of its own, in which a small one has gone before, and one thread. Seconds are CPU seconds of the
call, memory is the peak of the process. An excess is relative to the best bound that mdlearn certified. Needs
mdlearn[bench].
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

import numpy as np
import scipy.sparse as sp
from contest import read

import mdlearn

DRAWN = "checkerboard"
LADDER = (1e-3, 1e-4, 1e-5, 1e-6)
CACHE_MEGABYTES = 1000
BLOCK_ROWS, WARMING_ROWS = 500, 200
PREDICTED_TOL, TURNS = 1e-4, 7
TURNED = 0.05
SEARCHED_WIDTHS = (1 / 16, 1 / 4, 1.0, 4.0, 16.0)


def data(name: str, folder: str | None, rows: int, classes: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Dense rows and labels -1 and 1, or those of all classes."""
    if folder is None:
        rng = np.random.default_rng(0)
        X = rng.uniform(0.0, 4.0, (rows, 2))
        y = np.where(X.astype(int).sum(axis=1) % 2 == 0, 1.0, -1.0)
        return X, np.where(rng.random(rows) < TURNED, -y, y)
    problem = read(Path(folder) / f"{name}.npz", rows)
    if problem is None:
        raise SystemExit(f"{name} is no data set for classifiers")
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    return X, problem.y if classes else problem.signs[-1]


def objective(X: np.ndarray, y: np.ndarray, C: float, gamma: float, support: np.ndarray, alpha: Any, b: float) -> float:
    """1/2 |w|^2 + C sum max(0, 1 - y f(x)) of dual coefficients, by blocks of rows."""
    from sklearn.metrics.pairwise import rbf_kernel

    f = np.concatenate(
        [rbf_kernel(X[i : i + BLOCK_ROWS], X[support], gamma) @ alpha for i in range(0, X.shape[0], BLOCK_ROWS)]
    )
    return 0.5 * float(alpha @ f[support]) + C * float(np.maximum(0.0, 1.0 - y * (f + b)).sum())


def one(who: str, X: np.ndarray, y: np.ndarray, C: float, tol: float, solver: str) -> dict[str, Any]:
    """Fit once; seconds, value, bound, number of support rows, and the peak of this process in megabytes."""
    gamma, some = 1.0 / (X.shape[1] * float(X.var())), slice(0, WARMING_ROWS)
    if who == "SVC":
        from sklearn.svm import SVC

        SVC().fit(X[some], y[some])
        start = time.process_time()
        svc = SVC(C=C, gamma=gamma, tol=tol, cache_size=CACHE_MEGABYTES).fit(X, y)
        seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        value = objective(X, y, C, gamma, svc.support_, svc.dual_coef_[0], float(svc.intercept_[0]))
        return {"seconds": seconds, "value": value, "bound": None, "support": len(svc.support_), "megabytes": peak}
    mdlearn.fit(who, X[some], y[some], kernel="rbf", bias="free")
    start = time.process_time()
    model = mdlearn.fit(who, X, y, C=C, kernel="rbf", gamma=gamma, bias="free", tol=tol, solver=solver)
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    told = model.certificate
    found = {"seconds": seconds, "value": told.objective, "bound": told.lower_bound, "megabytes": peak}
    return {**found, "support": len(model.support_), "gap": told.gap, "engine": model.solver}


def predicted(A: np.ndarray, labels: np.ndarray, C: float, n: int, sparse: bool) -> dict[str, Any]:
    """Predict the last n rows by mdlearn and SVC in turn: seconds, their quotients' median, and the deviation."""
    from sklearn.metrics.pairwise import rbf_kernel
    from sklearn.svm import SVC

    gamma, clock = 1.0 / (A.shape[1] * float(A[:-n].var())), time.process_time
    rows = sp.csr_matrix(A) if sparse else A
    X, y, new = rows[:-n], labels[:-n], rows[-n:]
    if os.environ["OMP_NUM_THREADS"] != "1":
        clock = time.perf_counter
    svc = SVC(C=C, gamma=gamma, cache_size=CACHE_MEGABYTES).fit(X, y)
    pairs = "ovo" if len(svc.classes_) > 2 else "auto"
    mine = mdlearn.fit("svm", X, y, C=C, kernel="rbf", gamma=gamma, bias="free", tol=PREDICTED_TOL, multiclass=pairs)
    turns = []
    for _ in range(TURNS + 1):
        marks = [clock()]
        for one in (mine, svc):
            one.predict(new)
            marks.append(clock())
        turns.append((marks[1] - marks[0], marks[2] - marks[1]))
    seconds = np.array(turns[1:])  # nobody is cold
    some, found = new[:BLOCK_ROWS], mine.support_
    scores = rbf_kernel(some, X[found], gamma) @ mine.dual_coef_[:, found].T + mine.intercept_
    off = np.abs(mine._scores(mine._check(some)) + mine.intercept_ - scores).max() / np.abs(scores).max()
    told = {"mdlearn": float(np.median(seconds[:, 0])), "SVC": float(np.median(seconds[:, 1])), "deviation": float(off)}
    ratio = float(np.median(seconds[:, 1] / seconds[:, 0]))
    return {**told, "ratio": ratio, "columns": X.shape[1], "support": len(found), "support of SVC": len(svc.support_)}


def searched(who: str, X: np.ndarray, y: np.ndarray, Cs: Sequence[float], folds: int) -> dict[str, Any]:
    """Search a grid; seconds, mean accuracies with gamma outside and C inside, and the peak of this process."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC

    grid = {"gamma": [width / (X.shape[1] * float(X.var())) for width in SEARCHED_WIDTHS], "C": list(Cs)}
    split = StratifiedKFold(folds, shuffle=True, random_state=0)

    def means(A: np.ndarray, labels: np.ndarray) -> np.ndarray:
        parts = list(split.split(A, labels))
        if who == "SVC":
            search = GridSearchCV(SVC(cache_size=CACHE_MEGABYTES), grid, cv=parts, refit=False).fit(A, labels)
            found = dict(zip(map(str, search.cv_results_["params"]), search.cv_results_["mean_test_score"]))
            return np.array([found[str({"C": C, "gamma": gamma})] for gamma in grid["gamma"] for C in grid["C"]])
        common = {"kernel": "rbf", "bias": "free", "tol": LADDER[0], "refit": False}
        return mdlearn.select("svm", A, labels, grid, cv=parts, **common).scores.mean(axis=1)

    some = np.sort(np.concatenate([np.flatnonzero(y == label)[:WARMING_ROWS] for label in (-1, 1)]))
    means(X[some], y[some])
    start = time.process_time()
    scores = means(X, y)
    seconds, peak = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
    return {"seconds": seconds, "megabytes": peak, "scores": scores.tolist()}


def search_case(given: argparse.Namespace, name: str) -> dict[str, Any]:
    """Both searches of a set; prints a line."""
    sides = {who: asked(given, name, who, given.C, LADDER[0]) for who in ("mdlearn", "SVC")}
    scores = {who: np.array(side.pop("scores")) for who, side in sides.items()}
    off, ratio = np.abs(scores["mdlearn"] - scores["SVC"]).max(), sides["mdlearn"]["seconds"] / sides["SVC"]["seconds"]
    told = [f"{who} {one['seconds']:8.2f} s {one['megabytes']:6.0f} MB" for who, one in sides.items()]
    best = [f"best {who} {found.max():.4f} at {int(found.argmax())}" for who, found in scores.items()]
    ends = f"ratio {ratio:.2f}, largest difference {off:.4f} of {len(scores['SVC'])} points"
    print("   ".join([f"{name:20s}", *told, *best, ends]), flush=True)
    means = {f"best of {who}": float(found.max()) for who, found in scores.items()}
    return {"set": name, **sides, **means, "difference": float(off)}


def asked(given: argparse.Namespace, name: str, who: str, C: float | list[float], tol: float) -> dict[str, Any]:
    """The same in a new process."""
    call = [sys.executable, __file__, *([given.folder] if given.folder else []), "--sets", name]
    call += ["--rows", str(given.rows), "--C", *map(repr, np.ravel(C).tolist())]
    call += ["--solver", given.solver, "--one", who, repr(tol)]
    call += [
        "--predict",
        str(given.predict),
        "--search",
        str(given.search),
        *(["--classes"] if given.classes else []),
        *(["--sparse"] if given.sparse else []),
    ]
    done = subprocess.run(call, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def case(given: argparse.Namespace, name: str, C: float) -> dict[str, Any]:
    """SVC, and mdlearn's first fit on the ladder that is no farther from the optimum."""
    peer = asked(given, name, "SVC", C, 1e-3)
    for tol in LADDER:
        mine = asked(given, name, "svm", C, tol)
        if mine["value"] <= peer["value"]:
            break
    bound = mine["bound"]
    excess = {"mdlearn": mine["value"] / bound - 1.0, "SVC": peer["value"] / bound - 1.0}
    return {"set": name, "C": C, "tol": tol, "mdlearn": mine, "SVC": peer, "excess": excess}


def line(case: dict[str, Any]) -> str:
    """Both sides of a case."""
    sides = [
        f"{who} {case[who]['seconds']:8.2f} s {case['excess'][who]:.1e} {case[who]['megabytes']:6.0f} MB"
        for who in ("mdlearn", "SVC")
    ]
    ratio = case["mdlearn"]["seconds"] / case["SVC"]["seconds"]
    ends = f"ratio {ratio:.2f}, {case['mdlearn']['support']} support rows"
    return "   ".join([f"{case['set']:20s} C={case['C']:<6g}", *sides, ends])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?")
    parser.add_argument("--sets", nargs="*", default=[])
    parser.add_argument("--rows", type=int, default=30000)
    parser.add_argument("--C", nargs="*", type=float, default=[1.0, 10.0])
    parser.add_argument("--alone", nargs="*", metavar="OBJECTIVE", default=[])
    parser.add_argument("--solver", default="auto", help="engine of mdlearn's fits")
    parser.add_argument("--predict", type=int, default=0, metavar="ROWS", help="rows to predict")
    parser.add_argument("--search", type=int, default=0, metavar="FOLDS", help="search C and gamma over folds")
    parser.add_argument("--classes", action="store_true", help="predict all classes")
    parser.add_argument("--sparse", action="store_true", help="predict CSR rows")
    parser.add_argument("--output")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    names = given.sets or (
        [path.stem for path in sorted(Path(given.folder).glob("*.npz"))] if given.folder else [DRAWN]
    )
    if given.one:
        X, y = data(names[0], given.folder, given.rows + given.predict, given.classes)
        if given.search:
            print(json.dumps(searched(given.one[0], X, y, given.C, given.search)))
            return 0
        if given.predict:
            print(json.dumps(predicted(X, y, given.C[0], given.predict, given.sparse)))
            return 0
        print(json.dumps(one(given.one[0], X, y, given.C[0], float(given.one[1]), given.solver)))
        return 0
    cases = []
    for name in names:
        if given.search:
            cases.append(search_case(given, name))
            continue
        for C in given.C:
            if given.predict:
                found = asked(given, name, "predict", C, PREDICTED_TOL)
                cases.append({"set": name, "C": C, "rows": given.predict, **found})
                told = "{columns:4d} columns, {support:5d} support rows ({support of SVC} of SVC)   "
                told += (
                    "mdlearn {mdlearn:.4f} s   SVC {SVC:.4f} s   {ratio:.1f} times faster   deviation {deviation:.0e}"
                )
                print(f"{name:20s} C={C:<6g} {told.format(**found)}", flush=True)
                continue
            for who in given.alone:
                found = asked(given, name, who, C, LADDER[-1])
                cases.append({"set": name, "C": C, "objective": who, **found})
                told = "{seconds:8.2f} s, gap {gap:.1e}, {megabytes:6.0f} MB, {engine}".format(**found)
                print(f"{name:20s} {who:8s} C={C:<6g} {told}", flush=True)
            if not given.alone:
                cases.append(case(given, name, C))
                print(line(cases[-1]), flush=True)
    if given.output:
        Path(given.output).write_text("".join(json.dumps(each) + "\n" for each in cases))
    return 0


if __name__ == "__main__":
    sys.exit(main())
