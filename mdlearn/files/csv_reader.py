"""Reader of CSV files: compiled parsing by blocks; what that refuses is looked at by cells, to say what is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mdlearn.files.csv_layout import (
    LAYOUT_LINES,
    MISSING,
    NUMBER,
    WIDEST,
    CsvColumns,
    CsvLayout,
    csv_layout_cells,
    find_csv_layout,
)
from mdlearn.files.tables import QUOTED, Pieces, integer_table_labels
from mdlearn.numerics import memory

LABEL = 200
"""Characters of the longest label: labels become an array of strings of equal length."""


class CsvLabels:
    """Labels that the CSV reader has met: codes for the texts of a column, in the order in which they come."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}

    def code(self, cell: str) -> float:
        """Return the number of a label; ValueError for a missing or an endless one."""
        text = cell.strip()
        if text in MISSING or len(text) > LABEL:
            raise ValueError(text)
        return self.codes.setdefault(text, len(self.codes))

    def values(self, codes: np.ndarray, as_text: bool) -> np.ndarray:
        """Return the labels: integers where all are, else numbers where all are, else strings."""
        texts = list(self.codes)
        known: np.ndarray | None = None
        if not as_text and all(NUMBER.fullmatch(text) for text in texts):
            numbers = np.array([float(text) for text in texts])
            if all(text.lstrip("+-").isdigit() and len(text) < 19 for text in texts):
                known = np.array([int(text) for text in texts])
            elif np.isfinite(numbers).all():
                known = integer_table_labels(numbers)
        return (np.array(texts) if known is None else known)[codes.astype(np.intp)]


