"""``python -m mdlearn reproduce``: names, folders, records that go on where they ended, several processes."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from mdlearn_papers import command, running
from mdlearn_papers.documents import Report
from mdlearn_papers.index import EXPERIMENTS
from mdlearn_papers.sources import Sets
from mdlearn_papers.store import Store
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit
from paper_cases import FOLDER, main, names, records_of, reproduce

SETTINGS = Settings()


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("folder", [None, FOLDER])
def test_units_of_every_experiment(quick, folder):
    if folder is not None and not names():
        pytest.skip("needs the folder of real data (MDLEARN_SHARED)")
    sets = Sets(None if folder is None else str(folder))
    for name, experiment in EXPERIMENTS.items():
        units = experiment.study.units(sets, Settings(quick))
        assert len(set(units)) == len(units), name
        assert units == [pickle.loads(pickle.dumps(unit)) for unit in units]
        assert pickle.loads(pickle.dumps(experiment.study.run)) is experiment.study.run
        assert all(isinstance(unit, Unit) and unit.repeat >= 0 for unit in units)
        assert units or folder is None, name


def test_names():
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())
    studies = {}
    for experiment in EXPERIMENTS.values():  # a folder belongs to one study
        assert studies.setdefault(experiment.study.name, experiment.study) == experiment.study


def test_the_list_of_names(capsys):
    assert main(["reproduce", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == list(EXPERIMENTS)
    assert all(line.endswith(one.title) for line, one in zip(lines, EXPERIMENTS.values()))


def test_pages_say_how_many():
    package = Path(__file__).parents[1]
    told = [re.search(r"(\d+) tables and figures", page.read_text(encoding="utf-8")) for page in package.glob("*.md")]
    assert [int(one[1]) for one in told if one] == [len(EXPERIMENTS)]
    root = package.parents[1] / "README.md"
    if root.is_file():  # the package may stand alone
        assert f"{len(EXPERIMENTS)} tables and figures of the papers" in root.read_text(encoding="utf-8")


def test_unknown_names_and_folders(tmp_path, capsys):
    assert reproduce("lsvm-table9", tmp_path) == 1
    said = capsys.readouterr().err
    assert "'lsvm-table9'" in said and all(name in said for name in EXPERIMENTS)
    assert reproduce("lsvm-uci", tmp_path, "--data", tmp_path / "nowhere") == 1
    assert f"there is no folder {tmp_path / 'nowhere'}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_nothing_to_work_on(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there is no folder "data"
    assert reproduce("lsvm-uci", tmp_path / "out") == 1
    assert "none of the data sets are there; give their folder with --data" in capsys.readouterr().err


def test_a_wrong_file_is_told_in_one_line(tmp_path, capsys):
    np.savez(tmp_path / "bupa.npz", X=np.ones((3, 2)), y=[0, 1, 1])
    assert reproduce("lsvm-uci", tmp_path / "out", "--data", tmp_path) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "data set bupa has 3 rows, 2 columns" in said


STUDY = Study("made", lambda sets, settings: [], lambda unit, sets, settings: [], version=3)
UNITS = [Unit(i, data, part) for i in range(2) for data in ("a", "b") for part in ("x", "y")]


def record(unit, **more):
    values = {"accuracy": np.float64(0.1) * (unit.repeat + 1) / 3, "curve": np.array([1.0, np.inf])}
    return Record(unit.data, unit.part, unit.repeat, values, {"C": np.int64(3)}, 2, 1, 1e-9, 0.5, **more)


def filled(folder, units=UNITS):
    store = Store(folder, STUDY, SETTINGS)
    for unit in units:
        store.add(unit, [record(unit)])
    return store


def test_records_come_back(tmp_path):
    store = filled(tmp_path, UNITS[::-1])
    again = Store(tmp_path, STUDY, SETTINGS)
    assert [Unit(one.repeat, one.data, one.method) for one in again.records()] == UNITS, "in the order of units"
    for one, other in zip(store.records(), again.records()):
        assert other.values == {"accuracy": one.values["accuracy"], "curve": [1.0, float("inf")]}
        assert other.chosen == {"C": 3} and other.fits == 2 and other.gap == 1e-9
    assert all(again.done(unit) for unit in UNITS) and not again.done(Unit(9, "a", "x"))


@pytest.mark.parametrize("cut", [1, 20, 100])
def test_a_truncated_last_line(cut, tmp_path):
    filled(tmp_path)
    path = tmp_path / "records.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    store = Store(tmp_path, STUDY, SETTINGS)
    assert [store.done(unit) for unit in UNITS] == [True] * 7 + [False]
    store.add(UNITS[-1], [record(UNITS[-1])])
    assert path.read_bytes() == whole


def test_a_truncated_first_line(tmp_path):
    path = tmp_path / "records.jsonl"
    filled(tmp_path, [])
    whole = path.read_bytes()
    for n in (0, 1, len(whole) - 1):
        path.write_bytes(whole[:n])
        assert Store(tmp_path, STUDY, SETTINGS).records() == [] and path.read_bytes() == whole


def test_failures_are_tried_again(tmp_path):
    store = Store(tmp_path, STUDY, SETTINGS)
    store.add(UNITS[0], [Record("a", "x", 0, note="no memory")])
    assert not Store(tmp_path, STUDY, SETTINGS).done(UNITS[0])
    store.add(UNITS[0], [record(UNITS[0])])
    again = Store(tmp_path, STUDY, SETTINGS)
    assert again.done(UNITS[0]) and len(again.records()) == 1


@pytest.mark.parametrize(
    ("study", "settings"),
    [
        (Study("other", STUDY.units, STUDY.run, 3), SETTINGS),
        (Study("made", STUDY.units, STUDY.run, 4), SETTINGS),
        (STUDY, Settings(quick=True)),
        (STUDY, Settings(seed=1)),
    ],
)
def test_records_of_something_else_are_refused(study, settings, tmp_path):
    filled(tmp_path)
    path = tmp_path / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"holds records of .* not of .*; give another --output"):
        Store(tmp_path, study, settings)
    assert path.read_bytes() == before, "nothing is cut off what belongs to others"


@pytest.mark.parametrize("text", ["no records", "no records\n", "[]\n[]\n", '{"a": 1}\nrubbish', "\x00\n"])
def test_files_that_hold_no_records(text, tmp_path):
    (tmp_path / "records.jsonl").write_text(text)
    with pytest.raises(ValueError, match="give another --output"):
        Store(tmp_path, STUDY, SETTINGS)
    assert (tmp_path / "records.jsonl").read_text() == text


@pytest.mark.parametrize("line", ['{"unit": {}}', '{"unit": {"repeat": 0}, "records": []}', "7", "{"])
def test_lines_that_hold_no_records(line, tmp_path):
    filled(tmp_path)
    with open(tmp_path / "records.jsonl", "a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(ValueError, match="does not hold records"):
        Store(tmp_path, STUDY, SETTINGS)


def test_records_hold_plain_values(tmp_path):
    with pytest.raises(TypeError, match="numbers and lists; got set"):
        Store(tmp_path, STUDY, SETTINGS).add(UNITS[0], [Record("a", "x", 0, {"accuracy": {1}})])


def test_two_processes_make_the_same_records(tmp_path):
    assert reproduce("lsvm-ndc", tmp_path / "one") == 0
    assert reproduce("lsvm-ndc", tmp_path / "two", "--jobs", 2) == 0
    one, two = (records_of(tmp_path / name / "lsvm-ndc-quick") for name in ("one", "two"))
    assert one == two and len(one) == 8
    assert reproduce("lsvm-ndc", tmp_path / "other", "--seed", 1) == 0
    assert records_of(tmp_path / "other" / "lsvm-ndc-quick") != one
    assert reproduce("lsvm-ndc", tmp_path / "one", "--seed", 1) == 1, "records of another seed are there"


def test_a_report_of_what_has_been_run(tmp_path, capsys, monkeypatch):
    assert reproduce("lsvm-ndc", tmp_path, "--report") == 1
    assert "nothing of lsvm-ndc has been run" in capsys.readouterr().err and not list(tmp_path.iterdir())
    assert reproduce("lsvm-ndc", tmp_path) == 0
    folder = tmp_path / "lsvm-ndc-quick"
    lines = (folder / "records.jsonl").read_text().splitlines(keepends=True)
    whole = (folder / "lsvm-ndc.md").read_text()
    monkeypatch.setattr(running, "_done", None)  # nothing is run
    assert reproduce("lsvm-ndc", tmp_path, "--report") == 0
    assert (folder / "lsvm-ndc.md").read_text() == whole
    (folder / "records.jsonl").write_text("".join(lines[:-1]))
    assert reproduce("lsvm-ndc", tmp_path, "--report") == 0
    assert (folder / "lsvm-ndc.md").read_text() != whole
    assert (folder / "records.jsonl").read_text() == "".join(lines[:-1])


def test_what_is_wrong_with_a_unit_is_noted(tmp_path, monkeypatch, capsys):
    def some(unit, sets, settings):
        if unit.part == "y":
            raise ValueError("there is\nno room")
        return [record(unit)]

    study = Study("made", lambda sets, settings: UNITS, some)
    made = Experiment("made", "Made", study, lambda records, sets, settings: Report("Made", [str(len(records))]))
    for module in (command, running):
        monkeypatch.setattr(module, "EXPERIMENTS", {"made": made})
    assert reproduce("made", tmp_path) == 0
    told = capsys.readouterr()
    assert told.err.count("no figures of y on") == 4 and "no figures of y on a: there is no room" in told.err
    assert (tmp_path / "made-quick" / "made.md").read_text() == "# Made\n\n8\n"
    assert len(records_of(tmp_path / "made-quick")) == 8


def test_interrupted_runs_report_what_there_is(tmp_path, monkeypatch):
    seen = []

    def some(unit, sets, settings):
        seen.append(unit)
        if len(seen) == 4:
            raise KeyboardInterrupt
        return [record(unit)]

    study = Study("made", lambda sets, settings: UNITS[::-1], some)
    made = Experiment("made", "Made", study, lambda records, sets, settings: Report("Made", [str(len(records))]))
    for module in (command, running):
        monkeypatch.setattr(module, "EXPERIMENTS", {"made": made})
    assert reproduce("made", tmp_path) == 130
    assert seen == UNITS[:4], "repeat by repeat, whatever the order of the study"
    assert (tmp_path / "made-quick" / "made.md").read_text() == "# Made\n\n3\n"
    assert reproduce("made", tmp_path) == 0 and seen[4:] == UNITS[3:]
    assert (tmp_path / "made-quick" / "made.md").read_text() == "# Made\n\n8\n"
    _, *lines = (tmp_path / "made-quick" / "records.jsonl").read_text().splitlines()
    assert [json.loads(line)["unit"] for line in lines] == [asdict(unit) for unit in UNITS]


def children(pid):
    """Number of processes that one has started; where the system does not tell, as many as it takes."""
    try:
        return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return 3


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT")
@pytest.mark.parametrize(("jobs", "when"), [("1", "at once"), ("2", "at once"), ("2", "later")])
def test_ctrl_c(jobs, when, tmp_path):
    """The signal goes to the whole group, as from a terminal."""
    code = [sys.executable, "-m", "mdlearn", "reproduce", "lsvm-checkerboard", "--data", str(tmp_path)]
    with subprocess.Popen(
        [*code, "--output", str(tmp_path / "out"), "--jobs", jobs],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as process:
        if when == "at once":  # the longest unit comes first; or other processes are still being started
            while not (tmp_path / "out" / "lsvm-checkerboard" / "records.jsonl").exists():
                assert process.poll() is None
                time.sleep(0.01)
            while jobs == "2" and children(process.pid) < 3:  # two and multiprocessing's own
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(0.2)
        else:
            for line in process.stderr:
                if " 3 of 5 units" in line or " 2 of 5 units" in line:
                    break
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130 and err.splitlines()[-1] == "interrupted" and "Traceback" not in err
    reports = sorted((tmp_path / "out" / "lsvm-checkerboard").glob("*.md"))
    assert len(reports) == (when == "later")
    if reports:
        assert str(reports[0]) in out and "Not all methods have been run yet" in reports[0].read_text()


def test_reports_go_to_a_folder_of_their_own(tmp_path, capsys):
    folder = tmp_path / "lsvm-ndc-quick"
    folder.mkdir()
    (folder / "lsvm-ndc.md").write_text("mine")
    arguments = ["reproduce", "lsvm-ndc", "--quick", "--output", str(tmp_path)]
    assert main(arguments) == 1
    assert "is not empty" in capsys.readouterr().err and [p.name for p in folder.iterdir()] == ["lsvm-ndc.md"]
    assert main([*arguments, "--force"]) == 0
    assert (folder / "lsvm-ndc.md").read_text() != "mine"
    assert main(arguments) == 0, "records of an earlier run are there"
