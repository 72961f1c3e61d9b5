"""The study of tables 3 to 5: several classes, fuzzy pairwise, RBF kernels."""

from __future__ import annotations

from types import MappingProxyType

from mdlearn_papers import printed
from mdlearn_papers.comparing import Line
from mdlearn_papers.judging import judged
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, generator, stratified_folds, unit_range
from mdlearn_papers.studies import Record, Settings, Study, Unit
from mdlearn_papers.uldm.machines import C_ULDM, FOLDS, MACHINES, Machine, options

NAMES: dict[str, str | None] = {
    "Numeral": None,
    "Thyroid": "ann_thyroid",
    "Blood cell": None,
    "Hiragana-50": None,
    "Hiragana-13": None,
    "Hiragana-105": None,
    "Satimage": "satimage",
    "USPS": "usps",
    "Letter": None,
}
"""What the paper prints, and the name in the catalogue."""
GIVEN, CHOSEN = "printed parameters", "cross-validated"
ORDER = (5.0, 50.0, 10.0, 200.0, 15.0, 20.0, 100.0, 1.0, 0.5, 0.1, 0.01)
"""Values of gamma, those that table 3 prints first: a run that ends early has them."""
PAPERS = ("ULDM", "LS SVM", "L1 SVM")
BARE = "ULDM, no bias"
VARIANTS: dict[str, Machine] = {
    **MACHINES,
    BARE: Machine("uldm", C_ULDM, MappingProxyType({"c_scaling": "max_diag", "bias": "none"})),
}
"""Machines of the fits with printed parameters; the parts of their names before a comma are the paper's."""


def printed_parameters() -> dict[tuple[str, str], tuple[float, float]]:
    """C and gamma of table 3 by (label, machine)."""
    told = {}
    for row in printed.table("uldm_table3_parameters"):
        label = row["dataset (inputs/classes/train/test)"].split(" (")[0]
        for machine in PAPERS:
            C, gamma = row[machine].split(",")
            told[label, machine] = float(C), float(gamma)
    return told


def lines(sets: Sets) -> list[Line]:
    """Every set of the paper."""
    return [Line(label, data, "" if data else "could not be had") for label, data in NAMES.items()]


def units(sets: Sets, settings: Settings) -> list[Unit]:
    """Fits with the printed parameters, then cross-validation one kernel width after the other."""
    made = []
    for data in NAMES.values():
        if data is None or not sets.has(data) or (settings.quick and data == "usps"):
            continue
        made += [Unit(0, data, f"{machine}, {GIVEN}") for machine in VARIANTS]
        if not settings.quick:
            made += [Unit(1 + i, data, f"{machine}, {CHOSEN}") for i in range(len(ORDER)) for machine in PAPERS]
    return made


def run(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One machine with one kernel width."""
    name, way = unit.part.rsplit(", ", 1)
    machine, parts = VARIANTS[name], prepared(unit, sets, settings)
    inputs = parts.X.shape[1]
    fixed = {**options(machine, "rbf"), "multiclass": "fuzzy-min", "seed": settings.seed}
    told = (unit.data, unit.part, unit.repeat, parts, machine.objective)
    if way == GIVEN:
        label = next(label for label, data in NAMES.items() if data == unit.data)
        C, gamma = printed_parameters()[label, name.split(",")[0]]
        return [judged(*told, None, C=C, gamma=gamma / inputs, **fixed)[0]]
    folds = stratified_folds(parts.y, FOLDS, generator(settings.seed, unit.data, 0))
    grid = {"C": list(machine.C)}
    return [judged(*told, grid, cv=folds, gamma=ORDER[unit.repeat - 1] / inputs, **fixed)[0]]


def prepared(unit: Unit, sets: Sets, settings: Settings) -> Parts:
    """Inputs in [0, 1], and the split that comes with the data; a smoke run takes every eighth row."""
    found = sets.get(unit.data)
    if not found.train:
        raise ValueError(f"data set {unit.data} needs its training and test part")
    step = 8 if settings.quick else 1
    X = unit_range(found.X)
    train, test = slice(0, found.train, step), slice(found.train, None, step)
    return Parts(X[train], found.y[train], X[test], found.y[test])


STUDY = Study("uldm-multiclass", units, run)
