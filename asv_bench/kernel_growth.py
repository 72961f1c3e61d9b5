"""How seconds and memory of kernel machines grow with rows: mdlearn beside SVC, on a noisy checkerboard.

    python asv_bench/kernel_growth.py [--rows 2000 4000 ...] [--C 1] [--picture FILE]

Each fit is one of `asv_bench/kernels.py`: a process of its own, one thread, CPU seconds with the certificate, peak
memory of the process. mdlearn answers at the loosest tolerance at which it is no farther from the optimum than SVC
at its default. SVC is left out where its growth so far says that it needs more than LONGEST seconds; mdlearn then
goes on at the tolerance of the size before. Needs mdlearn[bench], and Matplotlib for the picture.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.scaling import exponent
from kernels import DRAWN, LADDER, asked, case

ROWS = (2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 250_000)
LONGEST = 240.0
"""CPU seconds that SVC may need, as its growth so far tells."""
CUBE = 3.0
"""Growth that is expected of SVC as long as one size is known."""

Found = dict[str, dict[str, Any]]


def expected(points: list[tuple[int, Found]], rows: int) -> float:
    """Seconds that SVC will need for so many rows, by its last two sizes."""
    known = [(size, found["SVC"]["seconds"]) for size, found in points if "SVC" in found][-2:]
    if not known:
        return 0.0
    power = exponent(*zip(*known)) if len(known) > 1 else CUBE
    size, seconds = known[-1]
    return float(seconds * (rows / size) ** power)


def measured(given: argparse.Namespace, rows: int, points: list[tuple[int, Found]], tol: float) -> tuple[Found, float]:
    """Both fits of so many rows, and the tolerance of mdlearn's."""
    asks = argparse.Namespace(
        folder=None, rows=rows, solver="auto", predict=0, search=0, classes=False, sparse=False
    )  # as kernels.py reads them
    if expected(points, rows) <= LONGEST and (not points or "SVC" in points[-1][1]):
        both = case(asks, DRAWN, given.C)
        return {name: both[name] for name in ("mdlearn", "SVC")}, both["tol"]
    return {"mdlearn": asked(asks, DRAWN, "svm", given.C, tol)}, tol


def draw(points: list[tuple[int, Found]], path: Path) -> None:
    """Draw seconds and memory over rows."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 3.4), layout="constrained")
    panels = figure.subplots(1, 2)
    for axes, key, label in zip(panels, ("seconds", "megabytes"), ("CPU seconds", "peak memory of the process (MB)")):
        for k, (name, marker) in enumerate((("mdlearn", "o"), ("SVC", "s"))):
            known = [(rows, found[name][key]) for rows, found in points if name in found]
            axes.plot(*zip(*known), marker=marker, color=f"C{k}", label=name)
        axes.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        axes.grid(alpha=0.3)
    panels[0].legend()
    figure.savefig(path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", type=int, default=list(ROWS))
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--picture", type=Path, help="draw seconds and memory over rows")
    given = parser.parse_args(arguments)
    points: list[tuple[int, Found]] = []
    tol = LADDER[0]
    for rows in sorted(given.rows):
        found, tol = measured(given, rows, points, tol)
        points.append((rows, found))
        told = "   ".join(f"{name} {one['seconds']:.3g} s {one['megabytes']:.0f} MB" for name, one in found.items())
        print(f"{rows:>8,d} rows   {told}   {found['mdlearn']['support']:,d} support rows, tol={tol:g}", flush=True)
    for name in ("mdlearn", "SVC"):
        known = [(rows, found[name]["seconds"]) for rows, found in points if name in found]
        if len(known) > 1:
            print(f"{name}: exponent {exponent(*zip(*known)):.2f} in rows")
    if given.picture is not None:
        draw(points, given.picture)
    return 0


if __name__ == "__main__":
    sys.exit(main())
