"""Figure 1: hinge, squared, logistic and generalised logistic loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mdlearn.extend import add_legend, curve_style
from mdlearn_papers.documents import Picture, Report, Table
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

MARGINS = np.round(np.linspace(-2.0, 3.0, 101), 12)
SHOWN = (-1.0, 0.0, 1.0, 2.0)
"""Margins of the table."""


def generalised(z: np.ndarray, alpha: float) -> np.ndarray:
    """GLL(z) = ln(1 + exp(-alpha (z - 1))) / alpha."""
    return np.asarray(np.logaddexp(0.0, -alpha * (z - 1.0)) / alpha)


LOSSES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "hinge": lambda z: np.maximum(0.0, 1.0 - z),
    "squared": lambda z: (1.0 - z) ** 2,
    "logistic": lambda z: np.logaddexp(0.0, -z),
    "GLL, alpha = 1": lambda z: generalised(z, 1.0),
    "GLL, alpha = 10": lambda z: generalised(z, 10.0),
}


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """All curves at once."""
    return [Unit(0, "margins", "losses")]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Values of every loss."""
    return [Record(unit.data, name, 0, {"loss": loss(MARGINS).tolist()}) for name, loss in LOSSES.items()]


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """The curves, some values, and how far GLL is from the hinge."""
    values = {record.method: np.array(record.values["loss"]) for record in records}

    def draw(figure: Any) -> None:
        ax = figure.add_subplot()
        for i, (name, loss) in enumerate(values.items()):
            ax.plot(MARGINS, loss, label=name, **curve_style(i))
        ax.set(xlabel="margin z = y f(x)", ylabel="loss", xlim=(-2, 3), ylim=(-0.1, 4))
        add_legend(ax)

    places = [int(np.flatnonzero(MARGINS == z)[0]) for z in SHOWN]
    rows = [[name, *(f"{loss[j]:.4f}" for j in places)] for name, loss in values.items()]
    apart = [
        [f"{alpha:g}", f"{(generalised(MARGINS, alpha) - LOSSES['hinge'](MARGINS)).max():.4f}", f"{limit:.4f}"]
        for alpha, limit in ((alpha, math.log(2.0) / alpha) for alpha in (1.0, 2.0, 5.0, 10.0))
    ]
    return Report(
        EXPERIMENT.title,
        [
            "GLL is the generalised logistic loss ln(1 + exp(-alpha (z - 1))) / alpha of MDLM.",
            Picture("mdlm-fig1", draw, "Losses against the margin."),
            Table(["loss", *(f"z = {z:g}" for z in SHOWN)], rows, "Values."),
            Table(
                ["alpha", "largest distance from the hinge", "ln 2 / alpha"],
                apart,
                "GLL tends to the hinge as alpha grows; the distance is largest at z = 1 and is ln 2 / alpha there.",
            ),
            "The paper says that GLL gives no penalty to margins above 1. It is above 0 everywhere: at z = 2 it is "
            f"{generalised(np.array(2.0), 1.0):.3f} for alpha = 1 and {generalised(np.array(2.0), 10.0):.1e} for "
            "alpha = 10.",
        ],
    )


STUDY = Study("mdlm-losses", units, run)
EXPERIMENT = Experiment("mdlm-fig1", "MDLM paper, figure 1: losses", STUDY, report)
