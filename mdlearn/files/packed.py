"""Files of text as blocks of lines: unpacked by what they hold, with bounds on what a block can take."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

GZIP, BZIP2 = b"\x1f\x8b", b"BZh"
FOREIGN = {
    b"PK\x03\x04": "a zip archive (as .npz files and spreadsheets are)",
    b"PK\x05\x06": "an empty zip archive",
    b"\xfd7zXZ\x00": "packed by xz; unpack it first",
    b"\x28\xb5\x2f\xfd": "packed by zstd; unpack it first",
    b"PAR1": "a Parquet file",
    b"\x89HDF\r\n\x1a\n": "an HDF5 file",
    b"\x93NUMPY": "a .npy array",
    b"\xff\xfe": "UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "UTF-16 text; save it as UTF-8",
}
"""What the first bytes of other kinds of files say, packed or not."""
BYTES_PER_READ = 1 << 21
"""Bytes read at once: well below 0.1 s of parsing, so that Ctrl-C is seen in between."""
LINE_BYTES = 1 << 26
"""Bytes of the longest line: whatever a packed file grows to, a block of lines takes no more than some of these."""
BOM = b"\xef\xbb\xbf"


@contextmanager
def open_packed(path: str) -> Iterator[Any]:
    """Open a file for reading bytes; gzip and bzip2 are recognised by the first bytes, whatever the name is.

    Raises OSError when the file cannot be opened. Raises ValueError when it begins like another kind of file.
    """
    with open(path, "rb") as file:
        head = file.peek(8)[:8]
        if head.startswith(GZIP):
            import gzip

            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked
        elif head.startswith(BZIP2):
            import bz2

            with bz2.BZ2File(file) as unpacked:
                yield unpacked
        else:
            yield file


def packed_line_blocks(file: IO[bytes], path: str) -> Iterator[tuple[int, list[bytes]]]:
    """Yield (number of the first line, lines without ends) for pieces of about 2 MB of a file, packed or not.

    Lines end with LF, CR LF or CR; a byte-order mark of UTF-8 is taken off. Lines count from 1.

    Raises ValueError when the file is damaged, cut short, another kind of file or binary, or has a line beyond all
    bounds.
    """
    number, rest, first = 1, b"", True
    while True:
        piece = _read_packed_piece(file, path)
        if first:
            for start, what in FOREIGN.items():
                if piece.startswith(start):
                    raise ValueError(f"{path} is {what}; give a CSV or svmlight file")
            piece, first = piece.removeprefix(BOM), False
        if b"\0" in piece:
            raise ValueError(f"{path} holds NUL bytes: it is binary or damaged, no text")
        text = rest + piece
        # A CR at the very end may be half of a CR LF.
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1 if piece else len(text)
        lines = text[:end].splitlines()  # of bytes: LF, CR LF and CR alone
        rest = text[end:]
        if max(map(len, lines), default=0) > LINE_BYTES or len(rest) > LINE_BYTES:
            at = next((i for i, line in enumerate(lines) if len(line) > LINE_BYTES), len(lines))
            raise ValueError(f"{path}, line {number + at} is longer than {LINE_BYTES >> 20} MB; is it a file of rows?")
        if lines:
            yield number, lines
        number += len(lines)
        if not piece:
            return


def _read_packed_piece(file: IO[bytes], path: str) -> bytes:
    """Read and unpack the next piece of a packed file; ValueError where it is damaged."""
    try:
        return file.read(BYTES_PER_READ)
    except (EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, path) from None
        raise ValueError(f"{path} is packed, but damaged or cut short: {error}") from None
