"""The command verify: the independent check of a model file, on files as a user has them."""

import command_cases
import numpy as np
import pytest
from command_cases import fails

import mdlearn

place, run = command_cases.place, command_cases.run  # pytest finds fixtures by the names of the module


@pytest.fixture
def table(place):
    """The folder with a CSV file whose labels stand in its first column, and its content."""
    folder, X, y = place
    rows = [",".join([word, *map(repr, row)]) for word, row in zip(np.where(y > 0, "yes", "no"), X.tolist())]
    (folder / "d.csv").write_text("\n".join(["ill,a,b,c,d,e", *rows]) + "\n")
    return folder, X, y


@pytest.mark.parametrize("given", [(), ("--kernel", "rbf"), ("--objective", "l2lr", "--float32")], ids=str)
def test_what_fit_writes_is_agreed_on(given, table, run):
    assert run("fit", "d.csv", "--target", "ill", "-o", "m.npz", *given)[0] == 0
    code, out, err = run("verify", "m.npz", "d.csv")
    assert (code, err) == (0, "") and out.startswith("agreed: objective ")
    certificate = mdlearn.load("m.npz").certificate
    assert float(out.split()[2].strip(",")) == pytest.approx(certificate.objective, rel=1e-9)


def test_other_rows_are_refuted(table, run):
    folder, X, _ = table
    run("fit", "d.csv", "--target", "ill", "-o", "m.npz")
    text = (folder / "d.csv").read_text()
    (folder / "other.csv").write_text(text.replace(repr(X[0, 0].item()), "5.0", 1))
    code, out, err = run("verify", "m.npz", "other.csv")
    assert (code, err) == (1, "") and out.startswith("refuted: its coefficients ")
    (folder / "bare.csv").write_text("\n".join(line.split(",", 1)[1] for line in text.splitlines()) + "\n")
    fails(run("verify", "m.npz", "bare.csv"), "bare.csv has no labels")


def test_weights_and_models_without_formulas(table, run):
    folder, X, y = table
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    np.savetxt(folder / "w.txt", weights)
    mdlearn.fit("ldm", X, np.where(y > 0, "yes", "no"), sample_weight=weights).save("w.npz")
    options = ("--target", "ill")
    assert run("verify", "w.npz", "d.csv", *options, "--weights", "w.txt")[0] == 0
    assert run("verify", "w.npz", "d.csv", *options)[0] == 1
    mdlearn.fit("uldm", X, np.where(y > 0, "yes", "no")).save("u.npz")
    code, out, _ = run("verify", "u.npz", "d.csv", *options)
    assert code == 2 and out.startswith("cannot check this model: uldm ")


def test_svmlight_files(place, run):
    pytest.importorskip("sklearn")
    run("fit", "a.svm", "-o", "m.npz", "--objective", "svm")
    assert run("verify", "m.npz", "a.svm")[0] == 0
