"""Table 4 and the figures of the LDM paper: sets, splits, what the records and reports say."""

from __future__ import annotations

import numpy as np
import pytest
from mdlearn_papers.documents import Picture, write
from mdlearn_papers.ldm import EXPERIMENTS, large, large_report, pictures, protocol
from mdlearn_papers.printed import table
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Record, Settings, Unit
from scipy.sparse import random as random_rows

from mdlearn import fit

QUICK = Settings(quick=True)


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """A made a9a, 4 of 123 columns in use in most rows, and a made parkinsons."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    n, train = 48842, 32561
    X = random_rows(n, 123, density=0.03, format="csr", random_state=0, data_rvs=np.ones)
    f = X @ rng.normal(size=123) + 0.3 * rng.normal(size=n)
    y = np.where(np.argsort(np.argsort(f)) < 37155, -1, 1)
    parts = {}
    for name, rows in (("train", slice(0, train)), ("test", slice(train, n))):
        part = X[rows]
        parts |= {f"{name}_{key}": getattr(part, key) for key in ("data", "indices", "indptr")}
        parts |= {f"{name}_shape": part.shape, f"y_{name}": y[rows]}
    np.savez(folder / "a9a.npz", **parts)
    y = np.repeat([-1, 1], [48, 147])
    X = rng.normal(size=(195, 22))
    X[:, 0] += y
    np.savez(folder / "parkinsons.npz", X=X, y=y)
    return Sets(str(folder))


def test_the_lines_are_the_printed_ones_in_their_order():
    printed = list(dict.fromkeys(row["dataset"] for row in table("ldm_table4_large")))
    assert [line.label for line in large.lines()] == printed


def test_adult_is_the_training_part(sets):
    parts = large.halves(sets, "adult-a", 0, 0)
    assert parts.X.shape == (16280, 123) and parts.X_test.shape == (16281, 123)
    again = large.halves(sets, "adult-a", 0, 0, scaled=True)  # the columns are 0 and 1
    assert (parts.X.toarray() == again.X).all()


def test_large_weights_span_the_papers():
    points = large.weights(False)
    assert {one["lambda1"] for one in points} == {2.0**-8, 2.0**-5, 2.0**-2} and len(points) == 27
    assert {one["C"] for one in points} == {10, 50, 100}
    assert large.ASGD["solver_options"] == {"epochs": 5}


def test_excess_is_that_of_asgd_over_the_optimum(sets):
    parts = large.halves(sets, "adult-a", 0, 0)
    chosen = {"C": 10.0, "lambda1": 0.25, "lambda2": 0.25}
    record = large.exact(Unit(0, "adult-a", "LDM"), parts, Record("adult-a", "LDM", 0, chosen=chosen), QUICK)
    assert record.converged == record.fits == 1
    w = fit("ldm", parts.X, parts.y, bias="none", random_state=0, **chosen, **large.ASGD).coef_
    z = parts.y * (parts.X @ w.ravel())
    objective = 0.5 * w.ravel() @ w.ravel() + 0.5 * z.var() - 0.25 * z.mean() + 10 * np.maximum(0, 1 - z).sum()
    best = fit("ldm", parts.X, parts.y, bias="none", **chosen).certificate
    assert record.values["excess"] == pytest.approx(objective / best.lower_bound - 1, rel=1e-6, abs=1e-9)


def test_table4_from_its_records(sets):
    records = [
        one
        for part in ("SVM", "LDM")
        for repeat in range(2)
        for one in large.run_table(Unit(repeat, "adult-a", part), sets, QUICK)
    ]
    assert {one.method for one in records} == {"SVM", "LDM", large.EXACT}
    assert all(one.values["accuracy"] > 0.8 for one in records)
    report = large_report.table4("A title", records, sets, QUICK)
    tables = [block for block in report.blocks if hasattr(block, "rows")]
    assert [row[0].removesuffix(" *") for row in tables[0].rows] == large.ORDER
    assert tables[0].rows[large.ORDER.index("adult-a")][1].startswith("0.")


def test_times_of_every_method(sets, tmp_path):
    records = [one for part in large.time_parts() for one in large.run_times(Unit(0, "adult-a", part), sets, QUICK)]
    for one in records:
        assert len(one.values["seconds"]) == 3 and min(one.values["excess"]) > -1e-6
        assert max(one.values["excess"]) < (1e-5 if "exact" in one.method else 1.0)
    report = large_report.figure2("A title", records, sets, QUICK)
    assert (tmp_path / "ldm-fig2.png") in write(report, tmp_path, "ldm-fig2")


def test_margins_are_those_of_the_training_half(sets, tmp_path):
    (unit,) = pictures.margin_units(sets, QUICK)
    records = pictures.run_margins(unit, sets, QUICK)
    assert [one.method for one in records] == list(pictures.CURVES)
    parts = pictures.halves(sets, "parkinsons", 0, 0)
    gamma = protocol.gammas(parts.X, False)[1]
    svm = fit("svm", parts.X, parts.y, C=10.0, kernel="rbf", gamma=gamma, bias="none", tol=1e-10)
    alpha = svm.decision_function(parts.X) * parts.y
    ratio = np.asarray(records[0].values["margins"]) / np.sort(alpha)
    assert np.allclose(ratio, ratio[0], rtol=1e-3)  # divided by one length of w
    report = pictures.figure1("A title", records, sets, QUICK)
    assert "of 1 sets" in report.blocks[0]
    assert (tmp_path / "ldm-fig1.png") in write(report, tmp_path, "ldm-fig1")


def test_accuracy_along_a_parameter(sets, tmp_path):
    records = [one for unit in pictures.axis_units(sets, QUICK) for one in pictures.run_axis(unit, sets, QUICK)]
    parts = pictures.halves(sets, "parkinsons", 0, 0)
    (record,) = [one for one in records if one.method == "lambda1" and one.repeat == 0]
    weight = pictures.ALONG_WEIGHTS[-1]
    model = fit("ldm", parts.X, parts.y, C=50.0, lambda1=weight, lambda2=2.0**-5, bias="none")
    assert record.values["along"][-1] == pytest.approx((model.predict(parts.X_test) == parts.y_test).mean())
    report = pictures.figure3("A title", records, sets, QUICK)
    assert len(next(block for block in report.blocks if hasattr(block, "rows")).rows) == 3
    assert (tmp_path / "ldm-fig3.png") in write(report, tmp_path, "ldm-fig3")


def test_flat_means_the_papers_values_alone():
    line = np.zeros(len(pictures.ALONG_WEIGHTS))
    line[-1], line[0] = 0.5, 0.02
    assert pictures._flat({("a", "lambda1"): line, ("a", "C"): np.array([0.0, 0.4])}) == 0.02
    assert pictures._flat({("a", "lambda1"): line, ("a", "C"): np.array([0.0, 0.4])}, ("C",)) == 0.4


def test_every_picture_has_a_name_of_its_own(sets):
    names = [one.name for one in EXPERIMENTS]
    assert names == ["ldm-table2", "ldm-table3", "ldm-table4", "ldm-fig1", "ldm-fig2", "ldm-fig3"]
    assert len({one.study.name for one in EXPERIMENTS}) == len(names)
    assert isinstance(pictures.figure1("A title", [], sets, QUICK).blocks[1], Picture)
