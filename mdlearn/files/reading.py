"""Reading files of rows for a fit and for a model, whatever their kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.files.csv_layout import csv_columns_for_model, csv_layout_for_fit
from mdlearn.files.csv_reader import CsvReader
from mdlearn.files.packed import open_packed, packed_line_blocks
from mdlearn.files.svmlight import read_svmlight, svmlight_with_columns
from mdlearn.files.tables import Pieces, Table, kind_of_table_file
from mdlearn.model.model import Model
from mdlearn.numerics import memory

COLUMN_BYTES = 32.0
"""Memory that a fit takes for a column at least: coefficients, gradients and steps."""


@dataclass(frozen=True)
class ReadingOptions:
    """Options for reading a file of rows: kind, delimiter, header, target and features; None: found in the file.

    Attributes
    ----------
    kind : str or None
        "csv", "svmlight", or None: by the file's name, else by its content.
    delimiter : str or None
    header : bool or None
    target : str or None
        Name or number (from 1) of the column of labels of a CSV file.
    features : int or None
        Number of columns of a svmlight file.
    """

    kind: str | None = None
    delimiter: str | None = None
    header: bool | None = None
    target: str | None = None
    features: int | None = None

    def kind_for(self, path: str, pieces: Pieces) -> tuple[str, Pieces]:
        """The kind of this file, and its pieces; ValueError for options that belong to the other kind."""
        kind, pieces = (self.kind, pieces) if self.kind is not None else kind_of_table_file(path, pieces)
        for option in ("delimiter", "header", "target") if kind == "svmlight" else ("features",):
            if getattr(self, option) is not None:
                other = "CSV" if kind == "svmlight" else "svmlight"
                raise ValueError(
                    f"--{option} is for {other} files, and {path} is read as {kind}; leave it out or give --data-format"
                )
        return kind, pieces


def read_for_fit(path: str, options: ReadingOptions, dtype: Any = np.float64) -> Table:
    """Read rows and labels of a data file for a fit, with the names of columns where the file has them.

    Parameters
    ----------
    path : str
    options : ReadingOptions
    dtype : dtype, default float64
        Type of the rows.

    Returns
    -------
    Table
        With `X`, the rows, an array or a CSR matrix; `y`, their labels; and `named`, `X` with the names of its
        columns, as `mdlearn.fit` takes it.

    Raises
    ------
    ValueError, OSError, ImportError
        One sentence about what is wrong with the file.
    """
    with open_packed(path) as file:
        kind, pieces = options.kind_for(path, packed_line_blocks(file, path))
        if kind == "csv":
            return _read_csv_for_fit(
                CsvReader(path, pieces, options.delimiter, options.header, None), options.target, dtype
            )
        table = read_svmlight(path, pieces, None, dtype)
    if table.X.nnz == 0:
        raise ValueError(f"{path} holds labels only; a row is a label followed by column:value pairs")
    X = table.X if options.features is None else svmlight_with_columns(table.X, options.features, path)
    width = X.shape[1]
    # A single index of a damaged file would otherwise ask for vectors of its size.
    memory.require(COLUMN_BYTES * width, f"a model of the {width} columns of {path}", "see whether they are meant")
    return Table(X, table.y, table.notes)


def _read_csv_for_fit(reader: CsvReader, target: str | None, dtype: Any) -> Table:
    """Read a CSV file for a fit: a table of rows and labels, with column names if there is a header."""
    layout = reader.layout
    columns = csv_layout_for_fit(layout, target)
    X, y = reader.rows(columns, dtype)
    if layout.names is None:
        return Table(X, y, {"place": columns.target})
    names = tuple(layout.names[i] for i in columns.features)
    return Table(X, y, {"target": layout.names[columns.target or 0], "place": columns.target}, names)


def read_for_model(path: str, options: ReadingOptions, model: Model, notes: Mapping[str, Any]) -> Table:
    """Read the columns of a data file that a model needs, and labels if the file has them.

    `notes` were saved with the model; errors as for `read_for_fit`.
    """
    dtype, width = (np.float32 if notes.get("float32") else np.float64), model.n_features_in_
    with open_packed(path) as file:
        kind, pieces = options.kind_for(path, packed_line_blocks(file, path))
        if kind == "svmlight":
            based = notes.get("zero_based")
            table = read_svmlight(path, pieces, based if isinstance(based, bool) else None, dtype)
            return Table(svmlight_with_columns(table.X, width, path), table.y)
        names = getattr(model, "feature_names_in_", None)
        reader = CsvReader(path, pieces, options.delimiter, options.header, names)
        columns = csv_columns_for_model(reader.layout, options.target, width, names, notes)
        return Table(*reader.rows(columns, dtype, as_text=model.classes_.dtype.kind == "U"))
