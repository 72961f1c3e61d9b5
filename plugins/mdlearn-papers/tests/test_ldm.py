"""Tables 2 and 3 of the LDM paper: columns, grids, splits, what the records and reports say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from mdlearn_papers.ldm import protocol, small, small_report, small_study
from mdlearn_papers.printed import table
from mdlearn_papers.readers import RealSet
from mdlearn_papers.sources import Sets
from mdlearn_papers.studies import Record, Settings, Unit
from paper_cases import main

import mdlearn

QUICK = Settings(quick=True)


@pytest.fixture
def folder(tmp_path):
    """A folder with a made parkinsons: the rows and classes of the real one, one column that tells them apart."""
    rng = np.random.default_rng(1)
    y = np.repeat([-1, 1], [48, 147])
    X = rng.normal(size=(195, 22))
    X[:, 0] += y
    np.savez(tmp_path / "parkinsons.npz", X=X, y=y)
    return tmp_path


def records_of(folder):
    """Lines of the records below a folder, without the head and the time that they took."""
    (path,) = folder.rglob("records.jsonl")
    _, *lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        for record in line["records"]:
            del record["seconds"]
    return sorted(lines, key=lambda line: sorted(line["unit"].items(), key=str))


def test_the_lines_are_the_printed_ones_in_their_order():
    printed = list(dict.fromkeys(row["dataset"] for row in table("ldm_table2_linear")))
    assert [line.label for line in small.lines()] == printed
    assert list(dict.fromkeys(row["dataset"] for row in table("ldm_table3_rbf"))) == printed


def test_a_line_without_a_remark_has_the_papers_rows_and_columns():
    folder = os.environ.get("MDLEARN_SHARED")
    if not folder:
        pytest.skip("MDLEARN_SHARED, the folder with the real data sets, is not set")
    sets = Sets(str(Path(folder) / "data"))
    checked = []
    for label in small.present(sets, tuple(small.SMALL)):
        one = small.SMALL[label]
        X, y = one.read(sets)
        assert X.shape[0] == y.shape[0] == one.rows, label
        assert np.unique(y).shape[0] == 2, label
        if "columns" not in one.note:
            assert X.shape[1] == one.columns, label
            checked.append(label)
        assert not np.isnan(X).any()
        for coding in one.other:
            assert one.read(sets, coding)[0].shape[0] == one.rows
    if len(small.present(sets, tuple(small.SMALL))) == 19:
        assert {"haberman", "german", "australian", "vote", "sonar"} <= set(checked)


def test_nominal_columns_by_code_and_by_value():
    hot = np.array([[1.0, 0, 0, 5], [0, 1, 0, 6], [1, 0, 0, 7]])
    both = RealSet(hot, np.array([1, -1, 1]), codes=np.array([[0, 5], [1, 6], [0, 7]]))
    assert small.codes(both, "promoters").tolist() == [[0, 5], [1, 6], [0, 7]]
    assert small.one_hot(both, "promoters").tolist() == [[1, 0, 5], [0, 1, 6], [1, 0, 7]]
    assert small.spread_out(both, "promoters", (3,))[:, 3:].tolist() == np.eye(3).tolist()
    with pytest.raises(ValueError, match="no integer codes"):
        small.codes(RealSet(hot, both.y), "promoters")
    with pytest.raises(ValueError, match="integer codes alone"):
        small.one_hot(RealSet(np.zeros((3, 57)), both.y), "promoters")


def test_grids_are_the_papers():
    assert len(protocol.grid("SVM", 50, "linear", False)) == 3
    points = protocol.grid("LDM", 50, "linear", False)
    assert len(points) == 3 * 7 * 7
    assert points == protocol.grid("LDM", 50, "rbf", False)
    assert len(protocol.with_kernel(points, protocol.gammas(np.eye(4), False))) == 735
    assert {one["lambda1"] for one in points} == {2.0**k for k in range(-8, -1)} == {one["lambda2"] for one in points}
    assert {one["C"] for one in points} == {10, 50, 100}


def test_the_scale_aware_grid_has_the_objectives_own_weights():
    X, y = mdlearn.datasets.two_gaussians(60, random_state=0)
    points = mdlearn.select("ldm", X, y, cv=2, tol=0.1).points
    own = {(one["lambda1"] / 600, one["lambda2"]) for one in points if one["C"] == 10}
    ours = protocol.grid(protocol.SCALED, 60, "linear", False)
    assert {(one["lambda1"] / 600, one["lambda2"]) for one in ours if one["C"] == 10} == own
    fewer = protocol.grid(protocol.SCALED, 60, "rbf", False)
    assert all(point in ours for point in fewer) and 1 < len(fewer) < len(ours)


def test_widths_are_in_units_of_the_average_distance():
    X = np.array([[0.0, 0], [3, 4], [0, 8]])
    unit = (5 + 8 + 5) / 3
    expected = [np.exp(-(2.0**2) / (2 * (2.0**k * unit) ** 2)) for k in (-2, -1, 0, 1, 2)]  # of two rows at distance 2
    assert np.allclose([np.exp(-gamma * 4) for gamma in protocol.gammas(X, False)], expected, rtol=1e-12)


def test_halves_are_scaled_and_the_same_rows_for_every_coding(folder):
    sets = Sets(str(folder))
    parts, again = (small.halves(sets, "parkinsons", 0, 3) for _ in range(2))
    assert parts.X.shape[0] == 97 and parts.X_test.shape[0] == 98
    both = np.vstack([parts.X, parts.X_test])
    assert (both.min(axis=0) == 0).all() and (both.max(axis=0) == 1).all()
    assert (parts.X == again.X).all()
    assert not (parts.X == small.halves(sets, "parkinsons", 0, 4).X).all()
    first, second = (small.halves(sets, "parkinsons", seed, 3) for seed in (1, 2))
    assert not (first.X == second.X).all()


def test_an_svm_is_the_ldm_without_weights(folder):
    """flips counts what two fits say, one of which is the SVM."""
    sets = Sets(str(folder))
    unit = Unit(0, "parkinsons", protocol.LDM)
    record, ends = small_study.run("linear", unit, sets, QUICK)
    assert record.method == "LDM" and record.values["accuracy"] > 0.6
    assert set(record.chosen) == {"C", "lambda1", "lambda2"}
    assert ends.method == protocol.ENDS and len(ends.values["flips"]) == 3 and ends.values["tested"] == 98
    assert ends.converged == ends.fits == 6
    parts = small.halves(sets, "parkinsons", 0, 0)
    flipped = [
        (
            mdlearn.fit("svm", parts.X, parts.y, C=C, bias="none", tol=1e-10).predict(parts.X_test)
            != mdlearn.fit("ldm", parts.X, parts.y, C=C, lambda1=0.25, lambda2=0.25, bias="none", tol=1e-10).predict(
                parts.X_test
            )
        ).sum()
        for C in (10.0, 50.0, 100.0)
    ]
    assert np.abs(np.subtract(ends.values["flips"], flipped)).max() <= 1


def test_readings_have_a_record_each(folder):
    sets = Sets(str(folder))
    for kernel in ("linear", "rbf"):
        found = small_study.run(kernel, Unit(0, "parkinsons", protocol.READINGS), sets, QUICK)
        assert tuple(one.method for one in found) == small_study.READINGS[kernel]
        assert all(one.converged == one.fits for one in found)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_the_report_has_every_printed_line(kernel, folder):
    records = [
        Record("parkinsons", method, repeat, {"accuracy": 0.8 + 0.01 * repeat + 0.05 * (method == protocol.SCALED)})
        for method in ("SVM", "LDM", protocol.SCALED, small_study.WITH_BIAS)
        for repeat in range(3)
    ]
    records += [Record("parkinsons", protocol.ENDS, r, {"flips": [1, 0, 2], "tested": 98}) for r in range(3)]
    written = small_report.report(kernel, "A title", records, Sets(str(folder)), Settings())
    tables = [block for block in written.blocks if hasattr(block, "rows")]
    assert [row[0].removesuffix(" *") for row in tables[0].rows] == list(small.SMALL)
    text = " ".join(block for block in written.blocks if isinstance(block, str))
    assert "9 of 882 predictions change" in text
    assert "exactly in 3 of 3 splits; it is better / not different / worse on 0/1/0 of 1 sets" in text
    assert "exactly in 0 of 3 splits; it is better / not different / worse on 1/0/0 of 1 sets" in text
    (readings,) = [table for table in tables if table.header[1] == "printed SVM"]
    assert readings.rows[0][0] == "parkinsons" and "0.810" in readings.rows[0][3]


def test_surveys_of_other_readings(folder):
    rng = np.random.default_rng(2)  # a made haberman, whose second column is the year
    y = np.repeat([-1, 1], [81, 225])
    X = np.column_stack([rng.normal(size=306) + y, rng.integers(58, 70, 306), rng.normal(size=306)])
    np.savez(folder / "haberman.npz", X=X, y=y)
    sets, coding = Sets(str(folder)), "3 columns, the year as a number"
    told = {unit.part for unit in small_study.units("linear", sets, Settings()) if unit.data == "haberman"}
    assert "LDM, scale-aware grid, every point" in told
    assert f"LDM, {coding}, scale-aware grid, regularised bias, every point" in told
    parts = small.halves(sets, "haberman", 0, 1, coding)
    assert parts.X.shape == (153, 3)
    (record,) = small_study.run("rbf", Unit(1, "haberman", f"SVM, {coding}, every point"), sets, Settings())
    points = small_study.asked("rbf", protocol.SVM, parts, Settings())
    assert record.fits == len(points) == 15
    model = mdlearn.fit("svm", parts.X, parts.y, kernel="rbf", bias="none", **points[4])
    assert record.values["tested"][4] == pytest.approx(model.score(parts.X_test, parts.y_test))
    assert record.method == f"SVM, {coding}, every point"
    signed = small_study.in_signed_range(parts)
    assert signed.X.min() == -1.0
    assert signed.X.max() == 1.0


def test_what_may_explain_figures_that_are_away(folder):
    """Printed for parkinsons, RBF: SVM .929 ± .029, MAMC .852 ± .036, LDM .927 ± .029, each of 30 splits."""

    def spread(method, mean, data="parkinsons"):
        return [Record(data, method, i, {"accuracy": mean + 0.01 * (i - 1)}) for i in range(3)]

    tested = [[0.5, 0.7, 0.9], [0.6, 0.7, 0.8]]
    surveys = [
        Record("parkinsons", "MAMC, every point", i, {"tested": one, "validated": one, "own": 0})
        for i, one in enumerate(tested)
    ]
    records = [
        *spread("SVM", 0.8),
        *spread(small_study.WITH_BIAS, 0.93),
        *spread(small_study.NARROW, 0.7),
        *spread("LDM", 0.93),
        *spread(protocol.SCALED, 0.93),
        *spread("MAMC", 0.9),
        *surveys,
        Record("parkinsons", "MAMC, a reading, every point", 0, {"tested": [0.87, 0.88]}),
        Record("parkinsons", "MAMC, a reading, every point", 1, {"tested": [0.88, 0.89]}),
        *spread("SVM", 0.1, data="promoters"),  # not the paper's columns: nothing to explain
    ]
    written = small_report.report("rbf", "A title", records, Sets(str(folder)), Settings())
    (table,) = [block for block in written.blocks if getattr(block, "header", [""])[-1] == "what may explain it"]
    assert [row[:2] for row in table.rows] == [["parkinsons", "SVM"], ["parkinsons", "MAMC"]]
    assert table.rows[0][4] == "readings: regularised bias 0.930 (+0.1)"
    # printed: 0.852; the nearest point of the reading has 0.875 with a standard error of hypot(.005, .036 / sqrt(30))
    ranges = "range 0.550 to 0.850 over 3 points (nearest -0.0); a reading: range 0.875 to 0.885 over 2 points"
    assert table.rows[1][4] == f"{ranges} (nearest {0.023 / np.hypot(0.005, 0.036 / np.sqrt(30)):+.1f})"


def test_experiments_beside_the_tables(folder):
    sets = Sets(str(folder))
    (early,) = small_study.run("linear", Unit(0, "parkinsons", small_study.ONE_PASS), sets, QUICK)
    assert early.method == small_study.ONE_PASS and early.converged < early.fits and early.values["accuracy"] > 0.5
    (every,) = small_study.run("rbf", Unit(0, "parkinsons", "SVM, every point"), sets, QUICK)
    assert len(every.values["tested"]) == 6 and every.converged == every.fits == 6 * 6


def test_a_killed_run_goes_on_with_the_same_records(folder, tmp_path):
    def reproduce(output):
        return main(["reproduce", "ldm-table2", "--quick", "--data", str(folder), "--output", str(tmp_path / output)])

    assert reproduce("whole") == 0
    whole = records_of(tmp_path / "whole")
    assert len(whole) >= 8 and all(record["values"] for line in whole for record in line["records"])
    (path,) = (tmp_path / "whole").rglob("records.jsonl")
    cut = tmp_path / "cut" / path.relative_to(tmp_path / "whole")
    cut.parent.mkdir(parents=True)
    text = path.read_text(encoding="utf-8")
    cut.write_text(text[: int(0.6 * len(text))], encoding="utf-8")
    assert reproduce("cut") == 0
    assert records_of(tmp_path / "cut") == whole
