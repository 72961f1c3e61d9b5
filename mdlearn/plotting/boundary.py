"""Plots of a boundary: regions, margins and support vectors of classifiers of two features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn.data.labels import check_labels, check_model_labels
from mdlearn.data.validation import validated_column_names
from mdlearn.plotting.style import COLOURS, MARKERS, add_legend, plot_axes, plotted_support_rows

DRAWN_POINTS = 20_000
"""Most points drawn; of more rows, every class shows some at equal distances."""
TINTS = (0.10, 0.30, 0.20, 0.40, 0.15, 0.35, 0.25)
"""Share of the colour in a region, differing from neighbour to neighbour, for prints in grey."""


def decision_boundary(
    model: Any,
    X: Any,
    y: Any = None,
    *,
    support: bool | None = None,
    resolution: int = 200,
    names: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot the decision boundary of a classifier of two features, and how it got there.

    Regions have the colour of the label that is predicted. For two classes, f = 0 is a solid line and the margins
    f = -1 and f = 1 are dashed, each with its value; for more classes, solid lines are where the two largest scores
    are equal. Rows are
    drawn as one marker per class, filled and open in turn; support vectors are ringed.

    Parameters
    ----------
    model : Model
        With two features; anything with `decision_function` and `classes_` will do.
    X : array-like of shape (n, 2)
        Rows, which set the limits of the picture, too. The column names of a frame become labels of the axes.
    y : array-like of shape (n,), optional
        Labels. Default: the rows are not drawn.
    support : bool, optional
        Whether support vectors are ringed (dual coefficients above 1e-4 of the largest); needs the rows of the fit.
        Default: where X has as many rows as the fit, and at most half of them are support vectors.
    resolution : int, default 200
        Points of the grid along either axis.
    names : sequence of two str, optional
        Labels of the axes.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in; the grid follows their scales, logarithmic ones too. Default: the axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError, ValueError
        For other models than classifiers, another number of features than two, and arguments that do not fit.
    """
    rows, names = _checked_boundary_rows(model, X, names)
    classes = np.asarray(model.classes_)
    codes = None if y is None else check_model_labels(*check_labels(y, rows.shape[0]), classes)
    rings = _boundary_support_rows(model, rows.shape[0], support) if codes is not None else np.empty(0, dtype=np.intp)
    if resolution < 2:
        raise ValueError(f"resolution needs to be at least 2; got {resolution!r}")
    ax = plot_axes(ax, (6.4, 4.4))
    along = [_boundary_grid_positions(axis, rows[:, j], resolution) for j, axis in enumerate((ax.xaxis, ax.yaxis))]
    grid = np.column_stack([part.ravel() for part in np.meshgrid(*along)])
    F = np.asarray(model.decision_function(grid))
    handles = _draw_boundary_regions(ax, along, F.reshape(resolution, resolution, -1), len(classes))
    if codes is not None:
        handles = [
            *_draw_boundary_points(ax, rows, codes, classes.tolist()),
            *_draw_boundary_rings(ax, rows[rings]),
            *handles,
        ]
    ax.set_xlim(along[0][[0, -1]])
    ax.set_ylim(along[1][[0, -1]])
    ax.set_xlabel(names[0])
    ax.set_ylabel(names[1])
    add_legend(ax, handles)
    return ax


