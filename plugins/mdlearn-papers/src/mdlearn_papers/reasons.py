"""Figures that are more than two standard errors from the printed ones, and what experiments say of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from mdlearn_papers.comparing import Comparison, errors_away, scores
from mdlearn_papers.documents import Block, Heading, Table
from mdlearn_papers.printed import Figures
from mdlearn_papers.studies import Record
from mdlearn_papers.surveys import SUFFIX

WIDE = 0.1
"""Printed standard deviation, as a share of 1, from which runs must have failed: splits differ by 0.01 to 0.07."""
ABOUT = (
    "Only sets that are the paper's. A reading is named where it brings our figure within two standard errors of the "
    "printed one. A range is that of the mean test accuracies of all points of a grid, on the first splits, as in the "
    "table or in the reading that is named: a printed figure within it, or within two standard errors of its nearest "
    "point, can be that of another point than cross-validation chooses; one that is well outside "
    "is of something else. Of figures that come from the same distribution as the printed ones, one in twenty lies "
    "beyond two standard errors by chance."
)
Evidence = Callable[[str, str, Figures], list[str]]
"""(label of the set, method, printed figures) -> what a paper's own experiments say."""


def nothing(label: str, method: str, theirs: Figures) -> list[str]:
    """No evidence beside the ranges."""
    return []


def reasons(table: Comparison, records: Sequence[Record], evidence: Evidence = nothing) -> list[Block]:
    """A table of the figures that are away, with what may explain each.

    Parameters
    ----------
    table : Comparison
        Of accuracies.
    records : sequence of Record
        Those of the table, and of `surveyed` and `reached` in `mdlearn_papers.surveys` where there are
        any; a method's name may be followed by that of a reading.
    evidence : callable
    """
    found, rows, unit = scores(records, "accuracy"), [], table.unit
    for line in table.lines:
        for method in table.methods:
            ours, theirs = found.get((line.data or "", method)), table.printed.get((line.label, method))
            if line.note or ours is None or theirs is None:
                continue
            away = errors_away(unit * ours, theirs)
            if abs(away) > 2:
                told = [
                    *evidence(line.label, method, theirs),
                    *_ranges(records, line.data or "", method, table, theirs),
                ]
                if theirs.std > WIDE * unit or theirs.mean < 0.5 * unit:
                    told.insert(0, "the printed spread or mean is that of runs of which some failed")
                cells = [f"{unit * ours.mean():.{table.digits}f} ({away:+.1f})", f"{theirs.mean:g} ± {theirs.std:g}"]
                rows.append([line.label, method, *cells, "; ".join(told) or "-"])
    if not rows:
        return []
    header = ["data", "method", "ours (diff/SE)", "printed", "what may explain it"]
    return [Heading("Figures beyond two standard errors"), Table(header, rows, ABOUT)]


def _ranges(records: Sequence[Record], data: str, method: str, table: Comparison, theirs: Figures) -> list[str]:
    """What a method's grid can reach, as in the table and in every reading that has been surveyed."""
    tested: dict[str, list[list[float]]] = {}
    for record in records:
        name = record.method.removesuffix(SUFFIX)
        if record.data == data and name != record.method and record.values and f"{name}, ".startswith(f"{method}, "):
            tested.setdefault(name[len(method) + 2 :], []).append(record.values["tested"])
    told = []
    for reading in sorted(tested):  # the table's own, without a name, first
        every = table.unit * np.array(tested[reading])
        means = np.round(every.mean(axis=0), table.digits)  # as printed figures are
        low, high = means.min(), means.max()
        range_ = f"{low:.{table.digits}f} to {high:.{table.digits}f} over {every.shape[1]} points"
        away = min((errors_away(one, theirs) for one in every.T), key=abs)
        nearest = "" if low <= theirs.mean <= high or math.isnan(away) else f" (nearest {away:+.1f})"
        told.append(f"{f'{reading}: ' if reading else ''}range {range_}{nearest}")
    return told
