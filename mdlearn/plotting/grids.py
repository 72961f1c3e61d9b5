"""Plots of grids: scores and other values along one hyper-parameter, and scores over two as a heat map."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.errors import did_you_mean
from mdlearn.plotting.style import (
    COLOURS,
    MARKERS,
    add_legend,
    curve_style,
    plot_axes,
    plotted_support_rows,
    value_label,
)

VALUES = ("score", "objective", "coefficients", "n_support")
LEGEND_LINES = 12
"""Most lines that a legend names."""
LEGEND_LINES_OF_MANY = 7
"""Of more lines, so many of the largest values are named; the others are thin and grey."""
HEAT_COLOUR_MAP = "cividis"
"""From dark to light alike for all kinds of colour vision."""
WRITTEN_CELLS = 150
"""Most cells with their score written in them."""


@dataclass(frozen=True, eq=False)
class GridLine:
    """Line in a plot of a grid along one hyper-parameter.

    `heights`, `spread` (shape (p,)): values of all points of the grid, and half the height of a band around them.
    """

    label: str
    points: list[int]  # its points of the grid
    heights: np.ndarray
    spread: np.ndarray | None = None


def path(
    path_or_selection: Any,
    name: str | None = None,
    *,
    value: str | None = None,
    X: Any = None,
    y: Any = None,
    scoring: Any = None,
    ax: Any = None,
) -> Any:
    """Plot how something changes over a grid, along one hyper-parameter.

    Parameters
    ----------
    path_or_selection : what `mdlearn.fit_path` or `mdlearn.select` returns
    name : str, optional
        The hyper-parameter along the axis. Default: the only one that the grid changes. Every combination of the others
        has a line of its own; of more than 12 lines, those with the 7 largest values are named.
    value : {"score", "objective", "coefficients", "n_support"}, optional
        What is plotted. Of a selection: the mean score over the folds, with a star at the best point; a band (of
        several lines, a bar at the star) is one standard deviation wide to either side. Of a path: the score on
        ``X, y``, the certified objective, the coefficients, or the number of support vectors (dual coefficients above
        1e-4 of the largest). Default: "score" where there is one, else "objective".
    X, y : array-like, optional
        Rows and labels on which the models of a path are scored.
    scoring : str or callable, optional
        As for `mdlearn.select`. Default: accuracy (R^2 for regression).
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. Default: the axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        The horizontal axis is logarithmic where the values are positive and span a factor of ten, also with a 0 among
        them; values that are no finite numbers stand side by side.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError, ValueError
        If the hyper-parameter, the value or the rows do not fit.
    """
    given = path_or_selection
    points = getattr(given, "points", None)
    if points is None:
        raise TypeError(f"{type(given).__name__!r} object has no points; give what fit_path or select returned")
    name = _horizontal_axis_of_grid_plot(points, name)
    value, lines, best = _lines_along_grid(given, points, name, value, (X, y, scoring))
    ax = plot_axes(ax)
    places, finish = _positions_of_grid_values([point[name] for point in points])
    lines, rest = _grid_lines_by_legend(lines)
    for line in rest:
        order = sorted(line.points, key=places.__getitem__)
        ax.plot([places[j] for j in order], line.heights[order], color="0.75", linewidth=0.7, label="_" + line.label)
    for i, line in enumerate(lines):
        order = sorted(line.points, key=places.__getitem__)
        at = [places[j] for j in order]
        ax.plot(
            at, line.heights[order], label=line.label, marker=MARKERS[i % len(MARKERS)], markersize=4, **curve_style(i)
        )
        if line.spread is not None and len(lines) == 1:
            low, high = line.heights[order] - line.spread[order], line.heights[order] + line.spread[order]
            ax.fill_between(at, low, high, color=curve_style(i)["color"], alpha=0.12, linewidth=0)
    if best is not None:
        _draw_best_on_grid_plot(ax, places[best], next(line for line in lines + rest if best in line.points), best)
    finish(ax)
    ax.set_xlabel(name)
    ax.set_ylabel(value)
    if best is not None or len(lines) > 1:
        add_legend(ax, [line for line in ax.lines if not str(line.get_label()).startswith("_")])
    return ax


def _grid_lines_by_legend(lines: list[GridLine]) -> tuple[list[GridLine], list[GridLine]]:
    """Lines in a plot of a grid that the legend names, and those without a name."""
    if len(lines) <= LEGEND_LINES:
        return lines, []
    order = sorted(range(len(lines)), key=lambda i: -np.nanmax(np.abs(lines[i].heights[lines[i].points])))
    return [lines[i] for i in order[:LEGEND_LINES_OF_MANY]], [lines[i] for i in sorted(order[LEGEND_LINES_OF_MANY:])]


def _draw_best_on_grid_plot(ax: Any, place: float, line: GridLine, best: int) -> None:
    """Draw the best point of a grid as a star, with a bar of one standard deviation."""
    height, spread = float(line.heights[best]), 0.0 if line.spread is None else float(line.spread[best])
    ax.vlines([place], height - spread, height + spread, color="0.35", linewidth=0.8, zorder=1)
    mark = {"marker": "*", "markersize": 13, "markeredgecolor": "black", "markerfacecolor": "white"}
    ax.plot([place], [height], linestyle="none", zorder=5, label="best", **mark)


def _varying_axes_of_grid_plot(points: Sequence[dict[str, Any]]) -> list[str]:
    """Hyper-parameters that vary among the points of a grid to plot."""
    return [key for key in _parameters_of_grid_plot(points) if len({repr(point.get(key)) for point in points}) > 1]


def _parameters_of_grid_plot(points: Sequence[dict[str, Any]]) -> list[str]:
    """Hyper-parameters of all points of a grid to plot, each once."""
    return list(dict.fromkeys(key for point in points for key in point))


def _check_axis_of_grid_plot(points: Sequence[dict[str, Any]], name: str) -> None:
    """Raise ValueError unless all points of a grid to plot have this hyper-parameter."""
    if any(name not in point for point in points):
        known = _parameters_of_grid_plot(points)
        hint = did_you_mean(name, known)
        raise ValueError(f"the grid has no hyper-parameter {name!r} in every point; it has {', '.join(known)}{hint}")


def _horizontal_axis_of_grid_plot(points: Sequence[dict[str, Any]], name: str | None) -> str:
    """Hyper-parameter along the horizontal axis of a grid's plot: the one named, or the only one that varies."""
    if name is None:
        found = _varying_axes_of_grid_plot(points)
        if len(found) != 1:
            raise ValueError(
                f"the grid changes {', '.join(found) or 'nothing'}; name the hyper-parameter to plot along"
            )
        return found[0]
    _check_axis_of_grid_plot(points, name)
    return name


