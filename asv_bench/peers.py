"""The table of peers as Markdown: every fit beside what it is measured against, same data, same objective, one run.

    python asv_bench/peers.py [WORKLOAD ...] [--repeats N] [--list]

Needs mdlearn[bench]. One BLAS thread on both sides unless OMP_NUM_THREADS says otherwise. A ratio is the median of
paired times; both sides have run once before. A side that misses the precision of its row is an error, not a figure.
"""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from time import process_time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

import numpy as np
from benchmarks.peer_cases import CASES
from benchmarks.references import paired_times

TITLES = ("workload", "objective", "mdlearn", "gap", "measured against", "its precision", "ratio", "goal")


def main() -> int:
    """Print a row per case."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="names or beginnings of names, default all")
    parser.add_argument("--repeats", type=int, default=3, metavar="N", help="pairs of times (default: %(default)s)")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    given = parser.parse_args()
    chosen = [case for case in CASES if not given.workloads or case.name.startswith(tuple(given.workloads))]
    if given.list or not chosen:
        print("\n".join(f"{case.name}: {case.objective}, against {case.against}" for case in chosen or CASES))
        return 0 if chosen else 1
    print("| " + " | ".join(TITLES) + " |\n" + "|---" * len(TITLES) + "|", flush=True)
    missed = 0
    for case in chosen:
        print(row(case, given.repeats), flush=True)
    return missed


def row(case, repeats: int) -> str:
    """One line of the table."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, reference, precision = case.prepare()
        model = ours()
        seconds, other = paired_times(ours, reference, case.repeats or repeats, case.clock)
    ratio = float(np.median(np.divide(seconds, other)))
    clock = "CPU" if case.clock is process_time else "wall"
    cells = (
        case.name,
        case.objective,
        f"`{model.solver}` {np.median(seconds):.3g} s {clock}",
        f"{model.certificate.gap:.1e}",
        f"{case.against}, {np.median(other):.3g} s",
        precision,
        f"**{ratio:.2f}**",
        case.goal,
    )
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
