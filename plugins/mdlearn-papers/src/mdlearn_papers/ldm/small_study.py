"""Runs of tables 2 and 3 of the LDM paper: one method, one set, one half split at a time."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from mdlearn import ConvergenceWarning, fit_path
from mdlearn_papers.judging import judged
from mdlearn_papers.ldm import protocol
from mdlearn_papers.ldm.small import SMALL, halves, present
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Record, Settings, Study, Unit
from mdlearn_papers.surveys import SUFFIX, reached, surveyed

QUICK = ("parkinsons", "sonar", "haberman")

WITH_BIAS = "SVM, regularised bias"
LARGE_C = "SVM, C times rows"
SIGNED = "SVM, columns in [-1, 1]"
NARROW = "SVM, gamma = 1 / width^2"
READINGS = {"linear": (WITH_BIAS, LARGE_C, SIGNED), "rbf": (WITH_BIAS, NARROW)}
"""Readings that all sets have; further ones are codings of single sets."""
ONE_PASS = "SVM, one pass"
"""An optimiser that is stopped early: averaged stochastic gradients, every training row once."""
ASIDE = {
    "linear": (ONE_PASS, protocol.SVM + SUFFIX),
    "rbf": tuple(one + SUFFIX for one in (protocol.SVM, protocol.MAMC, protocol.KMOMD)),
}
"""Experiments on the first splits: what else the printed figures could be of."""
ASIDE_REPEATS = 10


@dataclass(frozen=True)
class Survey:
    """Every point of a method's grid under one reading of the protocol.

    Attributes
    ----------
    name : str
        Of the reading.
    method : str
        As the paper prints it.
    grid : str
        The method whose grid it is.
    bias : str
    signed : bool
        Whether columns are in [-1, 1].
    recoded : bool
        Whether it is of every other coding of a set, and not of the table's own.
    """

    name: str
    method: str
    grid: str
    bias: str = "none"
    signed: bool = False
    recoded: bool = False

    def label(self, coding: str) -> str:
        """The method of a record."""
        return f"{self.method}, {', '.join(filter(None, (coding, self.name)))}"


SURVEYS = {
    "linear": (
        Survey("scale-aware grid", protocol.LDM, protocol.SCALED),
        Survey("scale-aware grid, regularised bias", protocol.LDM, protocol.SCALED, "regularized", recoded=True),
        Survey("rates 1 to 300", protocol.MDO, protocol.RATED),
        Survey("", protocol.KMOMD, protocol.KMOMD, "free"),
        Survey("columns in [-1, 1], regularised bias", protocol.MAMC, protocol.MAMC, "regularized", signed=True),
    ),
    "rbf": (Survey("", protocol.SVM, protocol.SVM, recoded=True),),
}
"""Further experiments on the first splits."""


def units(kernel: str, sets: Sets, settings: Settings) -> list[Unit]:
    """All methods on all sets that are there."""
    names = present(sets, QUICK if settings.quick else tuple(SMALL))
    known = protocol.methods(kernel)
    aside = [part for part in ASIDE[kernel] if part == ONE_PASS or part.removesuffix(SUFFIX) in known]
    found = [
        Unit(repeat, name, part)
        for repeat in range(2 if settings.quick else protocol.REPEATS)
        for name in names
        for part in (*known, protocol.READINGS, *(aside if repeat < ASIDE_REPEATS else ()))
    ]
    return found + [
        Unit(repeat, name, part)
        for repeat in range(2 if settings.quick else ASIDE_REPEATS)
        for name in names
        for part, (one, _) in surveys(kernel, name).items()
        if one.method in known
    ]


def surveys(kernel: str, name: str) -> dict[str, tuple[Survey, str]]:
    """Surveys of a set, and the coding each has, by the part that it is."""
    return {
        one.label(coding) + SUFFIX: (one, coding)
        for one in SURVEYS[kernel]
        for coding in (SMALL[name].other if one.recoded else ("",))
    }


def run(kernel: str, unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One method on one split; with LDM, its predictions at the ends of its grid."""
    if unit.part == protocol.READINGS:
        return readings(kernel, unit, sets, settings)
    parts = halves(sets, unit.data, settings.seed, unit.repeat)
    if unit.part == ONE_PASS:
        early: dict[str, Any] = {"solver": "asgd", "solver_options": {"epochs": 1}}
        return [chosen(kernel, unit, protocol.SVM, ONE_PASS, parts, settings, **early)]
    if unit.part in surveys(kernel, unit.data):
        return [survey(kernel, unit, *surveys(kernel, unit.data)[unit.part], sets, settings)]
    if unit.part.endswith(SUFFIX):
        method, seed = unit.part.removesuffix(SUFFIX), settings.seed + unit.repeat
        told = (
            unit.data,
            method,
            unit.repeat,
            parts,
            protocol.OBJECTIVES[method],
            asked(kernel, method, parts, settings),
        )
        return [surveyed(*told, cv=protocol.FOLDS, seed=seed, **fixed_of(kernel, method))]
    record = chosen(kernel, unit, unit.part, unit.part, parts, settings)
    if unit.part != protocol.LDM:
        return [record]
    return [record, ends(kernel, unit, parts, record)]


