"""fit --cv: the cross-validated score beside the certificate."""

import command_cases
import pytest
from command_cases import fails, lines

import mdlearn

place, run = command_cases.place, command_cases.run


def test_cv_is_that_of_cross_validate(place, run):
    _, X, y = place
    code, out, err = run("fit", "a.svm", "-o", "m.npz", "--cv", "4", "--param", "C=10", "--seed", "3")
    assert (code, err) == (0, "")
    found = mdlearn.cross_validate("ldm", X, y, cv=4, C=10, random_state=3)
    mean, spread = lines(out)["4-fold accuracy"].split("+-")
    assert float(mean) == pytest.approx(found.mean, abs=0.02) and float(spread) == pytest.approx(found.std, abs=0.02)
    plain = run("fit", "a.svm", "-o", "n.npz", "--param", "C=10", "--seed", "3")[1]
    assert "fold" not in plain
    assert (mdlearn.load("m.npz").coef_ == mdlearn.load("n.npz").coef_).all()


def test_columns_with_names(place, run):
    rows = [",".join(map(str, (*row, label))) for row, label in zip(place[1].tolist(), place[2].tolist())]
    (place[0] / "a.csv").write_text("\n".join(["a,b,c,d,e,y", *rows]))
    code, out, _ = run("fit", "a.csv", "-o", "m.npz", "--cv", "2", "--kernel", "rbf")
    assert code == 0 and 0.5 < float(lines(out)["2-fold accuracy"].split("+-")[0]) <= 1


def test_errors(place, run):
    for wrong in ("1", "0", "-2", "x", "2.5"):
        code, out, err = run("fit", "a.svm", "-o", "m.npz", f"--cv={wrong}")
        assert (code, out) == (2, "") and "number of folds" in err
    fails(run("fit", "a.svm", "-o", "m.npz", "--cv", "1000"))
    assert not (place[0] / "m.npz").exists()
