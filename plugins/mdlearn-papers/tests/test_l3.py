"""The L3-SVM paper again: protocol, grids, orders of time and reports."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mdlearn_papers.index import EXPERIMENTS
from mdlearn_papers.l3 import complexity, directions, machines, planar, preparing, small, tables
from mdlearn_papers.printed import table
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import generator
from mdlearn_papers.studies import Record, Settings, Unit
from paper_cases import made, records_of, reproduce, write_sets

import mdlearn
from mdlearn.extend import check_rows, choose, distinct

QUICK, FULL = Settings(quick=True), Settings()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """svmguide1 with its parts, and two of the small sets."""
    place = write_sets(tmp_path_factory.mktemp("sets"), "bupa", "sonar")
    X, y = made("svmguide1")
    X *= [1.0, 10.0, 100.0, 1000.0]
    np.savez(place / "svmguide1.npz", X_train=X[:3089], y_train=y[:3089], X_test=X[3089:], y_test=y[3089:])
    return place


def timeless(folder):
    """Records without what differs from run to run."""
    found = records_of(folder)
    for records in found.values():
        for one in records:
            one["values"] = {key: value for key, value in one["values"].items() if key not in ("train", "test")}
    return found


def test_columns_have_unit_deviation_over_the_training_rows(folder):
    X, _ = made("svmguide1")
    parts = preparing.prepared(Sets(str(folder)), "svmguide1")
    np.testing.assert_allclose(parts.X.std(axis=0), 1.0)
    np.testing.assert_allclose(parts.X, X[:3089] / X[:3089].std(axis=0))
    np.testing.assert_allclose(parts.X_test, X[3089:] / X[:3089].std(axis=0))


def test_sets_need_a_test_part(tmp_path):
    with pytest.raises(ValueError, match="svmguide1 needs a training and a test part"):
        preparing.prepared(Sets(str(write_sets(tmp_path, "svmguide1"))), "svmguide1")


def test_numbers_of_clusters_are_the_printed_ones():
    printed = {row["dataset"]: int(row["clusters (models)"]) for row in table("l3_table2_datasets")}
    assert {preparing.LABELS[name]: size.clusters for name, size in preparing.SIZES.items()} == printed
    name = machines.MACHINES["L3-SVMs"]
    assert machines.fixed_of(name, preparing.SIZES["usps"], 256) == {"n_clusters": 80, "n_landmarks": 256}


def test_a_linear_machine_with_the_weight_of_a_mean_is_the_l3svm_of_one_cluster():
    X, y = made("bupa")
    (params,) = ({**machines.for_rows(machines.MACHINES["Linear-SVM"], {"C": 50.0}, 345)},)
    one = mdlearn.fit("svm", X, y, **params)
    other = mdlearn.fit("l3svm", X, y, C=50.0, centers=np.zeros((1, 6)), landmarks=np.eye(6))
    np.testing.assert_allclose(one.decision_function(X), other.decision_function(X), atol=2e-2)
    assert one.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-5)


def test_points_of_grids():
    widths = {point["gamma"] for point in machines.points(machines.MACHINES["RBF-SVM"], 22)}
    assert widths == {0.1 / 22, 0.3 / 22, 1.0 / 22}
    points = machines.points(machines.MACHINES["CSVM"], 22)
    assert len(points) == 6 and {"C": 100.0, "lam": 10.0} in points
    assert machines.for_rows(machines.MACHINES["CSVM"], {"C": 100.0, "lam": 10.0}, 50) == {"C": 2.0, "lam": 10.0}
    assert machines.for_rows(machines.MACHINES["L3-SVMs"], {"C": 100.0}, 50) == {"C": 100.0}


def test_one_method_is_chosen_on_and_fitted_to_drawn_training_rows(folder):
    parts = preparing.prepared(Sets(str(folder)), "svmguide1")
    size = machines.Size(5, 100, 200, 200, 200, 3)
    record = machines.tried("L3-SVMs", "it", parts, size, 0, np.random.default_rng(3), 0)
    order = np.random.default_rng(3).permutation(3089)
    some, more = np.sort(order[:100]), np.sort(order[:200])
    fixed = {"n_clusters": 5, "n_landmarks": 4, "random_state": 0}
    found = mdlearn.select("l3svm", parts.X[some], parts.y[some], {"C": machines.WEIGHTS}, cv=5, **fixed)
    model = mdlearn.fit("l3svm", parts.X[more], parts.y[more], **found.best_params, **fixed)
    assert record.chosen == found.best_params
    assert record.values["accuracy"] == model.score(parts.X_test, parts.y_test)
    assert (record.values["rows"], record.values["chosen_on"], record.fits) == (200.0, 100.0, 6 * 5 + 1)


def test_multiclass_sets_have_no_binary_machine(monkeypatch):
    monkeypatch.setattr(tables, "available", lambda name: True)

    class All(Sets):
        def has(self, name):
            return True

    units = tables.units(All(None), FULL)
    for data, label in preparing.LABELS.items():
        printed = {row["method"] for row in table("l3_table3_4") if row["dataset"] == label and row["accuracy"]}
        missing = {"ML3"} if data == "mnist" else set()  # takes hours, as the report says
        assert printed - missing <= {unit.part for unit in units if unit.data == data}
        assert ("CSVM" in {unit.part for unit in units if unit.data == data}) == ("CSVM" in printed)


def test_standard_error_of_two_shares():
    # 90 and 92 per cent of 900 rows: 0.02 / sqrt(2 * 0.91 * 0.09 / 900)
    assert tables.errors_away(92.0, 90.0, 900) == pytest.approx(0.02 / math.sqrt(2 * 0.91 * 0.09 / 900))
    assert tables.errors_away(90.0, 92.0, 900) == -tables.errors_away(92.0, 90.0, 900)


def test_printed_figures_below_the_larger_class_are_told(tmp_path):
    def texts(constant):
        values = {"accuracy": 0.92, "train": 1.0, "test": 1.0, "rows": 49990.0, "constant": constant}
        report = tables.report_accuracy([Record("ijcnn1", "Linear-SVM", 0, values)], Sets(str(tmp_path)), FULL)
        return [block for block in report.blocks if isinstance(block, str)]

    assert any("IJCNN1 Linear-SVM (89.68 %, the larger class 90.50 %)" in text for text in texts(0.905))
    assert not any("constant answer" in text for text in texts(0.89))
    # 92 against 89.68 per cent of 91701 rows are 17 standard errors.
    assert any("0 lie within two standard errors" in text and "IJCNN1 Linear-SVM (+17" in text for text in texts(0.5))


def test_reports_have_all_printed_lines(folder, tmp_path):
    assert reproduce("l3-table3", tmp_path, "--data", folder) == 0
    assert reproduce("l3-table4", tmp_path, "--data", folder) == 0
    texts = {n: (tmp_path / "l3-sets-quick" / f"l3-table{n}.md").read_text(encoding="utf-8") for n in (3, 4)}
    for row in table("l3_table3_4"):
        for n, columns in ((3, ["accuracy"]), (4, ["train_seconds", "test_seconds"])):
            (line,) = [x for x in texts[n].splitlines() if x.startswith(f"| {row['dataset']} | {row['method']} |")]
            for column in columns:
                assert not row[column] or f"| {float(row[column]):.2f} |" in line
    if "csvm" not in mdlearn.list_objectives():
        assert texts[3].count("needs mdlearn-baselines") >= 3
    assert "missing from the folder" in texts[3]

    # A run that is cut off goes on to the same records.
    path = tmp_path / "l3-sets-quick" / "records.jsonl"
    before, lines = timeless(path.parent), path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(lines[:2]) + lines[2][:40], encoding="utf-8")
    assert reproduce("l3-table3", tmp_path, "--data", folder) == 0
    assert timeless(path.parent) == before and len(before) >= 5


def test_xor_needs_two_clusters(tmp_path):
    assert reproduce("l3-fig1", tmp_path) == 0
    records = [r for each in records_of(tmp_path / "l3-xor-quick").values() for r in each]
    right = {(r["method"], r["repeat"]): r["values"]["accuracy"] for r in records}
    for i in (0, 1):
        assert right["L3-SVM, K = 1", i] < 0.8 and right["L3-SVM, K = 4", i] > 0.98
    text = (tmp_path / "l3-xor-quick" / "l3-fig1.md").read_text(encoding="utf-8")
    assert all(f"| {method} |" in text for method in planar.methods("xor"))


def test_draws_of_a_figure_differ_and_come_again():
    one, again, other = (planar.drawn("xor", FULL, repeat) for repeat in (0, 0, 1))
    assert np.array_equal(one.X, again.X) and not np.array_equal(one.X, other.X)
    assert one.X.shape == (400, 2) and not np.array_equal(one.X, one.X_test[:400])
    np.testing.assert_allclose(one.X.std(axis=0), 1.0)


def test_landmarks_in_equal_ratios():
    values = small.numbers(276, small.COUNT)
    assert values[0] == 1 and values[-1] == 276 and values == sorted(set(values))
    ratios = np.diff(np.log(values[-5:]))
    assert ratios.max() < 1.1 * ratios.min()


def test_a_sweep_fits_what_its_name_says(folder, monkeypatch):
    seen = []
    fit = small.fit
    monkeypatch.setattr(small, "fit", lambda *args, **kw: seen.append(kw) or fit(*args, **kw))
    unit = Unit(0, "bupa", "rbf")
    (record,) = small.run(unit, Sets(str(folder)), QUICK)
    assert {kw["projection"] for kw in seen} == {"rbf"}
    assert [kw["n_landmarks"] for kw in seen[:4]] == record.values["L, K = 1 x"] == small.numbers(276, 4)
    assert [(kw["n_clusters"], kw["n_landmarks"]) for kw in seen[8:12]] == [(k, 6) for k in small.CLUSTERS[:4]]
    # Accuracies are means over five folds of 69 rows each.
    np.testing.assert_allclose(np.array(record.values["K y"]) * 345, np.rint(np.array(record.values["K y"]) * 345))
    assert len(seen) == 5 * 12 and all(0.4 < v <= 1 for v in record.values["K y"])


def test_folds_hold_every_row_out_once_and_repeated_rows_are_no_landmarks(tmp_path):
    X, y = made("bupa")
    order = np.random.default_rng(0).permutation(345)
    rows = [small.fold(np.column_stack([X, np.arange(345)]), y, order, i) for i in range(5)]
    spread = [np.delete(np.arange(345.0), order[i::5]).std() for i in range(5)]
    held = np.concatenate([part.X_test[:, -1] * s for part, s in zip(rows, spread)])
    assert sorted(np.rint(held).tolist()) == list(range(345))
    X[:10] = X[10]
    np.savez(tmp_path / "bupa.npz", X=X, y=y)
    (record,) = small.run(Unit(0, "bupa", "dot"), Sets(str(tmp_path)), QUICK)
    assert 345 - 69 - 10 <= record.values["L, K = 1 x"][-1] < 345 - 69


def test_slopes_of_exact_orders():
    sizes = np.array([10, 20, 40])
    assert complexity.exponent(sizes, 3.0 * sizes**1.5) == pytest.approx(1.5)
    assert complexity.expected("m", sizes, "train") == pytest.approx(1.0)
    assert complexity.expected("L", sizes, "train") == pytest.approx(1.0)
    assert complexity.expected("L", sizes, "dot") == pytest.approx(0.0, abs=1e-12)
    assert complexity.expected("n", sizes, "dot") == pytest.approx(1.0)
    K, n, L = (complexity.BASE[name] for name in "KnL")
    ends = [complexity.FORMULAS["rbf"]({**complexity.BASE, "K": k}) for k in (K, 2 * K)]
    assert ends == [K * n + L * n + L, 2 * K * n + L * n + L]


def test_made_rows_are_where_their_centres_are():
    size = {"m": 3000, "n": 30, "L": 7, "K": 4}
    X, y, given = complexity.made(size, np.random.default_rng(0))
    assert X.shape == (3000, 30) and given["landmarks"].shape == (7, 30) and set(y) == {-1.0, 1.0}
    away = np.linalg.norm(X[:, None] - given["centers"], axis=2).min(axis=1)
    assert away.mean() == pytest.approx(math.sqrt(30), rel=0.05)
    model = mdlearn.fit("l3svm", X, y, C=100.0, **given)
    assert model.certificate.converged


def test_complexity_report_of_made_times():
    records = [
        Record(name, how, i, {"sizes": list(s), "train": times, "step": times, "test": [1e-9 * v**2 for v in s]})
        for name, s in complexity.SWEEPS.items()
        for how in complexity.PROJECTIONS
        for i, times in enumerate([[1e-6 * v for v in s], [1.0 for _ in s]])
    ]
    report = complexity.report(records, Sets(None), FULL)
    (told,) = [block for block in report.blocks if hasattr(block, "rows")]
    kinds = ("training", "training, per step", "prediction")
    assert [row[0] for row in told.rows] == [f"{kind}, {how}" for kind in kinds for how in complexity.PROJECTIONS]
    assert all(cell.startswith("1.00 (") for cell in told.rows[0][1:])
    assert all(cell.startswith("2.00 (") for cell in told.rows[-1][1:])


def test_principal_directions_are_those_of_the_covariance():
    X, _ = made("bupa")
    X *= np.arange(6, 0, -1)
    V = directions.drained(choose("pca", distinct(check_rows(X, "X"), np.ones(345)), 2, 0))
    _, vectors = np.linalg.eigh(np.cov(X.T))
    np.testing.assert_allclose(np.abs(V @ vectors[:, [-1, -2]]), np.eye(2), atol=1e-8)


def test_landmark_report_has_every_number_of_the_paper():
    records = [
        Record("mnist", how, 0, {"accuracy": 0.9, "choice": 0.1, "landmarks": float(n)})
        for how in directions.KINDS
        for n in directions.LANDMARKS
    ]
    report = directions.report(records, Sets(None), FULL)
    (first, *_) = [block for block in report.blocks if hasattr(block, "rows")]
    assert [row[0] for row in first.rows] == [str(n) for n in directions.LANDMARKS]
    assert first.rows[0][1:] == ["90.00", "90.00", "0.1", "0.1"]


def test_all_are_listed():
    names = [name for name in EXPERIMENTS if name.startswith("l3-")]
    assert names == ["l3-table1", "l3-table3", "l3-table4", "l3-fig1", "l3-fig2", "l3-fig3", "l3-fig4"]
    assert generator(0, "usps", 0).random() != generator(0, "mnist", 0).random()
