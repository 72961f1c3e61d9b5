"""A folder with a file of rows, commands run in this process, and their errors."""

import numpy as np
import pytest

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
