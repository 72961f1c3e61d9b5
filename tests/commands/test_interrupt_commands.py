"""Ctrl-C of the command line: never lost, whatever Python is doing, and never with a traceback."""

from __future__ import annotations

import os
import subprocess
import sys

import command_cases
import pytest

place = command_cases.place  # pytest finds fixtures by the names of the module

SWALLOWED_IN_AN_IMPORT = """
import os, runpy, signal, sys

wanted, sys.argv = sys.argv[1], ["mdlearn", *sys.argv[2:]]


class Finder:
    # SIGINT arrives while a module is looked for, and whoever imports it swallows every exception.
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                sum(range(10))
            except BaseException:
                pass


sys.meta_path.insert(0, Finder())
runpy.run_module("mdlearn", run_name="__main__", alter_sys=True)
"""
SWALLOWED_IN_A_FINALIZER = """
import os, runpy, signal, sys, time
from mdlearn.commands import fitting


class Closing:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        sum(range(10))


def fit(*_, **__):
    closing = Closing()
    del closing
    time.sleep(60)


fitting.fit = fit
sys.argv = ["mdlearn", *sys.argv[1:]]
runpy.run_module("mdlearn", run_name="__main__", alter_sys=True)
"""
FIT = ("fit", "a.svm", "-o", "m.npz")

pytestmark = pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")


def python(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)


COMPILED = "mdlearn._solvers.bounded_quadratic"


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["mdlearn.cli", "numpy", "pickle", "mdlearn.commands.fitting", "scipy.linalg", COMPILED]
)
def test_while_a_module_is_imported(module, place):
    done = python("-c", SWALLOWED_IN_AN_IMPORT, module, *FIT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")
    assert not (place[0] / "m.npz").exists()


@pytest.mark.slow
def test_in_a_finalizer(place):
    done = python("-c", SWALLOWED_IN_A_FINALIZER, *FIT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_other_lost_exceptions_are_told(place):
    lost = SWALLOWED_IN_A_FINALIZER.replace("os.kill(os.getpid(), signal.SIGINT)", "raise ValueError('of a finalizer')")
    done = python("-c", lost.replace("time.sleep(60)", "raise ValueError('of the fit')"), *FIT)
    assert done.returncode == 1 and done.stderr.splitlines()[-1] == "error: of the fit"
    assert "ValueError: of a finalizer" in done.stderr


@pytest.mark.slow
def test_an_import_that_never_ends(place):
    """A plugin may do anything when it is imported; Ctrl-C ends that, too, only not at once."""
    hanging = SWALLOWED_IN_AN_IMPORT.replace("sum(range(10))", "import time; time.sleep(600)")
    done = python("-c", hanging, "scipy.linalg", *FIT)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


@pytest.mark.slow
def test_where_interrupts_are_ignored(place):
    """A job in the background of a shell script goes on."""
    ignoring = SWALLOWED_IN_AN_IMPORT.replace("wanted,", "signal.signal(signal.SIGINT, signal.SIG_IGN)\nwanted,", 1)
    done = python("-c", ignoring, "scipy.linalg", *FIT)
    assert done.returncode == 0 and (place[0] / "m.npz").exists(), done.stderr


def test_the_command_line_leaves_the_caller_as_it_was(place):
    """`main`, called from a program, changes no handlers; they belong to the process that `python -m mdlearn` is."""
    code = (
        "import signal, sys\nfrom mdlearn.cli import main\n"
        "before = signal.getsignal(signal.SIGINT), sys.unraisablehook\n"
        "assert main(['solvers']) == 0\nassert before == (signal.getsignal(signal.SIGINT), sys.unraisablehook)\n"
    )
    done = python("-c", code)
    assert done.returncode == 0, done.stderr


def test_outside_of_the_command(place):
    """After the process has begun, and before a command is there to be interrupted."""
    code = (
        "import sys, mdlearn.cli\nfrom mdlearn.__main__ import run\n"
        "def main(*_, **__):\n    raise KeyboardInterrupt\n"
        "mdlearn.cli.main = main\nsys.exit(run())\n"
    )
    done = python("-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted\n")


def test_after_the_command(place):
    """The work is done: its exit code stands, and Python ends in peace."""
    code = (
        "import os, signal, sys\nfrom mdlearn.__main__ import run\n"
        "sys.argv = ['mdlearn', 'solvers']\ncode = run()\nos.kill(os.getpid(), signal.SIGINT)\nsys.exit(code)\n"
    )
    done = python("-c", code)
    assert (done.returncode, done.stderr) == (0, "") and "hybrid" in done.stdout


def test_while_a_label_is_read(place, monkeypatch):
    """NumPy's reader of text makes a ValueError of every exception in a converter, which is no reason to read on."""
    from mdlearn.files import csv_reader
    from mdlearn.files.reading import ReadingOptions, read_for_fit

    plain = csv_reader.CsvLabels.code

    def code(self, cell):
        monkeypatch.setattr(csv_reader.CsvLabels, "code", plain)
        raise KeyboardInterrupt

    monkeypatch.setattr(csv_reader.CsvLabels, "code", code)
    (place[0] / "a.csv").write_text("1,2,x\n3,4,y\n")
    with pytest.raises(KeyboardInterrupt):
        read_for_fit("a.csv", ReadingOptions())
