"""What sdist and wheel hold. Usage: contents.py TRACKED SDIST WHEEL, TRACKED a list of the tracked files."""

import sys
import tarfile
import zipfile
from pathlib import PurePosixPath

SHARED = "mdlearn/_solvers/_cyutility"  # made by Cython at build time, of no source of ours


def main(tracked, sdist, wheel):
    """Compare both archives with the tracked files; the answer is a list of faults."""
    with open(tracked, encoding="utf-8") as file:
        ours = {line.strip() for line in file if line.startswith("mdlearn/")}
    with tarfile.open(sdist) as archive:
        packed = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    with zipfile.ZipFile(wheel) as archive:
        installed = set(archive.namelist())
    sources = {name for name in ours if name.endswith((".pyx", ".pxd"))}
    faults = [] if sources else ["no .pyx or .pxd is tracked"]
    faults += [f"sdist lacks {name}" for name in sorted(ours - packed)]
    faults += [f"sdist holds {name}" for name in sorted(packed) if name.endswith((".c", ".so", ".pyd"))]
    faults += [f"wheel lacks {name}" for name in sorted(ours - sources - installed)]
    faults += [f"wheel holds {name}" for name in sorted(installed) if name.endswith((".pyx", ".pxd", ".c"))]
    compiled = {name.split(".")[0] for name in installed if name.endswith((".so", ".pyd"))}
    kernels = {str(PurePosixPath(name).with_suffix("")) for name in sources if name.endswith(".pyx")} | {SHARED}
    faults += [f"wheel lacks the compiled {name}" for name in sorted(kernels - compiled)]
    faults += [f"wheel holds the unknown module {name}" for name in sorted(compiled - kernels)]
    if not any(name.endswith("/licenses/LICENSE") for name in installed):
        faults.append("wheel lacks LICENSE")
    print(f"sdist: {len(packed)} names, {len(sources)} .pyx and .pxd; wheel: {len(installed)} files")
    return faults


if __name__ == "__main__":
    found = main(*sys.argv[1:])
    sys.exit("\n".join(found) if found else 0)
