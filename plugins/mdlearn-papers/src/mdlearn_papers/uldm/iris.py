"""Figures 1 and 2: boundaries on two classes of iris, for growing C."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mdlearn import fit, plotting
from mdlearn.extend import MARKERS, curve_style
from mdlearn_papers.documents import Block, Picture, Report, Table
from mdlearn_papers.judging import measured
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, taken, unit_range
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

FIGURES: dict[str, tuple[int, tuple[float, ...], tuple[int, ...]]] = {
    "figure 1": (25, (1e-6, 0.1, 1.0), (94, 92, 50)),
    "figure 2": (10, (1e-6, 1e-2, 0.1), (90, 90, 50)),
}
"""Training rows of class 3, the values of C, and the printed accuracies in per cent."""
INPUTS = ("inputs as they are", "inputs in [0, 1]")
READINGS = {
    "C as given": "C itself",
    "C times max K_ii": "C times the largest K_ii of eq. (27)",
    "C times max k(x, x)": "C times the largest k(x, x)",
}
"""Eq. (31), read as not in use, with the matrix K of eq. (27), and with the kernel matrix."""
CM = ("petal length, cm", "petal width, cm")


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """One per figure and scaling of the inputs."""
    if not sets.has("iris"):
        return []
    return [Unit(0, "iris", f"{figure}, {inputs}") for figure in FIGURES for inputs in INPUTS]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Fits with all readings and values of C."""
    figure, inputs = next((f, i) for f in FIGURES for i in INPUTS if unit.part == f"{f}, {i}")
    parts, records = prepared(sets, FIGURES[figure][0], inputs), []
    largest = float(np.square(parts.X).sum(axis=1).max())
    for reading in READINGS:
        for C in FIGURES[figure][1]:
            scaling = "max_diag" if "K_ii" in reading else None
            model = fit(
                "uldm",
                parts.X,
                parts.y,
                C=C * largest if "k(x" in reading else C,
                c_scaling=scaling,
                basis="euclidean",
                random_state=settings.seed,
                n_threads=1,
            )
            one = model.certificate
            values: dict[str, Any] = {
                "accuracy": measured(model, parts)["accuracy"],
                "coef": np.ravel(model.coef_).tolist(),
                "intercept": np.ravel(model.intercept_).tolist(),
            }
            chosen = {"figure": figure, "inputs": inputs, "reading": reading, "C": C}
            records.append(Record("iris", unit.part, 0, values, chosen, 1, int(one.converged), one.gap))
    return records


def prepared(sets: Sets, n_third: int, inputs: str) -> Parts:
    """Classes 2 and 3, features 3 and 4: first rows for training, the last 25 of each class for testing."""
    found = sets.get("iris")
    second, third = np.unique(found.y)[1:]
    rows = np.concatenate([np.flatnonzero(found.y == second), np.flatnonzero(found.y == third)])
    X, y = np.asarray(found.X, dtype=np.float64)[rows, 2:4], np.where(found.y[rows] == second, 1, -1)
    X = unit_range(X) if inputs == INPUTS[1] else X
    train = np.concatenate([np.arange(25), 50 + np.arange(n_third)])
    return taken(X, y, train, np.concatenate([np.arange(25, 50), np.arange(75, 100)]))


STUDY = Study("uldm-iris", units, run)


