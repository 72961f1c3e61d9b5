"""Files that commands write: never over what they read, and over other files only where that is asked for."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import command_cases
import pytest
from command_cases import fails

import mdlearn
from mdlearn.cli import main
from mdlearn.model.file.persistence import is_model_file
from mdlearn.output_files import OutputFile, check_folder

place, run = command_cases.place, command_cases.run  # pytest finds fixtures by the names of the module

posix = pytest.mark.skipif(os.name != "posix", reason="links and devices of POSIX")
FORCED = ([], ["--force"])


def names(path, kind):
    """Another name of a file, by a link of some kind; its own name for "itself"."""
    link = Path(f"{kind}-{path}")
    if kind == "symbolic":
        link.symlink_to(path)
    elif kind == "hard":
        os.link(path, link)
    elif kind == "folder":
        if not Path("there").is_symlink():
            Path("there").symlink_to(".")
        link = Path("there") / path
    elif kind == "chain":
        Path(f"first-{path}").symlink_to(path)
        link.symlink_to(f"first-{path}")
    else:
        link = Path(path)
    return str(link)


@posix
@pytest.mark.parametrize("force", FORCED)
@pytest.mark.parametrize("kind", ["itself", "symbolic", "hard", "folder", "chain"])
def test_what_is_read_is_never_written_to(kind, force, place, run):
    assert run("fit", "a.svm", "-o", "m.npz")[0] == 0
    content = {name: Path(name).read_bytes() for name in ("a.svm", "m.npz")}
    data, model = names("a.svm", kind), names("m.npz", kind)
    fails(run("fit", "a.svm", "-o", data, *force), data, "read")
    fails(run("fit", data, "-o", "a.svm", *force), "a.svm", "read")
    fails(run("predict", "m.npz", "a.svm", "-o", data, *force), data, "read")
    fails(run("predict", "m.npz", "a.svm", "-o", model, *force), model, "read")
    fails(run("predict", model, data, "-o", "m.npz", *force), "m.npz", "read")
    fails(run("compare", "--data", ".", "--out", data, *force), data, "read")
    assert {name: Path(name).read_bytes() for name in content} == content


def test_a_model_is_replaced_by_a_model_and_by_nothing_else(place, run):
    Path("notes.txt").write_text("mine")
    Path("other.npz").write_bytes(b"PK\x03\x04 and so on")
    for name in ("notes.txt", "other.npz"):
        before = Path(name).read_bytes()
        fails(run("fit", "a.svm", "-o", name), name, "exists already", "--force")
        assert Path(name).read_bytes() == before
    assert run("fit", "a.svm", "-o", "m.npz")[0] == 0
    assert run("fit", "a.svm", "-o", "m.npz", "--param", "C=7")[0] == 0
    assert mdlearn.load("m.npz").params["C"] == 7.0
    assert run("fit", "a.svm", "-o", "notes.txt", "--force")[0] == 0 and is_model_file("notes.txt")


def test_predictions_and_tables_replace_no_file(place, run):
    assert run("fit", "a.svm", "-o", "m.npz")[0] == 0
    assert run("predict", "m.npz", "a.svm", "-o", "out")[0] == 0
    first = Path("out").read_text()
    compare = ("compare", "--data", ".", "--sets", "a", "--objectives", "svm", "--repeats", "1")
    for command in (("predict", "m.npz", "a.svm", "--scores", "-o", "out"), (*compare, "--out", "out")):
        fails(run(*command), "out", "exists already", "--force")
        assert Path("out").read_text() == first
        assert run(*command, "--force")[0] == 0
        assert Path("out").read_text() != first
        Path("out").write_text(first)
    Path("empty").touch()
    assert run("predict", "m.npz", "a.svm", "-o", "empty")[0] == 0, "nothing is lost with an empty file"


@posix
def test_devices_are_written_to_as_they_are(place, run):
    assert run("fit", "a.svm", "-o", "m.npz")[0] == 0
    assert run("predict", "m.npz", "a.svm", "-o", os.devnull)[0] == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    fails(run("fit", "a.svm", "-o", os.devnull), "not a regular file")


@posix
def test_an_overwritten_file_keeps_its_mode_and_a_failed_one_its_content(place, run, monkeypatch):
    assert run("fit", "a.svm", "-o", "m.npz")[0] == 0
    Path("out").write_text("mine")
    Path("out").chmod(0o600)
    assert run("predict", "m.npz", "a.svm", "-o", "out", "--force")[0] == 0
    assert stat.S_IMODE(Path("out").stat().st_mode) == 0o600
    before = Path("out").read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    fails(run("predict", "m.npz", "a.svm", "-o", "out", "--scores", "--force"), "No space left")
    assert Path("out").read_bytes() == before and not list(Path().glob(".mdlearn*"))


def test_what_a_model_file_is(place, tmp_path):
    model = mdlearn.fit("svm", [[0.0], [1.0]], [0, 1])
    model.save("m.npz")
    assert is_model_file("m.npz")
    content = Path("m.npz").read_bytes()
    for other in (b"", content[:100], b"PK\x03\x04", b"1 1:2\n"):
        Path("x").write_bytes(other)
        assert not is_model_file("x")
    assert not is_model_file("none") and not is_model_file(".")


@pytest.mark.extras
def test_the_demo_replaces_its_own_picture_only(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn", reason="the demo's data come with scikit-learn")
    pytest.importorskip("matplotlib", reason="the demo draws with matplotlib")
    from mdlearn.experiments import demo

    monkeypatch.setattr(demo, "TASKS", demo.TASKS[:1])
    path = tmp_path / demo.PICTURE
    arguments = ["demo", "--output", str(tmp_path)]
    assert main(arguments) == 0 and main(arguments) == 0
    drawn = path.read_bytes()
    path.write_bytes(b"\x89PNG somebody else's")
    assert main(arguments) == 1 and "--force" in capsys.readouterr().err
    assert path.read_bytes() == b"\x89PNG somebody else's"
    assert main([*arguments, "--force"]) == 0 and path.read_bytes() == drawn


def test_folders_and_places(tmp_path):
    check_folder(tmp_path / "new", "")
    check_folder(tmp_path, "")
    (tmp_path / "file").write_text("mine")
    for path, words in ((tmp_path, "not empty"), (tmp_path / "file", "no folder")):
        with pytest.raises(ValueError, match=f"{words}; go"):
            check_folder(path, "go")
    check_folder(tmp_path, "", own=True)
    check_folder(tmp_path, "", force=True)
    with pytest.raises(OSError, match="no folder"):
        OutputFile(tmp_path / "nowhere" / "x")
    with pytest.raises(OSError, match="not a regular file"):
        OutputFile(tmp_path)


@pytest.mark.parametrize("command", ["fit a.svm -o m.npz", "predict m.npz a.svm"])
def test_columns_count_from_one(command, place, run):
    code, out, err = run(*command.split(), "--target", "-1")
    assert (code, out) == (2, "") and "-1 is no column" in err


def test_help_tells_the_rule(run):
    for command in ("demo", "fit", "predict", "compare"):
        _, out, _ = run(command, "--help")
        assert "--force" in out and "never what the command reads" in " ".join(out.split())
