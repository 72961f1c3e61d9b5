"""Tables and figures of the MDLM paper: protocol, readings, reports, and runs that are resumed."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from mdlearn_papers import printed
from mdlearn_papers.catalogue import SOURCES
from mdlearn_papers.comparing import scores
from mdlearn_papers.mdlm import (
    EXPERIMENTS,
    binary,
    influence,
    losses,
    multiclass,
    noise,
    probabilities,
    protocol,
    ranges,
    readings,
    synthetic,
)
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Record, Settings, Unit
from mdlearn_papers.surveys import SUFFIX
from paper_cases import main
from scipy.spatial.distance import pdist

import mdlearn

POWERS = {2.0**k for k in range(-3, 4)}


def made(name, rng):
    """Rows and labels of the shape that the catalogue asks for; the means of the classes differ."""
    source = SOURCES[name]
    y = rng.permutation(np.repeat(np.arange(len(source.counts)), source.counts))
    X = rng.standard_normal((source.rows, source.columns)) + y[:, None] * (np.arange(source.columns) < 4)
    codes = {"X_codes": rng.integers(0, 4, (source.rows, source.codes))} if source.codes else {}
    return {"X": X, "y": np.where(y == 1, 1, -1) if len(source.counts) == 2 else y, **codes}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    where, rng = tmp_path_factory.mktemp("sets"), np.random.default_rng(0)
    for name in ("heart", "soybean_small"):
        np.savez(where / f"{name}.npz", **made(name, rng))
    return where


@pytest.fixture(scope="module")
def nominal(tmp_path_factory):
    """Sets with codes and missing values."""
    where, rng = tmp_path_factory.mktemp("nominal"), np.random.default_rng(1)
    np.savez(where / "promoters.npz", **made("promoters", rng))
    vote = made("vote", rng)
    vote["X"] = (vote["X"] > 0).astype(float)
    vote["X"][5:9, 2] = np.nan
    np.savez(where / "vote.npz", **vote)
    return Sets(str(where))


def reproduced(name, folder, output):
    assert main(["reproduce", name, "--data", str(folder), "--quick", "--output", str(output)]) == 0
    return next(output.glob(f"*/{name}.md")).read_text()


@pytest.fixture(scope="module")
def output(folder, tmp_path_factory):
    """Quick runs of everything."""
    where = tmp_path_factory.mktemp("reports")
    for experiment in EXPERIMENTS:
        reproduced(experiment.name, folder, where)
    return where


def report(output, name):
    return next(output.glob(f"*/{name}.md")).read_text()


def line_of(text, label):
    return next(one for one in text.splitlines() if one.startswith((f"| {label} |", f"| {label} * |")))


# ---------------------------------------------------------------- reports


def test_table_1_has_every_printed_figure(output):
    text = report(output, "mdlm-table1")
    for row in printed.table("mdlm_table1_synthetic"):
        if row["accuracy_mean"]:
            c = row["distributions"].split("N([")[2][0]
            told = f"{row['accuracy_mean']} ± {row['accuracy_std']}"
            assert told in line_of(text, f"({c}, {c}), {row['n_train']} rows")
    assert text.count("none |") == 3  # no hard margin is printed for 1000 rows


@pytest.mark.parametrize(
    "name, file, headings",
    [
        ("mdlm-table3", "mdlm_table3_binary", {"ACC": "ACC", "AUC": "AUC"}),
        ("mdlm-table5", "mdlm_table5_multiclass", {"Macro F1": "Macro F1", "Micro F1": "Micro F1"}),
    ],
)
def test_tables_3_and_5_have_every_printed_figure(name, file, headings, output):
    text = report(output, name)
    for row in printed.table(file):
        part = text.split(f"## {headings[row['metric']]}\n")[1]
        told = f"{float(row['mean']):.3f} ± {float(row['std']):.3f}"
        assert told in line_of(part, row["dataset"])
    assert "hypothyroid | - | could not be had" in text or name == "mdlm-table5"


def test_table_4_has_every_printed_gain_and_where_it_comes_from(output):
    text = report(output, "mdlm-table4")
    for row in printed.table("mdlm_table4_noise"):
        assert f" {float(row['improvement_over_mlr_percent']):+.2f} |" in line_of(text, row["dataset"])
    check = text.split("printed gain, % |")[1]
    assert line_of(check, "australian").endswith("| 0.853 | 0.866 | +1.52 | +1.52 |")
    assert line_of(check, "diabetes").endswith("| +3.96 | +2.55 |")


def test_figures_are_drawn(output):
    pytest.importorskip("matplotlib")
    for i in range(1, 5):
        assert next(output.glob(f"*/mdlm-fig{i}.png")).stat().st_size > 5000
        assert f"](mdlm-fig{i}.png)" in report(output, f"mdlm-fig{i}")


def test_reports_of_nothing():
    for experiment in EXPERIMENTS:
        assert experiment.report([], Sets(None), Settings()).title == experiment.title


def test_gains_are_relative():
    def records(name, values):
        return [Record("heart", f"{name}, 20 %", r, {"accuracy": value}) for r, value in enumerate(values)]

    given = records("MLR", [0.7, 0.8, 0.9]) + records("MDLM", [0.8, 0.9, 1.0])
    (row,) = [row for row in noise.gains(given).rows if row[0] == "heart"]
    assert row[5:7] == ["+12.50 !", "+1.04"]  # 0.9 / 0.8, all differences equal
    given = records("MLR", [0.7, 0.8, 0.9]) + records("MDLM", [0.8, 0.7, 0.9])
    (row,) = [row for row in noise.gains(given).rows if row[0] == "heart"]
    assert row[5] == "+0.00"


# ---------------------------------------------------------------- records


def without_seconds(path):
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines[1:]:
        for record in line["records"]:
            del record["seconds"]
    return lines


def test_an_interrupted_run_goes_on_with_the_same_records(folder, output, tmp_path):
    whole = output / "mdlm-probabilities-quick" / "records.jsonl"
    half = tmp_path / "mdlm-probabilities-quick" / "records.jsonl"
    half.parent.mkdir()
    head, first, second = whole.read_text().splitlines(keepends=True)
    half.write_text(head + first + second[: len(second) // 2])
    reproduced("mdlm-fig3", folder, tmp_path)
    assert without_seconds(half) == without_seconds(whole)


# ---------------------------------------------------------------- protocol


def test_halves_are_the_two_ways_round_of_a_division():
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat(["a", "b", "c", "d"], [25, 31, 2, 1]))
    X = np.arange(59.0)[:, None]
    one, other, next_ = (protocol.split(X, y, 0, "some", r) for r in (4, 5, 6))
    assert np.array_equal(one.X, other.X_test)
    assert np.array_equal(one.X_test, other.X)
    assert sorted(np.concatenate([one.X, one.X_test])[:, 0].tolist()) == list(range(59))
    assert not np.array_equal(one.X, next_.X)
    for parts in (one, next_):
        assert abs(parts.y.shape[0] - parts.y_test.shape[0]) <= 1
        for label in "abcd":
            assert abs((parts.y == label).sum() - (parts.y_test == label).sum()) <= 1
    assert np.array_equal(one.X, protocol.split(X, y, 0, "some", 4).X)


def test_grids_are_of_the_papers(nominal):
    mdlm = protocol.METHODS["MDLM"]
    for grid in (mdlm.grid, mdlm.quick, protocol.RIDGED.grid, synthetic.MDLM.grid):
        assert set(grid["lambda1"]) | set(grid["lambda2"]) <= POWERS
    for grid in (mdlm.grid, protocol.METHODS["MLR"].grid, synthetic.MDLM.grid):
        assert set(grid["alpha"]) <= set(range(1, 11))
    whole = readings.whole(mdlm, None).grid
    assert set(whole["lambda1"]) == set(whole["lambda2"]) == POWERS
    assert whole["alpha"] == tuple(range(1, 11))
    assert influence.VALUES["alpha"] == whole["alpha"]


def test_the_full_run_has_60_halves_and_100_samples(folder):
    sets = Sets(str(folder))
    for experiment, part, repeats in (("mdlm-table3", "MDLM", 60), ("mdlm-table1", "printed", 100)):
        study = next(one.study for one in EXPERIMENTS if one.name == experiment)
        units = [unit for unit in study.units(sets, Settings()) if unit.part == part]
        assert {unit.repeat for unit in units} == set(range(repeats))
        assert len(units) == repeats * len({unit.data for unit in units})


def test_widths_become_gamma():
    X = np.random.default_rng(0).standard_normal((30, 4))
    found = readings.rbf(protocol.METHODS["SVM"], Parts(X, X[:, 0], X, X[:, 0]))
    assert np.allclose(found.grid["gamma"], [1.0 / (2.0 * (w * pdist(X).mean()) ** 2) for w in (0.5, 1.0, 2.0)])
    assert found.fixed["kernel"] == "rbf"
    assert found.grid["C"] == protocol.COSTS


def test_coordinates_under_a_kernel_are_those_of_the_kernel_machine():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), np.where(np.arange(40) % 2, 1, -1)
    parts = Parts(X[:30], y[:30], X[30:], y[30:])
    for width, one in zip((0.5, 1.0, 2.0), ranges.by_width(parts), strict=True):
        gamma = 1.0 / (2.0 * (width * pdist(parts.X).mean()) ** 2)
        fixed = {"bias": "none", "C": 10.0, "tol": 1e-10}
        kernel = mdlearn.fit("svm", parts.X, parts.y, kernel="rbf", gamma=gamma, **fixed)
        linear = mdlearn.fit("svm", one.X, one.y, **fixed)
        assert np.allclose(linear.decision_function(one.X_test), kernel.decision_function(parts.X_test), atol=1e-4)


def test_ranges_are_those_of_all_points(folder):
    sets = Sets(str(folder))
    units = [one for one in binary.units(sets, Settings()) if one.part in {r + SUFFIX for r in ranges.TRIED}]
    assert len(units) == ranges.HALVES * len(ranges.TRIED)  # heart alone
    assert {one.data for one in units} == {"heart"}
    records = [one for r in range(2) for one in binary.run(Unit(r, "heart", readings.PLAIN + SUFFIX), sets, Settings())]
    svm = [one for one in records if one.method == f"SVM, {readings.PLAIN}{SUFFIX}"]
    for r, record in enumerate(svm):
        parts = protocol.split(*protocol.rows(sets, "heart"), 0, "heart", r)
        models = [mdlearn.fit("svm", parts.X, parts.y, C=C, bias="none") for C in protocol.COSTS]
        assert np.allclose(record.values["tested"], [m.score(parts.X_test, parts.y_test) for m in models])
    means = np.mean([one.values["tested"] for one in svm], axis=0)
    mine = [Record("heart", "SVM", r, {"accuracy": 0.1 + 0.001 * r}) for r in range(3)]
    theirs = {
        (line.label, name): printed.Figures(0.9, 0.01, 60) for line in protocol.LINES for name in protocol.METHODS
    }
    inside = {**theirs, ("heart", "SVM"): printed.Figures(float(means.mean()), 1e-9, 60)}
    told = ranges.explained([*mine, *records], {"accuracy": ("ACC", inside)})
    assert told.rows[0][4] == f"{means.min():.3f} to {means.max():.3f} (has it)"
    outside = {**theirs, ("heart", "SVM"): printed.Figures(2.0, 1e-9, 60)}
    told = ranges.explained([*mine, *records], {"accuracy": ("ACC", outside)})
    assert told.rows[0][4] == f"{means.min():.3f} to {means.max():.3f}"
    assert told.rows[0][5] == f"none; nearest: {readings.PLAIN} {told.rows[0][4]}"
    assert ranges.explained(mine, {"accuracy": ("ACC", inside)}) is None


def test_an_optimiser_that_is_stopped_has_no_certificate(folder):
    part = "as in the file, stopped after 3 sweeps" + SUFFIX
    records = ranges.run(Unit(0, "heart", part), Sets(str(folder)), Settings())
    assert [one.method.split(",")[0] for one in records] == ["SVM", "LDM"]
    assert all(one.converged < one.fits for one in records)


def test_codes_and_missing_values(nominal):
    X, y = protocol.rows(nominal, "vote")
    assert X.shape == (435, 16)
    assert np.array_equal(np.argwhere(X == 0.5), [[i, 2] for i in range(5, 9)])
    X_house, y_house = protocol.rows(nominal, "house")
    assert np.array_equal(X_house, np.delete(X, slice(5, 9), axis=0))
    assert np.array_equal(y_house, np.delete(y, slice(5, 9)))
    assert protocol.rows(nominal, "promoters")[0].shape == (106, 57)
    assert protocol.has(nominal, "house")
    assert not protocol.has(nominal, "heart")


def test_a_squared_norm_stands_in_where_there_is_no_optimum(nominal):
    X, y = protocol.rows(nominal, "promoters")
    parts = protocol.split(X, y, 0, "promoters", 0)
    plain = protocol.METHODS["MDLM"]
    with pytest.raises(ValueError, match="unbounded below"):
        replace(plain, instead=None).judge("promoters", "MDLM", 0, parts, True, 0, bias="none")
    record = plain.judge("promoters", "MDLM", 0, parts, True, 0, bias="none")
    assert record.chosen["ridge"] > 0
    assert "unbounded below" in record.note
    assert record.converged == record.fits
    assert "promoter (MDLM, 1)" in binary.ridged([record])
    assert plain.judge("some", "MDLM", 0, Parts(X[:, :5], y, X[:, :5], y), True, 0, bias="none").note == ""


def test_noise_has_its_share_of_the_variance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 3)) * [1.0, 10.0, 0.0]
    for percent in (10, 30):
        added = noise.noisy(X, Unit(0, "heart", f"{percent} %"), 0) - X
        assert np.allclose(added.var(axis=0), percent / 100.0 * X.var(axis=0), rtol=0.05)
    assert noise.noisy(X, Unit(0, "heart", "0 %"), 0) is X
    one, way_round, other = (noise.noisy(X, Unit(r, "heart", "10 %"), 0) for r in (0, 1, 2))
    assert np.array_equal(one, way_round)
    assert not np.array_equal(one, other)


# ---------------------------------------------------------------- table 1


def test_hard_margins_exist_for_rows_that_can_be_separated():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]])
    y = np.array([-1, -1, 1, 1])
    parts = Parts(X, y, X, y)
    record = synthetic.hard("some", 0, "hard-margin SVM", parts)
    assert record.values["separable"] == record.values["accuracy"] == 1.0
    mixed = Parts(np.vstack([X, X[:1]]), np.append(y, 1), X, y)
    none = synthetic.hard("some", 1, "hard-margin SVM", mixed)
    assert none.values == {"separable": 0.0}
    assert scores([record, none], "accuracy")["some", "hard-margin SVM"].tolist() == [1.0]
    assert synthetic.separable([]).rows[0][1] == "-"


def test_logistic_regression_without_an_optimum():
    X = np.array([[-1.0], [1.0], [2.0]])
    record = synthetic.logistic("some", 0, "LR", Parts(X, np.array([-1, 1, 1]), X, np.array([-1, 1, 1])), "none")
    assert record.values["accuracy"] == 1.0
    assert record.converged == record.fits == 1


def test_samples_of_table_1():
    parts = synthetic.parts_of("gaussians-9-100", 3, 0)
    assert parts.X.shape == (100, 2)
    assert parts.X_test.shape == (10_000, 2)
    own = parts.X_test[parts.y_test == 1]
    other = parts.X_test[parts.y_test == -1]
    assert np.allclose(own.mean(axis=0), [9, 9], atol=0.1)
    assert np.allclose(other.mean(axis=0), [5, 5], atol=0.2)
    assert np.allclose(other.std(axis=0), [3, 1], atol=0.1)
    assert not np.array_equal(parts.X, synthetic.parts_of("gaussians-9-100", 4, 0).X)


def test_columns_in_range():
    X = np.array([[1.0, 5.0], [3.0, 5.0]])
    parts = synthetic.in_range(Parts(X, X[:, 0], np.array([[5.0, 6.0]]), X[:1, 0]))
    assert parts.X.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert parts.X_test.tolist() == [[2.0, 1.0]]


# ---------------------------------------------------------------- table 5


def test_folds_hold_every_row_out_once_but_the_only_one_of_its_class():
    y = np.array([0] * 9 + [1] * 4 + [2] + [3] * 2)
    found = multiclass.folds(y, 3, np.random.default_rng(0))
    held = np.concatenate([test for _, test in found])
    assert sorted(held.tolist()) == [i for i in range(16) if i != 13]
    for train, test in found:
        assert set(y[train].tolist()) == {0, 1, 2, 3}
        assert sorted([*train, *test]) == list(range(16))
        assert 4 <= len(test) <= 6


@pytest.mark.parametrize("objective, given", [("mmlr", {"lam": 0.01}), ("mdlm", {"ridge": 0.1})])
def test_coordinates_of_the_span_give_the_same_models(objective, given):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((25, 40)), np.arange(25) % 3
    parts = Parts(X[:20], y[:20], X[20:], y[20:])
    short = multiclass.spanned(parts)
    assert short.X.shape == (20, 20)
    scores_ = [
        mdlearn.fit(objective, one.X, one.y, bias="none", tol=1e-12, **given).decision_function(one.X_test)
        for one in (parts, short)
    ]
    assert np.allclose(*scores_, atol=1e-5)
    wide = Parts(X[:, :10], y, X[:, :10], y)
    assert multiclass.spanned(wide) is wide


# ---------------------------------------------------------------- figures


def test_losses():
    z = np.array([-500.0, 0.0, 1.0, 500.0])
    for alpha in (1.0, 10.0):
        assert np.allclose(losses.generalised(z, alpha)[[0, 2, 3]], [501.0, math.log(2) / alpha, 0.0])
        assert losses.generalised(z, alpha)[1] == pytest.approx(math.log(1 + math.exp(alpha)) / alpha)
    values = {name: loss(np.array([0.0]))[0] for name, loss in losses.LOSSES.items()}
    assert values["hinge"] == values["squared"] == 1.0
    assert values["logistic"] == pytest.approx(math.log(2))


def test_signed_probabilities():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = np.where(X[:, 0] + rng.standard_normal(40) > 0, "yes", "no")
    model = mdlearn.fit("mlr", X, y)
    P = model.predict_proba(X)
    expected = P.max(axis=1) * np.where(model.predict(X) == y, 1, -1)
    found = probabilities.signed(model.decision_function(X), y == model.classes_[1])
    assert np.allclose(found, expected)
    assert (found < 0).any()
