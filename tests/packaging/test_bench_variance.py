"""The study of what the margin variance is worth: what it writes, and what it compares."""

from __future__ import annotations

import importlib
import types
from pathlib import Path

import numpy as np
import pytest

import mdlearn

FOLDER = Path(__file__).parents[2] / "asv_bench"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="installed without the benchmarks"),
    pytest.mark.usefixtures("bench"),
]


def test_a_study_of_the_variance_writes_what_it_measured(tmp_path, monkeypatch, capsys):
    """LDM minus SVM over draws and sets, in points; a set that is too small is left out."""
    variance = importlib.import_module("variance")
    monkeypatch.setattr(variance, "REGIMES", {"30 rows": (30, 0.0, None)})
    monkeypatch.setattr(variance, "COSTS", {"linear": (0.1, 1.0)})
    monkeypatch.setattr(variance, "SHARES", (1.0,))
    for name, m in (("one", 600), ("two", 700), ("few", 100)):
        X, y = mdlearn.datasets.two_gaussians(m, random_state=m)
        np.savez(tmp_path / f"{name}.npz", X=X, y=y)
    page = tmp_path / "page.md"
    page.write_text("above\n<!-- variance -->\nold\n<!-- end of variance -->\nbelow\n")
    assert variance.main(["--data", str(tmp_path), "--draws", "2", "--write", str(page)]) == 0
    text = page.read_text()
    assert text.startswith("above\n<!-- variance -->\n`python ") and text.endswith("<!-- end of variance -->\nbelow\n")
    assert "2 sets: one, two." in text and "old" not in text
    apart = [
        100.0 * float((both[:, 1] - both[:, 0]).mean())
        for both in (
            variance.draws(*variance.two_classes(tmp_path / f"{name}.npz"), "30 rows", "linear", 2, 0)
            for name in ("one", "two")
        )
    ]
    mean, error = np.mean(apart), np.std(apart, ddof=1) / np.sqrt(2.0)
    assert f"| {mean:+.2f} +- {error:.2f} | " in text.splitlines()[-3]
    assert text.splitlines()[-3] in capsys.readouterr().out


@pytest.mark.parametrize("regime", ["50 rows", "50 rows, 20 % flipped", "220 rows, classes 10:1"])
def test_a_study_of_the_variance_flips_labels_of_training_rows_alone(regime, monkeypatch):
    """Both machines train on the same rows and labels; the other rows keep their own."""
    variance = importlib.import_module("variance")
    m, flipped, ratio = variance.REGIMES[regime]
    y = np.tile([-1.0, 1.0], 400)
    X = np.column_stack([y, np.arange(800.0)])  # a row tells its label and its name
    given, scored = [], []
    monkeypatch.setattr(variance, "tuned", lambda *told: given.append(told))
    monkeypatch.setattr(variance, "score", lambda _, *told, balanced: scored.append((*told, balanced)) or 0.5)
    variance.draws(X, y, regime, "linear", 6, 0)
    assert [name for name, *_ in given] == ["svm", "ldm"] * 6 and len(scored) == 12
    wrong = []
    for (_, rows, labels, *_), (_, same, likewise, *_), tested in zip(given[::2], given[1::2], scored[::2]):
        assert (rows == same).all() and (labels == likewise).all() and len(rows) == m
        np.testing.assert_allclose([rows.mean(axis=0), rows.std(axis=0)], [[0.0, 0.0], [1.0, 1.0]], atol=1e-12)
        wrong.append(float((labels != np.sign(rows[:, 0])).mean()))
        assert ratio is None or (labels > 0).sum() * ratio == (labels < 0).sum()
        fresh, own, balanced = tested
        assert (own == np.sign(fresh[:, 0])).all() and balanced is (ratio is not None)
        assert len(fresh) == 800 - m and not np.isin(fresh[:, 1], rows[:, 1]).any()
    assert abs(np.mean(wrong) - flipped) <= 0.25 * flipped


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_study_of_the_variance_offers_ldm_every_point_of_svm(kernel, monkeypatch):
    """Its grid has seven times as many: without the variance, and six weights relative to C m."""
    variance = importlib.import_module("variance")
    X, y = mdlearn.datasets.two_gaussians(30, random_state=0)
    found = {}

    def select(name, X, y, points, **settings):
        found[name] = points, settings
        return types.SimpleNamespace(model=None)

    monkeypatch.setattr(mdlearn, "select", select)
    for name in ("svm", "ldm"):
        variance.tuned(name, X, y, kernel, 10)
    (svm, settings), (ldm, likewise) = found["svm"], found["ldm"]
    assert settings == likewise and settings["class_weight"] == "balanced" and settings["scoring"] == "f1_macro"
    assert len(ldm) == 7 * len(svm)
    assert [point for point in svm if {**point, "lambda1": 0.0, "lambda2": 0.0} not in ldm] == []
    shares = {point["lambda1"] / (point["C"] * 30) for point in ldm}
    assert shares == {0.0, 2.0**-10, 2.0**-8, 2.0**-6, 2.0**-4, 2.0**-2, 1.0}


def test_a_study_of_the_variance_has_balanced_accuracy():
    variance = importlib.import_module("variance")
    always = types.SimpleNamespace(predict=lambda X: np.full(len(X), -1.0))
    X, y = np.zeros((10, 1)), np.array([-1.0] * 9 + [1.0])
    assert [variance.score(always, X, y, balanced=one) for one in (True, False)] == [0.5, 0.9]