class CsvReader:
    """Reader of one CSV file: its layout first, then its rows.

    `pieces`: lines of the file; `delimiter`, `header`, `known`: as for `find_csv_layout`.
    """

    def __init__(
        self, path: str, pieces: Pieces, delimiter: str | None, header: bool | None, known: Sequence[str] | None
    ) -> None:
        self.path, self.number = path, 1
        self.pieces: Iterator[tuple[int, list[str]]] = self._decoded(pieces)
        self.labels = CsvLabels()
        sample: list[str] = []
        number, lines = 1, sample
        for number, lines in self.pieces:  # noqa: B007  (until there are lines that say something)
            sample = list(itertools.islice((line for line in lines if line.strip(" ")), LAYOUT_LINES))
            if sample:
                break
        if not sample:
            raise ValueError(f"{path} is empty; a CSV file has one row per line")
        self.layout: CsvLayout = find_csv_layout(path, sample, delimiter, header, known)
        if self.layout.names is not None:
            skipped = next(i for i, line in enumerate(lines) if line.strip(" ")) + 1
            number, lines = number + skipped, lines[skipped:]
        self.pieces = itertools.chain([(number, lines)], self.pieces)

    def _decoded(self, pieces: Pieces) -> Iterator[tuple[int, list[str]]]:
        for number, lines in pieces:
            try:
                yield number, b"\n".join(lines).decode("utf-8").split("\n")
            except UnicodeDecodeError as error:
                at = number + error.object.count(b"\n", 0, error.start)
                raise ValueError(f"{self.path}, line {at} is no UTF-8 text; save the file as UTF-8") from None

    def rows(self, columns: CsvColumns, dtype: Any, as_text: bool = False) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the features as an array of `dtype`, and the labels, if there is a column of them.

        Labels are integers where all are, else numbers where all are, else strings; always strings with `as_text`.
        """
        parts: list[tuple[np.ndarray, np.ndarray | None]] = []
        size = 0.0
        for X, codes in self.parts(columns, dtype):
            parts.append((X, codes))
            size += X.nbytes + (0 if codes is None else codes.nbytes)
            memory.require(2.0 * size, f"reading {self.path} (as far as line {self.number})", "give a part of the file")
        if not parts:
            raise ValueError(f"{self.path} has a header, but no rows")
        X, codes = _joined_csv_pieces(parts, len(columns.features), dtype)
        return X, None if codes is None else self.labels.values(codes, as_text)

    def parts(self, columns: CsvColumns, dtype: Any) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
        """Yield the features and the codes of the labels, piece by piece; `number` is then the piece's first line."""
        for number, lines in self.pieces:
            self.number = number
            if not all(lines) or any(line.isspace() for line in lines):
                kept = [(i, line) for i, line in enumerate(lines, number) if line.strip(" ")]
                numbers: Sequence[int] = [i for i, _ in kept]
                lines = [line for _, line in kept]
            else:
                numbers = range(number, number + len(lines))
            if lines:
                yield self._block(numbers, lines, columns, dtype)

    def _block(
        self, numbers: Sequence[int], lines: list[str], columns: CsvColumns, dtype: Any
    ) -> tuple[np.ndarray, np.ndarray | None]:
        width, delimiter, target = self.layout.width, self.layout.delimiter, columns.target
        order = list(columns.features) + ([] if target is None else [target])
        complete = columns.all(width)
        A = None
        # Quotes may hold delimiters, and a quote left open would join lines: those are for the careful way, as long
        # as they cannot be judged by counting.
        quoted = any('"' in line for line in lines)
        plain = not quoted or (complete and not any(line.count('"') % 2 for line in lines))
        if plain and (complete or all(line.count(delimiter) == width - 1 for line in lines)):
            try:
                A = np.loadtxt(
                    lines,
                    delimiter=delimiter,
                    comments=None,
                    quotechar='"',
                    ndmin=2,
                    encoding=None,
                    usecols=None if complete else order,
                    converters=None if target is None else {target: self.labels.code},
                )
            except ValueError as error:
                # loadtxt makes a ValueError of whatever `code` raises.
                if isinstance(error.__cause__, KeyboardInterrupt):
                    raise error.__cause__ from None
        if A is None or A.shape != (len(lines), len(order)):
            A = self._careful(numbers, lines, order, target)
        elif complete and target is not None:
            A = np.column_stack([np.delete(A, target, axis=1), A[:, target]]) if target < width - 1 else A
        d = len(columns.features)
        with np.errstate(over="ignore"):
            X = A[:, :d].astype(dtype)
        if not np.isfinite(X).all():
            self._careful(numbers, lines, order, target, float(np.finfo(dtype).max))
        return X, None if target is None else A[:, d].copy()

    def _careful(
        self, numbers: Sequence[int], lines: list[str], order: list[int], target: int | None, largest: float = np.inf
    ) -> np.ndarray:
        """The values of some lines, cell by cell; ValueError names the first cell that holds none."""
        A = np.empty((len(lines), len(order)))
        for row, (number, line) in enumerate(zip(numbers, lines)):
            if line.count('"') % 2:
                raise ValueError(f"{self.path}, line {number} has a quote that is not closed on this line")
            if line.count(self.layout.delimiter) >= WIDEST:
                raise ValueError(f"{self.path}, line {number} has more than {WIDEST} cells")
            cells = csv_layout_cells(line, self.layout.delimiter, f"{self.path}, line {number}")
            if len(cells) != self.layout.width:
                raise ValueError(
                    f"{self.path}, line {number} has {len(cells)} cells, but the lines before have {self.layout.width}"
                )
            for place, column in enumerate(order):
                cell, value = cells[column], np.nan
                if column == target:
                    with suppress(ValueError):
                        value = self.labels.code(cell)
                elif NUMBER.fullmatch(cell):
                    value = float(cell)
                if not abs(value) <= largest or np.isinf(value):
                    what = _csv_label_cell_fault(cell) if column == target else _csv_cell_fault(cell)
                    raise ValueError(f"{self.path}, line {number}, {self.layout.called(column)} {what}")
                A[row, place] = value
        return A


def _csv_cell_fault(cell: str) -> str:
    """Fault of a cell that the CSV reader cannot take as a number, as the end of a sentence."""
    shown = repr(cell[:QUOTED])
    if cell in MISSING:
        return f"has a missing value ({shown}); fill it in or leave the row out"
    if "," in cell and NUMBER.fullmatch(cell.replace(",", ".")):
        return f"holds {shown}: numbers are written with a decimal point, not a comma"
    if NUMBER.fullmatch(cell):
        return f"holds {shown}, which is too large for the type of the values"
    return f"holds {shown}, which is no finite number"


def _csv_label_cell_fault(cell: str) -> str:
    """Fault of a cell that the CSV reader cannot take as a label, as the end of a sentence."""
    if cell in MISSING:
        return f"has no label ({cell!r}); give one or leave the row out"
    return f"holds a label of {len(cell)} characters; at most {LABEL} are possible"


def _joined_csv_pieces(
    parts: list[tuple[np.ndarray, np.ndarray | None]], d: int, dtype: Any
) -> tuple[np.ndarray, np.ndarray | None]:
    """Join pieces that the CSV reader made; each is freed once copied: memory contains the data about once."""
    m = sum(X.shape[0] for X, _ in parts)
    X = np.empty((m, d), dtype)
    codes = None if parts[0][1] is None else np.empty(m)
    end = m
    while parts:
        part, own = parts.pop()
        X[end - part.shape[0] : end] = part
        if codes is not None and own is not None:
            codes[end - part.shape[0] : end] = own
        end -= part.shape[0]
    return X, codes
