"""Whether compiled modules are those of their sources."""

from __future__ import annotations

REBUILD = "python setup.py build_ext --inplace"


def out_of_date(folder):
    """Names of compiled modules of a folder that are older than their sources."""
    compiled = {path.name.split(".")[0]: path.stat().st_mtime for path in folder.glob("*.so")}
    sources = [path for path in folder.glob("*.pyx") if path.stem in compiled]
    return sorted(path.stem for path in sources if path.stat().st_mtime > compiled[path.stem])
