"""The programs beside the benchmarks: what they print is what they measured. No time is asserted."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "asv_bench"
pytestmark = [
    pytest.mark.skipif(not FOLDER.is_dir(), reason="installed without the benchmarks"),
    pytest.mark.usefixtures("bench"),
]


# ---------------------------------------------------------------- growth


def test_growth_measures_the_precision_that_it_names(monkeypatch, capsys, process):
    pytest.importorskip("sklearn")
    growth = importlib.import_module("growth")
    monkeypatch.setattr(growth, "ROWS", (200, 400))
    monkeypatch.setattr(growth, "WIDTH", 5)
    assert growth.main(["--series", "rows", "--tracks", "svm"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in told[:2]] == ["200", "400"]
    assert "rows, svm, mdlearn: exponent" in told[2]
    size = next(growth.drawn("rows", 200, 200))
    times = growth.measured(size, "svm", None)
    assert size.entries == 200 * growth.WIDTH and set(times) == {"mdlearn", "LinearSVC", "SGDClassifier"}
    assert all(-1e-9 <= times[name].excess <= growth.PRECISION for name in ("mdlearn", "LinearSVC"))
    slow = {"LinearSVC": growth.Time(growth.LONGEST, 0.0), "SGDClassifier": growth.Time(0.1, 0.2)}
    assert set(growth.measured(size, "svm", (size._replace(entries=1), slow))) == {"mdlearn", "SGDClassifier"}


def test_the_cheapest_run_that_is_precise_enough():
    pytest.importorskip("sklearn")
    growth = importlib.import_module("growth")
    assert growth.precise([(3.0, 1e-9), (1.0, 1e-4), (0.1, 1e-2)]) == (1.0, 1e-4)
    assert np.isnan(growth.precise([(0.1, 1e-2)]).seconds)


# ---------------------------------------------------------------- kernels


@pytest.mark.slow
def test_kernels_stand_beside_svc(tmp_path, capsys, process):
    pytest.importorskip("sklearn")
    kernels = importlib.import_module("kernels")
    assert kernels.main(["--rows", "400", "--C", "1", "--output", str(tmp_path / "cases.jsonl")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == 1 and told[0].startswith("checkerboard") and " ratio " in told[0]
    (case,) = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text().splitlines()]
    assert 0 <= case["excess"]["mdlearn"] <= case["excess"]["SVC"] < 1e-2
    X, y = kernels.data("checkerboard", None, 400)
    with pytest.raises(SystemExit, match="no data set"):
        np.savez(tmp_path / "few.npz", X=X[:9], y=y[:9])
        kernels.data("few", str(tmp_path), 400)


@pytest.mark.slow
def test_kernel_growth_leaves_svc_out_where_it_needs_too_long(tmp_path, capsys, monkeypatch, process):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    growth = importlib.import_module("kernel_growth")
    points = [(100, {"SVC": {"seconds": 1.0}}), (200, {"SVC": {"seconds": 4.0}})]
    assert growth.expected([], 100) == 0.0
    assert growth.expected(points[:1], 200) == pytest.approx(8.0) and growth.expected(points, 400) == pytest.approx(16)
    monkeypatch.setattr(growth, "LONGEST", 0.0)
    assert growth.main(["--rows", "300", "200", "--picture", str(tmp_path / "growth.png")]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told] == ["200", "300", "mdlearn:"]
    assert "SVC" in told[0] and "SVC" not in told[1]
    assert (tmp_path / "growth.png").stat().st_size > 1000


# ---------------------------------------------------------------- precision


def test_precision_counts_what_a_tolerance_changes(tmp_path, capsys, process):
    pytest.importorskip("sklearn")
    precision = importlib.import_module("precision")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 3))
    np.savez(tmp_path / "one.npz", X=X, y=(X[:, 0] + rng.standard_normal(300) > 0).astype(int))
    assert precision.main([str(tmp_path), "--tracks", "lsvm", "--C", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(precision.LADDER)
    assert "most lost 0.00 %, most gained 0.00 %, predictions changed 0.000 %, seconds 1.00 (1 cases)" in lines[
        -1
    ].replace("-0.00", "0.00")
    assert precision.main([str(tmp_path), "--sets", "none"]) == 1
    parts = precision.folds(23)
    assert sorted(np.concatenate(parts)) == list(range(23))


def test_precision_of_a_tolerance_that_changes_every_prediction(monkeypatch, process):
    pytest.importorskip("sklearn")
    precision = importlib.import_module("precision")
    X, y = np.arange(20.0)[:, None], np.arange(20) % 2

    class Model:
        def __init__(self, tol):
            self.right = tol == precision.FINEST

        def predict(self, X):
            return (X[:, 0].astype(int) + (not self.right)) % 2

    monkeypatch.setattr(precision.mdlearn, "fit", lambda *given, tol=0.0, **more: Model(tol))
    found = precision.judged(precision.Problem("one", X, y), "svm", 1.0)
    assert found[-1, :2].tolist() == [1.0, 0.0] and (found[:-1, :2] == [0.0, 1.0]).all()
