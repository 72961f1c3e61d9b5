"""Tables and figures of the ULDM paper: protocol, units, reports, and runs that are resumed."""

from __future__ import annotations

import json

import numpy as np
import pytest
from mdlearn_papers import printed
from mdlearn_papers.catalogue import SOURCES
from mdlearn_papers.printed import Figures
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import stratified_folds
from mdlearn_papers.studies import Record, Settings, Unit
from mdlearn_papers.uldm import benchmark, iris, machines, multiclass, multiclass_tables, tables, versus
from paper_cases import main

import mdlearn


def made(name, rng, train=0, splits=0):
    """Rows and labels of the shape that the catalogue asks for; classes differ in their means."""
    source = SOURCES[name]
    y = rng.permutation(np.repeat(np.arange(len(source.counts)), source.counts))
    X = rng.standard_normal((source.rows, source.columns)) + 1.2 * y[:, None] * (np.arange(source.columns) < 3)
    if train:
        order = np.arange(source.rows)
        parts = {"train": order[:train], "test": order[train:]}
        return {f"{key}_{part}": value[rows] for part, rows in parts.items() for key, value in (("X", X), ("y", y))}
    pairs = [np.split(rng.permutation(source.rows), [140]) for _ in range(splits)]
    given = {"train_idx": [a for a, _ in pairs], "test_idx": [b for _, b in pairs]} if splits else {}
    return {"X": X, "y": np.where(y == 1, 1, -1), **given}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    np.savez(where / "ida_thyroid.npz", **made("ida_thyroid", rng))
    np.savez(where / "sonar.npz", **made("sonar", rng))
    np.savez(where / "ann_thyroid.npz", **made("ann_thyroid", rng, train=3772))
    return where


def reproduced(name, folder, output):
    assert main(["reproduce", name, "--data", str(folder), "--quick", "--output", str(output)]) == 0
    return next(output.glob(f"*/{name}.md")).read_text()


@pytest.fixture(scope="module")
def output(folder, tmp_path_factory):
    where = tmp_path_factory.mktemp("reports")
    for name in ("uldm-table1", "uldm-table4", "uldm-table7", "uldm-fig1"):
        reproduced(name, folder, where)
    return where


def without_seconds(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[1:]:
        for record in line["records"]:
            del record["seconds"]
    return lines[:1] + sorted(lines[1:], key=lambda line: sorted(line["unit"].items(), key=str))


def test_table_1_names_every_set_and_figure(output, folder):
    report = reproduced("uldm-table1", folder, output)
    for row in printed.table("uldm_table1_rbf"):
        line = next(one for one in report.splitlines() if one.startswith(f"| {row['dataset']} "))
        assert f"{row['accuracy_mean']} ± {row['accuracy_std']}" in line
    assert "0/13/0" in report
    assert "1/11/1" in report
    assert "Thyroid 2/100" in report
    assert "| Waveform | ida_waveform | missing" in report


def test_table_2_is_of_the_same_run(output, folder):
    before = (output / "uldm-benchmark-quick" / "records.jsonl").read_bytes()
    report = reproduced("uldm-table2", folder, output)
    assert (output / "uldm-benchmark-quick" / "records.jsonl").read_bytes() == before
    for row in printed.table("uldm_table2_seconds"):
        label = tables.ABBREVIATED.get(row["dataset"], row["dataset"])
        line = next(one for one in report.splitlines() if one.startswith(f"| {label} "))
        assert f" {row['seconds']} " in line
    assert "4347 s" in report


@pytest.mark.parametrize("name, file", [("uldm-table3", "parameters"), ("uldm-table5", "seconds")])
def test_multi_class_tables_name_what_is_printed(name, file, output, folder):
    report = reproduced(name, folder, output)
    rows = printed.table("uldm_table3_parameters" if file == "parameters" else "uldm_table5_seconds")
    if file == "parameters":
        for (label, machine), (C, gamma) in multiclass.printed_parameters().items():
            assert any(one.startswith(f"| {label} | {machine} ") and f"{C:g}, {gamma:g}" in one for one in told(report))
        assert len(multiclass.printed_parameters()) == 3 * len(rows)
    else:
        for row in rows:
            start = f"| {row['dataset']} | {row['method']} "
            assert any(one.startswith(start) and row["seconds"] in one for one in told(report))


def told(report):
    return report.splitlines()


def test_table_4(output):
    report = (output / "uldm-multiclass-quick" / "uldm-table4.md").read_text()
    for row in printed.table("uldm_table4_multiclass"):
        start = f"| {row['dataset']} | {row['method']} "
        assert any(one.startswith(start) and row["accuracy"] in one for one in told(report))


def test_table_7(output):
    linear, rbf = (output / "uldm-versus-quick" / "uldm-table7.md").read_text().split("## Kernel: rbf")
    for row in printed.table("uldm_table7_vs_ldm"):
        part = linear if row["kernel"] == "linear" else rbf
        line = next(one for one in told(part) if one.startswith(f"| {row['dataset']} "))
        assert f"{float(row['accuracy_mean']):.2f} ± {float(row['accuracy_std']):.2f}" in line


def test_a_run_that_was_killed_goes_on_with_the_same_records(folder, output, tmp_path):
    whole = output / "uldm-benchmark-quick" / "records.jsonl"
    begun = tmp_path / "uldm-benchmark-quick"
    begun.mkdir()
    lines = whole.read_text().splitlines(keepends=True)
    (begun / "records.jsonl").write_text("".join(lines[:7]) + lines[7][:30])
    reproduced("uldm-table1", folder, tmp_path)
    assert without_seconds(begun / "records.jsonl") == without_seconds(whole)


def test_kernel_widths_are_over_the_number_of_inputs():
    rng = np.random.default_rng(1)
    x, z = rng.standard_normal((2, 1, 7))
    for gamma, ours in zip(machines.GAMMAS, machines.widths(7, quick=False)):
        printed_value = np.exp(-gamma * float(np.square(x - z).sum()) / 7)
        assert np.exp(-ours * float(np.square(x - z).sum())) == pytest.approx(printed_value, rel=1e-13)


def test_grids_are_those_of_the_paper():
    grid = machines.grid(machines.MACHINES["ULDM"], "rbf", 2, quick=False)
    assert len(grid["gamma"]) == 11
    assert grid["C"] == mdlearn.objectives.uldm.ULDM().grid(1.0)["C"]
    assert machines.grid(machines.MACHINES["L1 SVM"], "linear", 2, quick=False).keys() == {"C"}
    assert sorted(multiclass.ORDER) == list(machines.GAMMAS)
    assert machines.options(machines.MACHINES["ULDM"], "rbf")["basis"] == "all"
    assert machines.options(machines.MACHINES["ULDM"], "linear")["basis"] == "all"
    assert "basis" not in machines.options(machines.MACHINES["L1 SVM"], "linear")


def test_folds_deal_out_every_class():
    rng = np.random.default_rng(3)
    y = np.repeat([1, -1, 2], [23, 8, 12])
    folds = stratified_folds(y, 5, rng)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(43))
    for train, test in folds:
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(43))
        for label in (1, -1, 2):
            assert abs((y[test] == label).sum() - (y == label).sum() / 5) < 1
    other = stratified_folds(y, 5, rng)
    assert any(not np.array_equal(a[1], b[1]) for a, b in zip(folds, other))


