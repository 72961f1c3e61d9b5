"""The small sets of the LDM paper's tables 2 and 3: which columns and rows they have, and in which coding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from mdlearn_papers.catalogue import SOURCES
from mdlearn_papers.comparing import Line
from mdlearn_papers.readers import RealSet
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, at_random, complete, generator, unit_range

Chosen = Callable[[RealSet, str], np.ndarray]
"""Takes columns of a set of some name."""


@dataclass(frozen=True)
class Small:
    """A line of the tables.

    Attributes
    ----------
    source : str
        Name in the catalogue; empty where the set could not be had.
    rows, columns : int
        As the paper gives them.
    chosen : callable
        (RealSet, name) -> columns.
    note : str
        How the rows and columns differ from the paper's.
    other : mapping of str to callable
        Further codings, which the report compares.
    classes : tuple of str
        Labels of the rows that are taken; all where empty.
    """

    source: str
    rows: int
    columns: int
    chosen: Chosen
    note: str = ""
    other: dict[str, Chosen] = field(default_factory=dict)
    classes: tuple[str, ...] = ()

    def read(self, sets: Sets, coding: str = "") -> tuple[np.ndarray, np.ndarray]:
        """Complete rows as they are in the file, with the labels.

        Parameters
        ----------
        sets : Sets
        coding : str
            One of `other`; the paper's where empty.
        """
        found = sets.get(self.source)
        X = (self.other[coding] if coding else self.chosen)(found, self.source)
        X, y = complete(np.asarray(X, dtype=np.float64), found.y)
        kept = np.isin(y, self.classes) if self.classes else np.ones(y.shape[0], dtype=bool)
        return X[kept], y[kept]


def columns(found: RealSet, name: str, places: Sequence[int] = ()) -> np.ndarray:
    """The columns as numbers, all or some."""
    return found.X[:, list(places)] if places else np.asarray(found.X)


def codes(found: RealSet, name: str, places: Sequence[int] = ()) -> np.ndarray:
    """One integer per nominal column, all columns or some.

    Raises
    ------
    ValueError
        When the file has only one column per value.
    """
    held = found.X if found.X.shape[1] == SOURCES[name].codes else found.codes
    if held is None:
        raise ValueError(f"the file of data set {name} has no integer codes of its nominal columns")
    return held[:, list(places)] if places else np.asarray(held)


def one_hot(found: RealSet, name: str) -> np.ndarray:
    """One column per value; values that no row has are left out.

    Raises
    ------
    ValueError
        When the file has integer codes alone.
    """
    if found.X.shape[1] == SOURCES[name].codes:
        raise ValueError(f"the file of data set {name} has integer codes alone, not one column per nominal value")
    used = np.nanmax(found.X, axis=0) > np.nanmin(found.X, axis=0)
    return np.asarray(found.X)[:, used]


def spread_out(found: RealSet, name: str, places: Sequence[int]) -> np.ndarray:
    """The columns as numbers, some of them replaced by one column per value."""
    X = np.asarray(found.X, dtype=np.float64)
    parts = [
        (X[:, [j]] == np.unique(X[:, j])).astype(np.float64) if j in places else X[:, [j]] for j in range(X.shape[1])
    ]
    return np.hstack(parts)


FULLEST = (0, 1, 3, 5, 6, 7, 8, 9, 10, 11, 17, 18, 21)
"""Of colic: the only 13 among its 17 fullest columns with 188 complete rows."""
AT_MOST_65 = (0, 1, 3, 5, 7, 8, 9, 10, 11, 17, 18, 21, 22, 23, 24, 25)
"""Of colic_orig: columns with at most 65 missing values, which leave 205 complete rows."""
NOMINAL_AUSTRALIAN = (0, 3, 4, 5, 7, 8, 10, 11)
NOMINAL_HEART = (2, 6, 10, 12)

ORDER = "columns and rows are as many as the paper's; the order of the integer codes of nominal values is not stated"

SMALL: dict[str, Small] = {
    "promoters": Small("promoters", 106, 57, codes, ORDER, {"one column per value": one_hot}),
    "planning-relax": Small("planning_relax", 182, 12, columns),
    "colic": Small(
        "colic",
        188,
        13,
        partial(codes, places=FULLEST),
        "13 columns chosen so that 188 rows are complete, as the paper has it; the order of the codes is not stated",
    ),
    "parkinsons": Small("parkinsons", 195, 22, columns),
    "colic.ORIG": Small(
        "colic_orig",
        205,
        17,
        partial(codes, places=AT_MOST_65),
        "the 16 columns with at most 65 missing values, which leave the paper's 205 rows; its 17th column is probably "
        "the hospital number, which our source lacks",
    ),
    "sonar": Small("sonar", 208, 60, columns),
    "vote": Small("vote", 232, 16, codes),
    "house": Small("vote", 232, 16, codes, "the rows of vote (the counts are the same), with other random halves"),
    "heart": Small(
        "heart",
        270,
        9,
        columns,
        "13 columns; which 9 the paper uses is not stated",
        {
            "9 columns, without the nominal": partial(columns, places=(0, 1, 3, 4, 5, 7, 8, 9, 11)),
            "one column per nominal value": partial(spread_out, places=NOMINAL_HEART),
        },
    ),
    "breast-cancer": Small("breast_cancer_ljubljana", 277, 9, codes, ORDER, {"one column per value": one_hot}),
    "haberman": Small(
        "haberman", 306, 14, partial(spread_out, places=(1,)), "", {"3 columns, the year as a number": columns}
    ),
    "vehicle": Small(
        "vehicle",
        435,
        16,
        columns,
        "bus against saab, the only two classes with 435 rows; 18 columns, which 16 the paper uses is not stated",
        classes=("bus", "saab"),
    ),
    "clean1": Small("", 476, 166, columns, "no copy of the data at hand"),
    "wdbc": Small(
        "wdbc",
        569,
        14,
        columns,
        "30 columns; which 14 the paper uses is not stated",
        {"the 10 means": partial(columns, places=range(10))},
    ),
    "isolet": Small("isolet_600x51", 600, 51, columns),
    "credit-a": Small("credit_a", 653, 15, codes, ORDER, {"one column per value": one_hot}),
    "austra": Small("australian", 690, 15, columns, "14 columns; the paper's 15th is not stated"),
    "australian": Small(
        "australian",
        690,
        42,
        partial(spread_out, places=NOMINAL_AUSTRALIAN),
        "",
        {"14 columns, values as codes": columns},
    ),
    "fourclass": Small("fourclass", 862, 2, columns),
    "german": Small("credit_g", 1000, 59, one_hot, "", {"20 columns, values as codes": codes}),
}
"""By the name that the paper prints, in its order; records of the tables bear these names."""


def lines() -> list[Line]:
    """The lines of the printed tables."""
    return [Line(label, label if one.source else None, one.note, one.source) for label, one in SMALL.items()]


def present(sets: Sets, names: Sequence[str]) -> list[str]:
    """Which of these are there."""
    return [name for name in names if SMALL[name].source and sets.has(SMALL[name].source)]


def halves(sets: Sets, name: str, seed: int, repeat: int, coding: str = "") -> Parts:
    """Columns in [0, 1], and a random half of the rows for training: the same rows for every coding."""
    X, y = SMALL[name].read(sets, coding)
    return at_random(unit_range(X), y, y.shape[0] // 2, generator(seed, name, repeat))
