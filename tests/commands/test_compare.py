"""``python -m mdlearn compare``: the files it reads, the table, and what happens to what fails."""

import csv
import io
import json
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import mdlearn
from mdlearn.cli import main
from mdlearn.experiments import compare
from mdlearn.experiments.data_set_files import DataSet, find_data_sets, load_data_set, split_data_set
from mdlearn.objectives.svm import SVM
from mdlearn.plugins.registry import registry
from mdlearn.selection.metrics import auc, average_ranks, f1_macro

NAMES = ("svm", "lssvm", "ww")


@pytest.fixture
def folder(tmp_path):
    """Two classes dense with a missing value, two classes sparse in two parts, three classes with names."""
    rng = np.random.default_rng(0)
    data = tmp_path / "data"
    data.mkdir()
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    X[3, 1] = np.nan
    np.savez(data / "dense.npz", X=X, y=y, feature_names=np.array(["a", "b", "c"]))
    A = sp.random(60, 8, density=0.4, random_state=1, format="csr")
    y = np.where(A.toarray()[:, 0] + 0.1 * rng.standard_normal(60) > 0.1, 2, 1)
    parts = {}
    for name, rows in (("train", slice(0, 40)), ("test", slice(40, 60))):
        B = A[rows]
        parts |= {f"{name}_data": B.data, f"{name}_indices": B.indices, f"{name}_indptr": B.indptr}
        parts |= {f"{name}_shape": np.array(B.shape), f"y_{name}": y[rows]}
    np.savez(data / "sparse.npz", **parts)
    X = rng.standard_normal((45, 2))
    np.savez(data / "three.npz", X=X, y=np.array(["a", "b", "c"])[X.argmax(axis=1) + (X.max(axis=1) < 0.3)])
    (data / "notes.md").write_text("no data")
    return data


def run(folder, *options, objectives=NAMES):
    return main(["compare", "--data", str(folder), "--objectives", ",".join(objectives), "--repeats", "2", *options])


# ---------------------------------------------------------------- files


def test_files_of_every_kind(folder):
    assert list(find_data_sets(str(folder))) == ["dense", "sparse", "three"]
    assert load_data_set(folder / "dense.npz").shape == (40, 3, 2)
    assert load_data_set(folder / "sparse.npz").shape == (60, 8, 2)
    assert load_data_set(folder / "three.npz").shape[2] == 3
    pytest.importorskip("sklearn", reason="svmlight files are read with scikit-learn")
    (folder / "text.svm").write_text("1 1:0.5 3:2\n-1 2:1\n1 1:0.25\n-1 3:1\n")
    assert load_data_set(find_data_sets(str(folder))["text"]).shape == (4, 3, 2)
    (folder / "dense.libsvm").write_text("1 1:1\n")
    with pytest.raises(ValueError, match="two files of the data set dense"):
        find_data_sets(str(folder))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"y": np.ones(30)}, "one label for each"),  # splitting would take the first 30 rows only
        ({"y": np.ones((40, 1))}, "one label for each"),
        ({"X": np.ones(40)}, "one label for each"),
        ({"X": np.ones((0, 3)), "y": np.ones(0)}, "one label for each"),
        ({"X": np.ones((40, 3)) * 1j}, "complex"),
        ({"y": np.where(np.arange(40) < 20, 1.0, np.nan)}, "among its labels"),
        ({"X_train": np.ones((40, 2)), "y_train": np.ones(40)}, "different columns"),
    ],
)
def test_rows_and_labels_that_do_not_fit(tmp_path, change, match):
    np.savez(tmp_path / "set.npz", **{"X": np.ones((40, 3)), "y": np.arange(40) % 2, **change})
    with pytest.raises(ValueError, match=match):
        load_data_set(tmp_path / "set.npz")


@pytest.mark.parametrize(("array", "value"), [("indices", 10**6), ("indices", -5), ("indptr", 10**6), ("indptr", -2)])
def test_damaged_sparse_files(tmp_path, array, value):
    """Compiled loops that believe such indices end the process."""
    A = sp.random(40, 6, density=0.5, random_state=0, format="csr")
    arrays = {"data": A.data, "indices": A.indices.copy(), "indptr": A.indptr.copy()}
    arrays[array][3] = value
    np.savez(tmp_path / "set.npz", **arrays, shape=A.shape, y=np.arange(40) % 2)
    with pytest.raises(ValueError, match="cannot be read"):
        load_data_set(tmp_path / "set.npz")