def test_units_go_repeat_by_repeat_and_machines_share_a_split(folder):
    sets, settings = Sets(str(folder)), Settings()
    units = sorted(benchmark.units(sets, settings))
    assert {unit.data for unit in units} == {"ida_thyroid"}
    assert [unit.repeat for unit in units] == sorted(unit.repeat for unit in units)
    assert units[-1].repeat == 99
    one, folds = benchmark.drawn(Unit(3, "ida_thyroid", "ULDM"), sets, settings)
    other, same = benchmark.drawn(Unit(3, "ida_thyroid", benchmark.SCALED), sets, settings)
    assert one.y.shape == (140,)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(folds[2][1], same[2][1])
    assert other.X.min() >= 0.0
    assert np.ptp(np.vstack([other.X, other.X_test]), axis=0) == pytest.approx(1.0)


def test_original_splits_are_used_where_they_are(tmp_path):
    held = made("ida_thyroid", np.random.default_rng(2), splits=3)
    np.savez(tmp_path / "ida_thyroid.npz", **held)
    sets = Sets(str(tmp_path))
    assert {unit.repeat for unit in benchmark.units(sets, Settings())} == {0, 1, 2}
    parts, _ = benchmark.drawn(Unit(2, "ida_thyroid", "ULDM"), sets, Settings())
    np.testing.assert_array_equal(parts.X_test, held["X"][held["test_idx"][2]])
    assert next(line for line in benchmark.lines(sets) if line.label == "Thyroid").note == ""


def test_printed_outcomes_follow_from_printed_figures(folder):
    comparison = tables.compared(Sets(str(folder)))
    outcomes = {m: [comparison.printed[label, m].versus for label in benchmark.NAMES] for m in ("LS SVM", "L1 SVM")}
    assert outcomes["LS SVM"] == ["tie"] * 13
    assert sorted(outcomes["L1 SVM"]) == ["better"] + ["tie"] * 11 + ["worse"]
    assert comparison.printed["Image", "ULDM"].n == 20
    assert tables.outcome(Figures(2.0, 0.1, 10), Figures(1.0, 0.1, 10)) == "better"
    assert tables.outcome(Figures(1.0, 0.1, 10), Figures(2.0, 0.1, 10)) == "worse"


