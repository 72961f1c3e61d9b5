"""Plots of cumulative distributions: of margins and of signed probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn.data.labels import check_labels, check_model_labels
from mdlearn.margins import cumulative_curve
from mdlearn.plotting.style import add_legend, curve_style, plot_axes, plot_items

SCALE_RATIO = 2.0
"""Ratio of mean absolute margins above which curves do not share an axis as they are."""
DRAWN_STEPS = 20_000
"""Steps of a curve that are drawn one by one; of longer curves, as many as can be seen."""


def cumulative_margins(
    models_or_arrays: Any,
    X: Any = None,
    y: Any = None,
    *,
    normalized: bool | None = None,
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
    normalized : bool, optional
        Whether ``Model.margins`` divides by the length of w; arrays are then drawn as they are. Default: no, but where
        the mean absolute margins of several curves differ by more than a factor of two, each is divided by its own:
        on this axis models of different scale can be compared.
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
    items, names = plot_items(models_or_arrays, labels, _is_one_distribution(models_or_arrays), "an array of margins")
    are_models = [hasattr(item, "margins") for item in items]
    if any(are_models) and (X is None or y is None):
        raise ValueError("models need X and y to have margins on; pass both, or pass arrays of margins")
    if not any(are_models) and (X is not None or y is not None):
        raise ValueError("X and y are for models, but only arrays of margins were given; leave X and y out")
    curves = []
    for item, is_model in zip(items, are_models):
        z = item.margins(X, y, normalized=bool(normalized)) if is_model else item
        curves.append(cumulative_curve(z, sample_weight))
    scales = [scale for scale in (_distribution_scale(*curve) for curve in curves) if scale > 0]
    scaled = normalized is None and len(scales) > 1 and max(scales) > SCALE_RATIO * min(scales)
    if scaled:
        curves = [(values / (_distribution_scale(values, share) or 1.0), share) for values, share in curves]
    shown = names or [f"{'model' if is_model else 'margins'} {i + 1}" for i, is_model in enumerate(are_models)]

    ax = _draw_distributions(ax, curves, shown, bool(names))
    plain = "normalised margin" if normalized and all(are_models) else "margin"
    ax.set_xlabel("margin / mean absolute margin" if scaled else plain)
    return ax


def cumulative_probabilities(
    models: Any,
    X: Any,
    y: Any,
    *,
    labels: Sequence[str] | None = None,
    sample_weight: Any = None,
    ax: Any = None,
) -> Any:
    """Plot the cumulative distribution of signed probabilities of one or several models (MDLM paper, figure 3).

    The signed probability of a row is the probability of the label that is predicted, and its negative where that
    label is wrong: sure mistakes lie at -1, sure hits at 1. The height at 0 is the share of rows on the wrong side.

    Parameters
    ----------
    models : Model, or a sequence or mapping of models
        With `predict_proba`, for two or more classes. The keys of a mapping are the labels of the curves.
    X, y : array-like
        Rows, shape (n, d), and their labels, shape (n,).
    labels : sequence of str, optional
        One name per curve for the legend. Default: as for `cumulative_margins`.
    sample_weight : array-like, shape (n,), optional
        Repetition counts. Default: 1 for every row.
    ax : matplotlib.axes.Axes, optional
        Axes to draw in. Default: the axes of a new pyplot figure.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ImportError
        If matplotlib is missing.
    TypeError
        If a model has no probabilities.
    ValueError
        If there is nothing to draw, or a label is one that no model knows.
    """
    items, names = plot_items(models, labels, hasattr(models, "classes_"), "a sequence of models")
    curves = [cumulative_curve(_signed_distribution(model, X, y), sample_weight) for model in items]
    ax = _draw_distributions(ax, curves, names or [f"model {i + 1}" for i in range(len(items))], bool(names))
    ax.set_xlabel("signed probability of the predicted label")
    ax.set_xlim(-1.05, 1.05)
    ax.set_xticks([-1, -0.5, 0, 0.5, 1])
    return ax


def _distribution_scale(values: np.ndarray, share: np.ndarray) -> float:
    """Mean absolute value of a cumulative distribution to plot."""
    return float(np.abs(values) @ np.diff(share, prepend=0.0))


def _is_one_distribution(given: Any) -> bool:
    """Whether this is one model or array of margins for a plot of distributions, perhaps as a list of numbers."""
    if hasattr(given, "margins") or hasattr(given, "__array__"):
        return True
    numbers = isinstance(given, Sequence) and len(given) > 0 and not isinstance(given, str)
    return numbers and all(np.ndim(item) == 0 and not hasattr(item, "margins") for item in given)


def _signed_distribution(model: Any, X: Any, y: Any) -> np.ndarray:
    """Probability of each predicted label, signed by whether it is right, for a plot of distributions."""
    probability = getattr(model, "predict_proba", None)
    if probability is None:
        what = (
            f"the model of {model.objective!r}" if hasattr(model, "objective") else f"{type(model).__name__!r} object"
        )
        raise TypeError(f"{what} has no predict_proba; plot its margins, or fit an objective with probabilities")
    P = np.asarray(probability(X))
    right = check_model_labels(*check_labels(y, P.shape[0]), np.asarray(model.classes_)) == P.argmax(axis=1)
    return np.where(right, 1.0, -1.0) * P.max(axis=1)


def _draw_distributions(
    ax: Any, curves: Sequence[tuple[np.ndarray, np.ndarray]], names: Sequence[str], legend: bool
) -> Any:
    """Draw cumulative distributions as steps, and a thin line at 0; return the axes."""
    ax = plot_axes(ax)
    ax.axvline(0.0, color="0.6", linewidth=0.8, zorder=1)
    for i, ((values, share), name) in enumerate(zip(curves, names)):
        seen = _visible_distribution_steps(values, share)
        ax.plot(
            # Every curve starts at height 0, at its smallest value.
            np.concatenate([values[:1], values[seen]]),
            np.concatenate([[0.0], share[seen]]),
            drawstyle="steps-post",
            label=name,
            **curve_style(i),
        )
    ax.set_ylabel("cumulative share of rows")
    ax.set_ylim(-0.02, 1.02)
    if legend or len(curves) > 1:
        add_legend(ax)
    return ax


def _visible_distribution_steps(values: np.ndarray, share: np.ndarray) -> Any:
    """Steps of a cumulative distribution to draw: all, or the first of every 1/5000 of width and height."""
    if values.shape[0] <= DRAWN_STEPS:
        return slice(None)
    width = (values - values[0]) / (values[-1] - values[0])
    moved = np.zeros(values.shape[0], dtype=bool)
    moved[[0, -1]] = True
    for along in (width, share):
        moved[1:] |= np.diff(np.floor(5000 * along)) > 0
    return np.flatnonzero(moved)
