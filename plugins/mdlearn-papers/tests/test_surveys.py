"""Every point of a grid, on the folds and on the test part: against fits one by one, and what is told of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mdlearn_papers.printed import Figures
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Record
from mdlearn_papers.surveys import choices, reached, surveyed

import mdlearn

GRID = {"C": [0.01, 1.0, 100.0]}


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(5)
    y = np.where(np.arange(120) % 2 == 0, "b", "a")
    X = rng.standard_normal((120, 3)) + 0.7 * (y == "a")[:, None]
    return Parts(X[:60], y[:60], X[60:], y[60:])


def test_accuracies_are_those_of_fits_one_by_one(parts):
    folds = [(np.flatnonzero(np.arange(60) % 3 != k), np.flatnonzero(np.arange(60) % 3 == k)) for k in range(3)]
    record = surveyed("set", "SVM", 4, parts, "svm", GRID, cv=folds, bias="free")
    tested, validated = [], []
    for C in GRID["C"]:
        model = mdlearn.fit("svm", parts.X, parts.y, C=C, bias="free")
        tested.append(np.mean(model.predict(parts.X_test) == parts.y_test))
        held = []
        for train, test in folds:
            model = mdlearn.fit("svm", parts.X[train], parts.y[train], C=C, bias="free")
            held.append(np.mean(model.predict(parts.X[test]) == parts.y[test]))
        validated.append(np.mean(held))
    assert record.values["tested"] == pytest.approx(tested)
    assert record.values["validated"] == pytest.approx(validated)
    assert record.values["own"] == int(np.argmax(validated))
    assert (record.data, record.method, record.repeat) == ("set", "SVM, every point", 4)
    assert record.fits == record.converged == 12  # three points on three folds and on all rows
    assert 0 <= record.gap <= 1e-6


def test_a_grid_in_two_spaces(parts):
    scaled = Parts(3.0 * parts.X, parts.y, 3.0 * parts.X_test, parts.y_test)
    points = [{"C": C} for C in GRID["C"]]
    record = reached("set", "SVM, a reading", 1, [parts, scaled], "svm", points, bias="free")
    models = [(mdlearn.fit("svm", one.X, one.y, bias="free", **p), one) for one in (parts, scaled) for p in points]
    assert record.values["tested"] == pytest.approx([m.score(one.X_test, one.y_test) for m, one in models])
    decided = [m.decision_function(one.X_test) for m, one in models]
    right = parts.y_test == "b"  # the greater label is the positive one
    areas = [np.mean(d[right][:, None] > d[~right][None, :]) for d in decided]
    assert record.values["auc"] == pytest.approx(areas, abs=1e-3)
    assert record.method == "SVM, a reading, every point"
    assert record.fits == record.converged == 6


def survey(repeat, validated, tested):
    own = int(np.argmax(validated))
    return Record("set", "A, every point", repeat, {"validated": validated, "tested": tested, "own": own})


def test_columns_are_the_ways_of_choosing():
    records = [
        survey(0, [0.9, 0.8, 0.1], [0.50, 0.75, 0.25]),
        survey(1, [0.6, 0.9, 0.1], [0.75, 0.25, 0.50]),
        survey(2, [0.9, 0.5, 0.1], [0.75, 0.50, 0.25]),
        Record("set", "A", 0, {"accuracy": 0.5}),  # of the protocol: no survey
    ]
    table = choices(records, {("Set", "A"): Figures(50.0, 10.0, 25)}, {"set": "Set"}, 100.0)
    (row,) = table.rows
    assert row[:3] == ["Set", "A", "50 ± 10"]
    own, one, best, worst, each = row[3:]
    # own choices are points 0, 1, 0; of the means on the folds (.8, .73, .1) the first is largest; the means on the
    # test parts are 2/3, 1/2 and 1/3
    assert own.startswith("50.00 ± 25.00 (+0.0)")
    assert one == best
    error = math.sqrt((25 / math.sqrt(3)) ** 2 / 3 + 10**2 / 25)
    assert best == f"66.67 ± 14.43 ({(200 / 3 - 50) / error:+.1f})"
    assert worst.startswith("33.33 ± 14.43")
    assert each.startswith("75.00 ± 0.00")


def test_without_surveys_there_is_no_table():
    assert choices([Record("set", "A", 0, {"accuracy": 0.5})], {}, {"set": "Set"}) is None
