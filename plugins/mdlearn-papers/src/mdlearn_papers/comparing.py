"""Our figures beside the printed ones: differences in standard errors, tests, standings, certificates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from mdlearn import selection
from mdlearn.extend import average_ranks
from mdlearn_papers.catalogue import SOURCES
from mdlearn_papers.documents import Block, Heading, Table
from mdlearn_papers.printed import Figures
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Record

LEVEL = 0.05
"""p below which the papers' tests call a difference significant."""
ABSENT = "-"
EQUAL = 1e-9
"""Difference of means that rounding makes."""


@dataclass(frozen=True)
class Line:
    """A data set of a printed table.

    Attributes
    ----------
    label : str
        As the paper prints it.
    data : str or None
        Name in the catalogue, or of generated data; None where the set could not be had.
    note : str
        How it differs from the paper's, or why it is missing; empty where rows, columns and splits are the same.
    source : str
        Name in the catalogue where records bear another one, such as that of a preparation of the set.
    """

    label: str
    data: str | None
    note: str = ""
    source: str = ""

    @property
    def origin(self) -> str:
        """Name in the catalogue; empty where the set could not be had."""
        return self.source or self.data or ""


@dataclass(frozen=True)
class Comparison:
    """A printed table with our figures.

    Attributes
    ----------
    lines : sequence of Line
    methods : sequence of str
        As the paper prints them, and ours that it does not have.
    printed : mapping of (label, method) to Figures
    reference : str
        The method that the others are tested against.
    test : callable
        `paired_test` or `welch_test`.
    key : str
        Which of the values of a record.
    unit : float
        100 where the paper prints per cent.
    """

    lines: Sequence[Line]
    methods: Sequence[str]
    printed: Mapping[tuple[str, str], Figures]
    reference: str
    test: Callable[[np.ndarray, np.ndarray], selection.TTest]
    key: str = "accuracy"
    unit: float = 1.0

    def blocks(self, records: Sequence[Record], sets: Sets) -> list[Block]:
        """Everything that is told of the table."""
        found = scores(records, self.key)
        blocks: list[Block] = [self.table(found), self.outcomes(found), self.standings(found)]
        outside = self.outside(found)
        if outside:
            blocks.append(outside)
        return [*blocks, *remarks(self.lines, sets), certificates(records)]

    def table(self, found: Mapping[tuple[str, str], np.ndarray]) -> Table:
        """Mean and standard deviation, ours and printed, and their difference in standard errors."""
        rows = []
        for line in self.lines:
            cells = [line.label + (" *" if line.note else "")]
            for method in self.methods:
                ours, theirs = found.get((line.data or "", method)), self.printed.get((line.label, method))
                cells += [self._spread(ours), self._print(theirs), ABSENT]
                if ours is not None and theirs is not None:
                    away = errors_away(self.unit * ours, theirs)
                    cells[-1] = ABSENT if math.isnan(away) else f"{away:+.1f}"
            rows.append(cells)
        header = ["data", *(f"{method}{what}" for method in self.methods for what in ("", " printed", " diff/SE"))]
        n = sorted({values.shape[0] for values in found.values()})
        repeats = ABSENT if not n else f"{n[0]}" if n[0] == n[-1] else f"{n[0]} to {n[-1]}"
        caption = f"Mean and standard deviation ({self.key}) over {repeats} splits."
        if self.printed:
            caption += (
                " diff/SE: our mean less the printed one, in units of sqrt(s1^2/n1 + s2^2/n2). "
                "*: not the paper's set or splits, see below."
            )
        elif any(line.note for line in self.lines):
            caption += " *: see below."
        return _shown(header, rows, caption)

    def outcomes(self, found: Scores) -> Table:
        """Win, tie, loss of every method against the reference, and as printed."""
        rows = []
        for method in self.methods:
            if method == self.reference:
                continue
            told = [self._outcome(found, line, method) for line in self.lines]
            theirs = [
                self.printed[line.label, method].versus for line in self.lines if (line.label, method) in self.printed
            ]
            counts = "/".join(str(told.count(kind)) for kind in KINDS)
            printed = "/".join(str(theirs.count(kind)) for kind in KINDS) if any(theirs) else ABSENT
            rows.append([method, counts, printed])
        test = f"{self.test.__name__}, 95 %"
        caption = f"Sets on which a method is better / not different / worse than {self.reference} ({test})."
        return _shown(["method", "ours", "printed"], rows, caption)

    def standings(self, found: Mapping[tuple[str, str], np.ndarray]) -> Table:
        """Averages over the sets that every method has, average rank, and how often best, second and worst.

        Second is who has one method above; the best of several equal ones are all best.
        """
        names = [m for m in self.methods if any((line.data or "", m) in found for line in self.lines)]
        full = [line for line in self.lines if all((line.data or "", m) in found for m in names)]
        if not full or not names:
            return Table(["method", "average"], [], "No set has figures of all methods yet.")
        means = self.unit * np.array([[found[line.data or "", m].mean() for m in names] for line in full])
        ranks = np.array([average_ranks(row) for row in means])
        above = (means[:, None, :] > means[:, :, None] + EQUAL).sum(axis=2)  # methods that are better
        below = (means[:, None, :] < means[:, :, None] - EQUAL).sum(axis=2)
        rows = []
        for j, method in enumerate(names):
            theirs = [self.printed[line.label, method].mean for line in full if (line.label, method) in self.printed]
            printed = f"{np.mean(theirs):.{self.digits}f}" if len(theirs) == len(full) else ABSENT
            worst = (below[:, j] == 0) & (above[:, j] > 0)
            placed = [int(where.sum()) for where in (above[:, j] == 0, above[:, j] == 1, worst)]
            average = f"{means[:, j].mean():.{self.digits}f}"
            rows.append([method, average, printed, f"{ranks[:, j].mean():.2f}", *map(str, placed)])
        header = ["method", "average", "printed average", "average rank", "best", "second", "worst"]
        return _shown(header, rows, f"Over the {len(full)} sets that have figures of all these methods.")

    def outside(self, found: Mapping[tuple[str, str], np.ndarray]) -> str:
        """Which figures of the paper's own sets are more than two standard errors from the printed ones."""
        told, n = [], 0
        for line in self.lines:
            for method in self.methods:
                ours, theirs = found.get((line.data or "", method)), self.printed.get((line.label, method))
                if line.note or ours is None or theirs is None:
                    continue
                away = errors_away(self.unit * ours, theirs)
                n += not math.isnan(away)
                if abs(away) > 2:
                    told.append(f"{line.label} {method} ({away:+.1f})")
        if not n:
            return ""
        if not told:
            return f"All {n} figures of sets that are the paper's lie within two standard errors of the printed ones."
        return (
            f"Of {n} figures of sets that are the paper's, {n - len(told)} lie within two standard errors of the "
            f"printed ones; not so: {', '.join(told)}."
        )

    @property
    def digits(self) -> int:
        """Decimals of a mean."""
        return 2 if self.unit == 100.0 else 3

    def _spread(self, values: np.ndarray | None) -> str:
        if values is None:
            return ABSENT
        mean, n = self.unit * float(values.mean()), values.shape[0]
        spread = f" ± {self.unit * float(values.std(ddof=1)):.{self.digits}f}" if n > 1 else ""
        return f"{mean:.{self.digits}f}{spread}"

    def _print(self, figures: Figures | None) -> str:
        if figures is None:
            return ABSENT
        spread = "" if math.isnan(figures.std) else f" ± {figures.std:.{self.digits}f}"
        return f"{figures.mean:.{self.digits}f}{spread}"

    def _outcome(self, found: Scores, line: Line, method: str) -> str:
        ours, reference = found.paired((line.data or "", method), (line.data or "", self.reference))
        if ours.shape[0] < 2:
            return ""
        tested = self.test(ours, reference)
        if tested.pvalue >= LEVEL:
            return "tie"
        return "better" if tested.difference > 0 else "worse"


