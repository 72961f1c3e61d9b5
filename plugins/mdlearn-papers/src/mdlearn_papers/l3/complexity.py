"""Table 1: exponents of time against rows, columns, landmarks and clusters, fitted to measurements."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mdlearn import fit
from mdlearn_papers.documents import Block, Picture, Report, Table
from mdlearn_papers.l3.curves import lines
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import generator
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

BASE = {"m": 8000, "n": 100, "L": 100, "K": 40}
SWEEPS = {
    "m": (4000, 8000, 16000, 32000),
    "n": (50, 100, 200, 400, 800),
    "L": (25, 50, 100, 200, 400),
    "K": (10, 20, 40, 80, 160),
}
"""m rows, n columns, L landmarks, K clusters; the others as in BASE."""
PROJECTIONS = ("dot", "rbf")
TEST_ROWS, TRIES = 4000, 2
CAPTION = "CPU seconds of a step of training, and of a prediction, against m, n, L and K."
FORMULAS: dict[str, Callable[[dict[str, int]], float]] = {
    "train": lambda s: s["K"] * s["L"] * s["m"] + s["L"] * s["n"] * s["m"],
    "dot": lambda s: s["K"] * s["n"],
    "rbf": lambda s: s["K"] * s["n"] + s["L"] * s["n"] + s["L"],
}
"""The paper's orders, prediction with the nearest centre that it leaves out (S10), and with landmarks folded away."""


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """A unit is one sweep with one projection."""
    return [Unit(i, name, how) for i in range(1 if settings.quick else TRIES) for name in SWEEPS for how in PROJECTIONS]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """CPU seconds to fit and to predict a row, along a sweep. Centres and landmarks are given: k-means is not in it."""
    started, fits = time.perf_counter(), []
    train, step, test = [], [], []
    values = SWEEPS[unit.data][:3] if settings.quick else SWEEPS[unit.data]
    for value in values:
        size = {**BASE, unit.data: value}
        rng = generator(settings.seed, unit.data, unit.repeat)
        X, y, given = made(size, rng)
        begun = time.process_time()
        model = fit("l3svm", X, y, C=10.0 * size["K"], projection=unit.part, n_threads=1, **given)
        train.append(time.process_time() - begun)
        step.append(train[-1] / max(1, model.n_iter))
        fits.append(model.certificate)
        fresh = rng.standard_normal((TEST_ROWS, size["n"]))
        model.predict(fresh)
        spent = []
        for _ in range(3):
            begun = time.process_time()
            for _ in range(5):
                model.predict(fresh)
            spent.append((time.process_time() - begun) / 5)
        test.append(min(spent) / TEST_ROWS)
    told = {"sizes": list(values), "train": train, "step": step, "test": test}
    good, gap = sum(one.converged for one in fits), max(one.gap for one in fits)
    return [Record(unit.data, unit.part, unit.repeat, told, {}, len(fits), good, gap, time.perf_counter() - started)]


def made(size: dict[str, int], rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Rows around K centres, each with a plane of its own and a fifth of the labels turned; centres and landmarks."""
    centers = 2.0 * rng.standard_normal((size["K"], size["n"]))
    place = rng.integers(size["K"], size=size["m"])
    noise = rng.standard_normal((size["m"], size["n"]))
    planes = rng.standard_normal((size["K"], size["n"]))
    turned = np.where(rng.random(size["m"]) < 0.2, -1.0, 1.0)
    y = turned * np.where((noise * planes[place]).sum(axis=1) >= 0, 1.0, -1.0)
    X = centers[place] + noise
    landmarks = X[rng.choice(size["m"], size["L"], replace=False)]
    return X, y, {"centers": centers, "landmarks": landmarks}


def shortest(records: Sequence[Record], name: str, how: str, key: str) -> tuple[np.ndarray, np.ndarray]:
    """Sizes of a sweep and the shortest of the measured times."""
    mine = [record for record in records if (record.data, record.method) == (name, how) and record.values]
    if not mine:
        return np.empty(0), np.empty(0)
    return np.array(mine[0].values["sizes"]), np.min([record.values[key] for record in mine], axis=0)


def exponent(sizes: np.ndarray, times: np.ndarray) -> float:
    """Slope of log time against log size, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def expected(name: str, sizes: np.ndarray, formula: str) -> float:
    """The exponent that a formula would show over these sizes, the others as in BASE."""
    return exponent(sizes, np.array([float(FORMULAS[formula]({**BASE, name: int(value)})) for value in sizes]))


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Table 1."""
    rows, pictures = [], []
    for key, label in (("train", "training"), ("step", "training, per step"), ("test", "prediction")):
        for how in PROJECTIONS:
            cells = [f"{label}, {how}"]
            for name in SWEEPS:
                sizes, times = shortest(records, name, how, key)
                if sizes.shape[0] < 2:
                    cells.append("-")
                    continue
                theory = (
                    0.0 if (key, name) == ("test", "m") else expected(name, sizes, how if key == "test" else "train")
                )
                cells.append(f"{exponent(sizes, times):.2f} ({theory:.2f})")
            rows.append(cells)

    def draw(figure: Any) -> None:
        axes = figure.subplots(2, len(SWEEPS), squeeze=False, sharey="row")
        for i, (key, unit) in enumerate((("step", "training, s per step"), ("test", "prediction of a row, s"))):
            for ax, name in zip(axes[i], SWEEPS):
                found = {how: shortest(records, name, how, key) for how in PROJECTIONS}
                curves = {how: [(x, t, 0.0) for x, t in zip(*pair)] for how, pair in found.items() if pair[0].size}
                if curves:
                    lines(ax, curves, name, unit if name == "m" else "")
                    ax.set_yscale("log")
                    ax.yaxis.set_minor_formatter("")
        axes[0, 0].legend(fontsize="small")

    pictures.append(
        Picture(
            "l3-table1",
            draw,
            "CPU seconds of a step of training, and of a prediction, against m, n, L and K.",
            (10.0, 5.2),
        )
    )
    base = ", ".join(f"{name} = {value}" for name, value in BASE.items())
    blocks: list[Block] = [
        f"Made data: rows around K centres, each centre with a plane of its own, a fifth of the labels turned; {base} "
        "unless varied; c grows with K. Centres and landmarks are given, so that k-means is not measured. CPU "
        f"seconds of one thread, the shortest of {1 if settings.quick else TRIES} draws; prediction of "
        f"{TEST_ROWS} rows at once, per row.",
        "The paper: training takes O(K L m + L n m), prediction O(L n + L); finding the nearest of K centres, O(K n), "
        "is left out there (errata S10). With dot products this library folds theta and the landmarks into one plane "
        "per cluster: prediction is then O(K n), whatever L.",
        Table(
            ["", *SWEEPS],
            rows,
            "Slope of log time against log size, and in brackets that of the formula over the same sizes "
            "(K L m + L n m; dot K n; rbf K n + L n + L).",
        ),
        *pictures,
        "Training is an exact fit to a certified gap. The paper's order has no number of steps; ours depends on the "
        "data, on L and on K (an interior point takes 7 to 50 here), so that the slopes of whole fits are rough. A "
        "step takes up to m L^2, where a pass of liblinear takes m L, and every row is in one cluster only: nothing "
        "in a step grows as K m. Where there is little to do, fixed costs press the slopes down. Prediction does "
        "large matrix products, whose rate rises with their size: slopes a little below the formula's are expected.",
    ]
    return Report("L3-SVMs (Zantedeschi et al., 2017), table 1: complexity", blocks)


TABLES = (Experiment("l3-table1", "L3-SVM paper, table 1: orders of time", Study("l3-complexity", units, run), report),)
