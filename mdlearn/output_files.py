"""Output files, written beside the file that they replace, then renamed, and never over something else.

The rule of all commands, checked before their work:

* what a command reads is never written to, whatever the name or link it is reached by;
* a file that exists is replaced only by a newer one of the kind that mdlearn recognises there (a model by a model, the
  demo's picture by the demo's picture), or when the user says so (``--force``); an empty file holds nothing to keep;
* a folder that is written to is new, empty, or one that the command has filled before, or the user says so.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import stat
import time
from collections.abc import Callable, Iterable
from typing import IO

ABANDONED_DRAFT_SECONDS = 3600.0
"""Seconds since the last change of a draft after which nobody is thought to write it: clocks of two machines differ."""
Path = str | os.PathLike[str]
Content = bytes | Callable[[IO[bytes]], object]
"""Bytes, or a function that writes them to an open file."""


class OutputFile:
    """Output file that a command is going to write: never over what it reads, over another file only when forced.

    Make one before the work, so that a path that cannot be is told before it, and `write` it afterwards.

    Parameters
    ----------
    path : str or path
        Where it goes, as the user gave it.
    reads : path, or iterable of paths
        Files that the command reads: none of them is written to, with `force` neither, whatever name or link leads
        there.
    replaces : callable, optional
        replaces(path) tells whether an existing file is an older one of the same kind, which is overwritten without
        `force`. Default: none is.
    force : bool, default False
        Whether an existing file is overwritten; the argument that `mdlearn.extend.add_force` adds. An empty file always
        is: it holds nothing to keep.
    streams : bool, default False
        Whether a device or a pipe will do; it is written to as it is.

    Raises
    ------
    ValueError
        For a file that the command reads, or that exists and is not to be overwritten: one sentence.
    OSError
        When no file can be put there.

    Examples
    --------
    In the method `run` of a command::

        out = OutputFile(given.output, reads=[given.data], force=given.force)
        scores = ...  # the work
        out.write("\\n".join(map(str, scores)).encode())
    """

    def __init__(
        self,
        path: Path,
        reads: Path | Iterable[Path] = (),
        replaces: Callable[[str], bool] | None = None,
        force: bool = False,
        streams: bool = False,
    ) -> None:
        self.path = os.fsdecode(os.fspath(path))
        self._streams = streams and _is_output_device_or_pipe(self.path)
        if self._streams:
            return
        target = output_file_target(self.path)
        if not os.path.exists(target):
            return
        for read in [reads] if isinstance(reads, (str, os.PathLike)) else reads:
            if os.path.exists(read) and os.path.samefile(read, target):
                same = self.path == os.fspath(read)
                what = "a file that is read" if same else f"another name of {os.fspath(read)}, which is read"
                raise ValueError(f"{self.path} is {what}; give another path")
        if not (force or os.path.getsize(target) == 0 or (replaces is not None and replaces(target))):
            raise ValueError(f"{self.path} exists already; give another path, or --force to overwrite it")

    def write(self, content: Content) -> None:
        """Write the file, as a whole or not at all.

        Parameters
        ----------
        content : bytes or callable
            The content, or a function that writes it to the open binary file that it is called with.

        Raises
        ------
        OSError
            When that fails; an older file of that name is as it was.
        """
        if self._streams:
            with open(self.path, "wb") as file:
                _write_output_file(file, content)
        else:
            replace_file(output_file_target(self.path), content)


def check_folder(path: Path, instead: str, own: bool = False, force: bool = False) -> None:
    """Raise ValueError unless output files may fill a folder: new, empty, `own` work that goes on, or by `force`.

    `instead` ends the sentence: what else can be done.
    """
    if own or force or not os.path.lexists(path):
        return
    if not os.path.isdir(path):
        raise ValueError(f"{os.fsdecode(path)} exists already and is no folder; {instead}")
    if os.listdir(path):
        raise ValueError(f"the folder {os.fsdecode(path)} exists already and is not empty; {instead}")


def output_file_target(path: Path) -> str:
    """Output file that `path` stands for (links followed); OSError when no file can be put there."""
    target = os.path.realpath(os.fsdecode(os.fspath(path)))
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"there is no folder {folder}; make it, or give another path")
    if os.path.lexists(target) and not os.path.isfile(target):
        # Renaming would replace a device, a pipe or a link in a circle by a file.
        raise OSError(f"{target} is not a regular file; give another path")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"the folder {folder} cannot be written to; give another path")
    return target


def replace_file(target: str, content: Content) -> None:
    """Put an output file in place, complete or not at all: a crash leaves an older one of that name as it was.

    `content`: bytes, or a function that writes them to the open file that it is called with.
    """
    folder = os.path.dirname(target)
    draft = os.path.join(folder, f"{_draft_prefix(target)}{secrets.token_hex(8)}.tmp")
    try:
        with open(draft, "xb", opener=_open_private_output_file if os.path.exists(target) else None) as file:
            _write_output_file(file, content)
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


def remove_abandoned_drafts(target: str) -> None:
    """Remove drafts of an output file that a killed process left beside it; what cannot be removed stays.

    Others may be at work on the same file: a draft that has changed of late is theirs. Links, and files that only begin
    like a draft, are none.
    """
    name = re.compile(re.escape(_draft_prefix(target)) + "[0-9a-f]{16}[.]tmp")
    latest = time.time() - ABANDONED_DRAFT_SECONDS
    with contextlib.suppress(OSError), os.scandir(os.path.dirname(target) or os.curdir) as entries:
        for entry in entries:
            if name.fullmatch(entry.name):
                with contextlib.suppress(OSError):
                    if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < latest:
                        os.unlink(entry.path)


def _draft_prefix(target: str) -> str:
    """Beginning of the names of drafts of an output file: short, however long its own name is."""
    return f".mdlearn-{hashlib.sha256(os.fsencode(os.path.basename(target))).hexdigest()[:16]}-"


def _write_output_file(file: IO[bytes], content: Content) -> None:
    """Write bytes to an open output file, or call the function that writes them."""
    if callable(content):
        content(file)
    else:
        file.write(content)


def _open_private_output_file(name: str, flags: int) -> int:
    """Open a new output file for its owner alone; once complete, it gets the mode of the one that it replaces."""
    return os.open(name, flags, 0o600)


def _is_output_device_or_pipe(path: str) -> bool:
    """Whether an output path leads to a device or a pipe, such as /dev/stdout."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
