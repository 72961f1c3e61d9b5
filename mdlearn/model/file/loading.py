"""Loading of models: a file that `persistence` reads, decoded; whatever is wrong with it is one sentence."""

from __future__ import annotations

import os
from typing import Any

from mdlearn.model.file.decoding import Lookup, decode_model
from mdlearn.model.file.persistence import open_model_file, read_model_file, shown_model_path
from mdlearn.model.file.schema import UnreadableModel
from mdlearn.model.model import Model
from mdlearn.numerics import memory

LOADING_ERROR_CHARACTERS = 600
"""Characters of an error that may come from a file."""


def load_model_file(path: str | os.PathLike[str], lookup: Lookup) -> tuple[Model, dict[str, Any]]:
    """Load a persistent model and the notes saved with it; `lookup` finds the classes that its file names.

    `lookup`: lookup(kind, name) returns the class that has a name; ValueError when none has. It is asked for kernels
    that are not built in, and for objectives that make features of their own. Raises ValueError, OSError as for
    `mdlearn.load`.
    """
    with memory.memory_error_in_words(f"loading {shown_model_path(path)}"), open_model_file(path) as file:
        try:
            header, arrays = read_model_file(file)
            if not isinstance(header["notes"], dict):
                raise UnreadableModel("its notes are no mapping")
            return decode_model(header, arrays, lookup), header["notes"]
        except MemoryError:
            raise
        except UnreadableModel as error:
            raise ValueError(f"{shown_model_path(path)} cannot be loaded: {_shortened_loading_error(error)}") from None
        except Exception as error:
            # Damage makes JSON, and the classes that a model is made of, raise nearly anything.
            raise ValueError(
                f"{shown_model_path(path)} cannot be loaded: it is damaged, incomplete or not a model file of mdlearn "
                f"({type(error).__name__}: {_shortened_loading_error(error)})"
            ) from error


def _shortened_loading_error(error: Exception) -> str:
    """Shorten an error of loading a model and replace unprintable characters: it may quote the file."""
    text = str(error)
    plain = "".join(c if c.isprintable() else "?" for c in text[:LOADING_ERROR_CHARACTERS])
    return plain if len(text) <= LOADING_ERROR_CHARACTERS else f"{plain}..."
