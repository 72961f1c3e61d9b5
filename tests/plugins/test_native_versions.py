"""A compiled plugin works with another version of the core, without being built again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from plugin_cases import can_build, can_compile, install, run, run_tests

import mdlearn
from mdlearn.plugins.scaffold import new_plugin

SOURCES = Path(__file__).resolve().parents[2] / "mdlearn" / "_solvers"
BUILD = """
from Cython.Build import cythonize
from setuptools import setup

sources = [f"mdlearn/_solvers/{name}.pyx" for name in ("callbacks", "native_losses", "sgd")]
options = {"language_level": 3, "boundscheck": False, "wraparound": False, "cdivision": True}
setup(name="next", packages=[], ext_modules=cythonize(sources, build_dir="build", compiler_directives=options))
"""


@pytest.mark.slow
@pytest.mark.skipif(not (can_build() and can_compile()), reason="needs pip, setuptools>=70.1, Cython, a C compiler")
def test_a_plugin_built_against_this_core_runs_with_the_next(tmp_path):
    package, site, later = new_plugin("my-corner", tmp_path, native=True), tmp_path / "site", tmp_path / "next"
    install(package, site)
    shutil.rmtree(package / "src")
    ignored = shutil.ignore_patterns("__pycache__", "sgd.c*", "callbacks.c*", "native_losses.c*")
    shutil.copytree(Path(mdlearn.__file__).parent, later / "mdlearn", ignore=ignored)
    # An installed package has no sources.
    headers = "callbacks.pxd", "clones.pxd", "loss_polynomials.pxd", "rows.pxd"
    for name in (*headers, "callbacks.pyx", "native_losses.pyx", "sgd.pyx"):
        shutil.copy(SOURCES / name, later / "mdlearn" / "_solvers")
    # The next core: another version, whose callbacks lie otherwise in memory.
    header, init = later / "mdlearn" / "_solvers" / "callbacks.pxd", later / "mdlearn" / "__init__.py"
    text = header.read_text()
    assert text.count("cdef class Callback:\n") == 1
    header.write_text(text.replace("cdef class Callback:\n", "cdef class Callback:\n    cdef double first[7]\n"))
    init.write_text(re.sub(r'__version__ = ".*"', '__version__ = "99.0"', init.read_text()))
    (later / "setup.py").write_text(BUILD)
    built = run("setup.py", "-q", "build_ext", "--inplace", folder=later, path=[])
    assert built.returncode == 0, built.stderr
    command = "import mdlearn, mdlearn._solvers.sgd as s; print(mdlearn.__version__, s.__file__)"
    told = run("-c", command, folder=later, path=[later])
    assert told.stdout.startswith(f"99.0 {later}"), told.stdout + told.stderr
    done = run_tests(package, site, core=later)
    assert done.returncode == 0, done.stdout
