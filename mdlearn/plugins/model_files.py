"""Model files with plugins: what a file names and mdlearn itself does not bring is looked up among the plugins."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from mdlearn.model.file import loading
from mdlearn.model.model import Model
from mdlearn.objectives import mdlearn_objectives
from mdlearn.plugins.registry import find


def load(path: str | os.PathLike[str]) -> Model:
    """Load the model file that `Model.save` wrote, with plugins where it names them; it predicts the same bits.

    Nothing in the file is executed: no pickle, no names to import. Where a model needs a plugin to predict (a kernel
    or an objective with features of its own), the file has its name, which is looked up among the installed ones.

    Parameters
    ----------
    path : path

    Returns
    -------
    Model

    Raises
    ------
    ValueError
        When the file is no model, damaged, changed after it was saved, of a newer format, or needs a plugin that is
        not installed.
    OSError
        When the file cannot be opened.
    """
    return load_model_with_plugins(path)[0]


def load_model_with_plugins(path: str | os.PathLike[str]) -> tuple[Model, dict[str, Any]]:
    """Load a model file and its notes, with classes of plugins where it names them; errors as for `load`."""
    return loading.load_model_file(path, _class_for_model_file)


def _class_for_model_file(kind: str, name: str) -> Any:
    """Class that a model file names; built-in objectives are found without plugins, and without the engines."""
    if kind == "objective":
        classes: Iterable[Any] = mdlearn_objectives()
        built_in = {cls.name: cls for cls in classes}
        if name in built_in:
            return built_in[name]
    return find(kind, name)
