"""The command line: what each command prints, writes and returns."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from documents import PROJECT
from plugin_cases import Site

import mdlearn
from mdlearn.cli import CLASSES, main
from mdlearn.plugins.command import BUILT_IN
from mdlearn.plugins.registry import registry

PICTURE = "mdlearn-demo-margins.png"


def run(folder, *arguments):
    """``python -m mdlearn`` in an empty folder, so that the installed package is found."""
    command = [sys.executable, "-m", "mdlearn", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_objectives(capsys):
    assert main(["objectives"]) == 0
    printed = capsys.readouterr().out
    blocks = re.split(r"^(?=\S)", printed, flags=re.MULTILINE)[1:]
    assert [block.split(":")[0] for block in blocks] == list(registry().objectives)
    for block, cls in zip(blocks, registry().objectives.values()):
        assert cls.summary in block and cls.formula in block
        for name, parameter in cls.parameters.items():
            assert f"    {name}: {parameter.doc}" in block


def test_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == f"mdlearn {mdlearn.__version__}\n"


def test_solvers(capsys):
    assert main(["solvers"]) == 0
    engines, last = capsys.readouterr().out.rstrip("\n").rsplit("\n", 1)
    for name, cls in registry().solvers.items():
        assert f"{name}: {cls.purpose}" in engines
        for option in cls.options:
            assert f"{option}=" in engines
    assert "the cheapest claim" in last
    claiming = [cls for cls in registry().solvers.values() if cls.claims is not mdlearn.Solver.claims]
    told = re.findall(r"^    claims for 'auto': (.+)$", engines, re.MULTILINE)
    assert told == [cls.claims.__doc__.splitlines()[0] for cls in claiming] and len(told) > 8


@pytest.mark.slow
def test_as_a_module(tmp_path):
    for command, names in (("objectives", mdlearn.list_objectives()), ("solvers", mdlearn.list_solvers())):
        done = run(tmp_path, command)
        assert done.returncode == 0 and done.stderr == ""
        assert all(re.search(f"^{name}: ", done.stdout, re.MULTILINE) for name in names)


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("objectives", "--nonsense"), ("demo", "--output")])
def test_a_wrong_command_ends_with_code_2(tmp_path, arguments):
    done = run(tmp_path, *arguments)
    assert done.returncode == 2 and done.stdout == ""
    assert "usage: python -m mdlearn" in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_console_script(tmp_path):
    """pip writes a script that calls the function that pyproject.toml names."""
    module, _, function = PROJECT["scripts"]["mdlearn"].partition(":")
    script = tmp_path / "mdlearn"
    script.write_text(f"import sys\nfrom {module} import {function}\nsys.exit({function}())\n")
    root = str(Path(mdlearn.__file__).parents[1])
    given = {"env": {**os.environ, "PYTHONPATH": root}, "capture_output": True, "text": True, "timeout": 120}
    for name in ("mdlearn", "renamed"):
        called = script.rename(tmp_path / name)
        done = subprocess.run([sys.executable, called, "objectives"], **given)
        assert done.returncode == 0 and "ldm: " in done.stdout
        script = called
        for arguments in ([], ["fit"], ["fit", "--help"]):
            done = subprocess.run([sys.executable, called, *arguments], **given)
            assert f"usage: {name} " in done.stdout + done.stderr
            assert "python -m" not in done.stdout + done.stderr


def test_an_unknown_command_lists_the_known_ones(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["nonsense"])
    assert stopped.value.code == 2
    told = capsys.readouterr().err
    assert all(word in told for word in ("nonsense", "demo", "objectives", "solvers"))


def table(printed):
    """Rows of the demo's table as dictionaries; cells are two spaces apart at least."""
    lines = printed.split("\n\n")[0].splitlines()
    title, *rows = [re.split(r"\s{2,}", line) for line in lines]
    return [dict(zip(title, row, strict=True)) for row in rows]


@pytest.mark.slow
def test_demo(tmp_path):
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    pytest.importorskip("sklearn", reason="the demo's data come with scikit-learn")
    done = run(tmp_path, "demo")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].endswith(str(tmp_path / PICTURE))
    assert [path.name for path in tmp_path.iterdir()] == [PICTURE]
    picture = (tmp_path / PICTURE).read_bytes()
    assert picture.startswith(b"\x89PNG\r\n\x1a\n") and len(picture) > 10_000

    rows = table(done.stdout)
    kinds = {(row["data"], row["model"]) for row in rows}
    assert {("breast_cancer", f"{model}") for model in ("svm linear", "ldm linear", "ldm rbf")} <= kinds
    assert ("digits", "ldm rbf") in kinds
    for row in rows:
        assert float(row["gap"]) <= 1e-6
        assert 0.95 <= float(row["test acc."]) <= 1.0
        assert float(row["min"]) < float(row["mean"]) and float(row["var"]) > 0
        assert row["engine"] in mdlearn.list_solvers() and float(row["seconds"]) >= 0
    assert "Warning" not in done.stderr
    assert f"[{len(rows)}/{len(rows)}]" in done.stderr


@pytest.mark.extras
def test_demo_output(tmp_path, capsys):
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    pytest.importorskip("sklearn", reason="the demo's data come with scikit-learn")
    assert main(["demo", "--output", str(tmp_path / "missing")]) == 1
    told = capsys.readouterr()
    assert "missing" in told.err and told.out == ""
    (tmp_path / "here").mkdir()
    assert main(["demo", "--output", str(tmp_path / "here")]) == 0
    assert str(tmp_path / "here" / PICTURE) in capsys.readouterr().out
    assert (tmp_path / "here" / PICTURE).is_file()


@pytest.mark.parametrize("missing", ["sklearn", "matplotlib.figure"])
def test_demo_without_an_extra(missing, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["demo"]) == 1
    assert 'pip install "mdlearn[demo]"' in capsys.readouterr().err


def test_a_command_of_a_package_that_is_not_installed(tmp_path, monkeypatch, capsys):
    Site(tmp_path, monkeypatch)
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "uldm-table1"])
    assert stopped.value.code == 2
    assert "run: pip install mdlearn-papers" in capsys.readouterr().err


def test_the_names_that_plugins_cannot_have():
    assert tuple(CLASSES) == BUILT_IN
