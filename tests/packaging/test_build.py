"""The build: as many processes as the process may use cores, and what all kernels need compiled once."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from compiled import out_of_date
from documents import PACKAGE, ROOT

# setup.py as a module, and the command that setuptools makes ready. In a process of its own: setuptools replaces
# distutils for everybody.
BEGIN = """
import importlib.util, json, os
from setuptools import Distribution

spec = importlib.util.spec_from_file_location("mdlearn_setup", "setup.py")
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)


def command(**options):
    built = module.BuildExt(Distribution({"name": "mdlearn", "ext_modules": module.extensions()}))
    for name, value in options.items():
        setattr(built, name, value)
    built.ensure_finalized()
    return built


def tell(answer):
    print(json.dumps(answer))
"""


def run(program, jobs=None):
    environment = {name: value for name, value in os.environ.items() if name != "MDLEARN_BUILD_JOBS"}
    if jobs is not None:
        environment["MDLEARN_BUILD_JOBS"] = jobs
    code = [sys.executable, "-c", BEGIN + program]
    return subprocess.run(code, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)


def answer(program, jobs=None):
    done = run(program, jobs)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_build_uses_the_cores_that_the_process_may_use():
    program = """
told = []
for cores in ({0}, {0, 2, 5}):
    os.sched_getaffinity = lambda pid, cores=cores: cores
    told.append(command().parallel)
del os.sched_getaffinity  # as on a system that does not tell
for number in (4, None):
    os.cpu_count = lambda number=number: number
    told.append(command().parallel)
tell(told)
"""
    assert answer(program) == [1, 3, 4, 1]


def test_the_environment_sets_the_number_of_jobs_and_the_command_line_wins():
    assert answer("tell([command().parallel, command(parallel='5').parallel])", "3") == [3, 5]


@pytest.mark.parametrize("asked", ["0", "1.5"])
def test_a_number_of_jobs_that_is_none_is_refused(asked):
    assert f"MDLEARN_BUILD_JOBS='{asked}' needs to be a whole number" in run("command()", asked).stderr


# A build that stops short of translator and compiler: what they would be told.
BUILD = """
import tempfile
from types import SimpleNamespace

asked = {}


def translate(extensions, **options):
    asked.update(options)
    return extensions


with tempfile.TemporaryDirectory() as folder:
    built = command(build_lib=folder)
    os.chdir(folder)
    module.cythonize = translate
    module.build_ext.build_extensions = lambda self: asked.update(parallel=self.parallel)
    built.compiler = SimpleNamespace(compiler_type="unix")
    built.build_extensions()
    os.chdir(os.pardir)
"""


def test_translation_and_compiler_share_the_number_of_jobs():
    assert answer(BUILD + "tell([asked['nthreads'], asked['parallel']])", "2") == [2, 2]


def test_every_module_is_spared_what_the_shared_one_holds_and_debug_information():
    program = """
shared = asked["shared_utility_qualified_name"]
tell([shared, sorted({argument for one in built.extensions for argument in one.extra_compile_args})])
"""
    shared, arguments = answer(BUILD + program)
    assert shared == "mdlearn._solvers._cyutility" and "-g0" in arguments and "-g" not in arguments


def test_what_typed_memoryviews_need_is_compiled_once():
    names = answer("tell([extension.name for extension in module.extensions()])")
    assert names.count("mdlearn._solvers._cyutility") == 1
    assert len(names) == len(set(names)) == 1 + len(list((ROOT / "mdlearn" / "_solvers").glob("*.pyx")))
    # An installed kernel takes it from there.
    program = "import sys, mdlearn._solvers.apg; print('mdlearn._solvers._cyutility' in sys.modules)"
    code = [sys.executable, "-c", program]
    told = subprocess.run(code, cwd=PACKAGE.parent, capture_output=True, text=True, timeout=120)
    assert told.stdout.strip() == "True", told.stderr


def test_modules_older_than_their_sources_are_named(tmp_path):
    ages = {"old.pyx": 5, "old.cpython-311.so": 9, "new.pyx": 9, "new.cpython-311.so": 5, "bare.pyx": 1}
    for name, age in ages.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    assert out_of_date(tmp_path) == ["old"]
