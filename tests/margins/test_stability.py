"""Stability of the L3-SVM: formulas by hand, counterexamples to the printed ones, fits within the corrected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from l3 import problem

import mdlearn
from mdlearn.margins import stability, stability_bound


def test_formulas_by_hand():
    """C = 2, L = 3, |mu| <= 2, m = 50: kappa^2 = 13."""
    assert stability(2.0, 3, 2.0, 50) == pytest.approx(2 * 2 * 13 / 50)
    assert stability(2.0, 3, 2.0, 50, change="removed") == pytest.approx(2 * 13 / 50)
    assert stability(2.0, 3, 2.0, 50, change="removed", bias="none") == pytest.approx(2 * 12 / 50)
    assert stability(2.0, 3, 2.0, 50, printed=True) == pytest.approx(2 * 3 * 4 / 50)
    assert stability(2.0, 3, 0.5, 50, printed=True) == pytest.approx(2 * 3 / 50)
    root = math.sqrt(math.log(20) / 100)
    corrected = 0.25 + 2 * 2 * 13 / 50 + (4 * 2 * 13 + 1 + math.sqrt(4) * math.sqrt(13)) * root
    assert stability_bound(0.25, 2.0, 3, 2.0, 50, 0.05) == pytest.approx(corrected)
    printed = 0.25 + 2 * 3 * 4 / 50 + (2 * 2 * 3 * 4 / 50 + 1 + 2 * 2 * math.sqrt(3) * 2) * root
    assert stability_bound(0.25, 2.0, 3, 2.0, 50, 0.05, printed=True) == pytest.approx(printed)


def test_the_printed_stability_is_no_bound():
    """One row, mu = 1, no bias, C = 1/2: f = 1/2, and 0 without the row; min 1/2 t^2 + 1/2 (1 - t)_+ has t = 1/2."""
    # A second row of another label whose features are zero stands still; its count makes C / m = 1/2.
    X, y = np.array([[1.0], [0.0]]), np.array([1, -1])
    model = mdlearn.fit("l3svm", X, y, C=1.0, bias="none", n_clusters=1, landmarks=[[1.0]], tol=1e-12)
    assert model.decision_function([[1.0]])[0] == pytest.approx(0.5, abs=1e-9)
    change = 0.5
    assert stability(0.5, 1, 1.0, 1, change="removed", bias="none", printed=True) == 0.25 < change
    assert stability(0.5, 1, 1.0, 1, change="removed", bias="none") == change


@pytest.mark.parametrize("C", [0.3, 5.0])
def test_removing_a_row_changes_no_more_than_is_said(C):
    """The theorem compares F on m rows with F where one loss is left out but still divided by m."""
    X, y, centers, landmarks = problem(m=25)
    given = {"centers": centers, "landmarks": landmarks, "projection": "rbf", "sigma": 2.0, "tol": 1e-11}
    whole = mdlearn.fit("l3svm", X, y, C=C, **given).decision_function(X)
    limit = stability(C, 5, 1.0, 25, change="removed")
    worst = 0.0
    for i in range(25):
        keep = np.arange(25) != i
        part = mdlearn.fit("l3svm", X[keep], y[keep], C=C * 24 / 25, **given).decision_function(X)
        worst = max(worst, float(np.abs(whole - part).max()))
    assert 0.01 * limit < worst <= limit * (1 + 1e-6)


def test_the_loss_at_the_optimum_is_below_its_bound():
    """1 + sqrt(2 C) kappa bounds every loss; 1 + 2 C sqrt(L) M of the paper is smaller where C < 1/2."""
    C, kappa = 0.05, math.sqrt(2.0)
    assert 1 + 2 * C < 1 + math.sqrt(2 * C) * kappa
    X, y, centers, landmarks = problem(m=40)
    for C in (0.1, 10.0, 1000.0):
        model = mdlearn.fit("l3svm", X, y, C=C, centers=centers, landmarks=landmarks, projection="rbf", sigma=2.0)
        loss = np.maximum(0, 1 - model.margins(X, y))
        assert loss.max() <= 1 + math.sqrt(2 * C * (5 + 1)) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": -1.0}, "C=-1.0 is too small"),
        ({"n_landmarks": 0}, "n_landmarks=0 is too small"),
        ({"m": 0.5}, "m=0.5 is too small"),
        ({"largest": math.nan}, "largest contains NaN"),
        ({"risk": -0.1}, "risk=-0.1 is negative"),
        ({"delta": 1.0}, "delta=1.0 is not a probability"),
    ],
)
def test_arguments_out_of_range(change, message):
    given = {"risk": 0.1, "C": 1.0, "n_landmarks": 2, "largest": 1.0, "m": 10, "delta": 0.1, **change}
    with pytest.raises(ValueError, match=message):
        stability_bound(**given)
    with pytest.raises(ValueError, match="change needs to be one of replaced, removed"):
        stability(1.0, 2, 1.0, 10, change="added")
    with pytest.raises(ValueError, match=r"; did you mean 'removed'[?]$"):
        stability(1.0, 2, 1.0, 10, change="remove")
