"""The figures that the papers print, as tables beside this module."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources


def table(name: str) -> list[dict[str, str]]:
    """Rows of a printed table, column names to text; empty text where the paper prints nothing.

    Parameters
    ----------
    name : str
        Such as "ldm_table2_linear"; the files are in the folder ``printed``.
    """
    text = resources.files(__package__).joinpath("printed", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


@dataclass(frozen=True)
class Figures:
    """A printed mean with its standard deviation over n repeats.

    Attributes
    ----------
    mean, std : float
        In the units of the paper. std is NaN where none is printed.
    n : int
    versus : str
        "better", "tie" or "worse" by the paper's own test against its reference; empty where there is none.
    """

    mean: float
    std: float
    n: int
    versus: str = ""


def means(name: str, n: int, mean: str = "accuracy_mean", std: str = "accuracy_std") -> dict[tuple[str, str], Figures]:
    """Printed means by (dataset, method), where there are any.

    Parameters
    ----------
    name : str
        Of the table.
    n : int
        Repeats of the paper's protocol.
    mean, std : str
        Names of the columns.
    """
    return {
        (row["dataset"], row["method"]): Figures(
            float(row[mean]), float(row.get(std) or "nan"), n, row.get("versus_svm") or ""
        )
        for row in table(name)
        if row[mean]
    }