def test_experiments_beside_table_1_are_of_common_splits(folder):
    def record(repeat, method, accuracy):
        return Record("ida_banana", method, repeat, {"accuracy": accuracy})

    records = [record(i, m, 0.5 + 0.1 * i + 0.01 * j) for i in (0, 1) for j, m in enumerate(("LS SVM", *tables.ASIDE))]
    table, first, second = tables.aside(tables.compared(Sets(str(folder))), [*records, record(2, "LS SVM", 0.0)])
    assert "55.00" in next(row for row in table.rows if row[0] == "Banana")[1]
    assert "+1.00 points" in first
    assert "Banana (+2.00)" in second


def test_the_best_width_is_that_of_the_folds():
    def record(repeat, cv, C):
        return Record("usps", "ULDM, cross-validated", repeat, {"cv": cv, "accuracy": 0.5}, {"C": C})

    found = [record(1, 0.9, 0.1), record(2, 0.95, 0.1), record(3, 0.95, 1e-4), record(4, 0.95, 1e-4)]
    assert multiclass_tables.best(found) is found[2]  # of widths 10 and 200
    assert multiclass_tables.best([]) is None


def test_halves_of_complete_rows(folder):
    sets = Sets(str(folder))
    parts, _ = versus.drawn(Unit(0, "sonar", "ULDM|rbf"), sets, Settings())
    assert parts.y.shape == (104,)
    assert parts.y_test.shape == (104,)
    units = versus.units(sets, Settings())
    every = [unit for unit in units if unit.part.endswith(", every point")]
    assert len(units) == 30 * 9 + 5 * 9 and len(every) == 5 * 9
    assert {unit.data for unit in units} == {"sonar"}


def test_every_point_of_a_machine_of_table_7(folder):
    """Surveys stand under the name of their machine in the part of their kernel, and explain what is far away."""
    sets = Sets(str(folder))
    (record,) = versus.run(Unit(0, "sonar", "L1 SVM, no bias|linear, every point"), sets, Settings(quick=True))
    assert record.method == "L1 SVM, no bias|linear, every point" and len(record.values["tested"]) == 3
    far = [Record("sonar", "L1 SVM, no bias|linear", i, {"accuracy": 0.5 + 0.01 * i}) for i in range(3)]
    written = versus.table7([record, *far], sets, Settings())
    (table,) = [block for block in written.blocks if getattr(block, "header", [""])[-1] == "what may explain it"]
    ((label, method, _, _, told),) = table.rows
    low, high = (100 * end(record.values["tested"]) for end in (min, max))
    assert (label, method) == ("Sonar", "L1 SVM, no bias") and told == f"range {low:.2f} to {high:.2f} over 3 points"


def test_iris_with_a_tiny_C_has_the_printed_accuracy():
    pytest.importorskip("sklearn")
    sets = Sets(None)
    for figure, (n_third, values, theirs) in iris.FIGURES.items():
        for inputs in iris.INPUTS:
            records = iris.run(Unit(0, "iris", f"{figure}, {inputs}"), sets, Settings())
            assert len(records) == 9
            parts = iris.prepared(sets, n_third, inputs)
            assert (parts.y == -1).sum() == n_third
            for record in records:
                f = parts.X_test @ np.array(record.values["coef"]) + record.values["intercept"][0]
                assert record.values["accuracy"] == np.mean(np.sign(f) == parts.y_test)
                if record.chosen["C"] == values[0]:
                    assert 100 * record.values["accuracy"] == theirs[0]


def test_pictures_are_drawn(output):
    pytest.importorskip("matplotlib")
    pytest.importorskip("sklearn")
    assert len(list(output.glob("uldm-iris-quick/uldm-fig1-*.png"))) == 2


def test_printed_parameters_that_are_not_those_of_the_printed_accuracy():
    theirs = {(row["dataset"], row["method"]): row["accuracy"] for row in printed.table("uldm_table4_multiclass")}

    def records(ours, own):
        fixed = Record("usps", "ULDM, printed parameters", 0, {"accuracy": ours})
        widths = [
            Record(
                "usps", "ULDM, cross-validated", 1 + i, {"accuracy": own - 0.1 * i, "cv": 0.9 - 0.1 * i}, {"C": 1e-8}
            )
            for i in range(2)
        ]
        return [fixed, *widths]

    (told,) = multiclass_tables.other_parameters(records(0.78, 0.955), theirs)
    assert told.startswith("USPS, ULDM: 78.00 % with the printed parameters, 95.50 % with")
    assert "(C = 1e-08, gamma = 5); the paper prints 95.42 %" in told
    assert multiclass_tables.other_parameters(records(0.954, 0.955), theirs) == []  # nothing to explain
    assert multiclass_tables.other_parameters(records(0.78, 0.80), theirs) == []  # not explained
