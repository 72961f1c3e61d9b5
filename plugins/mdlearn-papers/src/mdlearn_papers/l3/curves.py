"""Lines of accuracy against a number, for figures 3 and 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Curves = Mapping[str, Sequence[tuple[float, float, float]]]
"""Name of a line -> points (x, y, spread)."""

TICKS = 8
"""Most places that are marked one by one."""


def lines(ax: Any, curves: Curves, xlabel: str, ylabel: str, title: str = "", log: bool = True) -> None:
    """Draw lines with markers and bars of one standard deviation."""
    from mdlearn.extend import MARKERS, curve_style

    for i, (name, points) in enumerate(curves.items()):
        x, y, spread = np.array(points).T
        look = {
            **curve_style(i),
            "marker": MARKERS[i],
            "markersize": 4,
            "linewidth": 1.3,
            "capsize": 2,
            "elinewidth": 0.7,
        }
        ax.errorbar(x, y, yerr=spread if spread.any() else None, label=name, **look)
    if log:
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")
        places = sorted({x for points in curves.values() for x, _, _ in points})
        if len(places) <= TICKS:
            ax.set_xticks(places, [f"{x:g}" for x in places], fontsize="x-small")
    ax.set_xlabel(xlabel)
    ax.set_ylabel(ylabel)
    if title:
        ax.set_title(title, fontsize="medium")
    ax.grid(alpha=0.3)
