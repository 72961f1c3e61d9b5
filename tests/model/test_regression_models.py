"""Models of regression: predictions, files, what is read as targets, and the command line."""

from __future__ import annotations

import numpy as np
import pytest
from regression_cases import Tube, sample

import mdlearn
from mdlearn.plugins.registry import registry


def test_the_model(tmp_path):
    X, y, counts = sample()
    for kernel in ("linear", "rbf"):
        model = mdlearn.fit(Tube(), X, y, sample_weight=counts, kernel=kernel)
        f = model.predict(X)
        assert f.shape == (50,) and np.array_equal(f, model.decision_function(X))
        mean = np.average(y, weights=counts)
        want = 1 - counts @ (y - f) ** 2 / (counts @ (y - mean) ** 2)
        assert model.score(X, y, counts) == pytest.approx(want)
        assert model.classes_.shape == (0,) and model.n_support_.tolist() == [model.support_.shape[0]]
        assert model.multiclass == "none" and not hasattr(model, "predict_proba")
        with pytest.raises(TypeError, match=r"'tube' is a regression, which has no margins; residuals are predict"):
            model.margins(X, y)
        model.save(tmp_path / "model.npz")
        again = mdlearn.load(tmp_path / "model.npz")
        assert type(again) is type(model) and np.array_equal(again.predict(X), f)
        assert again.score(X, y) == model.score(X, y)
    assert mdlearn.fit(Tube(), X, np.full(50, 3.0), bias="free").score(X, np.full(50, 3.0)) == 1.0


@pytest.mark.extras
def test_integers_frames_and_one_row():
    pandas = pytest.importorskip("pandas")
    X, y, _ = sample()
    frame = pandas.DataFrame(X, columns=list("abcd"))
    model = mdlearn.fit(Tube(), frame, pandas.Series(y))
    assert list(model.feature_names_in_) == list("abcd")
    assert mdlearn.fit(Tube(), X, np.arange(50)).certificate.converged
    assert mdlearn.fit(Tube(), X[:1], y[:1]).certificate.converged  # one number is enough
    assert mdlearn.fit(Tube(), X, [True, False] * 25).certificate.converged


@pytest.mark.parametrize(
    "y, error, words",
    [
        (None, TypeError, "y is None; give one number per row of X"),
        (np.zeros((50, 1)), ValueError, "y has 2 dimension"),
        (np.zeros(49), ValueError, "X has 50 rows but y has 49 numbers"),
        (np.array(["a"] * 50), TypeError, "y holds values of dtype <U1; regression needs real numbers"),
        (np.array([1.0] * 49 + ["a"], dtype=object), TypeError, "needs real numbers, row 49 does not hold one$"),
        (np.full(50, 1j), TypeError, "y holds values of dtype complex128"),
        (np.array([object()] * 50), TypeError, "y holds values of dtype object"),
        (np.r_[np.nan, np.zeros(49)], ValueError, "y contains NaN or infinity"),
        (np.r_[-np.inf, np.zeros(49)], ValueError, "y contains NaN or infinity"),
        (
            np.r_[1e200, np.zeros(49)],
            ValueError,
            "y holds 1e\\+200 in row 0, whose square overflows; scale the targets",
        ),
    ],
)
def test_wrong_targets(y, error, words):
    with pytest.raises(error, match=words):
        mdlearn.fit(Tube(), sample()[0], y)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    """fit, predict and objectives say R^2 where a classifier has an accuracy; compare has no use for it."""
    pytest.importorskip("sklearn")
    from sklearn.datasets import dump_svmlight_file

    from mdlearn.cli import main

    X, y, _ = sample()
    monkeypatch.setitem(registry().objectives, "tube", Tube)
    dump_svmlight_file(X, y, str(tmp_path / "d.txt"))
    fit = ["fit", str(tmp_path / "d.txt"), "-o", str(tmp_path / "m.npz"), "--objective", "tube", "--param", "C=3"]
    assert main(fit) == 0
    told = capsys.readouterr().out
    assert "training R^2:" in told and "50 rows, 4 columns, no labels" in told
    assert main(["predict", str(tmp_path / "m.npz"), str(tmp_path / "d.txt")]) == 0
    told = capsys.readouterr()
    np.testing.assert_allclose([float(line) for line in told.out.split()], mdlearn.fit(Tube(C=3), X, y).predict(X))
    assert told.err.startswith("R^2: 0.89")
    assert main(["objectives"]) == 0
    assert "tube: for tests (regression)" in capsys.readouterr().out
    assert main(["compare", "--data", str(tmp_path), "--objectives", "tube"]) == 1
    assert "objective 'tube' is a regression; compare takes classifiers" in capsys.readouterr().err
