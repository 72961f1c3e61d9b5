"""The LSVM slides again: folds, contenders, boards and reports."""

from __future__ import annotations

import numpy as np
import pytest
from mdlearn_papers.documents import write
from mdlearn_papers.index import EXPERIMENTS
from mdlearn_papers.lsvm import checkerboard, ndc, nonlinear, trials, uci
from mdlearn_papers.running import _done
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, generator, stratified_folds
from mdlearn_papers.studies import Record, Settings, Unit
from paper_cases import made, records_of, reproduce, svml, write_sets

import mdlearn
from mdlearn.extend import memory

QUICK, FULL = Settings(quick=True), Settings()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_sets(tmp_path_factory.mktemp("sets"), "bupa", "vote")


def test_ten_folds_hold_every_row_out_once():
    X, y = made("bupa")
    X = np.column_stack([np.arange(345.0), X])
    parts = [trials.fold_of(X, y, "bupa", i, FULL) for i in range(10)]
    held = np.concatenate([part.X_test[:, 0] for part in parts])
    assert sorted(held.tolist()) == list(range(345))
    assert {part.y_test.shape[0] for part in parts} == {34, 35}
    for part in parts:
        assert sorted(np.concatenate([part.X[:, 0], part.X_test[:, 0]]).tolist()) == list(range(345))
    again, other = (trials.fold_of(X, y, "bupa", 3, Settings(seed=seed)) for seed in (0, 1))
    assert np.array_equal(again.X_test, parts[3].X_test) and not np.array_equal(other.X_test, parts[3].X_test)


def test_missing_votes_lie_between_yes_and_no(tmp_path):
    X, y = made("vote")
    X = np.where(np.random.default_rng(0).random(X.shape) < 0.2, np.nan, X)
    np.savez(tmp_path / "vote.npz", X=X, y=y)
    sets = Sets(str(tmp_path))
    raw, _ = trials.prepared(sets, "vote", scaled=False)
    assert set(np.unique(raw)) == {-1.0, 0.0, 1.0}
    assert np.array_equal(raw == 0, np.isnan(X)) and np.array_equal(raw == 1, X == 1)
    np.savez(tmp_path / "vote.npz", X=2 * X, y=y)
    with pytest.raises(ValueError, match="need to be 0"):
        trials.prepared(Sets(str(tmp_path)), "vote")
    scaled, _ = trials.prepared(sets, "vote")
    np.testing.assert_allclose(scaled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaled.std(axis=0), 1)


def test_grids():
    assert trials.powers(4.0, -5, 5, FULL) == [4.0**k for k in range(-5, 6)]
    assert trials.powers(4.0, -5, 5, QUICK) == [4.0**-5, 4.0**-2, 4.0, 4.0**4]
    assert list(trials.folds(FULL)) == list(range(10)) and list(trials.folds(QUICK)) == [0, 1]


