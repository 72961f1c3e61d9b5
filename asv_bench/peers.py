"""The table of peers as Markdown: every fit beside what it is measured against, same data, same objective, one run.

    python asv_bench/peers.py [WORKLOAD ...] [--list] [--strict] [--write FILE]

Needs mdlearn[bench]. One BLAS thread on all sides unless OMP_NUM_THREADS says otherwise. A ratio is the median of times
taken in turn, after every side has run once. See docs/benchmarks.md for what the columns mean.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
import warnings
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

from benchmarks.contest import COLUMNS, Case, Line, blas_threads
from benchmarks.peer_cases import CASES, WORKLOADS

TITLES = ("workload", "objective", *COLUMNS.values(), "mdlearn", "gap", "ratio", "goal", "met")
PACKAGES = ("numpy", "scipy", "scikit-learn", "scikit-learn-intelex")
BEGIN, END = "<!-- peers -->", "<!-- end of peers -->"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a goal is missed and that was asked, or nothing was chosen."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help="names or beginnings of names, default all")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--strict", action="store_true", help="end with status 1 when a goal is missed")
    parser.add_argument("--write", type=Path, metavar="FILE", help=f"put the table between {BEGIN} and {END} of FILE")
    given = parser.parse_args(argv)
    chosen = [case for case in CASES if not given.workloads or case.workload.startswith(tuple(given.workloads))]
    if given.list or not chosen:
        for name in dict.fromkeys(case.workload for case in chosen or CASES):
            print(f"{name}: {WORKLOADS[name]}")
            print("\n".join(f"    {case.objective}" for case in chosen or CASES if case.workload == name))
        return 0 if chosen else 1
    if given.write is not None:
        replaced(given.write.read_text(encoding="utf-8"), "")  # before the work: the markers have to be there
    print(f"{machine()}\n\n{HEAD}", flush=True)
    rows, missed, goals = [], 0, 0
    for case in chosen:
        text, met = measured(case)
        rows += text
        goals, missed = goals + len(met), missed + met.count(False)
        print("\n".join(text), flush=True)
    told = f"{goals - missed} of {goals} goals met."
    print(f"\n{told}")
    if given.write is not None:
        command = " ".join(["python asv_bench/peers.py", *given.workloads, "--write", given.write.as_posix()])
        table = f"`{command}`, {machine()}\n\n" + "\n".join([HEAD, *rows]) + f"\n\n{told}"
        given.write.write_text(replaced(given.write.read_text(encoding="utf-8"), table), encoding="utf-8")
    return 1 if given.strict and missed else 0


def measured(case: Case) -> tuple[list[str], list[bool]]:
    """The rows of one case, and for each of its goals whether it is met. A precision that is missed misses the goal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lines = case.prepare().lines()
        except RuntimeError as error:
            return [joined([case.workload, f"{case.objective}: {error}", *[""] * 7, "no"])], [False]
    return [row(case, line) for line in lines], [line.met for line in lines if line.met is not None]


def row(case: Case, line: Line) -> str:
    """One row of the table."""
    objective = f"{case.objective} ({line.note})" if line.note else case.objective
    ratio = "" if line.ratio is None else f"**{line.ratio:.3g}**"
    goal = "" if line.goal is None else f"{line.goal:g}"
    met = {None: "", True: "yes", False: "no"}[line.met]
    return joined([case.workload, objective, *line.cells.values(), line.ours, line.gap, ratio, goal, met])


def joined(cells: Sequence[str]) -> str:
    """Cells as a row of Markdown."""
    return "| " + " | ".join(cells) + " |"


HEAD = joined(TITLES) + "\n" + "|---" * len(TITLES) + "|"


def machine() -> str:
    """What the figures depend on, as far as it may be told."""
    packages = ", ".join(f"{name} {number}" for name in PACKAGES if (number := _version(name)))
    today, python = datetime.datetime.now(tz=datetime.UTC).date(), platform.python_version()
    return f"{today}, {os.cpu_count()} CPUs, BLAS threads: {blas_threads()}, Python {python}, {packages}."


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def replaced(text: str, table: str) -> str:
    """The text with a table between its two markers; ValueError unless each marker is there once, in order."""
    before, begun, rest = text.partition(BEGIN)
    ended, after = rest.partition(END)[1:]
    if not (begun and ended) or text.count(BEGIN) > 1 or text.count(END) > 1:
        raise ValueError(f"the file needs one {BEGIN} and one {END} after it")
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


if __name__ == "__main__":
    sys.exit(main())
