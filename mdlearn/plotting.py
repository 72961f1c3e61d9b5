"""Plots of margin distributions. Needs matplotlib, which is imported at the first call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mdlearn.margins import cumulative_curve

__all__ = ["cumulative_margins"]

# Okabe & Ito's colours for the colour-blind, dark ones first; their yellow is left out, it vanishes on white.
_COLOURS = ("#000000", "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# Five dashes against seven colours: 35 curves before a pair repeats, and neighbours differ without colour.
_DASHES = ("solid", (0, (6, 2)), (0, (1, 1.3)), (0, (7, 2, 1, 2)), (0, (3, 1.5, 1, 1.5, 1, 1.5)))


def cumulative_margins(
    models_or_arrays: Any,
    X: Any = None,
    y: Any = None,
    *,
    normalized: bool = False,
    labels: Sequence[str] | None = None,
    sample_weight: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the cumulative distribution of the margins of one or several models (LDM paper, figure 1).

    A curve further to the right has larger margins; a steeper one has a smaller margin variance. The height at
    0 is the share of rows on the wrong side. Colours and dashes differ, so that the curves can be told apart
    in grey and by the colour-blind.

    Parameters
    ----------
    models_or_arrays : Model, array-like of shape (n,), or a sequence or mapping of these
        Models give their margins on ``X, y``; arrays are taken as margins. The keys of a mapping are the labels.
    X, y : array-like, optional
        Rows and labels; needed for models, and for nothing else.
    normalized : bool, default False
        Passed on to ``Model.margins``. Arrays are drawn as they are.
    labels : sequence of str, optional
        One name per curve for the legend. Default: the keys of a mapping, else "model 1", "margins 2", ...;
        a single curve without a name has no legend.
    sample_weight : array-like, shape (n,), optional
        Repetition counts, the same for every curve. Default: 1 for every row.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. Default: the axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes
        ``ax.figure.savefig(...)`` saves it. The legend stands beside the axes where the figure has a layout
        engine that makes room for it (a new one does), else in the emptiest corner.

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError, ValueError
        If there is nothing to draw, if ``X`` and ``y`` do not fit what is drawn, or if the labels do not fit; and
        whatever ``Model.margins`` and `mdlearn.margins.cumulative_curve` raise.
    """
    items, names = _named(models_or_arrays, labels)
    are_models = [hasattr(item, "margins") for item in items]
    if any(are_models) and (X is None or y is None):
        raise ValueError("models need X and y to have margins on; pass both, or pass arrays of margins")
    if not any(are_models) and (X is not None or y is not None):
        raise ValueError("X and y are for models, but only arrays of margins were given; leave X and y out")
    curves = []
    for item, is_model in zip(items, are_models):
        z = item.margins(X, y, normalized=normalized) if is_model else item
        curves.append(cumulative_curve(z, sample_weight))
    shown = names or [f"{'model' if is_model else 'margins'} {i + 1}" for i, is_model in enumerate(are_models)]

    if ax is None:
        ax = _new_axes()
    ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=1)
    for i, ((values, share), name) in enumerate(zip(curves, shown)):
        ax.plot(
            # Every curve starts at height 0, at its smallest margin.
            np.concatenate([values[:1], values]),
            np.concatenate([[0.0], share]),
            drawstyle="steps-post",
            color=_COLOURS[i % len(_COLOURS)],
            linestyle=_DASHES[i % len(_DASHES)],
            linewidth=1.6,
            label=name,
        )
    ax.set_xlabel("normalised margin" if normalized and all(are_models) else "margin")
    ax.set_ylabel("cumulative share of rows")
    ax.set_ylim(-0.02, 1.02)
    if names or len(curves) > 1:
        roomy = ax.figure.get_layout_engine() is not None
        place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if roomy else {"loc": "best"}
        # Long handles show a whole period of the longest dash.
        ax.legend(frameon=not roomy, handlelength=3.6, **place)
    return ax


def _named(models_or_arrays: Any, labels: Sequence[str] | None) -> tuple[list[Any], list[str] | None]:
    """What is to be drawn, as a list, and its names where there are any."""
    given = models_or_arrays
    if isinstance(given, Mapping):
        if labels is not None:
            raise ValueError("labels were given beside a mapping, whose keys are the labels; leave one of them out")
        items, labels = list(given.values()), [str(key) for key in given]
    elif hasattr(given, "margins") or hasattr(given, "__array__"):
        items = [given]
    else:
        try:
            items = list(given)
        except TypeError:
            raise TypeError(f"{type(given).__name__!r} object is neither a Model nor an array of margins") from None
        if items and all(np.ndim(item) == 0 and not hasattr(item, "margins") for item in items):
            items = [items]
    if not items:
        raise ValueError("there is nothing to plot; pass at least one model or array of margins")
    if labels is None:
        return items, None
    if isinstance(labels, str) or len(labels) != len(items):
        raise ValueError(f"labels={labels!r} does not name {len(items)} curves; give a sequence with one name for each")
    return items, [str(name) for name in labels]


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib, which is missing; run: pip install "mdlearn[plot]"') from error
    return pyplot.subplots(figsize=(7.0, 4.0), layout="constrained")[1]
