"""Seconds and peak memory of fits to rows that are streamed from a file.

``python asv_bench/streaming.py OBJECTIVE ROWS [--sparse] [--cold] [--block N] [--folder DIR] [--threads N]``
writes ROWS rows and their labels to a folder, where they are not there yet, fits, and prints one line of a table:
objective, rows, iterations, seconds, seconds per pass, peak memory of the process, gap. Rows are 32 float32 columns
(128 bytes a row); with --sparse 100 columns, ten of which have an entry (CSR, 80 bytes a row). With --cold the system
forgets a block as soon as it is read, so that every pass reads the disk.
"""

from __future__ import annotations

import argparse
import os
import resource
import time
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

import mdlearn

DENSE, SPARSE, ENTRIES, CHUNK = 32, 100, 10, 1_000_000
GIVEN = {"ldm": lambda m: {"lambda1": 4.0 * m, "lambda2": 1.0 * m}}
"""Weights of the variance and the mean that act beside a sum over m rows."""


def chunk(seed: int, sparse: bool) -> list[np.ndarray]:
    """Arrays of a million rows: entries, their columns where they are sparse, and labels of a plane with noise."""
    rng = np.random.default_rng(seed)
    plane = np.random.default_rng(99).standard_normal(SPARSE if sparse else DENSE).astype(np.float32)
    X = rng.standard_normal((CHUNK, ENTRIES if sparse else DENSE), dtype=np.float32)
    f, columns = X @ plane[: X.shape[1]], []
    if sparse:
        # One entry in each tenth of the columns: ascending and distinct.
        columns = [
            rng.integers(0, SPARSE // ENTRIES, X.shape, dtype=np.int32) + np.arange(0, SPARSE, ENTRIES, np.int32)
        ]
        f = (X * plane[columns[0]]).sum(axis=1)
    return [X, *columns, (f + 3.0 * rng.standard_normal(CHUNK, dtype=np.float32) > 0).astype(np.int8)]


def names(folder: Path, sparse: bool) -> list[Path]:
    """The files of those arrays."""
    kinds = ("X.sparse.f32", "columns.sparse.i32", "y.sparse.i8") if sparse else ("X.f32", "y.i8")
    return [folder / kind for kind in kinds]


def write(folder: Path, m: int, sparse: bool) -> None:
    """The same rows for every number of rows, as far as they go."""
    files = [open(path, "wb") for path in names(folder, sparse)]
    for seed in range(-(-m // CHUNK)):
        for file, array in zip(files, chunk(seed, sparse), strict=True):
            array.tofile(file)
    for file in files:
        file.close()


def source_of(folder: Path, m: int, block: int, sparse: bool, cold: bool):
    """Blocks of a folder, read anew in every pass."""
    width = ENTRIES if sparse else DENSE
    shapes = [(np.float32, width), (np.int32, width), (np.int8, 1)] if sparse else [(np.float32, width), (np.int8, 1)]

    def source():
        files = [open(path, "rb") for path in names(folder, sparse)]
        for start in range(0, m, block):
            n = min(block, m - start)
            parts = [np.fromfile(file, dtype, count=n * w) for file, (dtype, w) in zip(files, shapes, strict=True)]
            if cold:
                for file in files:
                    os.posix_fadvise(file.fileno(), 0, file.tell(), os.POSIX_FADV_DONTNEED)
            if sparse:
                ends = np.arange(0, n * width + 1, width, dtype=np.int32)
                yield csr_matrix((parts[0], parts[1], ends), shape=(n, SPARSE)), parts[2]
            else:
                yield parts[0].reshape(n, width), parts[1]
        for file in files:
            file.close()

    return source


def main() -> None:
    """Write, fit, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objective")
    parser.add_argument("rows", type=float)
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--block", type=int, default=200_000)
    parser.add_argument("--folder", type=Path, default=Path("streamed"))
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    m, folder = int(given.rows), given.folder
    folder.mkdir(parents=True, exist_ok=True)
    path = names(folder, given.sparse)[-1]
    if not path.exists() or path.stat().st_size < m:
        write(folder, m, given.sparse)
    source = source_of(folder, m, given.block, given.sparse, given.cold)
    params = GIVEN.get(given.objective, lambda m: {})(m)
    started = time.perf_counter()
    model = mdlearn.fit(given.objective, source, None, n_threads=given.threads, multiclass="ovr", **params)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    n = model.n_iter
    kind = ", sparse" if given.sparse else ""
    told = f"| {given.objective}{kind}{', cold' if given.cold else ''} | {m:.0e} | {n} | {seconds:.1f}"
    print(f"{told} | {seconds / (n + 2):.2f} | {peak:.0f} | {model.certificate.gap:.1e} |", flush=True)


if __name__ == "__main__":
    main()
