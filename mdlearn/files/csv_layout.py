"""Layout of a CSV file and its columns: delimiter, header, labels and features."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mdlearn.errors import did_you_mean
from mdlearn.files.tables import QUOTED

DELIMITERS = ("\t", ";", ",")
"""Tabs and semicolons first: beside them, commas are decimal commas or text."""
LISTED_COLUMNS = 5
"""Names of columns that a message lists."""
LAYOUT_LINES = 20
"""Lines that tell delimiter and header."""
WIDEST = 1_000_000
"""Most columns; wider rows are sparse ones, for svmlight files."""
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
MISSING = frozenset({"", "nan", "NaN", "NAN", "NA", "N/A", "null", "NULL", "?"})


@dataclass(frozen=True)
class CsvLayout:
    """Layout of a CSV file, as its first lines show it."""

    path: str
    delimiter: str
    names: tuple[str, ...] | None  # the header's cells; None without a header
    width: int  # number of columns, labels included

    def column_index(self, column: str) -> int:
        """Return the index of a column given by its name or its number (from 1; negative: from the end)."""
        if self.names is not None and column in self.names:
            return self.names.index(column)
        if re.fullmatch(r"-?[0-9]{1,9}", column):
            number = int(column)
            if 1 <= abs(number) <= self.width:
                return number - 1 if number > 0 else self.width + number
            raise ValueError(f"{self.path} has {self.width} columns, none with the number {number} (they count from 1)")
        known = f"its header has {listed_csv_columns(self.names)}" if self.names is not None else "it has no header"
        hint = did_you_mean(column, self.names or ())
        raise ValueError(f"{self.path} has no column {column!r}; {known}{hint}")

    def called(self, column: int) -> str:
        """Number and name of a column, for messages."""
        return f"column {column + 1}" + (f" ({self.names[column][:QUOTED]})" if self.names is not None else "")


@dataclass(frozen=True)
class CsvColumns:
    """Layout of a CSV file's columns: those that are features, in this order, and the one that is the labels."""

    features: Sequence[int]
    target: int | None

    def all(self, width: int) -> bool:
        """Whether nothing is left out and features stand in the file's order."""
        return list(self.features) == [i for i in range(width) if i != self.target]


def csv_layout_cells(line: str, delimiter: str, what: str) -> list[str]:
    """Cells of one line of a CSV file, without quotes and white space around; `what` names the line in errors."""
    try:
        return [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter))]
    except csv.Error as error:
        raise ValueError(f"{what} cannot be split into cells: {error}") from None


def find_csv_layout(
    path: str, lines: Sequence[str], delimiter: str | None, header: bool | None, known: Sequence[str] | None
) -> CsvLayout:
    """Find the layout of a CSV file, delimiter and header, by its first lines, as far as they are not given.

    `lines`: the first lines that are not empty; `known`: columns that a model needs: a line with all of them is a
    header. Raises ValueError when the first line may be either, a header or data; when a header names two columns
    alike.
    """
    if lines[0].count('"') % 2:
        raise ValueError(f"{path} begins with a line in which a quote is not closed; a row is one line")
    delimiter = delimiter or _find_csv_layout_delimiter(path, lines)
    if lines[0].count(delimiter) >= WIDEST:
        raise ValueError(f"{path} has more than {WIDEST} columns; such rows go into svmlight files")
    rows = [csv_layout_cells(line, delimiter, path) for line in lines if line.count(delimiter) < WIDEST]
    if header is None:
        header = (known is not None and set(known) <= set(rows[0])) or _is_csv_layout_header(path, rows)
    names = None
    if header:
        names = tuple(cell or f"column {i + 1}" for i, cell in enumerate(rows[0]))
        if len(set(names)) < len(names):
            twice = Counter(names).most_common(1)[0][0]
            raise ValueError(f"{path} has two columns named {twice[:QUOTED]!r}; rename one of them")
    return CsvLayout(path, delimiter, names, len(rows[0]))


