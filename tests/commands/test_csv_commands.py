"""fit, predict and compare on CSV files: columns by name or place, labels or none, text or numbers."""

from pathlib import Path

import command_cases
import numpy as np
import pytest
from command_cases import fails, lines
from numpy.testing import assert_array_equal

import mdlearn

place, run = command_cases.place, command_cases.run

RNG = np.random.default_rng(8)
X = RNG.normal(size=(50, 3)).round(3)
Y = np.where(X[:, 0] - X[:, 1] + 0.3 * RNG.normal(size=50) > 0, "yes", "no")


def table(path, names="abc", labels=True, header=True, order=(0, 1, 2), delimiter=","):
    head = [delimiter.join([*(names[j] for j in order), *["y"] * labels])] if header else []
    rows = [delimiter.join([*(str(row[j]) for j in order), *[label] * labels]) for row, label in zip(X.tolist(), Y)]
    Path(path).write_text("\n".join([*head, *rows, ""]))


@pytest.fixture
def model(place, run):
    table("a.csv")
    assert run("fit", "a.csv", "-o", "m.npz")[0] == 0
    return mdlearn.load("m.npz")


def test_fit_is_the_fit_of_the_rows(model, run):
    direct = mdlearn.fit("ldm", X, Y)
    assert_array_equal(model.decision_function(X), direct.decision_function(X))
    assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    assert_array_equal(model.classes_, ["no", "yes"])
    code, out, err = run("fit", "a.csv", "-o", "n.npz", "-v")
    assert (code, lines(out)["data"].strip()) == (0, "a.csv: 50 rows, 3 columns, 2 labels")
    assert "read a.csv: 50 rows, 3 columns\n" in err


def test_predict_finds_columns_by_their_names(model, run):
    right = int((model.predict(X) == Y).sum())
    said = f"accuracy: {right / 50:.6g} ({right} of 50 rows)\n"
    table("b.csv", order=(2, 0, 1), delimiter=";")
    for name in ("a.csv", "b.csv"):
        assert run("predict", "m.npz", name, "-o", "out", "--force") == (0, said, "")
        assert Path("out").read_text().split() == model.predict(X).tolist()
    surplus = [f"n{i},{line}" for i, line in enumerate(Path("a.csv").read_text().splitlines())]
    Path("c.csv").write_text("\n".join(surplus))
    assert run("predict", "m.npz", "c.csv", "-o", "out", "--force") == (0, said, "")
    Path("d.csv").write_text(Path("a.csv").read_text().replace("a,b", "a,B", 1))
    fails(run("predict", "m.npz", "d.csv"), "d.csv lacks the column 'b', which the model needs")


def test_surplus_columns_do_not_excuse_ragged_rows(model, run):
    Path("c.csv").write_text("a,b,c,y,z\n1,2,3,yes,4\n1,2,3,yes\n")
    fails(run("predict", "m.npz", "c.csv"), "c.csv, line 3 has 4 cells")
    Path("c.csv").write_text('a,b,c,y,z\n1,2,3,yes,"a,b"\n"4",5,6,no,x\n')
    assert run("predict", "m.npz", "c.csv")[0] == 0


def test_rows_without_labels_have_no_accuracy(model, run):
    table("b.csv", labels=False)
    assert run("predict", "m.npz", "b.csv", "-o", "out") == (0, "50 rows predicted; the file has no labels\n", "")
    assert Path("out").read_text().split() == model.predict(X).tolist()
    code, out, err = run("predict", "m.npz", "b.csv", "--scores")
    assert code == 0 and err == "50 rows predicted; the file has no labels\n"
    np.testing.assert_allclose(np.array(out.split(), float), model.decision_function(X), rtol=1e-12)
    table("c.csv", labels=False, header=False)
    assert run("predict", "m.npz", "c.csv")[1].split() == model.predict(X).tolist()


def test_columns_by_place_where_there_are_no_names(place, run):
    table("a.csv", header=False)
    moved = [",".join([line.split(",")[3], *line.split(",")[:3]]) for line in Path("a.csv").read_text().split()]
    Path("b.csv").write_text("\n".join(moved))
    assert run("fit", "b.csv", "-o", "m.npz", "--target", "1")[0] == 0
    model = mdlearn.load("m.npz")
    assert not hasattr(model, "feature_names_in_")
    table("c.csv", labels=False)
    for name, options in (("b.csv", ()), ("a.csv", ("--target", "4")), ("c.csv", ())):
        assert run("predict", "m.npz", name, *options)[1].split() == model.predict(X).tolist()
    Path("d.csv").write_text("1,2,0,4,5\n")
    fails(run("predict", "m.npz", "d.csv"), "d.csv has 5 columns, but the model needs 3, or 4 with the labels")
    fails(run("predict", "m.npz", "c.csv", "--target", "1"), "c.csv has 3 columns, but the model needs 3")