def test_infinity_is_no_missing_value():
    X = np.ones((40, 3))
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        split_data_set(DataSet(X, np.arange(40) % 2), 0, 0, 2000)


def test_wrong_folders_and_names(tmp_path, folder, capsys):
    (tmp_path / "empty").mkdir()
    wrong = {
        ("--data", str(tmp_path / "nowhere")): "there is no folder",
        ("--data", str(tmp_path / "empty")): "has no data sets: no file ends with .npz, .csv, ",
        (
            "--data",
            str(folder),
            "--sets",
            "dense,missing",
        ): "data set 'missing' is unknown; known data sets: dense, spar",
        ("--data", str(folder), "--objectives", "svn"): "objective 'svn' is unknown; known objectives: ldm, odm, svm",
        ("--data", str(folder), "--sets", "dens"): "; did you mean 'dense'?\n",
        ("--data", str(folder), "--out", str(tmp_path / "no" / "t")): "give another path",
        ("--data", str(folder), "--seed", "-1"): "--seed needs to be a number >= 0; got -1",
        ("--data", str(folder), "--time-limit", "nan"): "--time-limit needs to be a number >= 0; got nan",
    }
    for options, message in wrong.items():
        assert main(["compare", *options]) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("error: ") and message in err and err.count("\n") == 1
    for options in (["--repeats", "0"], ["--objectives", "svm,svm"], ["--sets", ","], ["--jobs", "x"], []):
        with pytest.raises(SystemExit) as caught:
            main(["compare", *(["--data", str(folder)] if options else []), *options])
        assert caught.value.code == 2


# ---------------------------------------------------------------- the table


def test_values_are_those_of_the_fits(folder, capsys):
    assert run(folder, "--format", "json", "--seed", "5") == 0
    whole = json.loads(capsys.readouterr().out)
    found = {(one["data"], one["objective"]): one for one in whole["results"]}
    assert list(found) == [(data, name) for data in ("dense", "sparse", "three") for name in NAMES]
    for (data, name), one in found.items():
        right, second, gaps = [], [], []
        for repeat in range(2):
            split = split_data_set(load_data_set(folder / f"{data}.npz"), 5, repeat, 2000)
            model = mdlearn.fit(name, split.X, split.y, random_state=5)
            told = model.predict(split.X_test)
            right.append(np.mean(told == split.y_test))
            gaps.append(model.certificate.gap)
            if data == "three":
                second.append(f1_macro(split.y_test, told))
            else:
                second.append(auc(split.y_test == model.classes_[1], model.decision_function(split.X_test)))
        assert one["accuracy"] == pytest.approx(np.mean(right)) and one["second"] == pytest.approx(np.mean(second))
        assert one["accuracy_std"] == pytest.approx(abs(right[0] - right[1]) / np.sqrt(2))
        assert one["second_score"] == ("f1_macro" if data == "three" else "auc")
        assert one["gap"] == pytest.approx(max(gaps)) and one["fits"] == 2 and one["notes"] == []
        assert one["engine"] == model.solver and one["seconds"] > 0
        assert one["multiclass"] == (model.multiclass if data == "three" else None)
    for kind, sets in (("two classes", ["dense", "sparse"]), ("more classes", ["three"])):
        ranks = [average_ranks(np.array([found[data, name]["accuracy"] for name in NAMES])) for data in sets]
        told = whole["average_ranks"][kind]
        assert [told[name]["rank"] for name in NAMES] == pytest.approx(np.mean(ranks, axis=0))
        assert {entry["sets"] for entry in told.values()} == {len(sets)}


def test_every_format_tells_the_same(folder, capsys, tmp_path):
    assert run(folder) == 0
    text = capsys.readouterr().out
    assert run(folder, "--format", "csv", "--out", str(tmp_path / "t.csv")) == 0
    out, err = capsys.readouterr()
    assert out == "" and "9 of 9 results" in err
    lines = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text())))
    assert len(lines) == 9
    for line in lines:
        (row,) = [one for one in text.splitlines() if one.split()[:5:4] == [line["data"], line["objective"]]]
        assert f"{float(line['accuracy']):.4f} +-{float(line['accuracy_std']):.4f}" in row
        assert f"{float(line['second']):.4f}" in row and line["engine"] in row
    assert "average rank by accuracy, 2 set(s) of two classes" in text
    assert "average rank by accuracy, 1 set(s) of more classes" in text
    assert "at most 2000 rows" in text and "2 stratified half/half split(s), seed 0" in text


