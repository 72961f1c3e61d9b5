"""Large sets of the LDM paper: runs of table 4 (accuracies) and of figure 2 (CPU times)."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mdlearn import ConvergenceWarning, Model, fit
from mdlearn_papers.comparing import Line
from mdlearn_papers.judging import judged, measured
from mdlearn_papers.ldm import protocol
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, at_random, generator, unit_range
from mdlearn_papers.studies import Record, Settings, Study, Unit

REPEATS = 10
EPOCHS = 5
ADULT = 32561
"""Rows of adult-a: the training part of a9a."""
ASGD: dict[str, Any] = {"solver": "asgd", "solver_options": {"epochs": EPOCHS}}

SOURCES = {"adult-a": "a9a", "ijcnn1": "ijcnn1"}
ABSENT = "farm-ads news20 w8a cod-rna real-sim skin covtype rcv1 url kdd2010".split()
ORDER = "farm-ads news20 adult-a w8a cod-rna real-sim ijcnn1 skin covtype rcv1 url kdd2010".split()
IJCNN1 = "columns as in the file, which the [0, 1] of the paper's protocol changes: see below"

EXACT = "LDM, exact engine"
UNIT_RANGE = "columns in [0, 1]"

LINEARSVC, ASGD_SVM, LDM_ASGD, EXACT_SVM = "SVM by LIBLINEAR", "SVM by ASGD", "LDM by ASGD", "SVM, exact engine"
TIMED = (LINEARSVC, EXACT_SVM, ASGD_SVM, LDM_ASGD, EXACT)


def lines() -> list[Line]:
    """The lines of table 4."""
    return [
        Line(name, None, "no copy of the data at hand")
        if name in ABSENT
        else Line(name, name, IJCNN1 if name == "ijcnn1" else "", SOURCES[name])
        for name in ORDER
    ]


def halves(sets: Sets, name: str, seed: int, repeat: int, scaled: bool = False) -> Parts:
    """A random half of the rows for training; columns as they are in the file unless `scaled`."""
    found = sets.get(SOURCES[name])
    rows = ADULT if name == "adult-a" else found.y.shape[0]
    X = found.X[:rows]
    if scaled:
        X = unit_range(X if isinstance(X, np.ndarray) else X.toarray())
    return at_random(X, found.y[:rows], rows // 2, generator(seed, name, repeat))


def units(parts: Callable[[], list[str]], repeats: int, sets: Sets, settings: Settings) -> list[Unit]:
    """All parts of all sets that are there, of the first alone for a smoke run."""
    names = [name for name, source in SOURCES.items() if sets.has(source)][: 1 if settings.quick else None]
    return [
        Unit(repeat, name, part)
        for repeat in range(2 if settings.quick else repeats)
        for name in names
        for part in parts()
    ]


def table_parts() -> list[str]:
    """What table 4 runs."""
    return [one for one in protocol.methods("linear") if one != protocol.SCALED] + [UNIT_RANGE]


def run_table(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """One method on one split; with LDM, its optimum at the parameters that ASGD's cross-validation chose."""
    if unit.part == UNIT_RANGE:
        parts = halves(sets, unit.data, settings.seed, unit.repeat, scaled=True)
        few: protocol.Points = [{"C": C} for C in protocol.C]
        middle = protocol.WEIGHTS[3]
        return [
            _judged(unit, f"SVM, {UNIT_RANGE}", parts, "svm", few, settings),
            _judged(unit, f"LDM, {UNIT_RANGE}", parts, "ldm", few, settings, lambda1=middle, lambda2=middle, **ASGD),
        ]
    parts = halves(sets, unit.data, settings.seed, unit.repeat)
    if unit.part != protocol.LDM:
        points = protocol.grid(unit.part, parts.y.shape[0], "linear", settings.quick)
        bias = "free" if unit.part == protocol.KMOMD else "none"
        objective = protocol.OBJECTIVES[unit.part]
        return [_judged(unit, unit.part, parts, objective, points, settings, bias=bias)]
    grid = weights(settings.quick)
    record = _judged(unit, protocol.LDM, parts, "ldm", grid, settings, **ASGD)
    return [record, exact(unit, parts, record, settings)]


