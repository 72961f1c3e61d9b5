"""svmlight files, through scikit-learn's reader: guarded, because that takes more for a number than it should."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from mdlearn.files.csv_layout import NUMBER
from mdlearn.files.tables import QUOTED, Pieces, Table, integer_table_labels
from mdlearn.numerics import memory

USED = b"0123456789+-.eE: \t\v\f"
"""Bytes of labels, columns and values. Python's own numbers may also hold underscores, which are no number here."""
LAST = 2**31 - 1
"""The largest index that the reader takes."""
VALUE_BYTES, ROW_BYTES = 16, 32
"""Memory that the reader takes for a value and for a row."""


def read_svmlight(path: str, pieces: Pieces, zero_based: bool | None, dtype: Any) -> Table:
    """Make a table of the lines of a svmlight file.

    `path`: for messages; `pieces`: lines of the file; `zero_based`: whether columns are counted from 0; None: exactly
    if index 0 occurs; `dtype`: type of the values. Raises ImportError without scikit-learn, whose reader does the work.
    Raises ValueError, OSError with one sentence about what is wrong with the file, and in which line.
    """
    try:
        from sklearn.datasets import load_svmlight_file
    except ImportError as error:
        raise ImportError(
            f'reading svmlight files needs scikit-learn ({error}); run: pip install "mdlearn[sklearn]"'
        ) from None
    from scipy.sparse import csr_matrix

    lines = _SvmlightLines(pieces, path)
    try:
        A, labels = load_svmlight_file(lines, dtype=dtype, zero_based=True)
    except _RefusedSvmlightLine as error:
        raise ValueError(str(error)) from None
    except (ValueError, OverflowError) as error:
        if lines.failed is not None:
            raise lines.failed from None
        raise ValueError(f"{path}, line {lines.number} {svmlight_line_fault(lines.line)}") from error
    if A.shape[0] == 0:
        raise ValueError(f"{path} holds no rows; a row is a label followed by column:value pairs")
    if not np.isfinite(A.data).all():
        row = int(np.searchsorted(A.indptr, int(np.flatnonzero(~np.isfinite(A.data))[0]), side="right"))
        raise ValueError(f"{path}, row {row} holds a number too large for {np.dtype(dtype)}")
    if not np.isfinite(labels).all():
        raise ValueError(f"{path}, row {int(np.argmin(np.isfinite(labels))) + 1} has a label too large for float64")
    first = int(A.indices.min()) if A.nnz else 1
    if zero_based is False and first == 0:
        raise ValueError(f"{path} counts columns from 0, but the model was fitted on a file that counts from 1")
    based = first == 0 if zero_based is None else zero_based
    shift = 0 if based else 1
    width = max(1, A.shape[1] - shift)
    X = csr_matrix((A.data, A.indices - shift, A.indptr), shape=(A.shape[0], width))
    return Table(X, integer_table_labels(labels), {"zero_based": based})


def svmlight_with_columns(X: Any, width: int, path: str) -> Any:
    """Return X with exactly `width` columns: empty ones are added, surplus ones dropped if they are empty."""
    from scipy.sparse import csr_matrix

    if X.shape[1] <= width:
        return csr_matrix((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
    surplus = X.indices[X.data != 0]
    needed = int(surplus.max()) + 1 if surplus.size else 0
    if needed > width:
        raise ValueError(f"{path} has {needed} columns, but {width} are expected")
    return X[:, :width].tocsr()


class _RefusedSvmlightLine(Exception):
    """Error of a line that `_SvmlightLines` refuses; the reader itself raises no such error."""


class _SvmlightLines:
    """Lines for the compiled reader, handed out by Python code: so Ctrl-C works, and the number of the line is known.

    Comments are taken off and lines looked at before the reader sees them.
    """

    def __init__(self, pieces: Pieces, path: str) -> None:
        self.pieces, self.path, self.number = pieces, path, 0
        self.line = b""
        self.failed: Exception | None = None

    def read(self) -> bytes:
        """Say that this is an open file; the reader goes over the lines."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[bytes]:
        rows = values = 0
        while True:
            try:
                number, lines = next(self.pieces)
                rows += len(lines)
                values += sum(line.count(b":") for line in lines)
                size = float(ROW_BYTES * rows + VALUE_BYTES * values)
                memory.require(size, f"reading {self.path} (as far as line {number})", "give a part of the file")
            except StopIteration:
                return
            except (ValueError, OSError) as error:
                self.failed = error  # the reader's own errors are of these kinds, too
                raise
            for self.number, line in enumerate(lines, number):
                self.line = self._checked(line)
                yield self.line

    def _checked(self, line: bytes) -> bytes:
        if b"#" in line:
            line = line[: line.index(b"#")]
        if not line.translate(None, USED):
            return line
        parts = line.split()
        if len(parts) > 1 and parts[1].startswith(b"qid:") and parts[1][4:].isdigit():
            del parts[1]  # groups of rows for ranking: no column, and nothing that a classifier needs
        line = b" ".join(parts)
        if line.translate(None, USED):
            raise _RefusedSvmlightLine(f"{self.path}, line {self.number} {svmlight_line_fault(line)}")
        return line


def svmlight_line_fault(line: bytes) -> str:
    """Describe the fault of a svmlight line, in other words than the reader's, which name Python's types."""
    # Split as the reader does: text knows more kinds of white space than bytes.
    label, *pairs = [part.decode("utf-8", "replace") for part in line.split()]
    if NUMBER.fullmatch(label) is None:
        return f"begins with {label[:QUOTED]!r}; a row is a label, a finite number, followed by column:value pairs"
    last = -1
    for pair in pairs:
        column, _, value = pair.partition(":")
        if re.fullmatch("[+]?[0-9]+", column) is None or NUMBER.fullmatch(value) is None:
            return f"holds {pair[:QUOTED]!r}, which is no column:value pair of finite numbers"
        number = int(column[:20])
        if number > LAST:
            return f"holds the column {column[:QUOTED]}; the last one possible is {LAST}"
        if number <= last:
            return f"holds column {number} after column {last}; columns need to ascend, each of them once"
        last = number
    return "cannot be read as a row of a svmlight file"