@pytest.mark.slow
def test_several_processes_give_the_same(folder, capsys):
    def values(*options):
        assert run(folder, "--format", "json", "--sets", "dense", *options) == 0
        results = json.loads(capsys.readouterr().out)["results"]
        return [{key: value for key, value in one.items() if key != "seconds"} for one in results]

    assert values("--jobs", "2") == values()


class Broken(SVM):
    name = "broken"

    def form(self, data, features, bias, params):
        raise RuntimeError("inside the objective") if len(data.classes) == 2 else ValueError("no such luck")


class Stopped(SVM):
    name = "stopped"
    calls = 0

    def form(self, data, features, bias, params):
        Stopped.calls += 1
        if Stopped.calls == 3:
            raise KeyboardInterrupt
        return super().form(data, features, bias, params)


def test_what_fails_has_its_reason(folder, capsys, monkeypatch):
    monkeypatch.setitem(registry().objectives, "broken", Broken)
    (folder / "bad.npz").write_bytes(b"no archive")
    np.savez(folder / "other.npz", table=np.eye(2))
    np.savez(folder / "one.npz", X=np.eye(3), y=np.zeros(3))
    assert run(folder, objectives=("svm", "broken")) == 0
    text = capsys.readouterr().out
    notes = {}
    for line in text.splitlines():
        if line.startswith("["):
            notes[line.split()[0]] = line
    for data, words in {
        "bad": "bad.npz cannot be read as an archive",
        "other": "other.npz holds neither X and y",
        "one": "y has one class",
        "dense": "RuntimeError: inside the objective",
        "three": "no such luck",
    }.items():
        rows = [line for line in text.splitlines() if line.startswith(f"{data} ")]
        row = rows[-1]
        assert len(rows) == 2 and " - " in row and words in notes[row.split()[-1]]
    ranks = text.split("two classes")[-1].splitlines()[1:3]
    assert [line.split() for line in ranks] == [["1.00", "svm"], ["2.00", "broken"]]
    assert run(folder, "--format", "json", objectives=("svm", "broken")) == 0
    for one in json.loads(capsys.readouterr().out)["results"]:
        assert (one["accuracy"] is None) == bool(one["notes"])


def test_a_kernel_that_an_objective_lacks_and_a_gap_that_is_not_reached(folder, capsys):
    assert run(folder, "--kernel", "rbf", "--sets", "dense", "--time-limit", "0", "--format", "json") == 0
    found = {one["objective"]: one for one in json.loads(capsys.readouterr().out)["results"]}
    assert "linear" in found["ww"]["notes"][0] and found["ww"]["accuracy"] is None
    assert found["svm"]["gap"] == 1.0 and found["svm"]["fits"] == 2
    (note,) = found["svm"]["notes"]
    assert "did not reach the gap asked for: time_limit reached" in note


def test_a_fit_that_fails_once(folder, capsys, monkeypatch):
    fit, seen = compare.fit, []

    def failing(*arguments, **settings):
        seen.append(arguments)
        if len(seen) == 2:
            raise MemoryError("not today")
        return fit(*arguments, **settings)

    monkeypatch.setattr(compare, "fit", failing)
    assert run(folder, "--sets", "dense", "--format", "json", objectives=("svm",)) == 0
    (one,) = json.loads(capsys.readouterr().out)["results"]
    assert one["fits"] == 1 and one["accuracy"] is not None and one["accuracy_std"] is None
    assert one["notes"] == ["not today", "1 of 2 fits failed; values are of the others"]


def test_an_interrupt_prints_the_table_so_far(folder, capsys, monkeypatch):
    monkeypatch.setitem(registry().objectives, "stopped", Stopped)
    monkeypatch.setattr(Stopped, "calls", 0)
    assert run(folder, objectives=("stopped",)) == 130
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines() if "stopped " in line] == ["dense"]
    assert err == "interrupted\n"


def test_as_a_module(folder, tmp_path):
    command = [sys.executable, "-m", "mdlearn", "compare", "--data", str(folder), "--sets", "dense", "--repeats", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and done.stderr == ""
    listed = [line.split()[4] for line in done.stdout.splitlines() if line.startswith("dense ")]
    assert listed == [name for name, cls in registry().objectives.items() if cls.task == "classification"]