def _lines_along_grid(
    given: Any, points: Sequence[dict[str, Any]], name: str, value: str | None, judged: tuple[Any, Any, Any]
) -> tuple[str, list[GridLine], int | None]:
    """Label of the vertical axis, the lines along a grid to plot, and the best point of a selection."""
    X, y, scoring = judged
    if value is not None and value not in VALUES:
        raise ValueError(f"value={value!r} is unknown; give one of {', '.join(VALUES)}{did_you_mean(value, VALUES)}")
    groups: dict[str, list[int]] = {}
    for i, point in enumerate(points):
        groups.setdefault(", ".join(f"{key}={value_label(point[key])}" for key in point if key != name), []).append(i)
    if hasattr(given, "mean_scores"):
        if value not in (None, "score") or X is not None or y is not None:
            raise ValueError("a selection has scores of its own; other values belong to what fit_path returns")
        mean, spread = np.asarray(given.mean_scores), np.asarray(given.std_scores)
        lines = [GridLine(label, group, mean, spread) for label, group in groups.items()]
        what = str(getattr(given, "scoring", "score")).replace("_", " ")
        return f"{what}, mean over folds", lines, int(given.best_index)
    value = value or ("score" if X is not None else "objective")
    if value == "coefficients":
        return "coefficient", _coefficient_lines_of_grid(given, groups), None
    if value == "score":
        if X is None or y is None:
            raise ValueError("scores of a path need X and y")
        heights = np.asarray(given.score(X, y) if scoring is None else given.score(X, y, scoring=scoring))
        plain = getattr(given[0], "measure", "score") if scoring is None else "score"
        value = scoring.replace("_", " ") if isinstance(scoring, str) else plain
    elif value == "n_support":
        heights = np.array([plotted_support_rows(model).shape[0] for model in given])
        value = "support vectors"
    else:
        heights = np.asarray(given.objective)
    return value, [GridLine(label, group, heights) for label, group in groups.items()], None


