"""Tables read from files of rows, and which reader a file needs."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

EXACT_INTEGER = 2.0**53
"""Integers below this are exact in float64."""
QUOTED = 120
"""Characters of a file's content or of a reader's message that are shown."""
ENDINGS = {".csv": "csv", ".tsv": "csv", ".svm": "svmlight", ".svmlight": "svmlight", ".libsvm": "svmlight"}
PACKED_ENDINGS = (".gz", ".bz2")
PAIRS = re.compile(rb"\s*[^\s,;:\"]+(\s+(qid|[0-9]+):\S*)+\s*(#.*)?")
"""A line that can only be svmlight: a label and column:value pairs."""


Pieces: TypeAlias = Iterator[tuple[int, list[bytes]]]
"""Numbers of first lines, and lines."""


@dataclass(frozen=True, eq=False)
class Table:
    """Table read from a file: rows, labels and column names."""

    X: Any  # shape (m, d)
    y: np.ndarray | None  # labels: integers where all are, else numbers, or strings; None where a file has none
    # how the file was read, to be kept with a model: `zero_based` for svmlight, `target` and `place` for CSV
    notes: dict[str, Any] = field(default_factory=dict)
    names: tuple[str, ...] | None = None  # names of the columns of X

    @property
    def named(self) -> Any:
        """X for a fit, with its names where it has some."""
        return self.X if self.names is None else TableFrame(self.X, self.names)


@dataclass(frozen=True, eq=False)
class TableFrame:
    """Rows of a table with names, as much of a data frame as a fit asks for."""

    values: np.ndarray
    columns: Sequence[str]

    @property
    def shape(self) -> tuple[int, ...]:
        """(m, d)."""
        return self.values.shape

    def to_numpy(self) -> np.ndarray:
        """Return the rows, without a copy."""
        return self.values


def integer_table_labels(labels: np.ndarray) -> np.ndarray:
    """Labels of a table read from a file as integers, if all are."""
    if np.isfinite(labels).all() and (labels == np.rint(labels)).all() and np.abs(labels).max() < EXACT_INTEGER:
        return labels.astype(np.int64)
    return labels


def kind_of_table_file(path: str, pieces: Pieces) -> tuple[str, Pieces]:
    """Return "csv" or "svmlight": by the name, else by the first line that is not empty; and the pieces to read."""
    name = os.path.basename(path).lower()
    for packed in PACKED_ENDINGS:
        name = name.removesuffix(packed)
    known = ENDINGS.get(os.path.splitext(name)[1])
    if known is not None:
        return known, pieces
    for piece in pieces:
        for line in piece[1]:
            if line.strip() and not line.lstrip().startswith(b"#"):
                # The piece goes before the others again: a pipe can be read once only.
                return "svmlight" if PAIRS.fullmatch(line) else "csv", itertools.chain([piece], pieces)
    raise ValueError(f"{path} is empty; a row is a line of a CSV file, or a label followed by column:value pairs")
