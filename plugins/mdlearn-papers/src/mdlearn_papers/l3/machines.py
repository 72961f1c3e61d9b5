"""The six methods of tables 3 and 4 with their grids, and one method on one set: chosen, fitted, timed and tested."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mdlearn import ConvergenceWarning, fit, list_objectives, select
from mdlearn.extend import accuracy
from mdlearn_papers.splitting import Parts
from mdlearn_papers.studies import Record
from mdlearn_papers.surveys import reached

FOLDS = 5
"""Of the cross-validation that chooses parameters, as in the paper."""
WEIGHTS = (1e-1, 1.0, 1e1, 1e2, 1e3, 1e4)
"""Weights c of the mean loss: a fit to m rows has C = c / m where the loss is summed."""
RIDGES = (1e-1, 1e-2, 1e-3)
"""Weights of the squared norm of LLSVM and ML3, whose loss is a mean."""


@dataclass(frozen=True)
class Machine:
    """A method of the tables.

    Attributes
    ----------
    objective : str
    grid : mapping of str to sequence
        Of what is chosen. "C" is the weight of the mean loss where `mean` says so.
    fixed : mapping
        What all points have.
    mean : bool
        Whether "C" of the grid, divided by the number of training rows, is that of the objective.
    clusters, landmarks : str
        Names of the parameters that take the paper's number of clusters, and the number of features; empty: none.
    scaled : bool
        Whether gamma of the grid is in units of 1 / d.
    binary : bool
        Whether the paper has it for two classes only.
    rows : {"light", "kernel", "heavy"}
        Which entry of `Size` says how many rows the last fit has.
    latent : bool
        Whether it takes `Size.latent` for the number of clusters.
    """

    objective: str
    grid: Mapping[str, Sequence[float]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    mean: bool = False
    clusters: str = ""
    landmarks: str = ""
    scaled: bool = False
    binary: bool = False
    rows: str = "light"
    latent: bool = False


LOCAL: dict[str, Any] = {"clusters": "n_clusters", "landmarks": "n_landmarks"}
MACHINES: dict[str, Machine] = {
    "RBF-SVM": Machine(
        "svm", {"C": (1.0, 10.0, 100.0), "gamma": (0.1, 0.3, 1.0)}, {"kernel": "rbf"}, scaled=True, rows="kernel"
    ),
    "Linear-SVM": Machine("svm", {"C": WEIGHTS}, mean=True),
    "CSVM": Machine("csvm", {"C": (1e2, 1e3, 1e4), "lam": (1.0, 10.0)}, mean=True, clusters="n_clusters", binary=True),
    "LLSVM": Machine("llsvm", {"lam": RIDGES}, clusters="n_anchors", rows="heavy"),
    "ML3": Machine("ml3", {"lam": RIDGES}, {"tol": 1e-2}, clusters="n_latent", rows="heavy", latent=True),
    "L3-SVMs": Machine("l3svm", {"C": WEIGHTS}, **LOCAL),
    "L3-SVMs, squared hinge": Machine("l3svm", {"C": WEIGHTS}, {"loss": "squared_hinge"}, **LOCAL),
    "L3-SVMs, c at most 100": Machine("l3svm", {"C": (1e-1, 1.0, 1e1, 1e2)}, **LOCAL),
}
"""As the paper prints them, and after them variants of ours."""


@dataclass(frozen=True)
class Size:
    """How much of a set a method gets.

    Attributes
    ----------
    clusters : int
        As table 2 of the paper prints it.
    chosen_on : int
        Training rows that parameters are chosen on.
    light, kernel, heavy : int
        Training rows of the last fit: of linear and local machines, of the RBF-SVM, and of LLSVM and ML3.
    latent : int
        Latent functions per class of ML3, whose cost grows with the square of them; 0: it is not run.
    """

    clusters: int
    chosen_on: int
    light: int
    kernel: int
    heavy: int
    latent: int


def available(name: str) -> bool:
    """Whether the library, or a plugin of it, has the objective of a method."""
    return MACHINES[name].objective in list_objectives()


def affordable(name: str, size: Size) -> bool:
    """Whether a method is run on a set of this size."""
    return size.latent > 0 or not MACHINES[name].latent


def tried(name: str, data: str, parts: Parts, size: Size, repeat: int, rng: np.random.Generator, seed: int) -> Record:
    """Choose parameters, fit and test; CPU seconds of this process for the last fit and for the test."""
    machine, started = MACHINES[name], time.perf_counter()
    order = rng.permutation(parts.y.shape[0])
    chosen_on = np.sort(order[: min(size.chosen_on, parts.y.shape[0])])
    fitted_to = np.sort(order[: min(getattr(size, machine.rows), parts.y.shape[0])])
    fixed = fixed_of(machine, size, parts.X.shape[1])
    grid = points(machine, parts.X.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the record counts fits that are not certified
        rows = chosen_on.shape[0] * (FOLDS - 1) / FOLDS
        asked = [for_rows(machine, point, rows) for point in grid]
        found = select(
            machine.objective,
            parts.X[chosen_on],
            parts.y[chosen_on],
            asked,
            cv=FOLDS,
            refit=False,
            random_state=seed,
            n_threads=1,
            **fixed,
        )
        best = grid[found.best_index]
        params = {**fixed, **for_rows(machine, best, fitted_to.shape[0])}
        X, y = parts.X[fitted_to], parts.y[fitted_to]
        begun = time.process_time()
        model = fit(machine.objective, X, y, random_state=seed, n_threads=1, **params)
        trained = time.process_time()
    right = accuracy(parts.y_test, model.predict(parts.X_test))
    tested = time.process_time()
    every = (*found.certificates, model.certificate)
    largest = max((parts.y_test == label).mean() for label in np.unique(parts.y))
    values = {
        "accuracy": right,
        "constant": float(largest),
        "train": trained - begun,
        "test": tested - trained,
        "rows": float(fitted_to.shape[0]),
        "chosen_on": float(chosen_on.shape[0]),
        "clusters": float(fixed.get(machine.clusters, 0)),
    }
    return Record(
        data,
        name,
        repeat,
        values,
        dict(best),
        len(every),
        sum(one.converged for one in every),
        max(one.gap for one in every),
        time.perf_counter() - started,
    )


def every_point(name: str, data: str, parts: Parts, size: Size, seed: int) -> Record:
    """Test accuracies of all points of a method's grid, each fitted to all training rows."""
    machine, d = MACHINES[name], parts.X.shape[1]
    asked = [for_rows(machine, point, parts.y.shape[0]) for point in points(machine, d)]
    return reached(data, name, 0, [parts], machine.objective, asked, seed=seed, **fixed_of(machine, size, d))


def fixed_of(machine: Machine, size: Size, d: int) -> dict[str, Any]:
    """What all points of a method have, with the paper's numbers of clusters and landmarks."""
    fixed = dict(machine.fixed)
    if machine.clusters:
        fixed[machine.clusters] = size.latent if machine.latent else size.clusters
    if machine.landmarks:
        fixed[machine.landmarks] = d
    return fixed


def points(machine: Machine, d: int) -> list[dict[str, float]]:
    """All combinations of a grid, gamma in units of the kernel exp(-gamma |x - z|^2)."""
    found: list[dict[str, float]] = [{}]
    for name, values in machine.grid.items():
        unit = 1.0 / d if machine.scaled and name == "gamma" else 1.0
        found = [{**point, name: unit * value} for point in found for value in values]
    return found


def for_rows(machine: Machine, point: Mapping[str, float], rows: float) -> dict[str, float]:
    """A point as the objective takes it when it is fitted to so many rows."""
    return {name: value / rows if machine.mean and name == "C" else value for name, value in point.items()}
