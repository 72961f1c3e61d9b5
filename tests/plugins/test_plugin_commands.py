"""Subcommands that plugins bring: they run, their errors are one line, and faulty ones leave the others alone."""

from __future__ import annotations

import warnings
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from documents import EXAMPLES
from plugin_cases import Site

import mdlearn
from mdlearn.cli import main
from mdlearn.extend import OutputFile

PLUGIN = """
    import mdlearn
    from mdlearn.extend import UsageError

    class Count(mdlearn.Command):
        name = "count"
        summary = "count words of English"
        epilog = "example: %(prog)s a b"

        def add_arguments(self, parser):
            parser.add_argument("words", nargs="*")
            parser.add_argument("--fail", choices=("usage", "value", "file", "memory", "interrupt"))

        def run(self, given):
            if given.fail == "usage":
                raise UsageError("too many")
            if given.fail == "file":
                open(given.words[0])
            if given.fail:
                kinds = {"value": ValueError, "memory": MemoryError, "interrupt": KeyboardInterrupt}
                raise kinds[given.fail]("of two\\nlines")
            print(len(given.words))
            return 0 if given.words else 1

    @mdlearn.hookimpl
    def mdlearn_commands():
        return [Count]
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def test_a_command_runs(site, capsys):
    site.add("words", "print('imported')\n" + dedent(PLUGIN))
    assert main(["count", "a", "b"]) == 0
    assert capsys.readouterr() == ("2\n", "imported\n")
    assert main(["count"]) == 1
    assert mdlearn.list_plugins()[0].commands == ("count",)
    with pytest.raises(SystemExit) as stopped:
        main(["--help"])
    assert stopped.value.code == 0
    assert "count words of English" in " ".join(capsys.readouterr().out.split())
    with pytest.raises(SystemExit):
        main(["count", "--help"])
    assert "\nCount words of English\n" in capsys.readouterr().out, "names in a summary keep their capitals"
    assert main(["plugins"]) == 0
    assert capsys.readouterr().out == "words 1.0: commands count; ok\n"


def test_its_errors_are_one_line(site, capsys):
    site.add("words", dedent(PLUGIN))
    expected = {"value": (1, "error: of two lines\n"), "memory": (1, "error: of two lines\n")}
    expected |= {"file": (1, "error: nowhere: No such file or directory\n"), "interrupt": (130, "interrupted\n")}
    for kind, (code, line) in expected.items():
        assert main(["count", "nowhere", "--fail", kind]) == code
        assert capsys.readouterr() == ("", line)
    with pytest.raises(SystemExit) as stopped:
        main(["count", "--fail", "usage"])
    assert stopped.value.code == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("usage: ") and lines[-1].endswith("count: error: too many")


def test_the_example_of_the_documents(site, tmp_path, monkeypatch, capsys):
    """It writes what it says, over another file only when forced, and over what it reads with no option and name."""
    site.add("margins-command", EXAMPLES["command"])
    monkeypatch.chdir(tmp_path)
    X, y = mdlearn.datasets.two_gaussians(30, random_state=0)
    np.savetxt("rows.csv", np.column_stack([X, y]), delimiter=",")
    rows = (tmp_path / "rows.csv").read_bytes()
    (tmp_path / "link.csv").hardlink_to(tmp_path / "rows.csv")
    (tmp_path / "mine.txt").write_text("mine")
    wanted = mdlearn.fit("ldm", X, y).margins(X, y)
    assert main(["margins", "rows.csv", "--output", "new.txt"]) == 0
    assert np.loadtxt("new.txt") == pytest.approx(wanted, rel=1e-5)
    assert main(["margins", "rows.csv", "--output", "mine.txt"]) == 1
    told = "error: mine.txt exists already; give another path, or --force to overwrite it\n"
    assert capsys.readouterr() == ("", told) and (tmp_path / "mine.txt").read_text() == "mine"
    assert main(["margins", "rows.csv", "--output", "mine.txt", "--force"]) == 0
    for name, what in (("rows.csv", "a file that is read"), ("link.csv", "another name of rows.csv, which is read")):
        for force in ([], ["--force"]):
            assert main(["margins", "rows.csv", "--output", name, *force]) == 1
            assert capsys.readouterr().err == f"error: {name} is {what}; give another path\n"
    assert (tmp_path / "rows.csv").read_bytes() == rows


@pytest.mark.parametrize("reads", ["rows.csv", Path("rows.csv"), ["rows.csv"]])
def test_one_file_that_is_read_needs_no_list(tmp_path, monkeypatch, reads):
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("1,0")
    with pytest.raises(ValueError, match=r"^rows\.csv is a file that is read; give another path$"):
        OutputFile("rows.csv", reads, force=True)


FAULTS = {
    "len(3)": "object of type 'int' has no len()",
    "import json; json.dumps({1, 2})": "Object of type set is not JSON serializable",
    "mdlearn.fit('svm')": "fit() missing 2 required positional arguments: 'X' and 'y'",
}
"""Mistakes in a command, by Python, by a `raise` of another package, and in a call of mdlearn's: TypeErrors."""
NOTE = "(raised in Odd.run: command 'odd' of odd-words 1.0, hook mdlearn_commands)"