def test_the_published_contender_is_the_published_listing():
    X, y = made("bupa")
    parts = trials.fold_of(X, y, "bupa", 0, FULL)
    method = trials.Method("it", "lsvm", {}, trials.PUBLISHED)
    for nu in (0.01, 1.0):
        model, _ = trials.trained(method, parts, {"nu": nu}, FULL)
        it, _, w, gamma, _ = svml(parts.X, parts.y, nu, 100)
        assert model.n_iter == it
        np.testing.assert_allclose(model.coef_[0], w, rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(model.intercept_[0], -gamma, rtol=1e-7, atol=1e-9)


def test_one_trial_chooses_within_the_training_part():
    X, y = made("bupa")
    parts = trials.fold_of(X, y, "bupa", 0, FULL)
    method = trials.Method("it", "lsvm", {"nu": [0.001, 0.1, 10.0]}, {"solver": "newton"})
    record, model = trials.tried(method, "bupa", 0, parts, FULL)
    inner = stratified_folds(parts.y, 10, generator(0, "bupa", 1000))
    assert all(abs((parts.y[held] > 0).sum() - (parts.y > 0).sum() / 10) < 1 for _, held in inner)
    found = mdlearn.select("lsvm", parts.X, parts.y, {"nu": [0.001, 0.1, 10.0]}, cv=inner, solver="newton")
    assert record.chosen == found.best_params == {"nu": model.params["nu"]}
    assert record.values["accuracy"] == (model.predict(parts.X_test) == parts.y_test).mean()
    assert record.values["training"] == (model.predict(parts.X) == parts.y).mean()
    assert record.fits == record.converged == 3 * 10 + 2
    spoiled = Parts(parts.X, parts.y, parts.X_test + 100.0, -parts.y_test)
    assert trials.tried(method, "bupa", 0, spoiled, FULL)[0].chosen == record.chosen


def test_few_rows_to_choose_on():
    X, y = made("bupa")
    X[:, 0] = np.arange(345)
    parts = trials.fold_of(X, y, "bupa", 0, FULL)
    few = trials.drawn(parts, 100, "bupa", 0, FULL)
    assert few.X.shape == (100, 6) and np.isin(few.X[:, 0], parts.X[:, 0]).all()
    assert np.unique(few.X[:, 0]).shape[0] == 100 and few.X_test is parts.X_test
    assert np.array_equal(few.y, y[few.X[:, 0].astype(int)])
    assert trials.drawn(parts, 0, "bupa", 0, FULL) is parts and trials.drawn(parts, 1000, "bupa", 0, FULL) is parts


def test_products_are_the_quadratic_kernel():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((80, 4))
    y = np.where((X[:, 0] * X[:, 1] > 0) ^ (rng.random(80) < 0.1), 1.0, -1.0)
    G, F = np.column_stack([X, -np.ones(80)]), nonlinear.products(X)
    assert F.shape == (80, 15)
    np.testing.assert_allclose(F @ F.T, (G @ G.T) ** 2, rtol=1e-12, atol=1e-12)
    quadratic = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0}
    ours = mdlearn.fit("lsvm", F, y, nu=2.0, bias="none", tol=1e-10)
    kernel = mdlearn.fit("lsvm", G, y, nu=2.0, bias="none", tol=1e-10, **quadratic)
    np.testing.assert_allclose(ours.decision_function(F), kernel.decision_function(G), atol=1e-4)
    assert ours.score(F, y) > 0.8


