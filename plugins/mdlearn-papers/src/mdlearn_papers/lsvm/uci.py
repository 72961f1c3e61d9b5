"""Slides 17 and 18: the fixed point against a quadratic program for the SVM and against SVMlight, on UCI sets."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence

import numpy as np

from mdlearn import selection
from mdlearn.extend import accuracy
from mdlearn_papers.comparing import ABSENT, Comparison, scores
from mdlearn_papers.documents import Block, Heading, Report, Table
from mdlearn_papers.lsvm.trials import (
    LINES,
    PUBLISHED,
    Method,
    fold_of,
    folds,
    powers,
    prepared,
    present,
    spread,
    tried,
)
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Experiment, Record, Settings, Study, Unit

POINT, NEWTON, QP, LIGHT = "LSVM, fixed point", "LSVM, newton", "SVM, interior point", "SVM, libsvm"
RAW = " (columns as they are)"
"""What is added to the names of methods on columns that are not scaled."""


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """One per fold, set and problem."""
    return [Unit(i, name, part) for i in folds(settings) for name in present(sets, settings) for part in PARTS]


PARTS = ("lsvm", "raw", "svm")


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """Contenders of one problem on one fold."""
    X, y = prepared(sets, unit.data, scaled=unit.part != "raw")
    parts = fold_of(X, y, unit.data, unit.repeat, settings)
    grid = powers(4.0, -5, 5, settings)
    if unit.part == "svm":
        method = Method(QP, "svm", {"C": grid}, {"solver": "interior", "bias": "free"})
        record, _ = tried(method, unit.data, unit.repeat, parts, settings)
        return [record, *_libsvm(record, parts)]
    added = RAW if unit.part == "raw" else ""
    methods = (
        Method(POINT + added, "lsvm", {"nu": grid}, PUBLISHED),
        Method(NEWTON + added, "lsvm", {"nu": grid}, {"solver": "newton"}),
    )
    return [tried(method, unit.data, unit.repeat, parts, settings)[0] for method in methods]


def _libsvm(like: Record, parts: Parts) -> list[Record]:
    """scikit-learn's SVC at the C that the interior point chose; nothing where scikit-learn is not installed."""
    try:
        from sklearn.svm import SVC
    except ImportError:
        return []
    machine = SVC(kernel="linear", C=like.chosen["C"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        machine.fit(parts.X, parts.y)
        seconds = time.perf_counter() - started
    values = {
        "accuracy": accuracy(parts.y_test, machine.predict(parts.X_test)),
        "training": accuracy(parts.y, machine.predict(parts.X)),
        "training_seconds": seconds,
        "iterations": float(np.max(machine.n_iter_)),
    }
    return [Record(like.data, LIGHT, like.repeat, values, dict(like.chosen), seconds=seconds)]


STUDY = Study("lsvm-uci", units, run, version=2)


def report(records: Sequence[Record], sets: Sets, settings: Settings) -> Report:
    """Tables of accuracy, and of one training at the chosen parameter."""
    lines, methods = LINES, [POINT, NEWTON, QP, LIGHT]
    with_libsvm = any(record.method == LIGHT for record in records)
    scaled = [record for record in records if not record.method.endswith(RAW)]
    blocks: list[Block] = [
        "Test accuracy in per cent: mean and standard deviation over the folds of a tenfold cross-validation"
        + (" (a quick run: two of the folds, and few values of nu and C)." if settings.quick else ".")
        + " Within each training part nu (of the SVM: C) was chosen by tenfold cross-validation from "
        + ("4^-5, 4^-2, 4 and 4^4" if settings.quick else "4^-5, 4^-4, ..., 4^5")
        + ". The slides' own figures did not survive, so there is nothing printed to compare with. Neither the values "
        "of nu that were tried nor the scaling are known: columns were given zero mean and unit deviation, and a table "
        "below has the columns as they are. Outer folds are drawn at random, inner ones by class; they are the same "
        "for all methods. Missing votes count 0, between no and yes.",
        "The fixed point is the published program: alpha = 1.9/nu, an end at a step of 1e-5 or after 100 iterations. "
        "LSVM by newton is the same problem solved to a certified gap. The quadratic program (SVM-QP on the slides) is "
        "the hinge loss with a bias that is not punished, by interior points. SVMlight's part is taken by libsvm"
        + (
            " (scikit-learn's SVC) with its own tolerance of 1e-3, at the C chosen for the quadratic program."
            if with_libsvm
            else ", which needs scikit-learn and is left out here."
        ),
    ]
    comparison = Comparison(lines, methods, {}, POINT, selection.paired_test, unit=100.0)
    blocks += comparison.blocks(scaled, sets)
    blocks += [Heading("One training at the chosen parameter"), training(scaled, methods), READING]
    blocks += [Heading("Columns as they are"), training(records, [POINT + RAW, NEWTON + RAW])]
    blocks += [agreement(records)] if records else []
    return Report("LSVM against SVM-QP and SVMlight on UCI sets (LSVM slides 17 and 18)", blocks)


READING = (
    "The fixed point's rate is max(0.9, 1 - 1.9/(1 + nu s^2)), where s is the largest singular value of the rows with "
    "their constant: 100 iterations are enough where nu is small, and not where columns are long. The gap tells which "
    "it was. Seconds of such small sets are mostly those of the call; they order the methods only where they differ by "
    "several times."
)


def training(records: Sequence[Record], methods: Sequence[str]) -> Table:
    """Training and test accuracy, chosen value, iterations, gap and seconds."""
    kinds = ("training", "accuracy", "iterations", "training_gap", "training_seconds")
    found = {kind: scores(records, kind) for kind in kinds}
    rows = []
    for line in LINES:
        for method in methods:
            place = (line.data or "", method)
            if place not in found["accuracy"]:
                continue
            chosen = [next(iter(one.chosen.values())) for one in records if (one.data, one.method) == place]
            gaps = found["training_gap"].get(place)
            rows.append(
                [
                    line.label,
                    method.removesuffix(RAW),
                    spread(found["training"][place], 100, 2),
                    spread(found["accuracy"][place], 100, 2),
                    f"{float(np.median(chosen)):.3g}",
                    f"{found['iterations'][place].mean():.0f}",
                    ABSENT if gaps is None else f"{gaps.max():.0e}",
                    f"{1000 * found['training_seconds'][place].mean():.1f}",
                ]
            )
    header = ["data", "method", "training", "test", "nu or C", "iterations", "gap", "milliseconds"]
    caption = "nu or C: median over the folds; gap: the largest of the folds, by the certificate; one thread."
    return Table(header, rows, caption)


def agreement(records: Sequence[Record]) -> str:
    """How often the published end and the optimum have another test accuracy, and whether nu was another one."""
    found = {(one.data, one.method, one.repeat): one for one in records if one.values}
    told = []
    for added, what in (("", "scaled columns"), (RAW, "columns as they are")):
        pairs = [
            (one, found[data, NEWTON + added, i])
            for (data, method, i), one in found.items()
            if method == POINT + added and (data, NEWTON + added, i) in found
        ]
        apart = [(a, b) for a, b in pairs if a.values["accuracy"] != b.values["accuracy"]]
        if pairs:
            told.append(f"{len(pairs) - len(apart)} of {len(pairs)} folds on {what}")
        if apart:
            most = max(abs(a.values["accuracy"] - b.values["accuracy"]) for a, b in apart)
            others = sum(a.chosen != b.chosen for a, b in apart)
            told[-1] += f" (else up to {100 * most:.1f} points apart; another nu was chosen in {others})"
    return f"Fixed point and newton have the same test accuracy on {' and '.join(told)}." if told else "Not run yet."


EXPERIMENT = Experiment("lsvm-uci", "LSVM slides 17 and 18: accuracy and time on UCI sets", STUDY, report)