def test_a_header_of_numbers_is_known_to_a_model_with_these_names(place, run):
    table("a.csv", names="123")
    assert run("fit", "a.csv", "-o", "m.npz", "--header", "yes")[0] == 0
    code, out, _ = run("predict", "m.npz", "a.csv")
    assert code == 0 and len(out.split()) == 50


def test_labels_of_text_that_look_like_numbers(place, run):
    rows = [f"{row[0]},{label}" for row, label in zip(X.tolist(), np.where(Y == "yes", "01", "x"))]
    Path("a.csv").write_text("\n".join(rows))
    assert run("fit", "a.csv", "-o", "m.npz")[0] == 0
    assert mdlearn.load("m.npz").classes_.tolist() == ["01", "x"]
    Path("b.csv").write_text("\n".join(row for row in rows if row.endswith("01")))
    assert "not known" not in run("predict", "m.npz", "b.csv", "-o", "out")[1]
    Path("b.csv").write_text("1,1\n2,1\n")
    assert "accuracy: not known" in run("predict", "m.npz", "b.csv", "-o", "other")[1]


def test_models_and_files_of_different_kinds(model, run):
    # a.svm of `place` has five columns; here are three.
    Path("b.svm").write_text("\n".join(f"1 1:{a} 2:{b} 3:{c}" for a, b, c in X.tolist()))
    code, out, err = run("predict", "m.npz", "b.svm")
    assert code == 0 and out.split() == model.predict(X).tolist() and "not known" in err
    signs = [f"{'1' if label == 'yes' else '-1'} 1:{a} 2:{b} 3:{c}" for (a, b, c), label in zip(X.tolist(), Y)]
    Path("b.svm").write_text("\n".join(signs))
    assert run("fit", "b.svm", "-o", "n.npz")[0] == 0
    other = mdlearn.load("n.npz")
    code, out, err = run("predict", "n.npz", "a.csv")
    assert code == 0 and np.array_equal(np.array(out.split(), int), other.predict(X)) and "not known" in err


@pytest.mark.extras
def test_models_saved_from_python(place, run):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abc"))
    model = mdlearn.fit("svm", frame, Y)
    model.save("m.npz")
    frame[["c", "b", "a"]].assign(y=Y).to_csv("b.csv", index=False)
    code, out, _ = run("predict", "m.npz", "b.csv")
    assert code == 0 and out.split() == model.predict(frame).tolist()
    assert run("predict", "m.npz", "b.csv", "--target", "y", "-o", "out")[1].startswith("accuracy: ")


def test_float32(place, run):
    table("a.csv")
    assert run("fit", "a.csv", "-o", "m.npz", "--float32", "--kernel", "rbf")[0] == 0
    model = mdlearn.load("m.npz")
    assert model._rows.dtype == np.float32
    scores = np.array(run("predict", "m.npz", "a.csv", "--scores")[1].split(), float)
    np.testing.assert_allclose(scores, model.decision_function(X.astype(np.float32)), rtol=1e-12)


def test_compare_takes_all_kinds_in_one_folder(place, run):
    Path("sets").mkdir()
    table("sets/one.csv")
    table("sets/two.tsv", header=False, delimiter="\t")
    np.savez("sets/three.npz", X=X, y=Y)
    Path("sets/four.svm").write_bytes(Path("a.svm").read_bytes())
    Path("sets/bad.csv").write_text("1,2\n3\n")
    code, out, _ = run("compare", "--data", "sets", "--objectives", "svm", "--repeats", "2", "--format", "csv")
    rows = {row.split(",")[0]: row for row in out.splitlines()}
    assert code == 0 and "line 2 has 1 cells" in rows["bad"]
    values = {name: rows[name].split(",")[5:8] for name in ("one", "two", "three")}
    assert values["one"] == values["two"] == values["three"]
    assert "four" in rows


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_help_ends_with_examples(command, run):
    code, out, err = run(command, "--help")
    assert (code, err) == (0, "")
    examples = out.split("examples:\n")[1]
    assert examples.count(f"python -m mdlearn {command} ") == 2
    assert max(map(len, out.splitlines())) <= 110 and "%" not in out
