"""How far fits go beyond their time limits, in CPU time of the process: other processes do not count.

    python asv_bench/time_limits.py [CASE ...] [--limits 0.1 0.5 2] [--wall]

A line per case and limit: seconds used, seconds beyond limit + 10 % + 0.3 s ("late"), the certified gap, and objective
of the answer over that of w = 0. Data are drawn before the clock starts.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once
    if "--wall" not in sys.argv:
        time.perf_counter = time.process_time  # before mdlearn: limits are CPU time then

import numpy as np
import scipy.sparse

import mdlearn

CLOCK = time.perf_counter


def dense(m, d, k=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(k), rng.integers(0, k, m - k)])
    X = rng.standard_normal((m, d), dtype=np.float32).astype(dtype, copy=False)
    X[np.arange(m), codes % d] += 1.0
    return X, codes


def sparse(m, d, each, k=2):
    rng = np.random.default_rng(0)
    places = np.minimum(d - 1, (d * rng.random(m * each) ** 2).astype(np.int32))
    X = scipy.sparse.csr_matrix((rng.random(m * each), places, np.arange(m + 1, dtype=np.int32) * each), shape=(m, d))
    X.sum_duplicates()
    return X, np.concatenate([np.arange(k), rng.integers(0, k, m - k)])


def blocks(n, m, d, dtype=np.float64):
    """Rows that are made anew in every pass."""

    def made():
        for i in range(n):
            rng = np.random.default_rng(i)
            X = rng.standard_normal((m, d), dtype=np.float32).astype(dtype, copy=False)
            yield X, (X[:, 0] + 2.0 * rng.standard_normal(m) > 0).astype(int)

    return made


def memory_blocks(m, d, each, dtype=np.float64):
    X, y = dense(m, d, dtype=dtype)
    return [(X[i : i + each], y[i : i + each]) for i in range(0, m, each)]


def fit(objective, rows, **given):
    def prepared():
        data = rows()
        X, y = data if isinstance(data, tuple) else (data, None)
        return lambda limit: mdlearn.fit(objective, X, y, time_limit=limit, **given)

    return prepared


def call(function, objective, rows, *more, **given):
    def prepared():
        X, y = rows()
        return lambda limit: function(objective, X, y, *more, time_limit=limit, **given)

    return prepared


GRID = {"C": [0.01, 0.1, 1.0, 10.0]}
CASES = {
    "blocks ldm 800k x 10 in memory": fit("ldm", lambda: memory_blocks(800_000, 10, 50_000)),
    "blocks svm 800k x 10 in memory f32": fit("svm", lambda: memory_blocks(800_000, 10, 50_000, np.float32)),
    "blocks ldm 4M x 10 generated": fit("ldm", lambda: blocks(80, 50_000, 10)),
    "blocks lsvm 1M x 10 generated": fit("lsvm", lambda: blocks(20, 50_000, 10)),
    "blocks svm free bias 800k x 10": fit("svm", lambda: memory_blocks(800_000, 10, 50_000), bias="free"),
    "blocks mdlm 400k x 10": fit("mdlm", lambda: memory_blocks(400_000, 10, 50_000), beta=0.1),
    "blocks asgd 400k x 10": fit("svm", lambda: memory_blocks(400_000, 10, 50_000), solver="asgd"),
    "blocks l3svm 200k x 20": fit("l3svm", lambda: memory_blocks(200_000, 20, 50_000)),
    "blocks nystroem 200k x 10": fit(
        "ldm", lambda: memory_blocks(200_000, 10, 50_000), kernel="rbf", approximation="nystroem"
    ),
    "blocks wide 50k x 600": fit("ldm", lambda: memory_blocks(50_000, 600, 5_000)),
    "uldm ovo 300 classes": fit("uldm", lambda: dense(6000, 20, 300), multiclass="ovo"),
    "uldm fuzzy 300 classes": fit("uldm", lambda: dense(6000, 20, 300)),
    "svm 20000 x 5, 10000 classes": fit("svm", lambda: dense(20_000, 5, 10_000)),
    "svm ovo 100 classes": fit("svm", lambda: dense(20_000, 20, 100), multiclass="ovo"),
    "svm rbf 100 classes": fit("svm", lambda: dense(4000, 20, 100), kernel="rbf"),
    "ldm 100k x 50, 20 classes": fit("ldm", lambda: dense(100_000, 50, 20)),
    "lssvm 2000 x 20, 500 classes": fit("lssvm", lambda: dense(2000, 20, 500)),
    "ww 10000 x 30, 100 classes": fit("ww", lambda: dense(10_000, 30, 100)),
    "ww 2000 x 60, 10 classes": fit("ww", lambda: dense(2000, 60, 10)),
    "mdlm 20000 x 50, 50 classes": fit("mdlm", lambda: dense(20_000, 50, 50)),
    "mmlr 20000 x 50, 20 classes": fit("mmlr", lambda: dense(20_000, 50, 20)),
    "l2lr 100k x 100": fit("l2lr", lambda: dense(100_000, 100)),
    "lsvm 200k x 100": fit("lsvm", lambda: dense(200_000, 100)),
    "ldm 500k x 30": fit("ldm", lambda: dense(500_000, 30)),
    "svm 5000 x 2000": fit("svm", lambda: dense(5000, 2000)),
    "lsldm 5000 x 3000": fit("lsldm", lambda: dense(5000, 3000)),
    "ldm rbf 6000": fit("ldm", lambda: dense(6000, 10), kernel="rbf"),
    "svm rbf 10000": fit("svm", lambda: dense(10_000, 10), kernel="rbf"),
    "lssvm rbf 5000": fit("lssvm", lambda: dense(5000, 10), kernel="rbf"),
    "uldm rbf 3000": fit("uldm", lambda: dense(3000, 10), kernel="rbf"),
    "uldm rbf 2000 smw": fit("lsvm", lambda: dense(3000, 10), kernel="rbf", reduced=800),
    "ldm rbf 5000 free bias": fit("ldm", lambda: dense(5000, 10), kernel="rbf", bias="free"),
    "ldm rbf 4000 lambda1 large": fit("ldm", lambda: dense(4000, 10), kernel="rbf", lambda1=1e5),
    "ldm callable 4000": fit("ldm", lambda: dense(4000, 10), kernel=lambda A, B: (A @ B.T + 1.0) ** 2),
    "nystroem 50000, 1500": fit(
        "ldm", lambda: dense(50_000, 10), kernel="rbf", approximation="nystroem", n_components=1500
    ),
    "landmarks 50000, 1500": fit(
        "svm", lambda: dense(50_000, 10), kernel="rbf", approximation="landmarks", n_components=1500
    ),
    "l3svm 200k x 20, k-means 100": fit("l3svm", lambda: dense(200_000, 20), n_clusters=100),
    "l3svm kmeans landmarks": fit("l3svm", lambda: dense(100_000, 30), n_clusters=50, landmark_selection="kmeans"),
    "l3svm pca landmarks 5000 x 1500": fit("l3svm", lambda: dense(5000, 1500), landmark_selection="pca"),
    "l3svm 3 levels": fit("l3svm", lambda: dense(50_000, 20), n_levels=3),
    "linprog rlp 3000 x 50": fit("rlp", lambda: dense(3000, 50)),
    "svm hard margin 3000 x 100": fit("svm", lambda: dense(3000, 100), C=np.inf, kernel="rbf"),
    "svm csr 200k x 50k": fit("svm", lambda: sparse(200_000, 50_000, 20)),
    "ldm csr 200k x 50k, 10 classes": fit("ldm", lambda: sparse(200_000, 50_000, 20, 10)),
    "l2lr csr 100k x 5k": fit("l2lr", lambda: sparse(100_000, 5000, 20)),
    "mdlm csr 50k x 20k, 20 classes": fit("mdlm", lambda: sparse(50_000, 20_000, 20, 20), beta=1e-3),
    "asgd 1M x 20": fit("svm", lambda: dense(1_000_000, 20), solver="asgd"),
    "smw 200k x 100": fit("lsvm", lambda: dense(200_000, 100), solver="smw"),
    "apg ldm 200k x 50": fit("ldm", lambda: dense(200_000, 50), solver="apg"),
    "path ldm 20000 x 50": call(mdlearn.fit_path, "ldm", lambda: dense(20_000, 50), GRID),
    "path ldm rbf 3000": call(mdlearn.fit_path, "ldm", lambda: dense(3000, 10), GRID, kernel="rbf"),
    "path lssvm rbf 3000": call(mdlearn.fit_path, "lssvm", lambda: dense(3000, 10), GRID, kernel="rbf"),
    "path lsldm 3000 x 1500": call(mdlearn.fit_path, "lsldm", lambda: dense(3000, 1500), GRID),
    "path uldm rbf 2000": call(mdlearn.fit_path, "uldm", lambda: dense(2000, 10), GRID, kernel="rbf"),
    "cv ldm 50000 x 30": call(mdlearn.cross_validate, "ldm", lambda: dense(50_000, 30), cv=5),
    "cv ldm rbf 3000": call(mdlearn.cross_validate, "ldm", lambda: dense(3000, 10), cv=5, kernel="rbf"),
    "loo lssvm rbf 3000": call(mdlearn.cross_validate, "lssvm", lambda: dense(3000, 10), cv="loo", kernel="rbf"),
    "loo svm 300": call(mdlearn.cross_validate, "svm", lambda: dense(2000, 10), cv="loo"),
    "select ldm rbf 2000": call(mdlearn.select, "ldm", lambda: dense(2000, 10), GRID, kernel="rbf"),
    "select svm 100k x 30": call(mdlearn.select, "svm", lambda: dense(100_000, 30), GRID),
    "select mdlm 20000 x 50": call(mdlearn.select, "mdlm", lambda: dense(20_000, 50), {"lambda1": [0.1, 1.0]}),
}


def told(found):
    """Gap of an answer; of selections, how many fits there were."""
    certificate = getattr(found, "certificate", None)
    if certificate is None:
        return ""
    return f"{certificate.gap:9.2e} {'ok' if certificate.converged else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="parts of names, default all")
    parser.add_argument("--limits", type=float, nargs="*", default=[0.1, 0.5, 2.0])
    parser.add_argument("--wall", action="store_true", help="limits are wall time")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    mdlearn.fit("svm", *dense(100, 3))
    late = 0
    for name, prepare in CASES.items():
        if given.cases and not any(part in name for part in given.cases):
            continue
        run = prepare()
        for limit in given.limits:
            begun = CLOCK()
            try:
                shown = told(run(limit))
            except ValueError as error:
                shown = f"{type(error).__name__}: {error}"[:100]
            used = CLOCK() - begun
            over = used - 1.1 * limit - 0.3
            late += over > 0
            beyond = f"late {over:.2f}" if over > 0 else ""
            print(f"{name:36s} {limit:4g} s: {used:7.2f} {beyond:>11s} {shown}", flush=True)
    print(f"{late} late")
    return int(late > 0)


if __name__ == "__main__":
    sys.exit(main())