def _coefficient_lines_of_grid(given: Any, groups: dict[str, list[int]]) -> list[GridLine]:
    """Lines of linear models' coefficients along a grid to plot, with a name each."""
    if len(groups) > 1:
        raise ValueError("coefficients can be plotted where the grid changes one hyper-parameter; fit such a path")
    (group,) = groups.values()
    models = list(given)
    if not hasattr(models[0], "coef_"):
        raise ValueError("coefficients exist for the linear kernel only; plot another value")
    W = np.array([np.ravel(model.coef_) for model in models])
    problems, features = len(models[0].coef_), getattr(models[0], "feature_names_in_", None)
    names = [f"feature {j + 1}" for j in range(W.shape[1] // problems)]
    if features is not None and len(features) == len(names):
        names = [str(name) for name in features]
    if problems > 1:
        labels = models[0].classes_.tolist()
        owners = labels if len(labels) == problems else range(1, problems + 1)
        names = [f"{name} ({owner})" for owner in owners for name in names]
    return [GridLine(name, group, W[:, j]) for j, name in enumerate(names)]


def _is_grid_plot_axis_numeric(values: Sequence[Any]) -> bool:
    """Whether all values of a hyper-parameter in a grid to plot are numbers."""
    return all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values)


def _grid_tick_labels(values: Sequence[Any]) -> list[str]:
    """Labels of different grid values on an axis; numbers by size, others in the order given."""
    return list(dict.fromkeys(map(value_label, sorted(values) if _is_grid_plot_axis_numeric(values) else values)))


def _positions_of_grid_values(values: Sequence[Any]) -> tuple[list[float], Callable[[Any], None]]:
    """Positions of grid values on the horizontal axis, and a function that sets the scale or the ticks."""
    if not _is_grid_plot_axis_numeric(values) or not np.isfinite(np.array(values, dtype=float)).all():
        known = _grid_tick_labels(values)
        places = [float(known.index(value_label(value))) for value in values]
        return places, lambda ax: ax.set_xticks(range(len(known)), known)
    numbers = [float(value) for value in values]
    positive = [number for number in numbers if number > 0]
    if min(numbers) < 0 or not positive or max(positive) < 10 * min(positive):
        return numbers, lambda ax: None
    if len(positive) == len(numbers):
        return numbers, lambda ax: ax.set_xscale("log")
    return numbers, lambda ax: ax.set_xscale("symlog", linthresh=10.0 ** math.floor(math.log10(min(positive))))


def grid(selection: Any, x: str | None = None, y: str | None = None, *, ax: Any = None) -> Any:
    """Plot the mean scores of a selection over a grid of two hyper-parameters as a heat map.

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
    x, y = _heat_map_parameters(points, x, y)
    columns, rows = (_grid_tick_labels([point[name] for point in points]) for name in (x, y))
    table = np.full((len(rows), len(columns)), np.nan)
    for point, score in zip(points, scores):
        at = rows.index(value_label(point[y])), columns.index(value_label(point[x]))
        table[at] = np.fmax(table[at], score)
    ax = plot_axes(ax)
    ax.set_facecolor("0.85")
    image = ax.imshow(table, origin="lower", aspect="auto", cmap=HEAT_COLOUR_MAP)
    bar = ax.figure.colorbar(image, ax=ax)
    bar.set_label(f"{str(getattr(selection, 'scoring', 'score')).replace('_', ' ')}, mean over folds")
    if table.size <= WRITTEN_CELLS:
        _write_heat_map_scores(ax, image, table)
    best = points[int(selection.best_index)]
    _frame_heat_map_cell(ax, columns.index(value_label(best[x])), rows.index(value_label(best[y])))
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    return ax


def _heat_map_parameters(points: Any, x: str | None, y: str | None) -> tuple[str, str]:
    """Hyper-parameters of a grid's heat map on its two axes: those named, or those that vary."""
    found = _varying_axes_of_grid_plot(points)
    for name in (x, y):
        if name is not None:
            _check_axis_of_grid_plot(points, name)
    if x is not None and x == y:
        raise ValueError(f"x and y are both {x!r}; give two hyper-parameters")
    left = [name for name in found if name not in (x, y)]
    wanted = (x is None) + (y is None)
    if wanted and len(left) != wanted:
        raise ValueError(f"the grid changes {', '.join(found) or 'nothing'}; name two hyper-parameters as x and y")
    return x or left.pop(0), y or left.pop(0)


def _write_heat_map_scores(ax: Any, image: Any, table: np.ndarray) -> None:
    """Write the score into every cell of a grid's heat map, in black or white, whichever can be read."""
    for (i, j), score in np.ndenumerate(table):
        if np.isfinite(score):
            red, green, blue, _ = image.cmap(image.norm(score))
            light = 0.2126 * red + 0.7152 * green + 0.0722 * blue
            colour = "black" if light > 0.45 else "white"
            ax.text(j, i, f"{score:.3f}", ha="center", va="center", color=colour, fontsize="small")


def _frame_heat_map_cell(ax: Any, column: int, row: int) -> None:
    """Draw a frame around one cell of a grid's heat map."""
    from matplotlib.patches import Rectangle

    ax.add_patch(
        Rectangle((column - 0.5, row - 0.5), 1.0, 1.0, fill=False, edgecolor=COLOURS[1], linewidth=3.0, clip_on=False)
    )
