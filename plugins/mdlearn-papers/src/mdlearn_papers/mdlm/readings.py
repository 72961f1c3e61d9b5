"""Other readings of table 3: scaling, bias, coding, kernel, and the full grid; which come closest to the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mdlearn_papers.comparing import scores
from mdlearn_papers.documents import Table
from mdlearn_papers.mdlm.protocol import LINES, METHODS, UNSOLVABLE, Method, has, rows, split
from mdlearn_papers.printed import Figures
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, mean_distance, unit_deviation, unit_range
from mdlearn_papers.studies import Record, Settings, Unit

FEW = 4
"""Halves on which readings are judged."""
WIDTHS = (0.5, 1.0, 2.0)
"""Of the RBF kernel, in mean distances of the training rows."""


def as_given(X: np.ndarray) -> np.ndarray:
    """Columns as they are."""
    return X


def by_range(X: np.ndarray) -> np.ndarray:
    """Columns in [-1, 1]."""
    return 2.0 * unit_range(X) - 1.0


def by_deviation(X: np.ndarray) -> np.ndarray:
    """Columns of mean 0 and standard deviation 1."""
    return unit_deviation(X, X)


def same(found: Method, parts: Parts) -> Method:
    """The method of the table."""
    return found


def whole(found: Method, parts: Parts) -> Method:
    """MDLM with the paper's grid."""
    powers = tuple(2.0**k for k in range(-3, 4))
    grid = {"lambda1": powers, "lambda2": powers, "alpha": tuple(map(float, range(1, 11)))}
    return replace(found, grid=grid)


def rbf(found: Method, parts: Parts) -> Method:
    """A kernel exp(-|x - z|^2 / (2 w^2)), its width w chosen with the rest."""
    widths = mean_distance(parts.X) * np.array(WIDTHS)
    more = {"gamma": tuple(float(1.0 / (2.0 * w * w)) for w in widths)}
    fixed = {**found.fixed, "kernel": "rbf"}
    return replace(found, grid={**found.grid, **more}, quick={**found.quick, "gamma": more["gamma"][1:2]}, fixed=fixed)


@dataclass(frozen=True)
class Reading:
    """What is changed in the table's protocol, and for which methods.

    Attributes
    ----------
    methods : tuple of str
    scale : callable
        Of the whole set, as the other papers do it.
    bias : str
    adapted : callable
        (Method, Parts) -> Method.
    halves : int
        Halves on which it is judged, from the first.
    """

    methods: tuple[str, ...] = ("L2LR", "MLR", "MDLM")
    scale: Callable[[np.ndarray], np.ndarray] = as_given
    bias: str = "none"
    adapted: Callable[[Method, Parts], Method] = same
    halves: int = FEW


PLAIN = "as in the file, no bias"
"""The reading of the table itself."""
ONE_HOT = "one-hot"
"""A reading of promoter alone."""
READINGS = {
    "[0, 1], no bias": Reading(scale=unit_range),
    "[-1, 1], no bias": Reading(scale=by_range),
    "deviation 1, no bias": Reading(scale=by_deviation),
    "[0, 1], bias": Reading(scale=unit_range, bias="free"),
    "RBF": Reading(("SVM", "LDM"), adapted=rbf),
    "full grid": Reading(("MDLM",), adapted=whole, halves=2),
    ONE_HOT: Reading(),
}
SCALINGS = tuple(READINGS)[:4]
"""Readings that all sets and the same methods have."""


def units(sets: Sets, names: Sequence[str], few: int) -> list[Unit]:
    """Readings of every set for which they make sense, on the first halves."""
    found = []
    for name in names:
        for reading, one in READINGS.items():
            if reading == ONE_HOT and not (name == "promoters" and sets.get(name).codes is not None):
                continue
            if reading == "full grid" and name in UNSOLVABLE:
                continue
            found += [Unit(r, name, reading) for r in range(min(few, one.halves)) if has(sets, name)]
    return found


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """The methods of a reading on one half."""
    reading = READINGS[unit.part]
    X, y = rows(sets, unit.data)
    if unit.part == ONE_HOT:
        X = np.asarray(sets.get(unit.data).X, dtype=np.float64)
    parts = split(reading.scale(X), y, settings.seed, unit.data, unit.repeat)
    return [
        reading.adapted(METHODS[name], parts).judge(
            unit.data, read_as(name, unit.part), unit.repeat, parts, settings.quick, settings.seed, bias=reading.bias
        )
        for name in reading.methods
    ]


def read_as(name: str, reading: str) -> str:
    """Method of a record that belongs to a reading."""
    return name if reading == PLAIN else f"{name}, {reading}"


def compared(records: Sequence[Record], key: str, metric: str, theirs: Mapping[tuple[str, str], Figures]) -> Table:
    """Means over the first halves in every reading, beside the printed ones."""
    found = scores([record for record in records if record.repeat < FEW], key)
    lines = []
    for line in LINES:
        for name in METHODS:
            told = [found.get((line.data or "", read_as(name, reading))) for reading in (PLAIN, *READINGS)]
            if any(values is not None for values in told):
                means = ["-" if values is None else f"{values.mean():.3f}" for values in told]
                lines.append([f"{line.label}, {name}", f"{theirs[line.label, name].mean:.3f}", *means])
    caption = (
        f"Mean {metric} over the first {FEW} halves, the same ones for all readings; of the full grid over the first "
        f"{READINGS['full grid'].halves}."
    )
    return Table(["set and method", "printed", PLAIN, *READINGS], lines, caption)


def agreement(
    records: Sequence[Record], measures: Mapping[str, tuple[str, Mapping[tuple[str, str], Figures]]]
) -> Table:
    """By how much the figures of the table are above the printed ones, by set and kind of method."""
    kinds = (Reading().methods, tuple(name for name in METHODS if name not in Reading().methods))
    lines = []
    for line in LINES:
        cells = []
        for key, (_, theirs) in measures.items():
            found = scores(records, key)
            for kind in kinds:
                above = [
                    float(found[line.data or "", name].mean()) - theirs[line.label, name].mean
                    for name in kind
                    if (line.data or "", name) in found
                ]
                cells.append(f"{np.mean(above):+.3f}" if above else "-")
        if line.data is not None:
            lines.append([line.label, *cells])
    header = ["data", *(f"{', '.join(kind)}: {metric}" for metric, _ in measures.values() for kind in kinds)]
    return Table(header, lines, "Our mean less the printed one, averaged over the methods of a column.")


def distances(
    records: Sequence[Record], measures: Mapping[str, tuple[str, Mapping[tuple[str, str], Figures]]]
) -> Table:
    """How far readings are from the printed figures, on average over sets, for the methods that all of them have."""
    early = [record for record in records if record.repeat < FEW]
    lines = []
    for reading in (PLAIN, *SCALINGS):
        cells = [reading]
        for key, (_, theirs) in measures.items():
            found = scores(early, key)
            for name in Reading().methods:
                apart = [
                    abs(float(found[line.data, read_as(name, reading)].mean()) - theirs[line.label, name].mean)
                    for line in LINES
                    if line.data and (line.data, read_as(name, reading)) in found
                ]
                cells.append(f"{np.mean(apart):.3f}" if apart else "-")
        lines.append(cells)
    header = ["reading", *(f"{name} {metric}" for metric, _ in measures.values() for name in Reading().methods)]
    return Table(header, lines, "Mean distance from the printed figures over the sets.")
