"""The commands fit and predict, on files, as a user runs them."""

import bz2
import gzip
from pathlib import Path

import command_cases
import numpy as np
import pytest
from command_cases import fails, lines, write
from numpy.testing import assert_array_equal

import mdlearn

place, run = command_cases.place, command_cases.run  # pytest finds fixtures by the names of the module


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
    assert lines(run("fit", "a.svm", "-o", "m.npz", "--objective", "rlp")[1])["model"].strip() == "rlp"


def test_every_option_reaches_fit(place, run, monkeypatch):
    from mdlearn.commands import fitting

    seen = {}
    fit = mdlearn.fit

    def spy(objective, X, y, **given):
        seen.update(given, objective=objective, X=X)
        return fit(objective, X, y, **{**given, "solver_options": None})

    monkeypatch.setattr(fitting, "fit", spy)
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
    code, out, err = run("fit", "a.svm", "-o", "m.npz", "--solver", "interior", "--max-iter", "1", "--tol", "1e-12")
    assert code == 0 and lines(out)["converged"].strip() == "no"
    assert err.startswith("warning: ") and "max_iter" in err and err.count("\n") == 1
    assert not mdlearn.load("m.npz").certificate.converged


def test_progress_goes_to_standard_error(place, run):
    quiet = run("fit", "a.svm", "-o", "m.npz", "--solver", "interior")
    code, out, err = run("fit", "a.svm", "-o", "m.npz", "--solver", "interior", "-vv")
    assert code == 0 and "iteration 2" in err and "gap" in err and "80 rows, 5 columns" in err
    assert [line for line in out.splitlines() if "seconds" not in line] == [
        line for line in quiet[1].splitlines() if "seconds" not in line
    ]
