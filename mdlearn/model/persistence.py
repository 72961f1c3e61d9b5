"""Models as files: one .npz of plain arrays and a JSON header, written atomically and read without executing anything.

Members: ``header`` (UTF-8 JSON, as bytes), ``digest`` (SHA-256 of the header and of the arrays) and the arrays that the
header lists with dtype and shape. All are stored uncompressed, so that no member can be larger than the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import secrets
import stat
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from mdlearn.model.decoding import Lookup, Unreadable, decode
from mdlearn.model.encoding import FORMAT, LABEL_KINDS, VERSION, encode
from mdlearn.model.model import Model


def save(model: Model, path: str | os.PathLike[str], notes: Mapping[str, Any] | None = None) -> None:
    """Write a model to one file that `mdlearn.load` reads.

    The file is complete or not there: it is written beside `path`, brought to disk, then renamed. A crash leaves an
    older file of that name as it was.

    Parameters
    ----------
    model : Model
        Any fitted model, except one with a callable kernel.
    path : path
        File to write, by this exact name; conventionally ``*.npz``.
    notes : mapping, optional
        Plain values that `load_with_notes` gives back (the command line keeps there how it read the data).

    Raises
    ------
    ValueError
        For a callable kernel, or labels or parameters that are not numbers or strings.
    OSError
        When the file cannot be written.
    """
    target = check_target(path)
    header, arrays = encode(model, dict(notes or {}))
    text = np.frombuffer(json.dumps(header, allow_nan=False).encode(), np.uint8)
    _write(target, {"header": text, "digest": _digest(text, arrays), **arrays})


def load_with_notes(path: str | os.PathLike[str], lookup: Lookup) -> tuple[Model, dict[str, Any]]:
    """Read a model and the notes that were saved with it.

    Parameters
    ----------
    path : path
    lookup : callable
        lookup(kind, name) returns the class that has a name; ValueError when none has. It is asked for kernels that are
        not built in, and for objectives that make features of their own.

    Raises
    ------
    ValueError, OSError
        As for `mdlearn.load`.
    """
    with open(path, "rb") as file:
        try:
            header, arrays = _read(file)
            if not isinstance(header["notes"], dict):
                raise Unreadable("its notes are no mapping")
            return decode(header, arrays, lookup), header["notes"]
        except MemoryError:
            raise
        except Unreadable as error:
            raise ValueError(f"{os.fspath(path)} cannot be loaded: {error}") from None
        except Exception as error:
            # Damage makes the readers of zip, npy and JSON raise nearly anything.
            raise ValueError(
                f"{os.fspath(path)} cannot be loaded: it is damaged, incomplete or not a model file of mdlearn "
                f"({type(error).__name__}: {error})"
            ) from error


def check_target(path: str | os.PathLike[str]) -> str:
    """Return the file that `path` stands for (links followed); OSError when no file can be put there."""
    target = os.path.realpath(os.fspath(path))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"there is no folder {folder}; make it, or give another path")
    if os.path.exists(target) and not os.path.isfile(target):
        # Renaming would replace a device or a pipe by a file.
        raise OSError(f"{target} is not a regular file; give another path")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} cannot be written to; give another path")
    return target


def _write(target: str, members: dict[str, np.ndarray]) -> None:
    folder = os.path.dirname(target)
    draft = os.path.join(folder, f".mdlearn-{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, array in members.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        npy.write_array(member, array, version=(1, 0), allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            os.chmod(draft, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(draft, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft)
        raise
    if os.name == "posix":
        # The new name, too, has to reach the disk. Some file systems refuse; the file itself is safe by now.
        with contextlib.suppress(OSError):
            handle = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


def _digest(text: np.ndarray, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """SHA-256 of the header, then of the arrays in its order, each in its own memory order."""
    total = hashlib.sha256(text.tobytes())
    for array in arrays.values():
        flat = array.ravel() if array.flags.c_contiguous else array.T.ravel()
        total.update(b"C" if array.flags.c_contiguous else b"F")
        total.update(flat.view(np.uint8).data)
    return np.frombuffer(total.digest(), np.uint8)


def _read(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if "header.npy" not in members:
            raise Unreadable("it is a zip archive, but not a model file of mdlearn")
        text = _member(archive, members["header.npy"], size)
        header = _header(text)
        names = [f"{name}.npy" for name in ("header", "digest", *header["arrays"])]
        if sorted(names) != sorted(info.filename for info in archive.infolist()):
            raise Unreadable("its arrays are not those that its header lists")
        arrays = {}
        for name, (dtype, shape) in header["arrays"].items():
            arrays[name] = array = _member(archive, members[f"{name}.npy"], size)
            if array.dtype.str != dtype or list(array.shape) != shape:
                raise Unreadable(f"its array {name!r} is not the one that its header describes")
        if not np.array_equal(_member(archive, members["digest.npy"], size), _digest(text, arrays)):
            raise Unreadable("it was changed after it was saved")
    return header, arrays


def _header(text: np.ndarray) -> dict[str, Any]:
    if text.dtype != np.uint8 or text.ndim != 1:
        raise Unreadable("its header is not text")
    header = json.loads(text.tobytes().decode(), object_hook=_number)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise Unreadable("it is not a model file of mdlearn")
    version = header["version"]
    if type(version) is not int or version < 1:
        raise Unreadable(f"its format version is {version!r}")
    if version > VERSION:
        raise Unreadable(
            f"it has format {version}, written by mdlearn {header.get('written_by')}, and this version reads formats "
            f"up to {VERSION}; upgrade mdlearn"
        )
    return header


def _number(value: dict[str, Any]) -> Any:
    return float(value["number"]) if value.keys() == {"number"} else value


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, size: int) -> np.ndarray:
    """One array; everything is checked before memory is taken for it."""
    name = info.filename.removesuffix(".npy")
    if info.compress_type != zipfile.ZIP_STORED or info.file_size > size:
        raise Unreadable(f"its array {name!r} is compressed, which model files of mdlearn never are")
    with archive.open(info) as member:
        if npy.read_magic(member) != (1, 0):
            raise Unreadable(f"its array {name!r} has another npy version than 1.0")
        shape, _, dtype = npy.read_array_header_1_0(member)
        start = member.tell()
    if dtype.hasobject:
        raise Unreadable(f"its array {name!r} holds pickled objects, which are never loaded")
    if dtype.kind not in LABEL_KINDS or dtype.itemsize == 0 or min(shape, default=0) < 0:
        raise Unreadable(f"its array {name!r} has dtype {dtype} and shape {shape}")
    if start + math.prod(shape) * dtype.itemsize != info.file_size:
        raise Unreadable(f"its array {name!r} is incomplete")
    with archive.open(info) as member:
        return np.asarray(npy.read_array(member, allow_pickle=False))
