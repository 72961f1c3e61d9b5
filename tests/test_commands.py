"""The commands fit and predict, on files, as a user runs them."""

import bz2
import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import mdlearn
from mdlearn.cli import main

datasets = pytest.importorskip("sklearn.datasets", reason="svmlight files are read by scikit-learn")


def write(path, X, y, zero_based=False):
    datasets.dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    return path


def numbers(m=80, d=5, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((m, d)) < 0.4, 0.0, rng.normal(size=(m, d)).round(3))
    X[0] = 1.0  # every column occurs
    return X, np.where(X[:, 0] - X[:, 3] + 0.3 * rng.normal(size=m) > 0, 1, -1)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with the file a.svm and its content; the current folder of the commands."""
    monkeypatch.chdir(tmp_path)
    X, y = numbers()
    write(tmp_path / "a.svm", X, y)
    return tmp_path, X, y


@pytest.fixture
def run(capsys):
    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return code, out, err

    return run


def fails(result, *words):
    """One sentence on standard error, nothing on standard output, exit code 1."""
    code, out, err = result
    assert (code, out) == (1, "") and err.startswith("error: ") and err.count("\n") == 1, result
    for word in words:
        assert word in err


def lines(out):
    return dict(line.split(":", 1) for line in out.splitlines())


def test_fit_prints_the_certificate_and_saves_the_model(place, run):
    folder, X, y = place
    code, out, err = run("fit", "a.svm", "-o", "m.npz", "--param", "C=10")
    assert (code, err) == (0, "")
    model = mdlearn.load(folder / "m.npz")
    said = {title: text.strip() for title, text in lines(out).items()}
    assert float(said["objective"]) == pytest.approx(model.certificate.objective, rel=1e-9)
    assert float(said["lower bound"]) == pytest.approx(model.certificate.lower_bound, rel=1e-9)
    assert float(said["relative gap"].split()[0]) == pytest.approx(model.certificate.gap, rel=1e-2)
    assert said["converged"] == "yes" and model.certificate.gap <= 1e-6
    assert said["engine"] == f"{model.solver} ({model.solver_reason})"
    assert float(said["seconds"]) >= 0
    assert float(said["training accuracy"]) == pytest.approx(model.score(X, y), abs=1e-6)
    assert model.objective == "ldm" and model.params["C"] == 10.0
    direct = mdlearn.fit("ldm", X, y, C=10, tol=1e-10)
    np.testing.assert_allclose(model.decision_function(X), direct.decision_function(X), atol=0.02)
    assert_array_equal(model.classes_, [-1, 1])
    assert model.classes_.dtype == np.int64


def test_every_option_reaches_fit(place, run, monkeypatch):
    from mdlearn import commands

    seen = {}
    fit = mdlearn.fit

    def spy(objective, X, y, **given):
        seen.update(given, objective=objective, X=X)
        return fit(objective, X, y, **{**given, "solver_options": None})

    monkeypatch.setattr(commands, "fit", spy)
    code, _, _ = run(
        *("fit", "a.svm", "-o", "m.npz", "--objective", "svm", "--param", "C=2", "--param", "gamma=0.25"),
        *("--kernel", "rbf", "--bias", "none", "--solver", "cd", "--solver-option", "a=1", "--solver-option", "b=x"),
        *("--solver-option", "c=inf", "--solver-option", "d=True", "--solver-option", "e=none", "--tol", "1e-3"),
        *("--max-iter", "500", "--time-limit", "60", "--seed", "4", "--class-weight", "balanced", "--float32"),
        *("--features", "7", "--threads", "2", "-vv"),
    )
    assert code == 0
    X = seen.pop("X")
    assert X.dtype == np.float32 and X.shape == (80, 7)
    assert seen == {
        "objective": "svm",
        "C": 2,
        "gamma": 0.25,
        "kernel": "rbf",
        "bias": "none",
        "solver": "cd",
        "tol": 1e-3,
        "solver_options": {"a": 1, "b": "x", "c": float("inf"), "d": True, "e": None},
        "max_iter": 500,
        "time_limit": 60.0,
        "random_state": 4,
        "n_threads": 2,
        "class_weight": "balanced",
        "verbose": 2,
    }
    assert type(seen["C"]) is int


@pytest.mark.parametrize("opener", [None, gzip.open, bz2.open])
def test_predict(opener, place, run):
    _, X, y = place
    name = {None: "a.svm", gzip.open: "a.svm.gz", bz2.open: "a.svm.bz2"}[opener]
    if opener:
        with opener(name, "wb") as file:
            file.write(Path("a.svm").read_bytes())
    assert run("fit", name, "-o", "m.npz", "--kernel", "rbf")[0] == 0
    model = mdlearn.load("m.npz")
    right = int((model.predict(X) == y).sum())
    said = f"accuracy: {right / 80:.6g} ({right} of 80 rows)\n"
    assert run("predict", "m.npz", name, "-o", "out") == (0, said, "")
    assert Path("out").read_text().split("\n") == [*map(str, model.predict(X)), ""]
    assert run("predict", "m.npz", name) == (0, Path("out").read_text(), said)
    code, out, err = run("predict", "m.npz", name, "--scores")
    assert (code, err) == (0, said)
    np.testing.assert_allclose(np.array(out.split(), float), model.decision_function(X), rtol=1e-12, atol=1e-12)


def test_scores_of_three_classes_and_labels_that_are_not_whole(place, run):
    folder, X, _ = place
    y = np.array([0.5, 1.0, 2.5])[np.arange(80) % 3]
    write(folder / "b.svm", X, y)
    assert run("fit", "b.svm", "-o", "m.npz")[0] == 0
    model = mdlearn.load("m.npz")
    assert_array_equal(model.classes_, [0.5, 1.0, 2.5])
    code, out, _ = run("predict", "m.npz", "b.svm", "--scores")
    scores = np.array([row.split() for row in out.splitlines()], float)
    assert code == 0 and scores.shape == (80, 3)
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12, atol=1e-12)
    _, out, _ = run("predict", "m.npz", "b.svm")
    assert_array_equal(np.array(out.split(), float), model.predict(X))


def test_labels_the_model_does_not_know(place, run):
    run("fit", "a.svm", "-o", "m.npz")
    Path("b.svm").write_text("0 1:1\n0 2:1\n")
    code, out, err = run("predict", "m.npz", "b.svm")
    assert code == 0 and len(out.split()) == 2 and "not known" in err
    Path("b.svm").write_text("0 1:1\n1 1:9\n")
    code, out, err = run("predict", "m.npz", "b.svm")
    assert out.split()[1] == "1" and "1 of 2 rows; 1 have a label that the model does not know" in err


def test_a_model_with_other_labels_saved_from_python(place, run):
    _, X, y = place
    mdlearn.fit("svm", X, np.where(y > 0, "yes", "no")).save("m.npz")
    code, out, err = run("predict", "m.npz", "a.svm")
    assert code == 0 and {*out.split()} == {"yes", "no"} and "not known" in err


def test_columns(place, run):
    run("fit", "a.svm", "-o", "m.npz")
    model = mdlearn.load("m.npz")
    Path("few.svm").write_text("1 2:1.5\n-1\n")
    _, out, _ = run("predict", "m.npz", "few.svm", "--scores")
    np.testing.assert_allclose(
        np.array(out.split(), float), model.decision_function([[0, 1.5, 0, 0, 0], [0, 0, 0, 0, 0]]), rtol=1e-12
    )
    Path("more.svm").write_text("1 2:1.5 6:0 9:0\n-1 8:0\n")
    assert run("predict", "m.npz", "more.svm", "--scores")[1] == out
    Path("more.svm").write_text("1 2:1.5\n-1 8:0.5 9:0\n")
    fails(run("predict", "m.npz", "more.svm"), "more.svm has 8 columns, but 5 are expected")
    fails(run("fit", "a.svm", "-o", "n.npz", "--features", "4"), "a.svm has 5 columns, but 4 are expected")
    assert not Path("n.npz").exists()


def test_columns_that_count_from_zero(place, run):
    folder, X, y = place
    write(folder / "z.svm", X, y, zero_based=True)
    run("fit", "a.svm", "-o", "a.npz")
    run("fit", "z.svm", "-o", "z.npz")
    one, zero = mdlearn.load("a.npz"), mdlearn.load("z.npz")
    assert_array_equal(one.coef_, zero.coef_)
    # Without index 0, this file does not tell; the model does.
    Path("part.svm").write_text("1 1:2\n")
    for name, row in (("a.npz", [2, 0, 0, 0, 0]), ("z.npz", [0, 2, 0, 0, 0])):
        score = float(run("predict", name, "part.svm", "--scores")[1])
        assert score == pytest.approx(one.decision_function([row])[0], rel=1e-12)
    fails(run("predict", "a.npz", "z.svm"), "counts columns from 0")


def test_float32_is_kept_at_predict(place, run):
    Path("b.svm").write_text("1 1:0.1 2:1\n-1 1:0.7\n" * 5)
    run("fit", "b.svm", "-o", "m.npz", "--float32", "--kernel", "rbf")
    model = mdlearn.load("m.npz")
    assert model._rows.dtype == np.float32
    rows = np.array([[0.1, 1], [0.7, 0]] * 5)
    _, out, _ = run("predict", "m.npz", "b.svm", "--scores")
    np.testing.assert_allclose(np.array(out.split(), float), model.decision_function(rows.astype("f")), rtol=1e-12)


def test_an_early_stop_warns_and_saves(place, run):
    code, out, err = run("fit", "a.svm", "-o", "m.npz", "--max-iter", "1", "--tol", "1e-12")
    assert code == 0 and lines(out)["converged"].strip() == "no"
    assert err.startswith("warning: ") and "max_iter" in err and err.count("\n") == 1
    assert not mdlearn.load("m.npz").certificate.converged


def test_progress_goes_to_standard_error(place, run):
    quiet = run("fit", "a.svm", "-o", "m.npz")
    code, out, err = run("fit", "a.svm", "-o", "m.npz", "-vv")
    assert code == 0 and "iteration 2" in err and "gap" in err and "80 rows, 5 columns" in err
    assert [line for line in out.splitlines() if "seconds" not in line] == [
        line for line in quiet[1].splitlines() if "seconds" not in line
    ]


# Errors

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
        for damaged in (content, packed[: len(packed) // 2], packed[:40] + b"\0" * 20 + packed[60:]):
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
    fails(run("predict", "m.npz", "a.svm", "-o", "nowhere/out"), "nowhere/out")
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
    from mdlearn import commands

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(commands, "fit", full)
    fails(run("fit", "a.svm", "-o", "m.npz"), "not enough memory")


def test_defects_are_not_hidden(place, run, monkeypatch):
    from mdlearn import commands

    def broken(*_, **__):
        raise AssertionError("a defect")

    monkeypatch.setattr(commands, "fit", broken)
    with pytest.raises(AssertionError, match="a defect"):
        run("fit", "a.svm", "-o", "m.npz")


def test_an_interrupt_is_one_line(place, run, monkeypatch):
    from mdlearn import commands

    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "fit", stopped)
    assert run("fit", "a.svm", "-o", "m.npz") == (130, "", "interrupted\n")


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
def test_ctrl_c_ends_a_fit(place):
    folder, _, _ = place
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 20)).round(2)
    write(folder / "large.svm", X, np.where(rng.random(3000) < 0.5, 1, -1))
    (folder / "m.npz").write_text("as it was")
    command = [sys.executable, "-m", "mdlearn", "fit", "large.svm", "-o", "m.npz", "--kernel", "rbf", "-vv"]
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
