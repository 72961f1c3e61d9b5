"""The container of model files, as `numpy.savez` writes it: uncompressed .npy members in a zip archive, nothing else.

Reading goes from the front to the back and trusts nothing: a member is refused before memory is taken for it unless it
is the one that is asked for, stored as it is, within the file and of a plain dtype. So a file cannot declare more than
it holds, members cannot overlap, and their number does not matter. zipfile and numpy's own reader would evaluate
literals, follow a directory of any length and take many more kinds of files.
"""

from __future__ import annotations

import io
import math
import os
import re
import struct
import zipfile
from typing import IO

import numpy as np
from numpy.lib import format as npy

from mdlearn.model.file.schema import UnreadableModel
from mdlearn.numerics import memory

LABEL_KINDS = "biufSUMm"
"""Kinds of dtypes that a file may hold."""
MEMBER_HEADER = struct.Struct("<4s5H3I2H")
"""Header of a member: signature, version, flags, method, time, date, checksum, two sizes, two lengths."""
LARGE_MEMBER_SIZES = struct.Struct("<2H2Q")
"""What follows its name where sizes need 64 bits: tag 1, length 16, two sizes."""
DIRECTORY_END = struct.Struct("<4s4H2IH")
"""End of the directory: signature, disks, entries (twice), size, place, length of a comment."""
UTF8_FLAG = 0x800
NPY_HEADER = re.compile(
    r"\{'descr': '([<>|]?[biufcSUVMmO]\d{0,10}(?:\[\w{1,10}\])?)', 'fortran_order': (True|False), "
    r"'shape': \(((?:\d{1,19}, ?)*(?:\d{1,19})?)\), \} *\n"
)


def write_archive(file: IO[bytes], members: dict[str, np.ndarray]) -> None:
    """Write arrays, which own their elements, as the members of a model file's archive."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, array in members.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)


class ArchiveMembers:
    """Members of an open model file's archive: arrays, taken one after the other.

    Raises UnreadableModel when the file is no archive; by `take` and `finish`, when it is not the one that is expected.
    Raises InsufficientMemory for a file that does not fit in memory.
    """

    def __init__(self, file: io.BufferedReader) -> None:
        self._file = file
        self._size = file.seek(0, os.SEEK_END)
        self._taken = 0
        file.seek(0)
        start = file.read(4)
        file.seek(0)
        if not start:
            raise UnreadableModel("it is empty")
        if start[:1] == b"\x80" and start[1:2] <= b"\x05":
            raise UnreadableModel(
                "it is a pickle, which could run any code and is never loaded; write models with save()"
            )
        if start != b"PK\x03\x04":
            raise UnreadableModel("it is not a model file of mdlearn")
        memory.require(self._size, "this model file", "load it on a machine with more memory")

    def take(self, name: str, most: int | None = None) -> np.ndarray:
        """Return the next array, which needs to have this name, and `most` bytes at most."""
        end = self._enter(name)
        if most is not None and end - self._file.tell() > most:
            raise UnreadableModel(
                f"its array {name!r} takes {end - self._file.tell()} bytes, and {most} at most are read"
            )
        if self._file.read(8) != b"\x93NUMPY\x01\x00":
            raise UnreadableModel(f"its array {name!r} is not in the npy format 1.0")
        text = self._read(int.from_bytes(self._file.read(2), "little"), end)
        found = NPY_HEADER.fullmatch(text.decode("latin-1"))
        if found is None:
            raise UnreadableModel(f"its array {name!r} is no plain array of numbers or strings")
        dtype, shape = np.dtype(found[1]), tuple(int(n) for n in found[3].replace(" ", "").split(",") if n)
        if dtype.hasobject:
            raise UnreadableModel(f"its array {name!r} holds pickled objects, which are never loaded")
        if dtype.kind not in LABEL_KINDS or dtype.itemsize == 0:
            raise UnreadableModel(f"its array {name!r} has dtype {dtype} and shape {shape}")
        if self._file.tell() + math.prod(shape) * dtype.itemsize != end:
            raise UnreadableModel(f"its array {name!r} is incomplete")
        content = np.empty(end - self._file.tell(), np.uint8)
        if self._file.readinto(content.data) != content.shape[0]:
            raise UnreadableModel(f"its array {name!r} is incomplete")
        self._taken += 1
        array = content.view(dtype)
        return array.reshape(shape[::-1]).T if found[2] == "True" else array.reshape(shape)

    def finish(self) -> None:
        """Check that nothing but the directory follows."""
        place = self._file.tell()
        if self._file.read(4) == b"PK\x03\x04":
            raise UnreadableModel("its arrays are not those that its header lists")
        if self._size < place + DIRECTORY_END.size:
            raise UnreadableModel("its end is missing")
        self._file.seek(self._size - DIRECTORY_END.size)
        tag, _, _, here, entries, _, start, comment = DIRECTORY_END.unpack(self._file.read(DIRECTORY_END.size))
        wanted = b"PK\x05\x06", min(self._taken, 0xFFFF), min(place, 0xFFFFFFFF), 0
        if (tag, entries, start, comment) != wanted or here != entries:
            raise UnreadableModel("its directory is damaged, or its end is missing")

    def _enter(self, name: str) -> int:
        """Read the header of a member; the file is then at the member's content, which ends where this returns."""
        given = self._file.read(MEMBER_HEADER.size)
        if len(given) < MEMBER_HEADER.size:
            raise UnreadableModel("its end is missing")
        tag, _, flags, method, _, _, _, stored, size, name_length, more = MEMBER_HEADER.unpack(given)
        if tag != b"PK\x03\x04":
            raise UnreadableModel(f"it lacks the array {name!r}")
        found, extra = self._file.read(name_length), self._file.read(more)
        if found != f"{name}.npy".encode():
            first = name == "header"
            raise UnreadableModel(
                "it is a zip archive, but not a model file of mdlearn"
                if first
                else "its arrays are not those that its header lists"
            )
        if method != zipfile.ZIP_STORED or flags & ~UTF8_FLAG:
            raise UnreadableModel(
                f"its array {name!r} is compressed or encrypted, which model files of mdlearn never are"
            )
        if len(extra) == LARGE_MEMBER_SIZES.size and stored == size == 0xFFFFFFFF:
            kind, length, size, stored = LARGE_MEMBER_SIZES.unpack(extra)
            extra = b"" if (kind, length) == (1, 16) else extra
        if extra or stored != size or self._file.tell() + size > self._size - DIRECTORY_END.size:
            raise UnreadableModel(f"its array {name!r} is incomplete")
        return int(self._file.tell() + size)

    def _read(self, length: int, end: int) -> bytes:
        return self._file.read(length) if self._file.tell() + length <= end else b""