KINDS = ("better", "tie", "worse")


class Scores(dict[tuple[str, str], np.ndarray]):
    """One value of all repeats, by (data, method), in the order of the repeats."""

    def __init__(self, found: Mapping[tuple[str, str], Mapping[int, float]]) -> None:
        super().__init__({place: np.array([values[i] for i in sorted(values)]) for place, values in found.items()})
        self.found = found

    def paired(self, one: tuple[str, str], other: tuple[str, str]) -> tuple[np.ndarray, np.ndarray]:
        """Values of the repeats that both have: of an interrupted run, or where one failed, others are left out."""
        first, second = self.found.get(one, {}), self.found.get(other, {})
        both = sorted(first.keys() & second.keys())
        return np.array([first[i] for i in both]), np.array([second[i] for i in both])


def scores(records: Sequence[Record], key: str) -> Scores:
    """One value of all repeats; records without it are left out."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for record in records:
        if key in record.values:
            found.setdefault((record.data, record.method), {})[record.repeat] = record.values[key]
    return Scores(found)


def errors_away(ours: np.ndarray, theirs: Figures) -> float:
    """Difference of two means in standard errors of it; NaN where a spread is not known or both are zero."""
    if ours.shape[0] < 2 or math.isnan(theirs.std):
        return math.nan
    error = math.sqrt(float(ours.var(ddof=1)) / ours.shape[0] + theirs.std**2 / theirs.n)
    return (float(ours.mean()) - theirs.mean) / error if error > 0 else math.nan


def remarks(lines: Sequence[Line], sets: Sets) -> list[Block]:
    """Which sets are missing, and which are not the paper's."""
    told = []
    for line in lines:
        if line.data is None:
            told.append([line.label, ABSENT, line.note or "could not be had"])
        elif line.origin in SOURCES and not sets.has(line.origin):  # others are generated
            told.append(
                [
                    line.label,
                    line.origin,
                    "missing from the folder of data sets" + (f"; {line.note}" if line.note else ""),
                ]
            )
        elif line.note:
            told.append([line.label, line.origin, line.note])
    if not told:
        return ["All sets are there, and are the paper's."]
    return [Heading("Sets that are missing or differ"), Table(["printed as", "set", "what is to be known"], told)]


def certificates(records: Sequence[Record]) -> Table:
    """Fits, how many of them are certified, the largest gap, and seconds, by method; what failed."""
    rows = []
    for method in dict.fromkeys(record.method for record in records):
        mine = [record for record in records if record.method == method]
        fits, good = sum(one.fits for one in mine), sum(one.converged for one in mine)
        gap = max((one.gap for one in mine if one.fits), default=0.0)
        failed = sum(not one.values for one in mine)
        seconds = sum(one.seconds for one in mine)
        rows.append([method, str(fits), str(good), f"{gap:.1e}" if fits else ABSENT, f"{seconds:.1f}", str(failed)])
    caption = (
        "Every fit, those of cross-validation included, carries a certificate: certified are those whose gap is at "
        "most their tolerance. Seconds: selection, training and testing of all splits, one thread."
    )
    return Table(["method", "fits", "certified", "largest gap", "seconds", "failed splits"], rows, caption)


def _shown(header: list[str], rows: list[list[str]], caption: str) -> Table:
    """A table without the columns that say nothing."""
    kept = [0, *(j for j in range(1, len(header)) if not rows or any(row[j] != ABSENT for row in rows))]
    return Table([header[j] for j in kept], [[row[j] for j in kept] for row in rows], caption)
