"""Figure 2: logistic regression and MDLM in feature space and in logistic space."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn import datasets, plotting
from mdlearn.extend import MARKERS, curve_style
from mdlearn_papers.comparing import certificates
from mdlearn_papers.documents import Picture, Report, Table
from mdlearn_papers.judging import judged
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, generator
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

ROWS = 200
MEANS, SCALES = ((5, 5), (8, 8)), ((3, 1), (1, 1))
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "LR": ("l2lr", {"lam": 0.0}),
    "MDLM": ("mdlm", {"alpha": 5.0, "lambda1": 1.0, "lambda2": 0.125, "ridge": 0.0}),
}
"""MDLM with the library's defaults, but without a squared norm."""


def sample(seed: int) -> Parts:
    """Training rows and as many test rows."""
    rng = generator(seed, "gaussians-8-figure", 0)
    X, y = datasets.two_gaussians(ROWS, means=MEANS, scales=SCALES, random_state=rng)
    return Parts(X, y, *datasets.two_gaussians(ROWS, means=MEANS, scales=SCALES, random_state=rng))


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """Both models."""
    return [Unit(0, "gaussians-8-figure", name) for name in MODELS]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One model, its line and its accuracy."""
    objective, params = MODELS[unit.part]
    record, model = judged(unit.data, unit.part, 0, sample(settings.seed), objective, None, bias="free", **params)
    record.values.update(coef=model.coef_[0].tolist(), intercept=float(model.intercept_[0]))
    return [record]


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Two panels for each model, and the margins behind them."""
    parts = sample(settings.seed)
    lines = {one.method: (np.array(one.values["coef"]), one.values["intercept"]) for one in records if one.values}

    def draw(figure: Any) -> None:
        axes = figure.subplots(len(lines), 2, squeeze=False)
        for row, (name, (w, b)) in zip(axes, lines.items()):
            features(row[0], parts, w, b)
            logistic(row[1], parts, w, b)
            row[0].set_title(f"{name}: feature space", fontsize="medium")
            row[1].set_title(f"{name}: logistic space", fontsize="medium")
        axes[0, 0].legend(fontsize="small", loc="lower right")

    rows = []
    for one in records:
        if one.values:
            w, b = lines[one.method]
            z = parts.y * (parts.X @ w + b)
            p = 1.0 / (1.0 + np.exp(-z))
            told = [z.mean(), z.var(), z.min(), p.mean(), p.std()]
            rows.append([one.method, f"{one.values['accuracy']:.3f}", *(f"{value:.3f}" for value in told)])
    header = ["model", "test accuracy", "mean margin", "margin variance", "least margin", "mean p", "deviation of p"]
    return Report(
        EXPERIMENT.title,
        [
            f"{ROWS} training rows of the Gaussians of table 1 with c = 8 (the paper does not say which rows it shows) "
            "and as many test rows. Logistic regression (LR) is without a squared norm, MDLM has alpha = 5, "
            "lambda1 = 1, lambda2 = 1/8; both have a bias. Logistic space is the plane of f(x) and "
            "p(x) = 1 / (1 + exp(-f(x))).",
            Picture("mdlm-fig2", draw, "Left: rows, f = 0 and f = -1, 1. Right: the same rows by f and p.", (8.0, 6.5)),
            Table(header, rows, "Of the training rows; p is the probability of the right class."),
            "LR spreads the rows over the whole curve, because larger margins always lower its loss. The variance term "
            "of MDLM draws the margins of both classes together: they form two groups on the middle of the curve. The "
            "lines between the classes differ little, and so does the accuracy.",
            certificates(records),
        ],
    )


def features(ax: Any, parts: Parts, w: np.ndarray, b: float) -> None:
    """Rows, the line between the classes and the margins."""
    for i, label in enumerate((-1, 1)):
        points(ax, parts.X[parts.y == label], i, f"class {label:+d}")
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    x = np.array([left, right])
    for level, look in ((0.0, curve_style(0)), (-1.0, curve_style(2)), (1.0, curve_style(2))):
        ax.plot(x, (level - b - w[0] * x) / w[1], **{**look, "color": "black"})
    ax.set(xlim=(left, right), ylim=(low, high), xlabel="feature 1", ylabel="feature 2")


def logistic(ax: Any, parts: Parts, w: np.ndarray, b: float) -> None:
    """Rows on the logistic curve."""
    f = parts.X @ w + b
    reach = 1.05 * float(np.abs(f).max())
    t = np.linspace(-reach, reach, 400)
    ax.plot(t, 1.0 / (1.0 + np.exp(-t)), color="0.7", linewidth=1.0, zorder=1)
    for i, label in enumerate((-1, 1)):
        mine = f[parts.y == label]
        points(ax, np.column_stack([mine, 1.0 / (1.0 + np.exp(-mine))]), i, f"class {label:+d}")
    ax.axvline(0.0, color="black", linewidth=0.8, linestyle="dotted")
    ax.set(xlabel="f(x)", ylabel="p(x)", ylim=(-0.05, 1.05))


def points(ax: Any, X: np.ndarray, i: int, label: str) -> None:
    """Markers of one class: filled or open, as prints in grey need it."""
    colour = plotting.COLOURS[1 + i]
    face = colour if i else "none"
    ax.scatter(*X.T, s=16, marker=MARKERS[i], facecolors=face, edgecolors=colour, linewidths=0.8, label=label)


STUDY = Study("mdlm-spaces", units, run)
EXPERIMENT = Experiment("mdlm-fig2", "MDLM paper, figure 2: LR and MDLM in feature and logistic space", STUDY, report)
