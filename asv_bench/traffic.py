"""Seconds and bytes of a pass over row blocks on a Dask cluster of this machine.

``python asv_bench/traffic.py OBJECTIVE ROWS COLUMNS [--workers N] [--block N]`` prints one line of a table: objective,
rows, columns, passes, seconds per pass, bytes of the work that is sent out, median bytes that workers send to each
other in a pass, bytes of the sums that come back. Needs mdlearn-dask.
"""

from __future__ import annotations

import argparse
import time

import cloudpickle
import dask
import numpy as np
from distributed import Client, LocalCluster
from mdlearn_dask import DaskBlocks

import mdlearn

GIVEN = {"ldm": lambda m: {"lambda1": 4.0 * m, "lambda2": 1.0 * m}}


def made(seed, m, d):
    """Normal rows and labels of a plane with noise."""
    plane = np.random.default_rng(99).standard_normal(d).astype(np.float32)
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d), dtype=np.float32)
    return X, X @ plane + 3.0 * rng.standard_normal(m, dtype=np.float32) > 0


class Counted(DaskBlocks):
    """Blocks that note what goes out and comes back."""

    def reduced(self, make):
        """The same, counted."""
        found = yield from super().reduced(make)
        self.out.append(len(cloudpickle.dumps(make)))
        self.back.append(len(cloudpickle.dumps(found)))
        return found


def main() -> None:
    """Fit, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("objective")
    parser.add_argument("rows", type=float)
    parser.add_argument("columns", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--block", type=int, default=100_000)
    given = parser.parse_args()
    m, d = int(given.rows), given.columns
    with LocalCluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None) as cluster:
        with Client(cluster) as client:

            def between():
                return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

            sizes = [min(given.block, m - start) for start in range(0, m, given.block)]
            blocks = Counted([dask.delayed(made, pure=True)(seed, n, d) for seed, n in enumerate(sizes)])
            blocks.out, blocks.back, seen = [], [], []
            params = GIVEN.get(given.objective, lambda m: {})(m)
            model = mdlearn.fit(
                given.objective,
                blocks,
                None,
                multiclass="ovr",
                callback=lambda state: seen.append((time.perf_counter(), between())),
                **params,
            )
            times, bytes_ = np.array(seen).T
            told = f"| {given.objective} | {m:.0e} | {d} | {model.n_iter} | {np.median(np.diff(times)):.2f}"
            middle = slice(1, -1)
            sent, back = np.median(blocks.out[middle]), np.median(blocks.back[middle])
            print(f"{told} | {sent:.0f} | {np.median(np.diff(bytes_)):.0f} | {back:.0f} |")
            blocks.close()


if __name__ == "__main__":
    main()
