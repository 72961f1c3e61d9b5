"""The commands fit and predict where something is wrong: files, parameters, interrupts, readers that leave."""

import bz2
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import command_cases
import numpy as np
import pytest
from command_cases import fails, write

place, run = command_cases.place, command_cases.run  # pytest finds fixtures by the names of the module

BAD_FILES = {
    "empty": b"",
    "comments": b"# nothing\n\n",
    "text": b"hello world\n",
    "no label": b"1:1 2:2\n",
    "labels only": b"1\n-1\n",
    "two labels": b"1,2 1:1\n",
    "order": b"1 2:1 1:2\n",
    "repeated": b"1 2:1 2:2\n",
    "no value": b"1 1:\n",
    "no colon": b"1 1\n",
    "negative": b"1 -3:1\n",
    "huge index": b"1 99999999999:1\n",
    "huger index": b"1 99999999999999999999:1\n",
    "one class": b"1 1:1\n1 2:1\n",
    "nan": b"1 1:nan\n-1 1:1\n",
    "infinity": b"1 1:1e999\n-1 1:1\n",
    "nan label": b"nan 1:1\n-1 1:1\n",
    "infinite label": b"inf 1:1\n-1 1:1\n",
    "binary": bytes(range(256)) * 100,
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_bad_data(kind, place, run):
    Path("bad.svm").write_bytes(BAD_FILES[kind])
    result = run("fit", "bad.svm", "-o", "m.npz")
    fails(result)
    assert len(result[2]) < 400
    assert not Path("m.npz").exists()


def test_bad_packed_data(place, run):
    content = Path("a.svm").read_bytes()
    for name, pack in (("b.svm.gz", gzip.compress), ("b.svm.bz2", bz2.compress)):
        packed = pack(content)
        for damaged in (packed[: len(packed) // 2], packed[:40] + b"\0" * 20 + packed[60:]):
            Path(name).write_bytes(damaged)
            fails(run("fit", name, "-o", "m.npz"), name)


def test_bad_files_and_places(place, run):
    fails(run("fit", "none.svm", "-o", "m.npz"), "none.svm", "No such file")
    fails(run("fit", ".", "-o", "m.npz"), "directory")
    fails(run("fit", "a.svm", "-o", "nowhere/m.npz"), "no folder")
    fails(run("fit", "a.svm", "-o", "."), "not a regular file")
    fails(run("predict", "m.npz", "a.svm"), "m.npz", "No such file")
    fails(run("predict", "a.svm", "a.svm"), "a.svm cannot be loaded")
    run("fit", "a.svm", "-o", "m.npz")
    fails(run("predict", "m.npz", "none.svm"), "none.svm")
    fails(run("predict", "m.npz", "m.npz"), "svmlight")
    fails(run("predict", "m.npz", "a.svm", "-o", "nowhere/out"), "no folder", "nowhere")
    content = Path("m.npz").read_bytes()
    Path("m.npz").write_bytes(content[:-100])
    fails(run("predict", "m.npz", "a.svm"), "m.npz cannot be loaded")


@pytest.mark.parametrize(
    "arguments, word",
    [
        (("--objective", "lmd"), "known objectives"),
        (("--param", "D=1"), "'D'"),
        (("--param", "C=-1"), "C needs"),
        (("--param", "C=high"), "C needs"),
        (("--param", "gamma=1"), "gamma"),
        (("--kernel", "rbf", "--param", "gamma=0"), "gamma"),
        (("--kernel", "poly", "--param", "degree=1.5"), "degree"),
        (("--solver", "none"), "known solvers"),
        (("--solver-option", "speed=1"), "speed"),
        (("--tol", "-1"), "tol"),
        (("--max-iter", "0"), "max_iter"),
        (("--time-limit", "-1"), "time_limit"),
        (("--seed", "-1"), "random_state"),
        (("--threads", "0"), "n_threads"),
    ],
)
def test_bad_parameters(arguments, word, place, run):
    fails(run("fit", "a.svm", "-o", "m.npz", *arguments), word)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("fit",),
        ("fit", "a.svm"),
        ("predict", "m.npz"),
        ("fit", "a.svm", "-o", "m.npz", "--param", "C"),
        ("fit", "a.svm", "-o", "m.npz", "--param", "=1"),
        ("fit", "a.svm", "-o", "m.npz", "--param", "tol=1"),
        ("fit", "a.svm", "-o", "m.npz", "--param", "X=1"),
        ("fit", "a.svm", "-o", "m.npz", "--param", "C=1", "--param", "C=2"),
        ("fit", "a.svm", "-o", "m.npz", "--kernel", "precomputed"),
        ("fit", "a.svm", "-o", "m.npz", "--bias", "some"),
        ("fit", "a.svm", "-o", "m.npz", "--tol", "small"),
        ("fit", "a.svm", "-o", "m.npz", "--features", "0"),
        ("fit", "a.svm", "-o", "m.npz", "--class-weight", "heavy"),
        ("predict", "m.npz", "a.svm", "--probability"),
    ],
)
def test_wrong_usage(arguments, place, run):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "") and "usage:" in err