def _find_csv_layout_delimiter(path: str, lines: Sequence[str]) -> str:
    """Find the delimiter for a CSV layout: the first to split all sample lines alike, else the first in line one."""
    found = [delimiter for delimiter in DELIMITERS if delimiter in lines[0]]
    for delimiter in found:
        widths = {len(csv_layout_cells(line, delimiter, path)) for line in lines if delimiter in line}
        if len(widths) == 1 and max(widths) > 1 and all(delimiter in line for line in lines):
            return delimiter
    return found[0] if found else ","


def _is_csv_layout_header(path: str, rows: Sequence[Sequence[str]]) -> bool:
    """Whether a CSV layout's first row is a header: no cell is a number; ValueError where that cannot be known."""
    first, below = rows[0], rows[1:]
    # Decimal commas are refused later.
    number = [NUMBER.fullmatch(cell.replace(",", ".")) is not None for cell in first]
    if not any(number):
        return not all(cell in MISSING for cell in first)
    ask = "say --header yes or --header no"
    text = [i for i, cell in enumerate(first) if not number[i] and cell not in MISSING]
    for i in text:
        cells = [row[i] for row in below if len(row) > i]
        if cells and all(NUMBER.fullmatch(cell) for cell in cells):
            raise ValueError(
                f"{path} begins with a line that may be a header or data: {first[i][:QUOTED]!r} in column {i + 1} "
                f"stands above numbers; {ask}"
            )
    counted = [cell for i, cell in enumerate(first) if number[i]]
    if len(counted) > 2 and counted in ([str(i) for i in range(s, s + len(counted))] for s in (0, 1)):
        raise ValueError(
            f"{path} begins with the line {counted[0]}, {counted[1]}, {counted[2]}, ..., which may be a header or "
            f"data; {ask}"
        )
    return False


def csv_layout_for_fit(layout: CsvLayout, target: str | None) -> CsvColumns:
    """Choose a CSV layout's columns for a fit: labels from the one named, else the last; all others are features."""
    if layout.width < 2:
        raise ValueError(
            f"{layout.path} has one column only, but labels and features are needed; "
            "columns are told apart by commas, semicolons or tabs (--delimiter)"
        )
    place = layout.width - 1 if target is None else layout.column_index(target)
    return CsvColumns([i for i in range(layout.width) if i != place], place)


def csv_columns_for_model(
    layout: CsvLayout, target: str | None, width: int, names: Sequence[str] | None, notes: Mapping[str, Any]
) -> CsvColumns:
    """Choose a CSV layout's columns that a model needs: by name where both have names, else by position.

    `target`: column of the labels, if given; else the one of the fit, if the file has it; `width`: number of columns
    that the model needs; `names`: their names; `notes`: `target` and `place` of the fit, if the model comes from a CSV
    file. Raises ValueError when columns are missing, or too many to tell which ones are meant.
    """
    place = None if target is None else layout.column_index(target)
    if layout.names is not None and names is not None:
        where = {name: i for i, name in enumerate(layout.names)}
        lacking = [name for name in names if name not in where]
        if lacking:
            what = "columns" if len(lacking) > 1 else "column"
            raise ValueError(f"{layout.path} lacks the {what} {listed_csv_columns(lacking)}, which the model needs")
        features = [where[name] for name in names]
        if place is None:
            place = where.get(str(notes.get("target")))
        return CsvColumns(features, None if place in features and target is None else place)
    if place is None and layout.width == width + 1:
        noted = notes.get("place")
        place = noted if isinstance(noted, int) and 0 <= noted <= width else width
    features = [i for i in range(layout.width) if i != place]
    if len(features) != width:
        raise ValueError(
            f"{layout.path} has {layout.width} columns, but the model needs {width}, or {width + 1} with the labels"
        )
    return CsvColumns(features, place)


def listed_csv_columns(names: Sequence[str]) -> str:
    """List the first few column names of a CSV layout, for messages."""
    more = f" and {len(names) - LISTED_COLUMNS} more" if len(names) > LISTED_COLUMNS else ""
    return ", ".join(repr(name[:QUOTED]) for name in names[:LISTED_COLUMNS]) + more