def survey(kernel: str, unit: Unit, one: Survey, coding: str, sets: Sets, settings: Settings) -> Record:
    """A survey on one split."""
    parts = halves(sets, unit.data, settings.seed, unit.repeat, coding)
    points = asked(kernel, one.grid, parts, settings)
    spaces = [in_signed_range(parts) if one.signed else parts]
    told = unit.data, one.label(coding), unit.repeat, spaces, protocol.OBJECTIVES[one.method], points
    return reached(*told, seed=settings.seed + unit.repeat, kernel=kernel, bias=one.bias)


def in_signed_range(parts: Parts) -> Parts:
    """Columns in [-1, 1] in place of [0, 1]."""
    return replace(parts, X=2.0 * parts.X - 1.0, X_test=2.0 * parts.X_test - 1.0)


def asked(kernel: str, method: str, parts: Parts, settings: Settings) -> protocol.Points:
    """Points of a method's grid, the kernel's widths included."""
    points = protocol.grid(method, parts.y.shape[0], kernel, settings.quick)
    return points if kernel == "linear" else protocol.with_kernel(points, protocol.gammas(parts.X, settings.quick))


def fixed_of(kernel: str, method: str) -> dict[str, Any]:
    """Arguments of all fits of a method."""
    return {"bias": "free" if method == protocol.KMOMD else "none", "kernel": kernel}


def chosen(
    kernel: str,
    unit: Unit,
    method: str,
    label: str,
    parts: Parts,
    settings: Settings,
    *,
    factor: Mapping[str, float] | None = None,
    **fixed: Any,
) -> Record:
    """Parameters by 5-fold cross-validation on the training half, the same folds for all methods.

    Parameters
    ----------
    kernel : str
    unit : Unit
    method : str
    label : str
        The method's name in the record.
    parts : Parts
    settings : Settings
    factor : mapping, optional
        What values of the grid are multiplied by.
    **fixed
        Further arguments of the fits.
    """
    times = factor or {}
    points = [
        {name: value * times.get(name, 1.0) for name, value in point.items()}
        for point in asked(kernel, method, parts, settings)
    ]
    return judged(
        unit.data,
        label,
        unit.repeat,
        parts,
        protocol.OBJECTIVES[method],
        points if points != [{}] else None,
        cv=protocol.FOLDS,
        seed=settings.seed + unit.repeat,
        **{**fixed_of(kernel, method), **fixed},
    )[0]


def ends(kernel: str, unit: Unit, parts: Parts, record: Record) -> Record:
    """How many test rows get another label when both weights go from 0 to the largest of the grid, for every C."""
    most = protocol.WEIGHTS[-1]
    points = [{"C": C, "lambda1": one, "lambda2": one} for C in protocol.C for one in (0.0, most)]
    at = {"gamma": record.chosen["gamma"]} if kernel == "rbf" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        path = fit_path("ldm", parts.X, parts.y, points, kernel=kernel, bias="none", n_threads=1, **at)
    told = [model.predict(parts.X_test) for model in path]
    flips = [int((told[i] != told[i + 1]).sum()) for i in range(0, len(told), 2)]
    return replace(
        record,
        method=protocol.ENDS,
        values={"flips": flips, "tested": parts.y_test.shape[0]},
        chosen=at,
        fits=len(points),
        converged=int(path.converged.sum()),
        gap=float(path.gap.max()),
        seconds=path.elapsed,
    )


def readings(kernel: str, unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """The SVM where the protocol is read in another way: a bias, other scalings, other codings, another width."""
    parts = halves(sets, unit.data, settings.seed, unit.repeat)
    find = partial(chosen, kernel, unit, protocol.SVM, settings=settings)
    records = [find(WITH_BIAS, parts, bias="regularized")]
    if kernel == "rbf":
        records.append(find(NARROW, parts, factor={"gamma": 2.0}))
    else:
        times = {"C": float(parts.y.shape[0])}
        records += [find(LARGE_C, parts, factor=times), find(SIGNED, in_signed_range(parts))]
    for coding in SMALL[unit.data].other:
        records.append(find(f"SVM, {coding}", halves(sets, unit.data, settings.seed, unit.repeat, coding)))
    return records


def _run_linear(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    return run("linear", unit, sets, settings)


def _run_rbf(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    return run("rbf", unit, sets, settings)


LINEAR = Study("ldm-small-linear", partial(units, "linear"), _run_linear)
RBF = Study("ldm-small-rbf", partial(units, "rbf"), _run_rbf)
