"""Plugins as their users meet them: from wheels, together in a clean environment, away from every source folder.

Usage: plugins.py ROOM [WHEEL]. Builds a wheel of every package in plugins/ and of two that `new-plugin` writes, one of
them compiled, installs them with mdlearn (WHEEL, else built here), runs each package's tests, then plugin_fits.py. All
that is made goes into the folder ROOM. Needs a C compiler and a package index that pip can reach.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FRESH = {"mdlearn-fresh-band": [], "mdlearn-fresh-corner": ["--native"]}  # names that no package in plugins/ has
SOURCES = ("mdlearn", "setup.py", "pyproject.toml", "MANIFEST.in", "README.md", "LICENSE")
MADE = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", "*.so", "*.pyd", "*.c")
# What could lead to other code than the installed one.
HIDDEN = ("PYTHONPATH", "PYTHONHOME", "MDLEARN_DISABLE_PLUGINS", "MDLEARN_SAFE")
STARTED = time.perf_counter()


def main(room, wheel=None):
    """Print what is done and found; a fault ends the run."""
    room = Path(room).resolve()
    wheel = wheel and Path(wheel).resolve()
    os.chdir(room)  # `python -m` looks for modules in the current folder first
    python = environment(room / "clean")
    run(python, "-m", "pip", "install", "-q", f"{wheel or core_wheel(python, room)}[sklearn,plot]")
    tell("mdlearn installed")
    packages = shipped(room / "packages") + fresh(python, room / "packages")
    wheels = [wheel_of(python, package, room / "wheels") for package in packages]
    run(python, "-m", "pip", "install", "-q", *(f"{wheel}[test]" for wheel in wheels))
    tell("plugins installed")
    listed = run(python, "-m", "mdlearn", "plugins").splitlines()
    for line in listed:
        tell(line)
    names = sorted(package.name for package in packages)
    if [line.split()[0] for line in listed] != names or not all(line.endswith("; ok") for line in listed):
        sys.exit(f"`python -m mdlearn plugins` needs one line that ends with ok for each of {', '.join(names)}")
    for package in packages:
        shutil.rmtree(package / "src")  # what remains is the installed package
        told = run(python, "-m", "pytest", "-q", "-W", "error", "-p", "no:cacheprovider", folder=package)
        tell(f"tests of {package.name}: {told.splitlines()[-1]}")
        # Real data sets are not part of any package: what needs them is skipped where they are absent.
        if not re.fullmatch(r"\d+ passed(, \d+ skipped)? in .*", told.splitlines()[-1]):
            sys.exit("every test needs to pass")
    tell("conformance:")
    print(run(python, "-m", "mdlearn", "plugins", "--check"), end="")
    tell("real data:")
    print(run(python, ROOT / ".ci" / "plugin_fits.py"), end="")


def environment(folder):
    """Make an empty virtual environment; return its Python."""
    run(sys.executable, "-m", "venv", folder)
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def core_wheel(python, room):
    """Build mdlearn from a copy: setuptools leaves its own files in the source folder, and setup.py the modules."""
    copy = room / "core"
    copy.mkdir()
    for name in SOURCES:
        (shutil.copy if (ROOT / name).is_file() else copied)(ROOT / name, copy / name)
    return wheel_of(python, copy, room / "wheels")


def shipped(folder):
    """Copy the packages in plugins/."""
    found = sorted(path.parent for path in (ROOT / "plugins").glob("*/pyproject.toml"))
    return [copied(package, folder / package.name) for package in found]


def fresh(python, folder):
    """Let the installed mdlearn write two packages."""
    for name, options in FRESH.items():
        run(python, "-m", "mdlearn", "new-plugin", name, *options, "--dir", folder)
    return [folder / name for name in FRESH]


def copied(source, target):
    """Copy a folder without what builds leave in it."""
    return shutil.copytree(source, target, ignore=MADE)


def wheel_of(python, package, folder):
    """Build a wheel as pip does by itself, in isolation; return its path."""
    target = folder / package.name
    run(python, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", target, package)
    (wheel,) = target.glob("*.whl")
    tell(f"built {wheel.name}")
    return wheel


def run(*command, folder=None):
    """Run a command; return what it prints. Its failure ends the run, with all it said."""
    kept = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env={"MDLEARN_SHARED": str(ROOT.parent / "shared"), **kept, "PYTHONNOUSERSITE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\nfailed: {' '.join(map(str, command))}")
    return done.stdout


def tell(line):
    """Print a line with the seconds since the start."""
    print(f"[{time.perf_counter() - STARTED:4.0f} s] {line}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
