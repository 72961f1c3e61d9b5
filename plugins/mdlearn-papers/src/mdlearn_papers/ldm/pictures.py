"""Figures 1 and 3 of the LDM paper: distributions of margins, and accuracy along every parameter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mdlearn import ConvergenceWarning, fit_path, plotting
from mdlearn.extend import MARKERS, accuracy, curve_style
from mdlearn_papers.documents import Block, Picture, Report, Table
from mdlearn_papers.ldm import protocol
from mdlearn_papers.ldm.small import halves, present
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Record, Settings, Study, Unit

SETS = ("parkinsons", "sonar", "vote", "wdbc", "german", "fourclass")
QUICK = SETS[:2]

PAPERS_LDM = "LDM, lambda1 = lambda2 = 2^-2"
EVEN = "LDM, lambda1 = lambda2 = C m / 64"
MEAN = "LDM, lambda1 = C m / 64, lambda2 = C m / 4"
CURVES = {protocol.SVM: (0.0, 0.0), PAPERS_LDM: (0.0, 0.0), EVEN: (1 / 64, 1 / 64), MEAN: (1 / 64, 1 / 4)}
"""lambda1 and lambda2 of figure 1 in units of C m, but for the largest weights of the paper's grid."""
FIGURE1_C = 10.0
FIXED_C, FIXED_WEIGHT = 50.0, 2.0**-5
ALONG_C = tuple(float(C) for C in range(10, 101, 10))
ALONG_WEIGHTS = tuple(2.0**k for k in range(-8, 17, 2))
"""The paper's range ends at 2^-2."""


def margin_units(sets: Sets, settings: Settings) -> list[Unit]:
    """One split of every set."""
    return [Unit(0, name, "margins") for name in present(sets, QUICK if settings.quick else SETS)]


