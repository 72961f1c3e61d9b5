"""What a long fit has reached so far, in a file: whole after every pass, whenever the process is killed."""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HEAD = "head"


class Checkpoint:
    """A file with arrays, and with what they belong to.

    Parameters
    ----------
    path : path-like
    head : dict
        What a fit has been asked for; only a fit that has been asked for the same goes on from the file.

    Raises
    ------
    ValueError
        When the file belongs to another fit, or is none of these.
    """

    def __init__(self, path: Any, head: dict[str, Any]) -> None:
        self.path = Path(path)
        self.head: dict[str, Any] = json.loads(json.dumps(head, default=_told))
        self.found: dict[str, np.ndarray] = {}
        if self.path.exists():
            self.found = self._read()

    def write(self, arrays: dict[str, np.ndarray]) -> None:
        """Replace the file; it is the old or the new one at any moment."""
        beside = self.path.with_name(self.path.name + ".new")
        with open(beside, "wb") as file:
            np.savez(file, **{HEAD: np.array(json.dumps(self.head)), **arrays})  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self.path)

    def _read(self) -> dict[str, np.ndarray]:
        try:
            with open(self.path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            head = json.loads(str(found.pop(HEAD)))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ValueError(f"{self.path} is no checkpoint ({error}); give another file") from None
        for name in {**head, **self.head}:
            if head.get(name) != self.head.get(name):
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another fit: its {name} is {head.get(name)!r}, and not "
                    f"{self.head.get(name)!r}; give another file"
                )
        return found


def _told(value: Any) -> str:
    """A value as text: an array by all its bytes, which `repr` leaves out."""
    if isinstance(value, np.ndarray):
        return f"array {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"
    return repr(value)
