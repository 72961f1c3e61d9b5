"""How soon a fit is left: after Ctrl-C at random moments, and after its time limit. Markdown.

    python asv_bench/interrupts.py [CASE ...] [--list] [--times 50] [--window 3] [--limits 0.05 0.5] [--blind N]

Signals come from a process of their own at moments drawn evenly from the time that an undisturbed run takes, `window`
seconds at most. After each, threads, BLAS, the signal handler, files and the bits of small fits are compared with what
they were; at the end, the bits of a whole run. "blind" is the longest section of an undisturbed run in which Python
could not have seen a signal. Columns of a limit hold the seconds beyond it, the certified gap, and what another formula
says about the objective, relative.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
import warnings
from collections.abc import Sequence

if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy: BLAS reads it once

import numpy as np
from benchmarks.interrupt_cases import CASES
from benchmarks.interrupting import Health, Sender, bits, blind

HEAD = ("case", "run s", "blind s", "signals", "median s", "largest s", "after")


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; return 1 where a process was not as before."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", metavar="CASE", help="beginnings of names, default all")
    parser.add_argument("--list", action="store_true", help="list the cases and end")
    parser.add_argument("--times", type=int, default=50, help="signals per case")
    parser.add_argument("--window", type=float, default=3.0, help="latest moment of a signal, seconds")
    parser.add_argument("--limits", type=float, nargs="*", default=[], help="time limits")
    parser.add_argument("--blind", type=int, default=0, metavar="N", help="also list the N longest blind sections")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(argv)
    chosen = [case for case in CASES if not given.cases or case.name.startswith(tuple(given.cases))]
    if given.list or not chosen:
        print("\n".join(case.name for case in chosen or CASES))
        return 0 if chosen else 1
    titles = (*HEAD, *(f"limit {limit:g} s: over s, gap, other formula" for limit in given.limits))
    print(joined(titles) + "\n" + "|---" * len(titles) + "|", flush=True)
    warnings.simplefilter("ignore")
    broken = 0
    with Sender() as sender:
        for case in chosen:
            cells, sections, faults = measured(case, sender, given)
            print(joined(cells), flush=True)
            for wall, cpu, place in sections:
                print(f"    {wall:.3f} s ({cpu:.3f} s of CPU) before {place}", flush=True)
            broken += bool(faults)
    return int(broken > 0)


def measured(case, sender, given):
    """Cells of a row, blind sections, and what was not as before."""
    call, rng = case.prepare(), np.random.default_rng(given.seed)
    health, sections, begun = Health(), [], time.perf_counter()
    with blind(sections):
        whole = call()
    took = time.perf_counter() - begun
    sections.sort(reverse=True)
    delays, faults = [], set()
    for moment in rng.uniform(0.0, min(took, given.window), given.times):
        delay = sender.delay(call, moment)
        if delay is not None:
            delays.append(delay)
            faults.update(health.faults())
    if given.times and took < 15.0 and bits(call()) != bits(whole):
        faults.add("bits of a whole run")
    after = ", ".join(sorted(faults)) or "as before"
    cells = [case.name, f"{took:.2f}", f"{sections[0][0] if sections else 0.0:.3f}", str(len(delays))]
    cells += [f"{np.median(delays):.3f}", f"{max(delays):.3f}", after] if delays else ["", "", after]
    for limit in given.limits:
        cells.append(limited(case, call, limit, whole) if case.limited else "")
    return cells, sections[: given.blind], faults


def limited(case, call, limit, whole):
    """Seconds beyond a limit, the gap, and whether the certificate is true as far as can be told from outside."""
    begun = time.perf_counter()
    model = call(time_limit=limit)
    over = time.perf_counter() - begun - limit
    one, best = model.certificate, whole.certificate
    slack = 1e-9 * abs(best.objective)
    told = [f"{over:+.3f}", f"{one.gap:.1e}"]
    other = case.judged(model)
    told.append("" if other is None else f"{other:.0e}")
    if not (one.lower_bound <= best.objective + slack and best.lower_bound <= one.objective + slack):
        told.append("FALSE")
    return ", ".join(told)


def joined(cells: Sequence[str]) -> str:
    """Cells as a row of Markdown."""
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    sys.exit(main())
