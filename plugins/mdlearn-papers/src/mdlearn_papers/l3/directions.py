"""Figure 4: MNIST with 100 clusters, random landmarks against principal directions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from mdlearn import ConvergenceWarning, fit
from mdlearn.extend import check_rows, choose, distinct
from mdlearn_papers.comparing import Line, certificates, remarks
from mdlearn_papers.documents import Block, Picture, Report, Table
from mdlearn_papers.l3.curves import lines
from mdlearn_papers.l3.preparing import prepared
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import generator
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

DATA = "mnist"
LANDMARKS = (10, 20, 50, 100, 200, 400, 784)
CLUSTERS, ROWS, WEIGHT = 100, 6000, 100.0
KINDS = ("random", "pca")
NOTE = f"{ROWS} training rows, drawn at random, of 60000; the test part is whole"
LINES = (Line("MNIST", DATA, NOTE),)


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """A unit is a way to choose landmarks."""
    return [Unit(0, DATA, how) for how in KINDS] if sets.has(DATA) else []


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Choose landmarks, timed, then fit with these and test, for all numbers of them."""
    parts = prepared(sets, DATA)
    order = generator(settings.seed, DATA, unit.repeat).permutation(parts.y.shape[0])
    rows = np.sort(order[: 500 if settings.quick else ROWS])
    X, y = parts.X[rows], parts.y[rows]
    records = []
    for n in LANDMARKS[:2] if settings.quick else LANDMARKS:
        started = time.perf_counter()
        landmarks, spent = chosen(X, unit.part, n, settings.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the record counts fits that are not certified
            clusters = 10 if settings.quick else CLUSTERS
            asked: dict[str, Any] = {"C": WEIGHT, "n_clusters": clusters, "landmarks": landmarks}
            model = fit("l3svm", X, y, random_state=settings.seed, n_threads=1, **asked)
        values = {"accuracy": model.score(parts.X_test, parts.y_test), "choice": spent, "landmarks": float(n)}
        proof, seconds = model.certificate, time.perf_counter() - started
        chose = {"C": WEIGHT}
        records.append(Record(DATA, unit.part, unit.repeat, values, chose, 1, int(proof.converged), proof.gap, seconds))
    return records


def chosen(X: np.ndarray, how: str, n: int, seed: int) -> tuple[np.ndarray, float]:
    """Landmarks, and CPU seconds to choose them."""
    begun = time.process_time()
    landmarks = drained(choose(how, distinct(check_rows(X, "X"), np.ones(X.shape[0])), n, seed))
    return landmarks, time.process_time() - begun


def drained(work: Generator[Any, Any, np.ndarray]) -> np.ndarray:
    """What a choice of points comes to in the end."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            return np.asarray(done.value)


def points_of(records: Sequence[Record], how: str, key: str, unit: float) -> list[tuple[float, float, float]]:
    """Points of a line."""
    mine = [record for record in records if record.method == how and record.values]
    return sorted((record.values["landmarks"], unit * record.values[key], 0.0) for record in mine)


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Figure 4."""
    right, choice = (
        {how: points for how in KINDS if (points := points_of(records, how, key, unit))}
        for key, unit in (("accuracy", 100.0), ("choice", 1.0))
    )

    def draw(figure: Any) -> None:
        left, beside = figure.subplots(1, 2)
        if right:
            lines(left, right, "landmarks L", "accuracy, %")
            lines(beside, choice, "landmarks L", "CPU seconds to choose them")
            beside.set_yscale("log")
            left.legend()

    rows = []
    for n in LANDMARKS:
        cells = [str(n)]
        for table in (right, choice):
            for how in KINDS:
                value = {x: y for x, y, _ in table.get(how, [])}.get(n)
                cells.append("-" if value is None else f"{value:.3g}" if table is choice else f"{value:.2f}")
        rows.append(cells)
    header = ["L", "random, %", "pca, %", "random, s", "pca, s"]
    blocks: list[Block] = [
        f"{500 if settings.quick else ROWS} training rows of 60000, drawn at random, and the whole test part; columns "
        "divided by their standard deviation over the training rows, "
        f"{10 if settings.quick else CLUSTERS} clusters by k-means, dot products, hinge loss, one against the rest, "
        f"c = {WEIGHT:g} for all L (the paper does not print it). The full training part would take about ten times "
        "as long.",
        Picture("l3-fig4", draw, "Random landmarks against principal directions.", (9.0, 3.6)),
        Table(header, rows, "Accuracy, and CPU seconds to choose the landmarks."),
        reading(right),
        *remarks(LINES, sets),
        certificates(records),
    ]
    return Report("L3-SVMs (Zantedeschi et al., 2017), figure 4: random against PCA landmarks", blocks)


def reading(right: dict[str, list[tuple[float, float, float]]]) -> str:
    """What the accuracies say."""
    told = "The paper: PCA is better for few landmarks, random rows catch up, and cost next to nothing."
    both = [{n: y for n, y, _ in right.get(how, [])} for how in KINDS]
    common = sorted(set(both[0]) & set(both[1]))
    if not common:
        return told
    low, high = ((n, both[1][n] - both[0][n]) for n in (common[0], common[-1]))
    return (
        f"{told} Here PCA is ahead of random rows by {low[1]:+.2f} points at L = {low[0]:g} and by {high[1]:+.2f} at "
        f"L = {high[0]:g}. With dot products the landmarks only say which directions a machine sees, and how much a "
        "step along each is penalised: principal directions have length 1, random rows are long, so one c does not "
        "mean the same for both."
    )


FIGURES = (
    Experiment(
        "l3-fig4", "L3-SVM paper, figure 4: random against PCA landmarks", Study("l3-landmarks", units, run), report
    ),
)
