"""What the grids of table 3 can reach: test figures of all their points, in several readings of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
from scipy.linalg import eigh
from scipy.spatial import distance

from mdlearn_papers.comparing import errors_away, scores
from mdlearn_papers.documents import Table
from mdlearn_papers.mdlm.protocol import LINES, METHODS, RIDGED, Method, has, rows, split
from mdlearn_papers.mdlm.readings import PLAIN, READINGS, SCALINGS, WIDTHS, Reading
from mdlearn_papers.printed import Figures
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, mean_distance
from mdlearn_papers.studies import Record, Settings, Unit
from mdlearn_papers.surveys import SUFFIX, reached

HALVES = 10
"""Halves on which grids are surveyed, from the first."""
RBF = "RBF"
EVERY = tuple(METHODS)


def stopped(sweeps: int, found: Method, parts: Parts) -> Method:
    """A coordinate descent that ends early, whatever its certificate says."""
    return replace(found, fixed={**found.fixed, "solver": "cd", "max_iter": sweeps})


TRIED = {
    PLAIN: Reading(EVERY),
    **{name: replace(READINGS[name], methods=EVERY) for name in SCALINGS},
    RBF: Reading(EVERY),
    **{
        f"as in the file, stopped after {n} sweeps": Reading(("SVM", "LDM"), adapted=partial(stopped, n))
        for n in (3, 10)
    },
}
"""Readings whose grids are surveyed."""

TESTED = {"accuracy": "tested", "auc": "auc"}
"""What a survey calls the figures of a record."""


def units(sets: Sets, names: Sequence[str], halves: int) -> list[Unit]:
    """Every reading on the sets that are the paper's."""
    own = [line.data for line in LINES if line.data and line.data in names and not line.note]
    return [
        Unit(r, name, reading + SUFFIX) for r in range(halves) for name in own if has(sets, name) for reading in TRIED
    ]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Every method's grid in one reading, on one half."""
    name = unit.part.removesuffix(SUFFIX)
    reading = TRIED[name]
    X, y = rows(sets, unit.data)
    parts = split(reading.scale(X), y, settings.seed, unit.data, unit.repeat)
    return [_surveyed(unit, method, name, parts, settings) for method in reading.methods]


def _surveyed(unit: Unit, name: str, reading: str, parts: Parts, settings: Settings) -> Record:
    # in the space of an RBF kernel some w gives all training rows the same margin
    method = TRIED[reading].adapted(RIDGED if (name, reading) == ("MDLM", RBF) else METHODS[name], parts)
    grid = method.quick if settings.quick else method.grid
    points = [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]
    spaces = by_width(parts) if reading == RBF else [parts]
    told = unit.data, f"{name}, {reading}", unit.repeat, spaces, method.objective, points
    return reached(*told, seed=settings.seed, bias=TRIED[reading].bias, **method.fixed)


def by_width(parts: Parts) -> Iterator[Parts]:
    """Coordinates of the rows in the space that the training rows span under an RBF kernel, for every width.

    A linear machine without a bias on them is the machine with the kernel.
    """
    for width in mean_distance(parts.X) * np.array(WIDTHS):
        gamma = 1.0 / (2.0 * width * width)
        values, vectors = eigh(np.exp(-gamma * distance.cdist(parts.X, parts.X, "sqeuclidean")))
        kept = values > values[-1] * parts.y.shape[0] * np.finfo(np.float64).eps
        back = vectors[:, kept] / np.sqrt(values[kept])
        X, X_test = (
            np.exp(-gamma * distance.cdist(rows, parts.X, "sqeuclidean")) @ back for rows in (parts.X, parts.X_test)
        )
        yield replace(parts, X=X, X_test=X_test)


def explained(
    records: Sequence[Record], measures: Mapping[str, tuple[str, Mapping[tuple[str, str], Figures]]]
) -> Table | None:
    """The figures beyond two standard errors, and which readings have a point that gives the printed one.

    Parameters
    ----------
    records : sequence of Record
        Those of the table and of `run`; None is returned without the latter.
    measures : mapping of str to (str, mapping)
        What a record calls a figure, to what the paper calls it and its printed figures.
    """
    mine = [one for one in records if one.method in METHODS]
    lines = []
    for key, (metric, theirs) in measures.items():
        found = scores(mine, key)
        for line in LINES:
            for name in METHODS:
                ours, printed = found.get((line.data or "", name)), theirs[line.label, name]
                if line.note or ours is None or not abs(errors_away(ours, printed)) > 2:
                    continue
                ranges = _ranges(records, line.data or "", name, key, printed)
                if ranges:
                    about = f"{ours.mean():.3f} ({errors_away(ours, printed):+.1f})"
                    lines.append(
                        [line.label, f"{name} {metric}", about, f"{printed.mean:.3f}", *_told(ranges, printed)]
                    )
    if not lines:
        return None
    header = ["data", "figure", "ours (diff/SE)", "printed", PLAIN, "other readings that have the printed figure"]
    caption = (
        f"Ranges are those of the means over the first {HALVES} halves of all points of a grid: where a reading has "
        "the printed figure, it can be that of another point than the folds choose. A reading has it if one of its "
        "points is within two standard errors of it, or points lie on either side of it. Stopped after n sweeps: "
        "coordinate descent that has passed n times over the training rows, far from its optimum."
    )
    return Table(header, lines, caption)


@dataclass(frozen=True)
class Reach:
    """Means over halves of the points of one grid.

    Attributes
    ----------
    low, high : float
        The smallest and largest one.
    has : bool
        Whether the printed figure can be one of them.
    """

    low: float
    high: float
    has: bool

    def __str__(self) -> str:
        return f"{self.low:.3f} to {self.high:.3f}"


def _ranges(records: Sequence[Record], data: str, name: str, key: str, printed: Figures) -> dict[str, Reach]:
    """What every reading that has been run on at least two halves can reach."""
    found = {}
    for reading in TRIED:
        wanted = data, f"{name}, {reading}{SUFFIX}"
        every = np.array(
            [one.values[TESTED[key]] for one in records if (one.data, one.method) == wanted and one.values]
        )
        if every.shape[0] > 1:
            means = every.mean(axis=0)
            near = any(abs(errors_away(every[:, j], printed)) <= 2 for j in range(means.shape[0]))
            low, high = float(means.min()), float(means.max())
            found[reading] = Reach(low, high, near or low <= printed.mean <= high)
    return found


def _told(ranges: Mapping[str, Reach], printed: Figures) -> list[str]:
    """Cells: the range of the table's own reading, and the readings that have the printed figure."""
    plain = ranges.get(PLAIN)
    first = "-" if plain is None else f"{plain}{' (has it)' if plain.has else ''}"
    others = [f"{reading} {one}" for reading, one in ranges.items() if reading != PLAIN and one.has]
    if not others:
        apart = {reading: max(one.low - printed.mean, printed.mean - one.high) for reading, one in ranges.items()}
        nearest = min(apart, key=apart.__getitem__)
        others = [f"none; nearest: {nearest} {ranges[nearest]}"]
    return [first, "; ".join(others)]