def _checked_boundary_rows(model: Any, X: Any, names: Sequence[str] | None) -> tuple[np.ndarray, Sequence[str]]:
    """Rows of two features for a boundary plot, checked, and the names of its axes."""
    if not hasattr(model, "decision_function") or not len(getattr(model, "classes_", ())):
        raise TypeError(f"{model!r} is no classifier; boundaries belong to classes")
    features = getattr(model, "n_features_in_", 2)
    if features != 2:
        raise ValueError(f"the model has {features} features; a boundary can be drawn for 2")
    found = validated_column_names(X)
    given = X.toarray() if hasattr(X, "toarray") else X.to_numpy() if hasattr(X, "to_numpy") else X
    rows = np.asarray(given, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != 2 or not rows.shape[0] or not np.isfinite(rows).all():
        raise ValueError(f"X has shape {rows.shape}; give rows of two finite numbers each")
    if names is not None and (isinstance(names, str) or len(names) != 2):
        raise ValueError(f"names={names!r} does not name two axes; give a sequence of two names")
    return rows, names or found or ("feature 1", "feature 2")


def _boundary_support_rows(model: Any, n: int, support: bool | None) -> np.ndarray:
    """Support rows to draw rings around in a boundary plot."""
    rows = plotted_support_rows(model)
    fitted = getattr(getattr(model, "duals", None), "shape", (n,))[-1]
    if support is None:
        support = fitted == n and rows.max(initial=-1) < n and 2 * rows.shape[0] <= n
    if support and (fitted != n or rows.max(initial=-1) >= n):
        raise ValueError(f"X has {n} rows, but the model was fitted on {fitted}; give those, or support=False")
    return rows if support else rows[:0]


def _boundary_grid_positions(axis: Any, values: np.ndarray, resolution: int) -> np.ndarray:
    """Equally spaced positions on an axis of the boundary plot, a little beyond all values."""
    scale = axis.get_transform()
    with np.errstate(all="ignore"):
        placed = scale.transform(values)
    # A logarithmic scale gives numbers <= 0 some place far out.
    lost = ~np.isfinite(placed) | ((values <= 0) & (axis.get_scale() == "log"))
    if lost.any():
        raise ValueError(f"X has the value {values[lost][0]:g}, which has no place on this axis")
    low, high = placed.min(), placed.max()
    room = 0.06 * (high - low) or 1.0
    return np.asarray(scale.inverted().transform(np.linspace(low - room, high + room, resolution)))


def _draw_boundary_regions(ax: Any, along: Sequence[np.ndarray], F: np.ndarray, k: int) -> list[Any]:
    """Draw tinted regions of classes and the boundary lines between them; return the lines' legend entries."""
    from matplotlib.colors import ListedColormap, to_rgb
    from matplotlib.lines import Line2D

    tints = [tuple(1 - TINTS[i % len(TINTS)] * (1 - part) for part in to_rgb(_boundary_colour(i))) for i in range(k)]
    chosen = (F[:, :, 0] >= 0).astype(float) if F.shape[2] == 1 else F.argmax(axis=2).astype(float)
    ax.pcolormesh(
        *along,
        chosen,
        cmap=ListedColormap(tints),
        vmin=-0.5,
        vmax=k - 0.5,
        shading="nearest",
        zorder=0,
        rasterized=True,
    )
    if F.shape[2] == 1:
        f = F[:, :, 0]
        handles, taken = [], list[np.ndarray]()
        looks: list[tuple[str, list[float], Any, float]] = [
            ("f = 0", [0.0], "solid", 1.6),
            ("f = -1, f = 1", [-1.0, 1.0], "dashed", 1.0),
        ]
        for label, levels, dashes, width in looks:
            drawn = [_draw_boundary_contour(ax, along, f, level, dashes, width, taken) for level in levels]
            if any(drawn):
                handles.append(Line2D([], [], color="black", linewidth=width, linestyle=dashes, label=label))
        return handles
    differences = (F[:, :, i] - np.delete(F, i, axis=2).max(axis=2) for i in range(k))
    drawn = [_draw_boundary_contour(ax, along, f, 0.0, "solid", 1.2, None) for f in differences]
    return [Line2D([], [], color="black", linewidth=1.2, label="equal scores")] if any(drawn) else []


def _draw_boundary_contour(
    ax: Any,
    along: Sequence[np.ndarray],
    f: np.ndarray,
    level: float,
    dashes: str,
    width: float,
    taken: list[np.ndarray] | None,
) -> bool:
    """Draw a line of equal f in a boundary plot, its value off the `taken` places; False where there is none.

    Without a list of such places, the line has no label.
    """
    if not f.min() < level < f.max():  # matplotlib would warn
        return False
    lines = ax.contour(*along, f, levels=[level], colors="black", linestyles=dashes, linewidths=width, zorder=2)
    if taken is not None:
        _label_boundary_contour(ax, lines, level, taken)
    return True


def _label_boundary_contour(ax: Any, lines: Any, level: float, taken: list[np.ndarray]) -> None:
    """Write the value of a boundary plot's line once, as far as can be from other labels and the frame."""
    from matplotlib.patheffects import withStroke

    vertices = np.concatenate([path.vertices for path in lines.get_paths() if len(path.vertices)])
    places = (ax.transData - ax.transAxes).transform(vertices)
    free = np.minimum(places, 1.0 - places).min(axis=1)
    for other in taken:
        free = np.minimum(free, np.hypot(*(places - other).T))
    at = int(free.argmax())
    taken.append(places[at])
    texts = ax.clabel(lines, fmt={level: f"f = {level:g}"}, fontsize="small", manual=[vertices[at]], zorder=5)
    for text in texts or lines.labelTexts:
        # A white edge keeps the value readable among points.
        text.set_path_effects([withStroke(linewidth=2.0, foreground="white")])


def _draw_boundary_points(ax: Any, rows: np.ndarray, codes: np.ndarray, classes: list[Any]) -> list[Any]:
    """Draw the rows of each class as points of a boundary plot; return their entries of the legend."""
    handles, share = [], min(1.0, DRAWN_POINTS / rows.shape[0])
    for i, label in enumerate(classes):
        mine = np.flatnonzero(codes == i)
        if mine.shape[0]:
            mine = mine[np.linspace(0, mine.shape[0] - 1, max(1, round(share * mine.shape[0]))).astype(np.intp)]
        handles += ax.plot(
            *rows[mine].T,
            linestyle="none",
            marker=MARKERS[i % len(MARKERS)],
            markersize=5 if rows.shape[0] <= 400 else 3,
            markeredgecolor=_boundary_colour(i),
            markerfacecolor=_boundary_colour(i) if i % 2 == 0 else "white",
            markeredgewidth=1.0,
            label=str(label),
            zorder=3,
        )
    return handles


def _draw_boundary_rings(ax: Any, rows: np.ndarray) -> list[Any]:
    """Draw rings around support rows of a boundary plot; return their entry of the legend."""
    if not rows.shape[0]:
        return []
    return list(
        ax.plot(
            *rows[:: max(1, rows.shape[0] // DRAWN_POINTS)].T,
            linestyle="none",
            marker="o",
            markersize=8,
            markerfacecolor="none",
            markeredgecolor="0.25",
            markeredgewidth=0.8,
            label="support vectors",
            zorder=4,
        )
    )


def _boundary_colour(i: int) -> str:
    """Colour of class number i in a boundary plot: black is for lines."""
    return COLOURS[1:][i % (len(COLOURS) - 1)]
