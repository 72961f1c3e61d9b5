"""Fuzz every objective and engine: random problems, about a dozen fits of each, and what has to hold for them.

    python tests/fuzz/run.py --seed 1 --count 10000 --jobs 2
    python tests/fuzz/run.py --seed 1 --only 17              # one problem again
    python tests/fuzz/run.py --seed 1 --count 500 --property contradiction

A line per finding says what does not hold, for which run of which problem; a table at the end counts them. The exit
code is 1 where anything was found, 2 where no problem was judged. A problem depends on seed and number alone.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import functools
import json
import re
import subprocess
import sys
import time
import traceback
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1] / "support")]
sys.path.append(str(HERE.parents[1]))

BATCH = 50
SECONDS = 900
"""For a batch."""


def judge(seed, index, names=None):
    """(findings, counts) of one problem; a finding is (property, run, sentence, problem)."""
    from fuzz import grids, large
    from fuzz.cases import Case
    from fuzz.properties import PROPERTIES, everything

    load()
    is_large = index % large.EVERY == large.EVERY - 1
    found = []
    # What a problem or its judgement overflow in says nothing of the library; fits have errors of their own.
    with np.errstate(all="ignore"):
        kind = large.LargeCase if is_large else grids.GridCase if grids.is_grid(index) else Case
        case = kind(seed, index).run()
        told = str(case.problem)
        for name in [name for name in names or PROPERTIES if not is_large or name in large.PROPERTIES]:
            found += [(name, str(out.run), text, told) for out, text in PROPERTIES[name](case)]
    done = everything(case)
    counts = {"fits": len(done), "models": sum(out.model is not None for out in done)}
    counts |= {"converged": sum(out.model is not None and out.model.certificate.converged for out in done)}
    counts["stopped by time"] = sum(not out.complete for out in done)
    return found, counts


@functools.cache
def load():
    """Import all modules of the library that fits need: the first fit is not to be charged with it."""
    import mdlearn

    X = [[0.0], [1.0], [2.0], [3.0]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in mdlearn.list_objectives():
            with contextlib.suppress(ValueError):  # objectives of installed plugins may need more rows
                mdlearn.fit(name, X, [0, 1, 0, 1], time_limit=1.0)
        mdlearn.fit_path("svm", X, [0, 1, 0, 1], {"C": [1.0, 2.0]}, kernel="rbf")
        mdlearn.fit("svm", [(X, [0, 1, 0, 1])], None)
        mdlearn.cross_validate("svm", X, [0, 1, 0, 1], cv=2, C=1.0)


def batch(seed, first, last, names, like):
    """Judge problems first ... last - 1 and print a JSON line before and after each."""
    from fuzz import grids, regression

    for index in range(first, last):
        draw = grids.draw if grids.is_grid(index) else regression.draw
        if like and not re.search(like, str(draw(seed, index))):
            continue
        print(json.dumps({"begin": index}), flush=True)
        began = time.perf_counter()
        try:
            found, counts = judge(seed, index, names)
        except Exception:
            found, counts = [("the fuzzer", "", traceback.format_exc()[-900:], "")], {}
        report = {"end": index, "found": found, "counts": counts, "seconds": time.perf_counter() - began}
        print(json.dumps(report), flush=True)


def batches(seed, numbers, names, jobs, like):
    """Reports of all problems, from processes of their own; one that dies or hangs is a finding."""
    todo = [(start, min(start + BATCH, numbers.stop)) for start in range(numbers.start, numbers.stop, BATCH)]
    running = {}
    while todo or running:
        while todo and len(running) < jobs:
            first, last = todo.pop(0)
            command = [sys.executable, __file__, "--batch", f"{first}:{last}", "--seed", str(seed)]
            command += [part for name in names or () for part in ("--property", name)]
            command += ["--like", like] if like else []
            pipe = subprocess.PIPE
            running[first, last] = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True)
        (first, last), process = next(iter(running.items()))
        try:
            out, err = process.communicate(timeout=SECONDS)
            died = f"exit code {process.returncode}: {err[-400:]}" if process.returncode else ""
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            died = f"does not come back within {SECONDS} s"
        del running[first, last]
        at = first
        for line in out.splitlines():
            if not line.startswith('{"'):
                yield {
                    "end": at,
                    "found": [("output", "", f"printed {line[:200]!r}", "")],
                    "counts": {},
                    "seconds": 0.0,
                }
                continue
            report = json.loads(line)
            at = report.get("begin", at)
            if "end" in report:
                yield report
        if died:
            yield {"end": at, "found": [("process", "", died, "")], "counts": {}, "seconds": 0.0}
            if at + 1 < last:
                todo.insert(0, (at + 1, last))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="judge this problem alone, in this process")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--property", action="append", dest="names", help="judge this property alone; may be repeated")
    parser.add_argument("--like", help="judge only problems whose description fits this regular expression")
    parser.add_argument("--output", type=Path, help="write findings as JSON lines, too")
    parser.add_argument("--batch", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    if given.batch:
        first, last = given.batch.split(":")
        batch(given.seed, int(first), int(last), given.names, given.like)
        return 0
    began = time.perf_counter()
    if given.only is not None:
        found, counts = judge(given.seed, given.only, given.names)
        reports = [{"end": given.only, "found": found, "counts": counts, "seconds": time.perf_counter() - began}]
    else:
        numbers = range(given.first, given.first + given.count)
        reports = batches(given.seed, numbers, given.names, given.jobs, given.like)
    totals, problems, fits, slow = collections.Counter(), collections.Counter(), collections.Counter(), []
    for report in reports:
        fits.update(report["counts"])
        slow.append((report["seconds"], report["end"]))
        for name in {entry[0] for entry in report["found"]}:
            problems[name] += 1
        for name, run, text, told in report["found"]:
            totals[name] += 1
            print(f"seed {given.seed} problem {report['end']} [{name}] {text} | {run} | {told}", flush=True)
            if given.output:
                with given.output.open("a") as file:
                    told = {"index": report["end"], "property": name, "run": run, "text": text, "problem": told}
                    file.write(json.dumps(told) + "\n")
    return summary(totals, problems, fits, slow, time.perf_counter() - began)


def summary(totals, problems, fits, slow, seconds):
    """Print the table; the exit code."""
    from fuzz.properties import PROPERTIES

    print(
        f"\n{len(slow)} problems, {fits['fits']} fits, {fits['models']} models, {fits['converged']} converged, "
        f"{fits['stopped by time']} stopped by time; {seconds:.0f} s"
    )
    print("slowest: " + ", ".join(f"{index} ({took:.1f} s)" for took, index in sorted(slow, reverse=True)[:8]))
    for name in [*PROPERTIES, *sorted(set(totals) - set(PROPERTIES))]:
        print(f"{totals[name]:7d} findings in {problems[name]:5d} problems  {name}")
    return 1 if totals else 0 if slow else 2


if __name__ == "__main__":
    sys.exit(main())
