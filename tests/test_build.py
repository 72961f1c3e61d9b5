"""The build: as many processes as the process may use cores, and what all kernels need compiled once."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest
from documents import PACKAGE, ROOT
from setuptools import Distribution


def settings(monkeypatch, jobs=None):
    """setup.py as a module, run anew: it reads its settings from the environment."""
    monkeypatch.delenv("MDLEARN_BUILD_JOBS", raising=False)
    if jobs is not None:
        monkeypatch.setenv("MDLEARN_BUILD_JOBS", jobs)
    monkeypatch.chdir(ROOT)
    spec = importlib.util.spec_from_file_location("mdlearn_setup", ROOT / "setup.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def command(module, **options):
    """The build command as setuptools makes it ready."""
    built = module.BuildExt(Distribution({"name": "mdlearn", "ext_modules": module.extensions()}))
    for name, value in options.items():
        setattr(built, name, value)
    built.ensure_finalized()
    return built


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system does not tell which cores may be used")
@pytest.mark.parametrize("cores", [{0}, {0, 2, 5}])
def test_a_build_uses_the_cores_that_the_process_may_use(monkeypatch, cores):
    module = settings(monkeypatch)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: cores)
    assert command(module).parallel == len(cores)


def test_a_build_has_at_least_one_job_where_cores_are_unknown(monkeypatch):
    module = settings(monkeypatch)
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert command(module).parallel == 1


def test_the_environment_sets_the_number_of_jobs_and_the_command_line_wins(monkeypatch):
    module = settings(monkeypatch, "3")
    assert command(module).parallel == 3
    assert command(module, parallel="5").parallel == 5


@pytest.mark.parametrize("asked", ["0", "-1", "two", "1.5"])
def test_a_number_of_jobs_that_is_none_is_refused(monkeypatch, asked):
    module = settings(monkeypatch, asked)
    with pytest.raises(SystemExit, match=f"MDLEARN_BUILD_JOBS='{asked}' needs to be a whole number"):
        command(module)


def test_translation_and_compiler_share_the_number_of_jobs(monkeypatch, tmp_path):
    module = settings(monkeypatch, "2")
    seen = []

    def translate(extensions, **options):
        seen.append(options)
        return extensions

    built = command(module, build_lib=str(tmp_path / "lib"), build_temp=str(tmp_path / "temp"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "cythonize", translate)
    monkeypatch.setattr(module.build_ext, "build_extensions", lambda self: seen.append({"parallel": self.parallel}))
    built.compiler = type("Compiler", (), {"compiler_type": "unix"})()
    built.build_extensions()
    assert seen[0]["nthreads"] == seen[1]["parallel"] == 2


def test_what_typed_memoryviews_need_is_compiled_once(monkeypatch):
    names = [extension.name for extension in settings(monkeypatch).extensions()]
    assert names.count("mdlearn._solvers._cyutility") == 1
    assert len(names) == len(set(names)) == 1 + len(list((ROOT / "mdlearn" / "_solvers").glob("*.pyx")))
    # An installed kernel takes it from there.
    program = "import sys, mdlearn._solvers.apg; print('mdlearn._solvers._cyutility' in sys.modules)"
    told = subprocess.run(
        [sys.executable, "-c", program], cwd=PACKAGE.parent, capture_output=True, text=True, timeout=120
    )
    assert told.stdout.strip() == "True", told.stderr