def weights(quick: bool) -> protocol.Points:
    """The grid of LDM on large sets: every third weight, which spans the paper's."""
    few = protocol.WEIGHTS[:: 6 if quick else 3]
    return [{"C": C, "lambda1": one, "lambda2": two} for C in protocol.C for one in few for two in few]


def exact(unit: Unit, parts: Parts, record: Record, settings: Settings) -> Record:
    """The certified optimum at the chosen parameters, and how far above it ASGD ends."""
    seed = settings.seed + unit.repeat
    model, seconds = _fitted("ldm", parts, seed, bias="none", **record.chosen)
    averaged, _ = _fitted("ldm", parts, seed, bias="none", **record.chosen, **ASGD)
    lower = model.certificate.lower_bound
    values = measured(model, parts) | {"excess": averaged.certificate.objective / lower - 1.0}
    proof = model.certificate
    return replace(
        record,
        method=EXACT,
        values=values,
        fits=1,
        converged=int(proof.converged),
        gap=proof.gap,
        seconds=seconds,
    )


def _judged(
    unit: Unit, label: str, parts: Parts, objective: str, points: protocol.Points, settings: Settings, **fixed: Any
) -> Record:
    return judged(
        unit.data,
        label,
        unit.repeat,
        parts,
        objective,
        points if points != [{}] else None,
        cv=protocol.FOLDS,
        seed=settings.seed + unit.repeat,
        **{"bias": "none", **fixed},
    )[0]


def _fitted(objective: str, parts: Parts, seed: int, **fixed: Any) -> tuple[Model, float]:
    """A model, and the CPU seconds of its fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        started = time.process_time()
        model = fit(objective, parts.X, parts.y, random_state=seed, n_threads=1, **fixed)
        return model, time.process_time() - started


def time_parts() -> list[str]:
    """What figure 2 times: LIBLINEAR only where scikit-learn is installed."""
    try:
        import sklearn.svm  # noqa: F401
    except ImportError:
        return [one for one in TIMED if one != LINEARSVC]
    return list(TIMED)


def run_times(unit: Unit, sets: Sets, settings: Settings) -> list[Record]:
    """CPU seconds of one fit at every C, weights at the middle of the grid, and its objective above the optimum."""
    parts = halves(sets, unit.data, settings.seed, unit.repeat)
    seconds, excess, accuracies = [], [], []
    middle = protocol.WEIGHTS[3] if unit.part in (LDM_ASGD, EXACT) else 0.0
    for C in protocol.C:
        given = {"C": C, "lambda1": middle, "lambda2": middle, "bias": "none"}
        best, own = _fitted("ldm", parts, settings.seed + unit.repeat, **given)
        lower = best.certificate.lower_bound
        if unit.part == LINEARSVC:
            objective, accuracy, own = _liblinear(parts, C, settings.seed + unit.repeat)
        else:
            model = best
            if unit.part in (ASGD_SVM, LDM_ASGD):
                model, own = _fitted("ldm", parts, settings.seed + unit.repeat, **given, **ASGD)
            objective, accuracy = model.certificate.objective, measured(model, parts)["accuracy"]
        seconds.append(own)
        excess.append(objective / lower - 1.0)
        accuracies.append(accuracy)
    values = {"seconds": seconds, "excess": excess, "accuracies": accuracies}
    return [Record(unit.data, unit.part, unit.repeat, values, seconds=sum(seconds))]


def _liblinear(parts: Parts, C: float, seed: int) -> tuple[float, float, float]:
    """Objective, test accuracy and CPU seconds of scikit-learn's LinearSVC with the hinge loss, its defaults."""
    from sklearn.exceptions import ConvergenceWarning as NotConverged
    from sklearn.svm import LinearSVC

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotConverged)
        started = time.process_time()
        model = LinearSVC(loss="hinge", C=C, fit_intercept=False, random_state=seed).fit(parts.X, parts.y)
        seconds = time.process_time() - started
    w = model.coef_[0]
    z = np.where(parts.y == model.classes_[1], 1.0, -1.0) * (parts.X @ w)
    objective = 0.5 * float(w @ w) + C * float(np.maximum(0.0, 1.0 - z).sum())
    return objective, float((model.predict(parts.X_test) == parts.y_test).mean()), seconds


LARGE = Study("ldm-large", partial(units, table_parts, REPEATS), run_table)
TIMES = Study("ldm-times", partial(units, time_parts, 3), run_times)
