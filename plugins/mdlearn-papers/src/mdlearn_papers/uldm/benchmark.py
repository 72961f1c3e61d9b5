"""The study of tables 1 and 2: Raetsch's two-class sets, RBF kernels, parameters by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn_papers import printed
from mdlearn_papers.comparing import Line
from mdlearn_papers.judging import judged
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, at_random, generator, stratified_folds, taken, unit_range
from mdlearn_papers.studies import Record, Settings, Study, Unit
from mdlearn_papers.surveys import SUFFIX, surveyed
from mdlearn_papers.uldm.machines import FOLDS, MACHINES, grid, options

NAMES = {
    "Banana": "ida_banana",
    "Breast cancer": "ida_breast_cancer",
    "Diabetes": "ida_diabetis",
    "Flare-solar": "ida_flare_solar",
    "German": "ida_german",
    "Heart": "ida_heart",
    "Image": "ida_image",
    "Ringnorm": "ida_ringnorm",
    "Splice": "ida_splice",
    "Thyroid": "ida_thyroid",
    "Titanic": "ida_titanic",
    "Twonorm": "ida_twonorm",
    "Waveform": "ida_waveform",
}
"""What the paper prints, and the name in the catalogue."""
QUICK = ("Heart", "Thyroid", "Titanic")
SCALED, GROUPED = "LS SVM, inputs in [0, 1]", "LS SVM, equal rows in one fold"
ASIDE = {SCALED: "LS SVM", GROUPED: "LS SVM"}
"""Experiments beside the table, with the machine that each one changes."""
ASIDE_REPEATS = 10
REDRAWN, REDRAWN_SET, REDRAWN_REPEATS = "ULDM, random splits", "Breast cancer", 30
"""Whether the splits at hand are harder than others, on the set that is furthest from the printed figure."""
SURVEYED = "Breast cancer"
"""The set on which every point of the grids is tested."""
STANDARDISED = {
    "Diabetes": "rows of UCI's Pima set, columns standardised",
    "Heart": "rows of UCI's Statlog heart, columns standardised",
    "Ringnorm": "rows of the DELVE set, columns standardised",
}
"""What a set without the original splits was made of."""


@dataclass(frozen=True)
class Size:
    """Training rows and splits of a set, as printed."""

    train: int
    splits: int


SIZES = {row["dataset"]: Size(int(row["train"]), int(row["splits"])) for row in printed.table("uldm_table1_rbf")}


def lines(sets: Sets) -> list[Line]:
    """Every set of the paper, with what is to be known of it."""
    told = []
    for label, data in NAMES.items():
        note = ""
        if sets.has(data) and not sets.get(data).splits:
            note = "random splits of the paper's sizes, the original ones are not at hand"
            note += f"; {STANDARDISED[label]}" if label in STANDARDISED else ""
        told.append(Line(label, data, note))
    return told


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """Splits of the sets that are there, repeat by repeat."""
    made = []
    for label in QUICK if settings.quick else NAMES:
        data = NAMES[label]
        if sets.has(data):
            n = 2 if settings.quick else SIZES[label].splits
            given = len(sets.get(data).splits)
            for repeat in range(min(n, given) if given else n):
                aside = tuple(ASIDE) if repeat < ASIDE_REPEATS else ()
                made += [Unit(repeat, data, part) for part in (*MACHINES, *aside)]
            if given and label == REDRAWN_SET and not settings.quick:
                made += [Unit(repeat, data, REDRAWN) for repeat in range(REDRAWN_REPEATS)]
            if label == SURVEYED and not settings.quick:
                made += [Unit(repeat, data, name + SUFFIX) for repeat in range(ASIDE_REPEATS) for name in MACHINES]
    return made


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One machine on one split."""
    if unit.part.endswith(SUFFIX):
        return [survey(unit, unit.part.removesuffix(SUFFIX), sets, settings)]
    name = "ULDM" if unit.part == REDRAWN else ASIDE.get(unit.part, unit.part)
    parts, folds = drawn(unit, sets, settings)
    if unit.part == GROUPED:
        folds = FOLDS
    record, _ = chosen(unit, name, parts, folds, settings)
    return [record]


def chosen(unit: Unit, machine: str, parts: Parts, folds: Any, settings: Settings, kernel: str = "rbf") -> Any:
    """Record and model of a machine with the parameters that do best on the folds."""
    found = MACHINES[machine]
    values = grid(found, kernel, parts.X.shape[1], settings.quick)
    told = (unit.data, unit.part, unit.repeat, parts, found.objective, values)
    return judged(*told, cv=folds, seed=settings.seed, **options(found, kernel))


def survey(unit: Unit, machine: str, sets: Sets, settings: Settings) -> Record:
    """Every point of a machine's grid, on the folds of the protocol and on the test part."""
    found = MACHINES[machine]
    parts, folds = drawn(unit, sets, settings)
    values = grid(found, "rbf", parts.X.shape[1], settings.quick)
    told = (unit.data, machine, unit.repeat, parts, found.objective, values)
    return surveyed(*told, cv=folds, seed=settings.seed, **options(found, "rbf"))


def drawn(unit: Unit, sets: Sets, settings: Settings) -> tuple[Parts, Any]:
    """Training and test part and the folds of a split: the same for all machines."""
    found = sets.get(unit.data)
    X = np.asarray(found.X, dtype=np.float64)
    if unit.part == SCALED:
        X = unit_range(X)
    rng = generator(settings.seed, unit.data, unit.repeat)
    if found.splits and unit.part != REDRAWN:
        parts = taken(X, found.y, *found.splits[unit.repeat])
    else:
        label = next(label for label, data in NAMES.items() if data == unit.data)
        parts = at_random(X, found.y, SIZES[label].train, rng)
    return parts, stratified_folds(parts.y, FOLDS, rng)


STUDY = Study("uldm-benchmark", units, run)
