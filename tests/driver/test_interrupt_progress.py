"""What verbose=1 prints: a bar in a terminal, lines elsewhere; it is closed however a fit ends."""

from __future__ import annotations

import os
import re
import struct
import sys
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.forms.proof import State

SCRIPT = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
import numpy as np, mdlearn
case, rng = sys.argv[1], np.random.default_rng(0)
X, y = rng.standard_normal((600, 6)), rng.integers(0, 3, 600)
seen = []

def look(state):
    seen.append(state)
    if len(seen) == 2:
        time.sleep(0.3)  # so that the next report is drawn, however fast the machine
    if case == "error" and len(seen) > 2:
        raise RuntimeError("mine")
    if case == "interrupt" and len(seen) > 2:
        os.kill(os.getpid(), signal.SIGINT)

if case == "reached":
    mdlearn.fit("ldm", X, y, kernel="rbf", solver="cd", tol=1e-3, verbose=1)
    sys.exit()
given = {"kernel": "rbf", "C": 1e3, "lambda1": 0.0, "solver": "cd", "tol": 1e-12, "verbose": 1, "callback": look}
try:
    mdlearn.fit("ldm", X, y, max_iter=4, **given)
    end = "none"
except (KeyboardInterrupt, RuntimeError) as error:
    end = type(error).__name__
from tqdm import tqdm
print(f"<{end}, {len(tqdm._instances)} bars, {threading.active_count()} threads>", flush=True)
"""


def in_a_terminal(case, columns):
    """Everything that a process prints to a pseudo terminal of some width."""
    import fcntl
    import pty
    import termios

    root = str(Path(mdlearn.__file__).parents[1])
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        os.environ["PYTHONPATH"] = os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])
        os.execv(sys.executable, [sys.executable, "-c", SCRIPT, case])
    said = b""
    while True:
        try:
            more = os.read(terminal, 4096)
        except OSError:  # the other side is closed
            break
        if not more:
            break
        said += more
    os.close(terminal)
    assert os.waitpid(pid, 0)[1] == 0, said.decode()
    return said.decode()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
@pytest.mark.parametrize(
    ("case", "end"), [("end", "none"), ("interrupt", "KeyboardInterrupt"), ("error", "RuntimeError")]
)
def test_a_bar_in_a_terminal(case, end):
    pytest.importorskip("tqdm")
    said = in_a_terminal(case, 100)
    shown, _, last = said.rpartition("\r\n")[0].rpartition("\r")
    assert last == f"<{end}, 0 bars, 1 threads>", said
    # What ends early may end before the bar is drawn for the second time.
    gap = r".*problem \d of 3, log10 of the gap -?\d+\.\d, to be -12\.0" if case == "end" else ""
    assert re.search(r"cd: +\d+%\|.*\| \d\d:\d\d" + gap, shown), said
    assert "100%" not in shown, "no gap was reached"
    # The bar has been wiped out: nothing but blanks after the last return.
    assert not shown.rpartition("\r")[2].strip(), said


@pytest.mark.extras
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
def test_a_bar_ends_at_100_per_cent():
    pytest.importorskip("tqdm")
    said = in_a_terminal("reached", 100)
    shares = [int(share) for share in re.findall(r"cd: +(\d+)%\|", said)]
    assert shares == sorted(shares) and shares[-1] == 100, said


class FakeBar:
    """A bar that remembers its lengths."""

    made: ClassVar[list] = []

    def __init__(self, **given):
        self.n, self.total, self.lengths, self.told = 0.0, given["total"], [], ""
        self.made.append(self)

    def set_postfix_str(self, text, refresh):
        self.told = text

    def update(self, more):
        self.n += more
        self.lengths.append(self.n)

    def refresh(self):
        pass

    close = refresh


def lengths(monkeypatch, tol, problems, gaps, complete=False):
    """Lengths of the bar after reports (problem, gap)."""
    from mdlearn.driver import limits

    monkeypatch.setattr(limits, "_progress_bar_class", lambda: FakeBar)
    shown = limits.Progress(1, "cd", 0.0, tol)
    shown.problems = problems
    for j, gap in gaps:
        shown.show(State(1, 1.0, 0.0, gap, 0.0, j))
    if complete:
        shown.complete()
    bar = FakeBar.made[-1]
    assert bar.total == 100.0
    return bar


def test_the_bar_goes_by_the_logarithm_of_the_gap(monkeypatch):
    gaps = [1e2, 1.0, 1e-3, 1e-2, 1e-6, 1e-9]
    bar = lengths(monkeypatch, 1e-6, 1, [(0, gap) for gap in gaps])
    assert bar.lengths == pytest.approx([0.0, 25.0, 62.5, 62.5, 100.0, 100.0])
    assert bar.told == "log10 of the gap -9.0, to be -6.0"
    # Without a gap there is no way yet; what begins at its goal is there; nothing reaches tol = 0.
    assert lengths(monkeypatch, 1e-6, 1, [(0, np.inf), (0, np.nan), (0, 1.0), (0, 1e-3)]).lengths[1:] == [0, 0, 50]
    assert lengths(monkeypatch, 1e-2, 1, [(0, 1e-3)]).lengths == [100]
    assert lengths(monkeypatch, 0.0, 1, [(0, 1.0), (0, 1e-8)]).lengths == [0, 50]


def test_the_bar_of_several_problems(monkeypatch):
    reports = [(0, 1.0), (1, 10.0), (0, 1e-2), (1, 1e-5), (0, 1e-4)]
    bar = lengths(monkeypatch, 1e-4, 4, reports)
    assert bar.lengths == pytest.approx([0, 0, 12.5, 37.5, 50])
    assert bar.told.startswith("problem 1 of 4, ")
    assert lengths(monkeypatch, 1e-4, 4, reports, complete=True).lengths[-1] == 100


@pytest.mark.parametrize("blocks", [False, True])
def test_the_bar_is_filled_where_every_gap_is_reached_and_only_there(monkeypatch, blocks):
    """Also where the last reports did not tell of it, in memory and over row blocks."""
    from mdlearn.driver import limits

    monkeypatch.setattr(limits, "_progress_bar_class", lambda: FakeBar)
    monkeypatch.setattr(limits.Progress, "_advance", lambda self, problem, log_gap: 50.0)
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((300, 3)), rng.integers(0, 3, 300)
    rows = (mdlearn.sources.of_arrays(X, y, rows=100), None) if blocks else (X, y)
    assert mdlearn.fit("lsvm", *rows, verbose=1).certificate.converged
    assert FakeBar.made[-1].n == 100
    with pytest.warns(mdlearn.ConvergenceWarning):
        mdlearn.fit("lsvm", *rows, verbose=1, tol=0.0, max_iter=1)
    assert FakeBar.made[-1].n == 50


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a pseudo terminal")
def test_lines_in_a_terminal_of_no_width():
    said = in_a_terminal("end", 0)
    assert "problem 1 of 3, iteration 1, objective" in said and "\r\n<none, 0 bars" in said


def fitted(capsys, **given):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 3)), rng.integers(0, 2, 80)
    mdlearn.fit("ldm", X, y, **given)
    return capsys.readouterr()


def test_lines_where_there_is_no_terminal(capsys):
    said = fitted(capsys, verbose=1)
    first = said.err.splitlines()[0]
    assert re.fullmatch(r"hybrid: iteration 1, objective [-\d.e+]+, gap \d\.\d\de[-+]\d\d, \d+\.\d\d s", first)
    assert said.out == ""


def test_a_line_per_report(capsys):
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((80, 3)), rng.integers(0, 3, 80)
    model = mdlearn.fit("ldm", X, y, verbose=2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(model.history)
    assert {line.partition(",")[0] for line in lines} == {f"hybrid: problem {j} of 3" for j in (1, 2, 3)}


def test_nothing_unless_asked_for(capsys):
    said = fitted(capsys)
    assert said.err == said.out == ""


def test_no_standard_error(monkeypatch):
    """A program without a console has none."""
    monkeypatch.setattr(sys, "stderr", None)
    X, y = np.random.default_rng(1).standard_normal((30, 2)), np.arange(30) % 2
    assert mdlearn.fit("ldm", X, y, verbose=1).certificate.converged


def test_a_notebook_without_widgets_gets_lines(capsys, monkeypatch):
    """tqdm's own bar would warn and fail there."""
    monkeypatch.setitem(sys.modules, "ipykernel", type(sys)("ipykernel"))
    monkeypatch.setattr("mdlearn.driver.limits.find_spec", lambda name: None)
    assert "iteration 1" in fitted(capsys, verbose=1).err