def odd(body):
    return (
        "import mdlearn\nclass Odd(mdlearn.Command):\n    name, summary = 'odd', ''\n"
        f"    def run(self, given):\n        {body}\n"
        "@mdlearn.hookimpl\ndef mdlearn_commands():\n    return [Odd]\n"
    )


@pytest.mark.parametrize("body", FAULTS)
def test_a_mistake_keeps_its_traceback_and_names_command_and_plugin(site, body):
    site.add("odd-words", odd(body))
    with pytest.raises(TypeError) as raised:
        main(["odd"])
    assert str(raised.value) == FAULTS[body] and raised.value.__notes__ == [NOTE]
    assert any(str(entry.path).endswith("odd_words.py") for entry in raised.traceback)


@pytest.mark.parametrize(("end", "code"), [("pass", 0), ("return None", 0), ("return 0", 0), ("return 1", 1)])
def test_exit_codes(site, capsys, end, code):
    """A command that ends without one has done its work, as a Python program that does."""
    site.add("odd-words", odd(f"print('done'); {end}"))
    assert main(["odd"]) == code and capsys.readouterr() == ("done\n", "")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        ("raise TypeError('rows are needed')", "rows are needed"),
        ("raise ValueError('rows are needed') from KeyError(3)", "rows are needed"),
        ("mdlearn.fit('svm', [[0.0], [1.0]], [0, 1], C='x')", "C needs to be a number >= 0; got 'x'"),
        ("int('two')", f"invalid literal for int() with base 10: 'two' {NOTE}"),
        ("import no_such_module", f"No module named 'no_such_module' {NOTE}"),
    ],
)
def test_what_is_wrong_with_values_is_one_line(site, capsys, body, line):
    """One that is no sentence of the plugin's or of mdlearn's names both."""
    site.add("odd-words", odd(body))
    assert main(["odd"]) == 1
    assert capsys.readouterr() == ("", f"error: {line}\n")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (
            "name, summary = 'fit', ''",
            "the command name 'fit' is built in; upgrade the plugin, or give yours another name",
        ),
        ("name = 'other'", "command class Other needs a text as summary"),
        (
            "name, summary = 'other', ''\n    def add_arguments(self, parser): parser.add('x')",
            "command class Other cannot declare its arguments (AttributeError: 'ArgumentParser' object",
        ),
        ("summary = ''", "command class Other has no name"),
    ],
)
def test_a_faulty_command_is_left_out(site, capsys, body, fault):
    hook = "@mdlearn.hookimpl\ndef mdlearn_commands():\n    return [Other]\n"
    site.add("faulty", f"import mdlearn\nclass Other(mdlearn.Command):\n    {body}\n{hook}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.PluginWarning)
        assert main(["kernels"]) == 0
    assert capsys.readouterr().out.startswith("linear")
    assert fault in mdlearn.list_plugins()[0].error
    with pytest.raises(SystemExit):
        main(["other"])


def test_a_command_of_a_plugin_that_is_not_whole_is_explained(site, capsys):
    site.add("words", dedent(PLUGIN).replace("return [Count]", "return Count"))
    with pytest.raises(SystemExit) as stopped, pytest.warns(mdlearn.PluginWarning):
        main(["count", "book.txt"])
    assert stopped.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert "no command 'count' is known; plugins with something missing: words 1.0" in told and "returned" in told