@pytest.mark.parametrize("name", ["lsvm-uci", "lsvm-nonlinear"])
def test_a_quick_run_and_what_is_left_of_one(name, folder, tmp_path):
    assert reproduce(name, tmp_path, "--data", folder) == 0
    place = tmp_path / f"{name}-quick"
    text = (place / f"{name}.md").read_text(encoding="utf-8")
    for line in trials.LINES:
        assert f"| {line.label}" in text
    assert "could not be had" in text and text.count("missing from the folder of data sets") == 6
    whole = records_of(place)
    assert len(whole) == 2 * 2 * 3 and all(one["values"] for records in whole.values() for one in records)
    lines = (place / "records.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (place / "records.jsonl").write_text("".join(lines[:4]) + lines[4][:50], encoding="utf-8")
    assert reproduce(name, tmp_path, "--data", folder) == 0
    assert records_of(place) == whole


@pytest.mark.parametrize("settings", [QUICK, FULL])
def test_reports_of_nothing_and_of_failures(settings, tmp_path):
    for experiment in EXPERIMENTS.values():
        if experiment.study.name.startswith("lsvm"):
            for records in ([], [Record("bupa", "lsvm", 0, note="no memory"), Record("checkerboard", "long", 0)]):
                files = write(experiment.report(records, Sets(None), settings), tmp_path, experiment.name)
                assert files[0].read_text().startswith("# ")


def test_contenders(folder):
    sets = Sets(str(folder))
    methods = {}
    for part in uci.PARTS:
        for record in uci.run(Unit(0, "bupa", part), sets, QUICK):
            methods[record.method] = record
    assert set(methods) >= {uci.POINT, uci.NEWTON, uci.QP, uci.POINT + uci.RAW, uci.NEWTON + uci.RAW}
    assert methods[uci.NEWTON].fits == methods[uci.NEWTON].converged
    if uci.LIGHT in methods:  # the same problem, to a larger tolerance
        light, exact = methods[uci.LIGHT].values, methods[uci.QP].values
        assert abs(light["training"] - exact["training"]) < 0.02
    text = uci.agreement([*methods.values()])
    assert "of 1 folds on scaled columns" in text and "of 1 folds on columns as they are" in text


def test_clusters_are_the_same_for_all_sizes():
    small, share = ndc.drawn(2000, 0, 0)
    large, other = ndc.drawn(200_000, 0, 0)
    third, _ = ndc.drawn(2000, 1, 0)
    assert small.X.shape == (2000, 32) and small.X_test.shape == (1000, 32)
    assert large.X_test.shape == (2000, 32)
    assert abs(share - other) < 0.06 and not np.array_equal(small.X[:1000], large.X[:1000])
    # Nearly every row has rows of its class near; a draw of other clusters has not.
    model = mdlearn.fit("lsvm", large.X, large.y, nu=1e-3)
    assert model.score(small.X_test, small.y_test) > model.score(third.X_test, third.y_test) + 0.1


def test_sizes_of_clusters():
    units = ndc.units(Sets(None), FULL)
    assert {unit.data for unit in units} == {"ndc_0002000", "ndc_0020000", "ndc_0200000", "ndc_2000000"}
    assert sum(unit.data == "ndc_2000000" for unit in units) == 2
    assert sorted(units)[:2] == [Unit(0, "ndc_0002000", "raw"), Unit(0, "ndc_0002000", "scaled")]


def test_sizes_without_room_are_noted(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 1e6)
    monkeypatch.setattr(memory, "NEGLIGIBLE_BYTES", 0.0)
    unit, (record,) = _done(("lsvm-ndc", Unit(0, "ndc_0020000", "raw"), None, QUICK))
    assert unit.data == "ndc_0020000" and not record.values and "20000 x 32 needs" in record.note


def test_a_quick_run_of_clusters(tmp_path):
    assert reproduce("lsvm-ndc", tmp_path) == 0
    place = tmp_path / "lsvm-ndc-quick"
    text = (place / "lsvm-ndc.md").read_text(encoding="utf-8")
    for method in ndc.METHODS:
        assert text.count(f"| {method.label} |") == 2 * 2 + 1
    records = [one for records in records_of(place).values() for one in records]
    assert all(one["converged"] for one in records if "published" not in one["method"])
    gaps = [one["values"]["training_gap"] for one in records if one["method"] == ndc.METHODS[0].label]
    assert min(gaps) > 1e-6, "a short step is no small gap"


def test_the_colour_of_all_pixels():
    at = checkerboard.pixels()
    assert at.shape == (40_000, 2) and at.min() == 0 and at.max() == 199
    X, y = mdlearn.datasets.checkerboard(300, random_state=1)
    for sign in (1.0, -1.0):
        told = checkerboard.board(np.floor(50 * X), sign * y)
        by_fields = np.where((at[:, 0] // 50 + at[:, 1] // 50) % 2 == 0, sign, -sign)
        assert np.array_equal(told, by_fields)
    assert checkerboard.GAMMA == pytest.approx(1 / (2 * 50**2))


def test_nearest_rows():
    rng = np.random.default_rng(0)
    X, at = rng.random((60, 2)), rng.random((40, 2))
    y = np.where(rng.random(60) < 0.5, 1.0, -1.0)
    order = np.argsort(((at[:, None] - X) ** 2).sum(axis=2), axis=1)
    for k in (1, 3, 9):
        assert np.array_equal(checkerboard.nearest(X, y, at, k), np.sign(y[order[:, :k]].sum(axis=1)))


def test_a_quick_run_of_the_board(tmp_path):
    pytest.importorskip("matplotlib")
    assert reproduce("lsvm-checkerboard", tmp_path, "--data", tmp_path) == 0
    place = tmp_path / "lsvm-checkerboard-quick"
    text = (place / "lsvm-checkerboard.md").read_text(encoding="utf-8")
    assert "drawn anew" in text and "58 s" in text and "2.85 h" not in text, "a quick run has fewer iterations"
    assert (place / "lsvm-checkerboard.png").stat().st_size > 10_000
    records = {one["method"]: one for records in records_of(place).values() for one in records}
    X, y = checkerboard.points("generated", Sets(None), QUICK)
    truth = checkerboard.board(X, y)
    for label in ("neighbours", "published", "long", "newton"):
        values = records[label]["values"]
        assert values["accuracy"] == (np.where(values["picture"], 1, -1) == truth).mean() > 0.9
    assert records["published"]["values"]["iterations"] == 100 and records["published"]["gap"] == 1
    assert records["long"]["values"]["iterations"] == 1000
    assert records["long"]["gap"] > records["newton"]["gap"] and records["newton"]["converged"] == 1
    assert checkerboard.longest(FULL) == 100_000
    full = EXPERIMENTS["lsvm-checkerboard"].report([], Sets(None), FULL)
    assert any("Not all methods" in block for block in full.blocks if isinstance(block, str))
