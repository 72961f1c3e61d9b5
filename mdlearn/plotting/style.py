"""Style that all plots share: colours, dashes and markers, axes, rows to mark, and where the legend stands."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe & Ito's colours for the colour-blind, dark ones first; their yellow is left out, it vanishes on white."""
# Five dashes against seven colours: 35 curves before a pair repeats, and neighbours differ without colour.
DASHES = ("solid", (0, (6, 2)), (0, (1, 1.3)), (0, (7, 2, 1, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))
NARROW_AXES = 3.6
"""Inches of axes that are too narrow to give half of them to a legend."""
LEGEND_LINE_HEIGHT = 0.17
"""Inches of a line of a small legend."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
VISIBLE_SUPPORT = 1e-4
"""Share of the largest dual coefficient below which a row holds nothing: interior points leave a trace on every row."""


def curve_style(i: int) -> dict[str, Any]:
    """Style of curve number i in a plot: colour and dashes."""
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)], "linewidth": 1.6}


def value_label(value: Any) -> str:
    """Label of a hyper-parameter's value, in the style of all plots."""
    return f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)


def plot_axes(ax: Any, size: tuple[float, float] = (7.0, 4.0)) -> Any:
    """Axes in the style of all plots: those given, or of a new figure (sizes in inches) with room for a legend."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib, which is missing; run: pip install "mdlearn[plot]"') from error
    return pyplot.subplots(figsize=size, layout="constrained")[1]


def plotted_support_rows(model: Any) -> np.ndarray:
    """Rows of `support_` that plots mark, in one style: a dual coefficient above 1e-4 of the largest, or all."""
    rows = np.asarray(getattr(model, "support_", ()), dtype=np.intp)
    alpha = getattr(model, "dual_coef_", None)
    if alpha is None or not rows.size or np.shape(alpha)[-1] <= rows.max():
        return rows
    size = np.abs(np.asarray(alpha)[:, rows]).max(axis=0)
    return rows[size > VISIBLE_SUPPORT * size.max()]


def add_legend(ax: Any, handles: Sequence[Any] | None = None) -> None:
    """Put the legend, in the style of all plots, beside wide axes and below narrow ones, where it covers nothing.

    A layout engine of the figure makes room for it; without one the axes give up room of their own. Long names are
    broken into lines.
    """
    handles = ax.get_legend_handles_labels()[0] if handles is None else list(handles)
    if not handles:
        return
    box, (width, height) = ax.get_position(), ax.get_figure().get_size_inches()
    width, height = box.width * width, box.height * height
    narrow = width < NARROW_AXES
    letters = max(10, int((7 if narrow else 5) * width))
    names = ["\n".join(textwrap.wrap(str(handle.get_label()), letters)) or " " for handle in handles]
    # Long handles show a whole period of the longest dash.
    look: dict[str, Any] = {"handlelength": 3.6, "frameon": False}
    if narrow:
        columns = max(1, int(7 * width / (max(map(_legend_text_width, names)) + 6)))
        lines = sum(name.count("\n") + 1 for name in names) / columns
        look |= {"fontsize": "small", **_legend_place_below(ax, columns)}
        if LEGEND_LINE_HEIGHT * lines > height / 2:
            columns = max(2, int(13 * width / (max(map(_legend_text_width, names)) + 4)))
            look |= {"fontsize": "xx-small", "ncols": columns, "handlelength": 2.0, "columnspacing": 0.8}
            look |= {"labelspacing": 0.1, "handletextpad": 0.4, "borderpad": 0.0, "borderaxespad": 0.0}
    else:
        look |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    legend = ax.legend(handles, names, **look)
    if ax.figure.get_layout_engine() is None:
        _shrink_axes_for_legend(ax, legend, narrow)


def _shrink_axes_for_legend(ax: Any, legend: Any, below: bool) -> None:
    """Shrink axes by the room of their legend, in the style of all plots."""
    figure = ax.figure.figure
    figure.draw_without_rendering()
    place = legend.get_window_extent().transformed(figure.transFigure.inverted())
    box, edge = ax.get_position(), 0.01
    width, height = (0.0, max(edge - place.y0, 0.0)) if below else (max(place.x1 - 1.0 + edge, 0.0), 0.0)
    ax.set_position([box.x0, box.y0 + height, box.width - width, box.height - height])


def _legend_text_width(name: str) -> int:
    """Width of a legend's entry in the style of all plots, in characters: that of its longest line."""
    return max(map(len, name.split("\n")))


def _legend_place_below(ax: Any, columns: int) -> dict[str, Any]:
    """Place of a legend below the axes in the style of all plots, under tick labels and label."""
    from matplotlib import rcParams
    from matplotlib.transforms import ScaledTranslation

    drop = -3.9 * rcParams["font.size"] / 72
    place = ax.transAxes + ScaledTranslation(0, drop, ax.get_figure().dpi_scale_trans)
    box = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0), "bbox_transform": place}
    return {**box, "ncols": columns, "columnspacing": 1.0, "frameon": False}


def plot_items(given: Any, labels: Sequence[str] | None, single: bool, what: str) -> tuple[list[Any], list[str] | None]:
    """List of what is to be drawn in a plot of any style, and its names where there are any.

    `single`: whether `given` is one thing to draw rather than several; `what`: what such a thing is, for errors.
    Raises TypeError, ValueError if there is nothing to draw, or the labels do not fit.
    """
    if isinstance(given, Mapping):
        if labels is not None:
            raise ValueError("labels were given beside a mapping, whose keys are the labels; leave one of them out")
        items, labels = list(given.values()), [str(key) for key in given]
    elif single:
        items = [given]
    else:
        try:
            items = list(given)
        except TypeError:
            raise TypeError(f"{type(given).__name__!r} object is neither a Model nor {what}") from None
    if not items:
        raise ValueError(f"there is nothing to plot; pass at least one model or {what.removeprefix('an ')}")
    if labels is None:
        return items, None
    if isinstance(labels, str) or len(labels) != len(items):
        raise ValueError(f"labels={labels!r} does not name {len(items)} curves; give a sequence with one name for each")
    return items, [str(name) for name in labels]
