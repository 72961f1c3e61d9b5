"""Plots of the progress of fits: gap, objective and bound against time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn.errors import did_you_mean
from mdlearn.forms.proof import State
from mdlearn.plotting.style import MARKERS, add_legend, curve_style, plot_axes, plot_items

SYMLOG_RATIO = 5.0
"""Ratio of the largest value to the last objective beyond which a linear axis shows nothing of the end."""
SMALLEST_DRAWN_GAP = 1e-17
"""A gap of 0 has no place on a logarithmic axis; it is drawn here, below what float64 can tell from 0."""


def gap_history(
    models: Any,
    *,
    against: str = "seconds",
    value: str = "gap",
    labels: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Plot the progress of fits: the relative gap of one or several models, or the two values that it lies between.

    The smallest gap so far, as the engine estimates it at each report; logarithmic. A marker stands at the last report.
    A model of several problems (one per class or pair) has one line for each, all in one style: every problem has a gap
    and an end of its own, and against seconds they follow each other.

    Parameters
    ----------
    models : Model, or a sequence or mapping of models
        What has a `history`. The keys of a mapping are the labels of the curves.
    against : {"seconds", "iterations"}, default "seconds"
        Seconds since fit was entered, or reports of the engine, which each problem counts from 1. What an iteration
        costs differs from engine to engine.
    value : {"gap", "bounds"}, default "gap"
        "bounds" draws the smallest objective so far as a solid line and the largest lower bound as a dashed one, with
        the optimum somewhere in the tint between them.
    labels : sequence of str, optional
        One name per model for the legend. Default: the keys of a mapping, else objective, kernel and engine;
        a single model without a name has no legend.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. Default: the axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        A thin line marks the `tol` of the certificates, where all have the same.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError, ValueError
        If there is nothing to draw, or an argument does not fit.
    """
    for name, given, (one, other) in (
        ("against", against, ("seconds", "iterations")),
        ("value", value, ("gap", "bounds")),
    ):
        if given not in (one, other):
            hint = did_you_mean(given, (one, other))
            raise ValueError(f"{name}={given!r} is unknown; give {one!r} or {other!r}{hint}")
    items, names = plot_items(models, labels, hasattr(models, "history"), "a sequence of models")
    problems = [_plotted_progress_by_problem(model) for model in items]
    shown = names or _progress_names(items)
    ax = plot_axes(ax)
    ax.set_xlabel("time [s]" if against == "seconds" else "iterations")
    if value == "bounds":
        return _plot_progress_bounds(ax, problems, against, shown)
    ax.set_yscale("log")
    _draw_progress_tolerance(ax, items)
    for i, (own, name) in enumerate(zip(problems, shown)):
        thin = {"linewidth": 1.6 if len(own) == 1 else 1.0}
        for j, states in enumerate(own):
            ax.plot(
                _plotted_progress_times(states, against),
                [max(state.gap, SMALLEST_DRAWN_GAP) for state in states],
                drawstyle="steps-post",
                label=name if j == 0 else "_" + name,
                marker=MARKERS[i % len(MARKERS)],
                markevery=[len(states) - 1],
                markersize=5,
                **{**curve_style(i), **thin},
            )
    if ax.get_xscale() == "linear":
        ax.locator_params(axis="x", nbins=6)  # labels such as 0.0125 are long
    ax.set_ylabel("relative gap")
    if names or len(items) > 1:
        add_legend(ax)
    return ax


def _plot_progress_bounds(ax: Any, problems: Sequence[list[list[State]]], against: str, names: Sequence[str]) -> Any:
    """Plot progress of objective and bound by problem; logarithmic where the first values are far from the last."""
    values, ends = list[float](), list[float]()
    for i, (own, name) in enumerate(zip(problems, names)):
        look = {"color": curve_style(i)["color"], "drawstyle": "steps-post", "markersize": 5}
        for j, states in enumerate(own):
            when = _plotted_progress_times(states, against)
            above = np.minimum.accumulate([state.objective for state in states])
            below = np.maximum.accumulate([state.lower_bound for state in states])
            look |= {"marker": MARKERS[i % len(MARKERS)], "markevery": [len(states) - 1]}
            ax.plot(when, above, label=f"{'_' * (j > 0)}{name}: objective", **look)
            if np.isfinite(below).any():
                ax.plot(when, below, linestyle="dashed", label=f"{'_' * (j > 0)}{name}: lower bound", **look)
                ax.fill_between(when, below, above, step="post", color=look["color"], alpha=0.08, linewidth=0)
            values += [*np.abs(above), *np.abs(below[np.isfinite(below)])]
            ends.append(float(abs(above[-1])))
    if max(values) > SYMLOG_RATIO * max(ends) > 0:
        ax.set_yscale("symlog", linthresh=max(ends))
    ax.set_ylabel("objective and lower bound")
    add_legend(ax)
    return ax


def _plotted_progress_times(states: Sequence[State], against: str) -> list[float]:
    """Times of the states of a fit in a plot of its progress: seconds or iterations."""
    return [state.elapsed if against == "seconds" else state.iteration for state in states]


def _plotted_progress_by_problem(model: Any) -> list[list[State]]:
    """History of every problem of a model for a plot of progress, as far as gaps were known."""
    if not hasattr(model, "history"):
        raise TypeError(f"{type(model).__name__!r} object has no history; give models that `fit` returned")
    found: dict[int, list[State]] = {}
    for state in model.history:
        if np.isfinite(state.gap):
            found.setdefault(state.problem, []).append(state)
    if not found:
        raise ValueError(f"the history of {model!r} knows no gap; there is nothing to plot")
    return [states for _, states in sorted(found.items())]


def _progress_names(models: Sequence[Any]) -> list[str]:
    """Name of every model in a plot of progress: objective, kernel and engine; a number if that is not enough."""
    names = []
    for model in models:
        parts = [getattr(model, "objective", ""), getattr(getattr(model, "kernel", None), "name", "")]
        names.append(", ".join(str(part) for part in (*parts, getattr(model, "solver", "")) if part) or "model")
    return [f"{name} {i + 1}" if names.count(name) > 1 else name for i, name in enumerate(names)]


def _draw_progress_tolerance(ax: Any, models: Sequence[Any]) -> None:
    """Draw a line at the tolerance in a plot of progress, where all models share one."""
    tols = {getattr(getattr(model, "certificate", None), "tol", None) for model in models}
    tol = tols.pop() if len(tols) == 1 else None
    if tol:
        ax.axhline(tol, color="0.6", linewidth=0.8, zorder=1)
        ax.annotate(
            "tol",
            (1, tol),
            xycoords=ax.get_yaxis_transform(),
            xytext=(-2, 2),
            textcoords="offset points",
            ha="right",
            va="bottom",
            color="0.35",
            fontsize="small",
        )