def run_margins(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Margins of the training half, divided by the length of w, for SVM and LDM at the same C."""
    parts = halves(sets, unit.data, settings.seed, unit.repeat)
    scale = FIGURE1_C * parts.y.shape[0]
    most = protocol.WEIGHTS[-1]
    weights = [(most, most) if label == PAPERS_LDM else (a * scale, b * scale) for label, (a, b) in CURVES.items()]
    points = [{"C": FIGURE1_C, "lambda1": one, "lambda2": two} for one, two in weights]
    gamma = protocol.gammas(parts.X, False)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = fit_path("ldm", parts.X, parts.y, points, kernel="rbf", bias="none", n_threads=1, gamma=gamma)
    records = []
    for label, model in zip(CURVES, path):
        z = np.sort(model.margins(parts.X, parts.y, normalized=True))
        values = {"margins": z, "accuracy": accuracy(parts.y_test, model.predict(parts.X_test))}
        proof = model.certificate
        records.append(Record(unit.data, label, unit.repeat, values, {}, 1, int(proof.converged), proof.gap, 0.0))
    return records


def figure1(title: str, records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Cumulative margins of SVM and LDM."""
    names = list(dict.fromkeys(one.data for one in records if one.values))
    curves = {
        name: {one.method: np.asarray(one.values["margins"]) for one in records if one.data == name and one.values}
        for name in names
    }
    text = (
        "Margins of the training half divided by the length of w: one random half of every set, RBF kernel, width half "
        "the average distance, C = 10, no bias. The paper's figure shows representative small sets, with LDM's curve "
        "to the right of the SVM's and a smallest margin that is a little smaller; which kernel, C and weights is not "
        f"known here. {_observed(curves)}"
    )
    rows = []
    for one in records:
        if one.values:
            z = np.asarray(one.values["margins"])
            cells = [f"{value:.4f}" for value in (z.min(), z.mean(), z.var(), z.mean() / z.std())]
            rows.append([f"{one.data}: {one.method}", *cells, f"{one.values['accuracy']:.3f}"])
    header = ["set and method", "smallest", "mean", "variance", "mean / deviation", "test accuracy"]
    size = (9.0, 3.2 * max(1, -(-len(names) // 2)))
    picture = Picture(
        "ldm-fig1", partial(_draw_margins, curves), "Cumulative distributions of normalised margins.", size
    )
    return Report(title, [text, picture, Table(header, rows, "Normalised margins of the training half.")])


def _observed(curves: dict[str, dict[str, np.ndarray]]) -> str:
    """What the curves show, counted over the sets."""
    told = []
    for label in (PAPERS_LDM, EVEN, MEAN):
        pairs = [(own[protocol.SVM], own[label]) for own in curves.values() if label in own and protocol.SVM in own]
        n = len(pairs)
        apart = max((float(np.abs(ours - svm).max() / np.abs(svm).max()) for svm, ours in pairs), default=0.0)
        right = sum(ours.mean() > svm.mean() for svm, ours in pairs)
        smaller = sum(ours.min() < svm.min() for svm, ours in pairs)
        spread = sum(ours.var() < svm.var() for svm, ours in pairs)
        told.append(
            f"{label}: against the SVM the mean margin is larger on {right} of {n} sets, the smallest one smaller on "
            f"{smaller}, the variance smaller on {spread}; the curves are apart by at most {100 * apart:.1f} % of the "
            "SVM's largest margin."
        )
    return " ".join(told)


def _draw_margins(curves: dict[str, dict[str, np.ndarray]], figure: Any) -> None:
    """A panel for every set; one legend."""
    axes = figure.subplots(max(1, -(-len(curves) // 2)), 2, squeeze=False).ravel()
    for ax, (name, own) in zip(axes, curves.items()):
        plotting.cumulative_margins(own, ax=ax)
        ax.set_title(name)
        ax.set_xlabel("margin / length of w")
        ax.get_legend().remove()
    for ax in axes[len(curves) :]:
        ax.set_axis_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, handlelength=3.6, frameon=False)


AXES = {"lambda1": ALONG_WEIGHTS, "lambda2": ALONG_WEIGHTS, "C": ALONG_C}


def axis_units(sets: Sets, settings: Settings) -> list[Unit]:
    """Ten splits of every set, one parameter at a time."""
    names = present(sets, QUICK if settings.quick else SETS)
    return [
        Unit(repeat, name, axis) for repeat in range(2 if settings.quick else 10) for name in names for axis in AXES
    ]


def run_axis(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Test accuracy along one parameter, linear kernel, the others fixed."""
    parts = halves(sets, unit.data, settings.seed, unit.repeat)
    fixed = {"C": FIXED_C, "lambda1": FIXED_WEIGHT, "lambda2": FIXED_WEIGHT}
    points = [fixed | {unit.part: value} for value in AXES[unit.part]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = fit_path("ldm", parts.X, parts.y, points, bias="none", n_threads=1)
    heights = [accuracy(parts.y_test, model.predict(parts.X_test)) for model in path]
    good = int(path.converged.sum())
    gap = float(path.gap.max())
    return [
        Record(unit.data, unit.part, unit.repeat, {"along": heights}, {}, len(points), good, gap, float(path.elapsed))
    ]


def figure3(title: str, records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Accuracy along lambda1, lambda2 and C."""
    names = list(dict.fromkeys(one.data for one in records if one.values))
    means = {
        (name, axis): np.mean([one.values["along"] for one in found], axis=0)
        for name in names
        for axis in AXES
        if (found := [one for one in records if (one.data, one.method) == (name, axis) and one.values])
    }
    rows = []
    for (name, axis), heights in means.items():
        cells = [f"{np.ptp(_papers(axis, heights)):.4f}", "-" if axis == "C" else f"{np.ptp(heights):.4f}"]
        rows.append([f"{name}: {axis}", *cells, f"{AXES[axis][int(heights.argmax())]:g}", f"{heights.max():.3f}"])
    text = (
        "Test accuracy along one parameter, the others fixed at C = 50, lambda1 = lambda2 = 2^-5 (the paper does not "
        "state its values), linear kernel, no bias, 10 random halves (2 with --quick). The paper's figure, lambda1 and "
        "lambda2 from 2^-8 to 2^-2 and C from 10 to 100, is flat. Along lambda1 and lambda2 in that range, which is "
        f"shaded, our mean accuracies move by at most {_flat(means):.4f}, because such weights hardly change the "
        "classifier. They act where they come near C m, and are drawn up to 2^16. Along C the mean accuracies move by "
        f"up to {_flat(means, ('C',)):.4f}."
    )
    caption = (
        "Range of the mean accuracy within the paper's values and over all that are drawn, and where it is largest "
        "(the first of equal values)."
    )
    header = ["set and parameter", "range, paper's values", "range, all values", "largest at", "accuracy there"]
    shown = "Mean test accuracy; the shaded part is the paper's grid."
    blocks: list[Block] = [text, Picture("ldm-fig3", partial(_draw_axes, names, means), shown, (10.0, 4.2))]
    return Report(title, [*blocks, Table(header, rows, caption)])


def _papers(axis: str, heights: np.ndarray) -> np.ndarray:
    """The part of a line that lies in the paper's grid."""
    return heights if axis == "C" else heights[np.array(ALONG_WEIGHTS) <= protocol.WEIGHTS[-1]]


def _flat(means: dict[tuple[str, str], np.ndarray], axes: Sequence[str] = ("lambda1", "lambda2")) -> float:
    """Largest range of a mean accuracy in the paper's grid."""
    return max((float(np.ptp(_papers(axis, line))) for (_, axis), line in means.items() if axis in axes), default=0.0)


def _draw_axes(names: list[str], means: dict[tuple[str, str], np.ndarray], figure: Any) -> None:
    """A panel for every parameter, a line for every set."""
    axes = figure.subplots(1, len(AXES), sharey=True)
    for ax, (axis, values) in zip(axes, AXES.items()):
        for i, name in enumerate(names):
            if (name, axis) in means:
                ax.plot(values, means[name, axis], marker=MARKERS[i], markersize=4, label=name, **curve_style(i))
        ax.set_xlabel(axis)
        if axis != "C":
            ax.set_xscale("log", base=2)
            ax.axvspan(values[0], protocol.WEIGHTS[-1], color="0.9", zorder=0)
    axes[0].set_ylabel("test accuracy")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(names), handlelength=3.6, frameon=False)


MARGINS = Study("ldm-margins", margin_units, run_margins)
SENSITIVITY = Study("ldm-sensitivity", axis_units, run_axis)