def report_of(figure: str) -> Callable[[Sequence[Record], Sets, Settings], Report]:
    """The report of one figure."""

    def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
        n_third, values, theirs = FIGURES[figure]
        mine = [one for one in records if one.values and one.chosen["figure"] == figure]
        header = ["inputs", "reading of eq. (31)", *(f"C = {C:g}" for C in values)]
        rows = [["the paper", "not stated", *(f"{told} %" for told in theirs)]]
        for inputs in INPUTS:
            for reading in READINGS:
                found = {one.chosen["C"]: one for one in chosen_of(mine, inputs, reading)}
                rows.append(
                    [inputs, READINGS[reading], *(f"{100 * found[C].values['accuracy']:.0f} %" for C in values)]
                )
        blocks: list[Block] = [
            "Classes 2 and 3 of iris, features 3 and 4, linear ULDM of the inputs themselves. Trained on the first 25 "
            f"rows of class 2 and the first {n_third} of class 3, tested on the last 25 of each.",
            "The paper states neither how inputs are scaled nor which C of eq. (31) its larger values mean, so all "
            "readings are shown. The smallest C, where no reading makes a difference, gives the printed accuracy; as C "
            "grows, the boundary leaves the classes and all rows are given to one of them: 50 %.",
            Table(header, rows, "Accuracy on the 50 test rows."),
        ]
        blocks += [picture(figure, mine, sets, inputs) for inputs in INPUTS]
        return Report(f"Boundaries of the ULDM on iris: {figure} of Abe 2017", blocks)

    return report


def chosen_of(records: Sequence[Record], inputs: str, reading: str) -> list[Record]:
    """Records of one reading."""
    return [one for one in records if one.chosen["inputs"] == inputs and one.chosen["reading"] == reading]


def picture(figure: str, records: Sequence[Record], sets: Sets, inputs: str) -> Picture:
    """One panel per reading: training rows filled, test rows open, one line per C."""

    def draw(canvas: Any) -> None:
        parts = prepared(sets, FIGURES[figure][0], inputs)
        axes = canvas.subplots(1, len(READINGS), sharex=True, sharey=True)
        for ax, reading in zip(axes, READINGS):
            panel(ax, parts, chosen_of(records, inputs, reading))
            ax.set_title(reading, fontsize="medium")
            ax.set_xlabel(CM[0] if inputs == INPUTS[0] else "petal length")
        axes[0].set_ylabel(CM[1] if inputs == INPUTS[0] else "petal width")
        handles, names = axes[-1].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside lower center", ncols=5, frameon=False, handlelength=3.6)

    name = f"uldm-{figure.replace('ure ', '')}-{'given' if inputs == INPUTS[0] else 'unit'}"
    caption = (
        f"{figure.capitalize()}, {inputs}. Markers are filled for training rows and open for test rows; a boundary "
        "that is not seen lies outside."
    )
    return Picture(name, draw, caption, (9.6, 4.2))


def panel(ax: Any, parts: Parts, records: Sequence[Record]) -> None:
    """Rows and the boundaries of one reading."""
    for label, marker, colour, name in (
        (1, MARKERS[0], plotting.COLOURS[1], "class 2"),
        (-1, MARKERS[1], plotting.COLOURS[2], "class 3"),
    ):
        for X, y, filled in ((parts.X, parts.y, True), (parts.X_test, parts.y_test, False)):
            face = colour if filled else "none"
            told = {"label": name} if filled else {}
            ax.scatter(*X[y == label].T, marker=marker, s=16, facecolor=face, edgecolor=colour, linewidth=0.8, **told)
    both = np.vstack([parts.X, parts.X_test])
    low, high = both.min(axis=0), both.max(axis=0)
    room = 0.15 * (high - low)
    along = np.linspace(low[0] - room[0], high[0] + room[0], 2)
    for i, record in enumerate(records):
        (w1, w2), b = record.values["coef"], record.values["intercept"][0]
        ax.plot(
            along,
            -(b + w1 * along) / w2,
            **{**curve_style(i), "color": plotting.COLOURS[0]},
            label=f"C = {record.chosen['C']:g}",
        )
    ax.set_xlim(low[0] - room[0], high[0] + room[0])
    ax.set_ylim(low[1] - room[1], high[1] + room[1])


EXPERIMENTS = (
    Experiment(
        "uldm-fig1", "Abe 2017, figure 1: boundaries on iris, classes of equal size", STUDY, report_of("figure 1")
    ),
    Experiment(
        "uldm-fig2", "Abe 2017, figure 2: boundaries on iris, classes of 25 and 10 rows", STUDY, report_of("figure 2")
    ),
)