def test_long_preparations_show_that_work_goes_on(capsys, monkeypatch):
    from mdlearn.driver.limits import Progress

    now = [100.0]
    monkeypatch.setattr("mdlearn.driver.limits.time.perf_counter", lambda: now[0])
    progress = Progress(1, "cd", 100.0, 1e-6)
    for now[0] in (100.5, 101.9, 102.1, 103.0, 104.2):
        progress.beat()
    progress.close()
    assert capsys.readouterr().err.splitlines() == ["cd: at work, 2.10 s", "cd: at work, 4.20 s"]


@pytest.mark.parametrize("solver", ["auto", "sgd"])
def test_a_silent_fit_has_no_progress(solver, monkeypatch, rng):
    """Making it, and telling it of every report, would be as much work as some steps of a small fit."""
    from mdlearn.driver import limits

    def made(*given):
        raise AssertionError("a silent fit has made a Progress")

    monkeypatch.setattr(limits, "Progress", made)
    X = rng.standard_normal((40, 3))
    y, blocks = np.sign(X[:, 0]), mdlearn.RowBlocks(lambda: iter([(X[:20], y[:20]), (X[20:], y[20:])]))
    mdlearn.fit("lsvm", X, y, solver=solver, tol=1.0)
    mdlearn.fit("lsvm", blocks, None, solver=solver, tol=1.0)
    with pytest.raises(AssertionError, match="has made"):
        mdlearn.fit("lsvm", X, y, solver=solver, tol=1.0, verbose=2)
