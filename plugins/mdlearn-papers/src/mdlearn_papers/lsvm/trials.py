"""Sets of the LSVM slides, the folds of their cross-validation, and one method on one fold."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mdlearn import ConvergenceWarning, Model, fit
from mdlearn.extend import accuracy
from mdlearn_papers.comparing import Line
from mdlearn_papers.judging import judged, measured
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, generator, stratified_folds, taken, unit_deviation
from mdlearn_papers.studies import Record, Settings

FOLDS = 10
"""Of the outer cross-validation, which measures, and of the inner one, which chooses."""
PUBLISHED = {"solver": "smw", "solver_options": {"stop": "step"}}
"""The published program: alpha = 1.9 / nu, an end at a step of 1e-5 or after 100 iterations."""

LINES = (
    Line("bupa liver", "bupa"),
    Line("cleveland heart", "cleveland"),
    Line("pima diabetes", "pima_lsvm"),
    Line("tic-tac-toe", "tic_tac_toe_codes"),
    Line("votes", "vote"),
    Line("mushroom", "mushroom_lsvm"),
    Line("boston housing", "housing_binary"),
    Line("ionosphere", "ionosphere"),
    Line("galaxy dim", None, "could not be had"),
)
"""Sets of the slides."""
QUICK = ("bupa", "vote")


def present(sets: Sets, settings: Settings) -> list[str]:
    """Names of the sets of the slides that are there."""
    names = [line.data for line in LINES if line.data is not None]
    return [name for name in names if (not settings.quick or name in QUICK) and sets.has(name)]


def folds(settings: Settings) -> range:
    """Numbers of the folds that are run."""
    return range(2 if settings.quick else FOLDS)


def prepared(sets: Sets, name: str, scaled: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """Rows, with columns of zero mean and unit deviation over all rows if asked, and labels.

    Missing votes become 0, between no (-1) and yes (1): all 435 rows stay.

    Raises
    ------
    ValueError
        When votes are coded otherwise.
    """
    found = sets.get(name)
    X = np.asarray(found.X, dtype=np.float64)
    if name == "vote":
        if not np.isin(X[~np.isnan(X)], (0.0, 1.0)).all():
            raise ValueError("the votes of data set vote need to be 0 (no), 1 (yes) or missing")
        X = np.where(np.isnan(X), 0.0, 2.0 * X - 1.0)
    return (unit_deviation(X, X) if scaled else X), found.y


def fold_of(X: np.ndarray, y: np.ndarray, name: str, i: int, settings: Settings) -> Parts:
    """Fold i of ten of one random order of the rows is the test part."""
    order = generator(settings.seed, name, 0).permutation(y.shape[0])
    held = np.zeros(y.shape[0], dtype=bool)
    held[order[i::FOLDS]] = True
    return taken(X, y, np.flatnonzero(~held), np.flatnonzero(held))


@dataclass(frozen=True)
class Method:
    """A contender.

    Attributes
    ----------
    label : str
    objective : str
    grid : mapping of str to sequence
    fixed : mapping
        Further arguments of `mdlearn.fit`.
    most : int
        Training rows that hyper-parameters are chosen on, drawn at random where there are more; 0 for all.
    """

    label: str
    objective: str
    grid: Mapping[str, Sequence[Any]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    most: int = 0


def powers(base: float, low: int, high: int, settings: Settings) -> list[float]:
    """Powers of a base; of a quick run every third."""
    return [base**k for k in range(low, high + 1, 3 if settings.quick else 1)]


def tried(method: Method, data: str, i: int, parts: Parts, settings: Settings) -> tuple[Record, Model]:
    """Choose by tenfold cross-validation within the training part, train, time one more training, and test."""
    started = time.perf_counter()
    few = drawn(parts, method.most, data, i, settings)
    inner = stratified_folds(few.y, FOLDS, generator(settings.seed, data, 1000 + i))
    record, model = judged(
        data, method.label, i, few, method.objective, method.grid, cv=inner, seed=settings.seed, **method.fixed
    )
    model, seconds = trained(method, parts, record.chosen, settings)
    values = {
        **measured(model, parts),
        "training": accuracy(parts.y, model.predict(parts.X)),
        "training_seconds": seconds,
        "iterations": float(model.n_iter),
        "training_gap": model.certificate.gap,
    }
    full = replace(
        record,
        values=values,
        fits=record.fits + 1,
        converged=record.converged + model.certificate.converged,
        gap=max(record.gap, model.certificate.gap),
        seconds=time.perf_counter() - started,
    )
    return full, model


def trained(method: Method, parts: Parts, chosen: Mapping[str, Any], settings: Settings) -> tuple[Model, float]:
    """One fit to the training part, with its seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record counts fits that are not certified
        started = time.perf_counter()
        model = fit(
            method.objective, parts.X, parts.y, random_state=settings.seed, n_threads=1, **chosen, **method.fixed
        )
        return model, time.perf_counter() - started


def drawn(parts: Parts, most: int, data: str, i: int, settings: Settings) -> Parts:
    """At most so many of the training rows, at random; 0 leaves all."""
    m = parts.y.shape[0]
    if not 0 < most < m:
        return parts
    rows = np.sort(generator(settings.seed, data, 1 + i).permutation(m)[:most])
    return Parts(parts.X[rows], parts.y[rows], parts.X_test, parts.y_test)


def spread(values: np.ndarray, unit: float, digits: int) -> str:
    """Mean and standard deviation as text."""
    mean = f"{unit * float(values.mean()):.{digits}f}"
    return mean if values.shape[0] < 2 else f"{mean} ± {unit * float(values.std(ddof=1)):.{digits}f}"
