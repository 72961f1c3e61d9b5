"""Scores over two hyper-parameters as a heat map."""

from __future__ import annotations

from typing import Any

import numpy as np

from mdlearn.plotting.paths import changing, check_name, side_by_side
from mdlearn.plotting.style import COLOURS, axes, short

COLOUR_MAP = "cividis"
"""From dark to light alike for all kinds of colour vision."""
WRITTEN = 150
"""Most cells with their score written in them."""


def grid(selection: Any, x: str | None = None, y: str | None = None, *, ax: Any = None) -> Any:
    """Plot the mean scores of a selection over two hyper-parameters as a heat map.

    Parameters
    ----------
    selection : Selection
        What `mdlearn.select` returns.
    x, y : str, optional
        Hyper-parameters along the horizontal and the vertical axis. Default: the two that the grid changes. Where it
        changes more, a cell has the best score over the others.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. Default: the axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        With a frame around the best point, and a colour bar beside. Values stand side by side at equal distances,
        numbers by size; cells that the grid leaves out are grey.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError, ValueError
        If there are no scores, or the hyper-parameters do not fit.
    """
    points, scores = getattr(selection, "points", None), getattr(selection, "mean_scores", None)
    if points is None or scores is None:
        raise TypeError(f"{type(selection).__name__!r} object has no scores over a grid; give what select returned")
    x, y = _names(points, x, y)
    columns, rows = (side_by_side([point[name] for point in points]) for name in (x, y))
    table = np.full((len(rows), len(columns)), np.nan)
    for point, score in zip(points, scores):
        at = rows.index(short(point[y])), columns.index(short(point[x]))
        table[at] = np.fmax(table[at], score)
    ax = axes(ax)
    ax.set_facecolor("0.85")
    image = ax.imshow(table, origin="lower", aspect="auto", cmap=COLOUR_MAP)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(f"{str(getattr(selection, 'scoring', 'score')).replace('_', ' ')}, mean over folds")
    if table.size <= WRITTEN:
        _write(ax, image, table)
    best = points[int(selection.best_index)]
    _frame(ax, columns.index(short(best[x])), rows.index(short(best[y])))
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def _names(points: Any, x: str | None, y: str | None) -> tuple[str, str]:
    found = changing(points)
    for name in (x, y):
        if name is not None:
            check_name(points, name)
    if x is not None and x == y:
        raise ValueError(f"x and y are both {x!r}; give two hyper-parameters")
    left = [name for name in found if name not in (x, y)]
    wanted = (x is None) + (y is None)
    if wanted and len(left) != wanted:
        raise ValueError(f"the grid changes {', '.join(found) or 'nothing'}; name two hyper-parameters as x and y")
    return x or left.pop(0), y or left.pop(0)


def _write(ax: Any, image: Any, table: np.ndarray) -> None:
    """Write the score into every cell, in black or white, whichever can be read."""
    for (i, j), score in np.ndenumerate(table):
        if np.isfinite(score):
            red, green, blue, _ = image.cmap(image.norm(score))
            light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
            colour = "black" if light > 0.45 else "white"
            ax.text(j, i, f"{score:.3f}", ha="center", va="center", color=colour, fontsize="small")


def _frame(ax: Any, column: int, row: int) -> None:
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, fill=False, edgecolor=COLOURS[1], linewidth=3.0, clip_on=False)
    )
