"""Seconds and peak memory of fits to rows that are streamed from a file.

``python asv_bench/streaming.py OBJECTIVE ROWS [--block N] [--folder DIR] [--threads N]`` writes ROWS rows of 32 float32
columns and their labels to a folder, where they are not there yet (128 bytes a row), fits, and prints one line of a
table: objective, rows, iterations, seconds, seconds per iteration, peak memory of the process, gap.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np

import mdlearn

COLUMNS, CHUNK = 32, 1_000_000
GIVEN = {"ldm": lambda m: {"lambda1": 4.0 * m, "lambda2": 1.0 * m}}
"""Weights of the variance and the mean that act beside a sum over m rows."""


def write(folder: Path, m: int) -> None:
    """Normal rows and labels of a plane with noise, the same for every number of rows."""
    plane = np.random.default_rng(99).standard_normal(COLUMNS).astype(np.float32)
    with open(folder / "X.f32", "wb") as rows, open(folder / "y.i8", "wb") as labels:
        for seed in range(-(-m // CHUNK)):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((CHUNK, COLUMNS), dtype=np.float32)
            y = X @ plane + 3.0 * rng.standard_normal(CHUNK, dtype=np.float32) > 0
            X.tofile(rows)
            y.astype(np.int8).tofile(labels)


def main() -> None:
    """Write, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objective")
    parser.add_argument("rows", type=float)
    parser.add_argument("--block", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=Path("streamed"))
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    m, folder = int(given.rows), given.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "X.f32"
    if not path.exists() or path.stat().st_size < 4 * COLUMNS * m:
        write(folder, m)

    def source():
        with open(path, "rb") as rows, open(folder / "y.i8", "rb") as labels:
            for start in range(0, m, given.block):
                n = min(given.block, m - start)
                X = np.fromfile(rows, dtype=np.float32, count=n * COLUMNS).reshape(n, COLUMNS)
                yield X, np.fromfile(labels, dtype=np.int8, count=n)

    params = GIVEN.get(given.objective, lambda m: {})(m)
    started = time.perf_counter()
    model = mdlearn.fit(given.objective, source, None, n_threads=given.threads, multiclass="ovr", **params)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    n = model.n_iter
    told = f"| {given.objective} | {m:.0e} | {n} | {seconds:.1f} | {seconds / (n + 2):.2f}"
    print(f"{told} | {peak:.0f} | {model.certificate.gap:.1e} |")


if __name__ == "__main__":
    main()
