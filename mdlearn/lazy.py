"""Lazy imports: public names of a package that are imported at first use.

A package whose own code imports its modules can be entered from two sides: one thread imports the package and holds its
lock when it comes to a module, another imports the module and holds that one's lock when it comes to the package. Each
then waits for the other; Python ends it by an error in one of them. Packages that others enter by their modules
therefore import nothing themselves.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def lazy_names(
    package: str, public: Mapping[str, Iterable[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package with lazy imports.

    `public`: full name of a module -> the public names that it defines. A module stands for itself.
    """
    modules = {name: module for module, names in public.items() for name in names}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = importlib.import_module(modules[name])
        value = found if modules[name] == f"{package}.{name}" else getattr(found, name)
        setattr(sys.modules[package], name, value)
        return value

    def present() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    return load, present


def names_of_moved_module(old: str, new: str) -> Callable[[str], Any]:
    """Return the lazy `__getattr__` of a module that has moved: names of the new one, with a DeprecationWarning.

    `old`, `new`: full names of the modules.
    """

    def load(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {old!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(new), name)
        what = f"{old} is {new} now and goes in mdlearn 1.0; import {name} from mdlearn.extend"
        warnings.warn(what, DeprecationWarning, stacklevel=2)
        return value

    return load
