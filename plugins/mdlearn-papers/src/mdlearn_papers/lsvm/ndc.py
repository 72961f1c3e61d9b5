"""Slide 19: normally distributed clusters of growing size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mdlearn import datasets
from mdlearn.extend import MARKERS, accuracy, add_legend, curve_style, memory
from mdlearn_papers.comparing import certificates, scores
from mdlearn_papers.documents import Block, Picture, Report, Table
from mdlearn_papers.judging import measured
from mdlearn_papers.lsvm.trials import PUBLISHED, Method, spread, trained
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, generator
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

WIDTH = 32
SIZES = (2_000, 20_000, 200_000, 2_000_000)
FEW = 1000
"""Least size of a test set: 1 % of 2000 rows would say nothing."""
METHODS = (
    Method("fixed point, published end", "lsvm", {}, PUBLISHED),
    Method("fixed point to a gap of 1e-6", "lsvm", {}, {"solver": "smw", "tol": 1e-6}),
    Method("newton to a gap of 1e-6", "lsvm", {}, {"solver": "newton", "tol": 1e-6}),
)
SCALED = " (unit deviation)"


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """One per size and scaling; three draws of clusters, one of the largest size."""
    sizes = SIZES[:2] if settings.quick else SIZES
    repeats = 2 if settings.quick else 3
    return [
        Unit(i, f"ndc_{m:07d}", part)
        for i in range(repeats)
        for m in sizes
        for part in ("raw", "scaled")
        if m < SIZES[-1] or i == 0
    ]


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """All methods on one set."""
    m = int(unit.data.removeprefix("ndc_"))
    parts, separable = drawn(m, unit.repeat, settings.seed)
    if unit.part == "scaled":
        spreads = parts.X.std(axis=0)
        parts.X[:] /= spreads
        parts.X_test[:] /= spreads
    records = []
    first = Parts(parts.X[:FEW], parts.y[:FEW], parts.X_test, parts.y_test)
    for method in METHODS:
        trained(method, first, {"nu": 1.0 / m}, settings)  # imports are not what is timed
        model, seconds = trained(method, parts, {"nu": 1.0 / m}, settings)
        values = {
            **measured(model, parts),
            "training": accuracy(parts.y, model.predict(parts.X)),
            "iterations": float(model.n_iter),
            "training_seconds": seconds,
            "training_gap": model.certificate.gap,
            "separable": separable,
        }
        label = method.label + (SCALED if unit.part == "scaled" else "")
        kept = model.certificate.converged
        records.append(Record(unit.data, label, unit.repeat, values, {}, 1, int(kept), model.certificate.gap, seconds))
    return records


def drawn(m: int, repeat: int, seed: int) -> tuple[Parts, float]:
    """Training and test part of one draw of clusters, and how separable the plane of the generator finds them."""
    n_test = max(FEW, m // 100)
    memory.require(4.0 * 8 * m * WIDTH, f"a set of {m} x {WIDTH}", "it is left out")
    clusters = datasets.NDC(WIDTH, random_state=generator(seed, "ndc", repeat))  # the same clusters in all sizes
    rng = generator(seed, f"ndc {m}", repeat)
    parts = Parts(*clusters.sample(m, rng), *clusters.sample(n_test, rng))
    return parts, clusters.separability(parts.X_test, parts.y_test)


STUDY = Study("lsvm-ndc", units, run)


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """A table of all sizes and a picture of the seconds."""
    draws = (
        "Every size is drawn twice,"
        if settings.quick
        else f"Every size is drawn three times (that of {SIZES[-1]:,} rows once),"
    )
    blocks: list[Block] = [
        f"Clusters of Musicant's generator in {WIDTH} dimensions (20 centres, expand factor 10), nu = 1/m, alpha = "
        f"1.9/nu. A fresh draw of 1 % of the rows, and of {FEW} at least, is the test set. The slides print no more "
        "than that sets of up to millions of points were solved in core; number of columns, expand factor and scaling "
        f"are chosen here. {draws} with other clusters each time; columns are the generator's integers, or have unit "
        "deviation.",
        table(records),
        Picture("lsvm-ndc-seconds", lambda figure: _draw(figure, records), "Seconds of one training, one thread."),
        "The published end of the fixed point tells a short step, not a small gap; the gap says how far the optimum "
        "may still be. Rows of unit deviation are short: there the fixed point's rate is good, and both methods need "
        "hardly more than the first linear system.",
        certificates(records),
    ]
    return Report("LSVM on normally distributed clusters of growing size (LSVM slide 19)", blocks)


def table(records: Sequence[Record]) -> Table:
    """A line per size and method."""
    kinds = ("training", "accuracy", "iterations", "training_gap", "training_seconds", "separable")
    found = {kind: scores(records, kind) for kind in kinds}
    rows = []
    for data in sorted({record.data for record in records}):
        for added in ("", SCALED):
            for method in METHODS:
                place = (data, method.label + added)
                if place not in found["accuracy"]:
                    continue
                rows.append(
                    [
                        f"{int(data.removeprefix('ndc_')):,}",
                        "unit deviation" if added else "as drawn",
                        method.label,
                        f"{found['training_seconds'][place].mean():.3g}",
                        f"{found['iterations'][place].mean():.0f}",
                        f"{found['training_gap'][place].max():.0e}",
                        spread(found["training"][place], 100, 2),
                        spread(found["accuracy"][place], 100, 2),
                        spread(found["separable"][place], 100, 2),
                    ]
                )
    header = ["rows", "columns", "method", "seconds", "iterations", "gap", "training", "test", "plane"]
    caption = (
        "Accuracies in per cent, mean and standard deviation over the draws; gap: the largest; plane: test rows on the "
        "side of their class of the generator's own plane, which gave centres their classes."
    )
    return Table(header, rows, caption)


def _draw(figure: Any, records: Sequence[Record]) -> None:
    ax = figure.subplots()
    found = scores(records, "training_seconds")
    every = sorted({name for name, _ in found})
    labels = [method.label + added for added in ("", SCALED) for method in METHODS]
    for i, label in enumerate(labels):
        data = sorted(name for name, method in found if method == label)
        if data:
            sizes = [int(name.removeprefix("ndc_")) for name in data]
            seconds = [float(np.mean(found[name, label])) for name in data]
            ax.loglog(sizes, seconds, marker=MARKERS[i], markersize=5, label=label, **curve_style(i))
    sizes = [int(name.removeprefix("ndc_")) for name in every]
    ax.set_xticks(sizes, [f"{m:,}" for m in sizes])
    ax.minorticks_off()
    ax.set_xlabel("training rows")
    ax.set_ylabel("seconds")
    add_legend(ax)


EXPERIMENT = Experiment("lsvm-ndc", "LSVM slide 19: NDC data of growing size", STUDY, report)