def test_without_scikit_learn(place, run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    fails(run("fit", "a.svm", "-o", "m.npz"), 'pip install "mdlearn[sklearn]"')


def test_too_little_memory(place, run, monkeypatch):
    from mdlearn.commands import fitting

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(fitting, "fit", full)
    fails(run("fit", "a.svm", "-o", "m.npz"), "not enough memory")


def test_defects_are_not_hidden(place, run, monkeypatch):
    from mdlearn.commands import fitting

    def broken(*_, **__):
        raise AssertionError("a defect")

    monkeypatch.setattr(fitting, "fit", broken)
    with pytest.raises(AssertionError, match="a defect"):
        run("fit", "a.svm", "-o", "m.npz")


def test_an_interrupt_is_one_line(place, run, monkeypatch):
    from mdlearn.commands import fitting

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitting, "fit", stopped)
    assert run("fit", "a.svm", "-o", "m.npz") == (130, "", "interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_ends_a_fit(place):
    folder, _, _ = place
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20)).round(2)
    write(folder / "large.svm", X, np.where(rng.random(3000) < 0.5, 1, -1))
    (folder / "m.npz").write_text("as it was")
    command = [sys.executable, "-m", "mdlearn", "fit", "large.svm", "-o", "m.npz", "--force", "--kernel", "rbf", "-vv"]
    with subprocess.Popen(
        [*command, "--tol", "0", "--param", "C=1e6", "--max-iter", "1000000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        for line in process.stderr:
            if "iteration 1," in line:
                process.send_signal(signal.SIGINT)
                break
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and out == ""
    assert err.splitlines()[-1] == "interrupted" and "Traceback" not in err
    assert (folder / "m.npz").read_text() == "as it was"


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_ends_the_reading_of_a_file(place):
    """The reader is compiled; without lines from Python code it would go on to the end of this endless file."""
    folder, _, _ = place
    os.mkfifo(folder / "endless.svm")
    command = [sys.executable, "-m", "mdlearn", "fit", "endless.svm", "-o", "m.npz"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        with open(folder / "endless.svm", "wb", buffering=0) as pipe:
            pipe.write(b"1 1:1\n" * 20000)
            process.send_signal(signal.SIGINT)
            # Never let the reader wait: an interrupted system call would hand the signal to Python by itself.
            with pytest.raises(BrokenPipeError):
                for _ in range(2000):
                    pipe.write(b"1 1:1\n" * 5000)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
@pytest.mark.parametrize("command", ["predict m.npz a.svm", "predict m.npz a.svm --scores", "solvers"])
def test_a_reader_that_leaves_early_is_no_error(command, place, run):
    assert run("fit", "a.svm", "-o", "m.npz")[0] == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "mdlearn", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Unbuffered output would hide what is left in the buffer at exit; empty means unset.
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONUNBUFFERED": ""},
    )
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(timeout=60), err) == (1, b"")
