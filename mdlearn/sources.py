"""Sources of row blocks for `mdlearn.fit` with y None: arrays and files.

Each function returns `mdlearn.RowBlocks` that read their blocks anew in every pass: of a file, nothing is kept but one
block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.rows.rows import steps
from mdlearn.data.validation import check_number
from mdlearn.errors import did_you_mean
from mdlearn.files.csv_layout import CsvColumns
from mdlearn.files.csv_reader import CsvReader
from mdlearn.files.packed import open_packed, packed_line_blocks
from mdlearn.files.svmlight import read_svmlight, svmlight_with_columns
from mdlearn.files.tables import TableFrame

ROWS = 100_000
Item = TypeVar("Item")

__all__ = ["of_arrays", "of_csv", "of_parquet", "of_svmlight"]


def of_arrays(
    X: Any, y: Any, weight: Any = None, *, rows: int = ROWS, checkpoint: Any = None, held: int | None = None
) -> RowBlocks:
    """Source of row blocks: arrays that lie in memory, or in a file that is mapped into it.

    Parameters
    ----------
    X : array, memory map, CSR matrix or data frame of shape (m, d)
        Blocks are slices of it: nothing is copied.
    y : array-like of shape (m,), array or sparse matrix of shape (m, k), or None
        (m, k): 0 and 1 of each of several labels. None: the objective takes rows alone.
    weight : array-like of shape (m,), optional
        Repetition counts.
    rows : int, default 100000
        Of a block.
    checkpoint, held
        As for `mdlearn.RowBlocks`.

    Returns
    -------
    RowBlocks

    Raises
    ------
    ValueError
        For lengths that differ.

    Examples
    --------
    >>> import mdlearn, numpy as np
    >>> X, y = np.random.default_rng(0).standard_normal((1000, 3)), np.arange(1000) % 2
    >>> mdlearn.fit("lsvm", mdlearn.sources.of_arrays(X, y, rows=300), None).n_features_in_
    3
    """
    step, m = _checked_rows_per_source_block(rows), int(X.shape[0])
    given = [None if one is None else one if np.ndim(one) == 2 else np.asarray(one) for one in (y, weight)]
    sets = given[0] is not None and given[0].ndim == 2
    for name, one, n_axes in zip(("y", "weight"), given, (1 + sets, 1), strict=True):
        if one is not None and (one.ndim != n_axes or one.shape[0] != m):
            raise ValueError(f"X has {m} rows but {name} has shape {one.shape}; give one number or label per row")
    cut, columns = getattr(X, "iloc", X), [getattr(one, "iloc", one) for one in given]

    def source() -> Iterator[tuple[Any, ...]]:
        for part in steps(m, step):
            both = [None if column is None else column[part] for column in columns]
            yield (cut[part], *both[: 1 + (weight is not None)])

    return RowBlocks(source, checkpoint=checkpoint, held=held)


def of_csv(
    path: str,
    target: str | int | None = None,
    weight: str | int | None = None,
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    dtype: Any = np.float64,
    rows: int = ROWS,
    checkpoint: Any = None,
    held: int | None = None,
) -> RowBlocks:
    """Source of row blocks: a CSV file, plain or packed by gzip or bzip2.

    Parameters
    ----------
    path : str
    target : str or int, optional
        Column of the labels, by its name or its number from 1 (negative: from the end). Default: the last one.
    weight : str or int, optional
        Column of repetition counts.
    delimiter : str, optional
        Default: found out from the first lines.
    header : bool, optional
        Whether the first line has names. Default: found out.
    dtype : float64 or float32, default float64
        Type of the numbers.
    rows : int, default 100000
        Of a block, about: a block ends with a piece of 2 MB.
    checkpoint, held
        As for `mdlearn.RowBlocks`.

    Returns
    -------
    RowBlocks

    Raises
    ------
    ValueError, OSError
        When it is read: one sentence about what is wrong with the file, and in which line.
    """
    step = _checked_rows_per_source_block(rows)

    def source() -> Iterator[tuple[Any, ...]]:
        with open_packed(path) as file:
            reader = CsvReader(path, packed_line_blocks(file, path), delimiter, header, None)
            layout = reader.layout
            label = layout.width - 1 if target is None else layout.column_index(str(target))
            counted = None if weight is None else layout.column_index(str(weight))
            if counted == label:
                raise ValueError(f"{path}: weight and target name the same column, {layout.called(label)}")
            order = [i for i in range(layout.width) if i not in (label, counted)]
            if not order:
                raise ValueError(f"{path} has no columns beside labels and weights; features are needed")
            names = None if layout.names is None else tuple(layout.names[i] for i in order)
            last = [] if counted is None else [counted]
            for parts in _source_blocks_of_lines(
                reader.parts(CsvColumns([*order, *last], label), dtype), step, lambda part: len(part[0])
            ):
                A, codes = map(np.concatenate, zip(*parts, strict=True))
                X = A[:, : len(order)]
                y = reader.labels.values(codes, False)
                yield (X if names is None else TableFrame(X, names), y, *([] if counted is None else [A[:, -1]]))

    return RowBlocks(source, checkpoint=checkpoint, held=held)


def of_svmlight(
    path: str,
    n_features: int | None = None,
    *,
    zero_based: bool | None = None,
    dtype: Any = np.float64,
    rows: int = ROWS,
    checkpoint: Any = None,
    held: int | None = None,
) -> RowBlocks:
    """Source of row blocks (CSR): a svmlight file, plain or packed by gzip or bzip2; needs scikit-learn's reader.

    Parameters
    ----------
    path : str
    n_features : int, optional
        Columns of X. Default: the largest index of the file, which takes one more pass over it.
    zero_based : bool, optional
        Whether columns count from 0. Default: exactly if index 0 occurs, which takes the same pass.
    dtype : float64 or float32, default float64
        Type of the values.
    rows : int, default 100000
        Of a block, about: a block ends with a piece of 2 MB.
    checkpoint, held
        As for `mdlearn.RowBlocks`.

    Returns
    -------
    RowBlocks

    Raises
    ------
    ValueError, OSError, ImportError
        When it is read: one sentence about what is wrong with the file, and in which line.
    """
    step = _checked_rows_per_source_block(rows)
    known: dict[str, Any] = {
        "width": None if n_features is None else check_number(n_features, "n_features", low=1, integer=True),
        "based": zero_based,
    }

    def tables(based: bool | None) -> Iterator[Any]:
        with open_packed(path) as file:
            for pieces in _source_blocks_of_lines(packed_line_blocks(file, path), step, _rows_in_source_lines):
                yield read_svmlight(path, iter(pieces), based, dtype)

    def check_base() -> None:
        if None in known.values():
            found = [(one.X.shape[1], one.notes["zero_based"]) for one in tables(known["based"])]
            based = any(zero for _, zero in found)
            # A block without index 0 was taken to count from 1.
            widths = [width + (based and not zero) for width, zero in found]
            known["based"] = based
            known["width"] = max(widths, default=1) if known["width"] is None else known["width"]

    def source() -> Iterator[tuple[Any, ...]]:
        check_base()
        for table in tables(known["based"]):
            yield svmlight_with_columns(table.X, known["width"], path), table.y

    return RowBlocks(source, checkpoint=checkpoint, held=held)


def of_parquet(
    path: Any,
    target: str,
    weight: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    rows: int = ROWS,
    checkpoint: Any = None,
    held: int | None = None,
) -> RowBlocks:
    """Source of row blocks: a Parquet file; needs pyarrow.

    Parameters
    ----------
    path : path-like
    target : str
        Column of the labels.
    weight : str, optional
        Column of repetition counts.
    columns : sequence of str, optional
        Columns of X. Default: all others. float32 when all of them are.
    rows : int, default 100000
        Of a block, at most.
    checkpoint, held
        As for `mdlearn.RowBlocks`.

    Returns
    -------
    RowBlocks

    Raises
    ------
    ImportError
        Without pyarrow.
    ValueError, OSError
        For a file that is none, and columns that it does not have.
    """
    try:
        from pyarrow import ArrowException
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise ImportError(
            f'reading Parquet files needs pyarrow ({error}); run: pip install "mdlearn[parquet]"'
        ) from None
    step = _checked_rows_per_source_block(rows)
    try:
        names = ParquetFile(path).schema_arrow.names
    except ArrowException as error:
        raise ValueError(f"{path} is no Parquet file ({str(error).splitlines()[0]})") from None
    beside = [target] if weight is None else [target, weight]
    chosen = [name for name in names if name not in beside] if columns is None else list(columns)
    missing = [name for name in [*beside, *chosen] if name not in names]
    if missing:
        hint = did_you_mean(missing[0], names)
        raise ValueError(f"{path} has no column {missing[0]!r}; it has {', '.join(names)}{hint}")

    def source() -> Iterator[tuple[Any, ...]]:
        for batch in ParquetFile(path).iter_batches(batch_size=step, columns=[*chosen, *beside]):
            held = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in [*chosen, *beside]}
            X = np.column_stack([held[name] for name in chosen])
            yield (TableFrame(X, tuple(chosen)), *(held[name] for name in beside))

    return RowBlocks(source, checkpoint=checkpoint, held=held)


def _checked_rows_per_source_block(rows: Any) -> int:
    """Check the argument `rows` of a source: the number of rows of a block."""
    return int(check_number(rows, "rows", low=1, integer=True))


def _source_blocks_of_lines(items: Iterator[Item], n: int, size: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Group pieces of a source's lines into blocks of n rows or more; those without a row stay with those before."""
    held: list[Item] = []
    count = 0
    for item in items:
        held.append(item)
        count += size(item)
        if count >= n:
            yield held
            held, count = [], 0
    if count:
        yield held


def _rows_in_source_lines(piece: tuple[int, list[bytes]]) -> int:
    """Number of rows in a piece of a svmlight source's lines, comments and empty lines left out."""
    return sum(1 for line in piece[1] if line.strip() and not line.lstrip().startswith(b"#"))
