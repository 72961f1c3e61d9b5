"""What the tables of the paper share: the printed names of sets, halves of a set, grids, and what is told of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mdlearn import Model
from mdlearn_papers.comparing import Line
from mdlearn_papers.judging import Grid, judged
from mdlearn_papers.sources import Sets
from mdlearn_papers.splitting import Parts, complete, generator, taken
from mdlearn_papers.studies import Record

Rows = tuple[np.ndarray, np.ndarray]

LAMBDAS = tuple(2.0**k for k in (-3, -1, 1, 3))
"""Every other power of two of the paper's 2^-3, 2^-2, ..., 2^3."""
ALPHAS = (1.0, 5.0, 10.0)
"""Of the paper's 1, 2, ..., 10."""
SQUARED = tuple(10.0**k for k in range(-6, 1))
"""Weights lam of the squared norm; the paper does not state them."""
COSTS = tuple(10.0**k for k in range(-3, 4))
"""C of support vector machines; the paper does not state it."""

FILES = {
    "diabetes": "diabetes_pima",
    "ionosphere": "ionosphere",
    "australian": "australian",
    "heart": "heart",
    "promoter": "promoters",
    "vote": "vote",
    "house": "house",
}
"""Sets of tables 3 and 4 that can be had: printed name to the name of the data."""
UNSOLVABLE = ("promoters",)
"""Sets with more columns than training rows: without a ridge the paper's objective is unbounded below there."""

LINES = (
    Line("diabetes", "diabetes_pima"),
    Line("wdbc", None, "the prognostic set of 198 rows (151 and 47), which could not be had"),
    Line("ionosphere", "ionosphere"),
    Line("hypothyroid", None, "could not be had"),
    Line("australian", "australian"),
    Line("heart", "heart"),
    Line("promoter", "promoters", "57 nucleotides as numbers 0 to 3 (the paper does not state the coding)"),
    Line("vote", "vote", "no, missing and yes are 0, 1/2 and 1 (the paper does not state the coding)"),
    Line("house", "house", "the 232 complete rows of vote (the paper does not say what the set is)", "vote"),
)
"""Tables 3 and 4, as printed."""


@dataclass(frozen=True)
class Method:
    """An objective with its grid.

    Attributes
    ----------
    objective : str
    grid : mapping of str to values
    quick : mapping of str to values
        A smaller grid.
    fixed : mapping
        Further arguments of the fits.
    instead : Method or None
        What is fitted where a point of the grid has no optimum.
    """

    objective: str
    grid: Mapping[str, Sequence[Any]]
    quick: Mapping[str, Sequence[Any]]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    instead: Method | None = None

    def fitted(
        self, data: str, name: str, repeat: int, parts: Parts, quick: bool, seed: int, **fixed: Any
    ) -> tuple[Record, Model]:
        """Choose by 5-fold cross-validation in the training part, fit and test."""
        grid: Grid = self.quick if quick else self.grid
        try:
            return judged(data, name, repeat, parts, self.objective, grid, cv=5, seed=seed, **{**self.fixed, **fixed})
        except ValueError as error:
            if self.instead is None:
                raise
            record, model = self.instead.fitted(data, name, repeat, parts, quick, seed, **fixed)
            return replace(record, note=" ".join(str(error).split())), model

    def judge(self, data: str, name: str, repeat: int, parts: Parts, quick: bool, seed: int, **fixed: Any) -> Record:
        """The record of `fitted`."""
        return self.fitted(data, name, repeat, parts, quick, seed, **fixed)[0]


RIDGED = Method(
    "mdlm",
    {"lambda1": LAMBDAS, "lambda2": LAMBDAS, "ridge": (0.01, 0.1, 1.0)},
    {"lambda1": LAMBDAS[::3], "lambda2": LAMBDAS[:1], "ridge": (0.1,)},
    {"alpha": 5.0},
)
"""MDLM where its objective needs a ridge to have an optimum."""
METHODS = {
    "SVM": Method("svm", {"C": COSTS}, {"C": COSTS[1::2]}),
    "L2LR": Method("l2lr", {"lam": SQUARED}, {"lam": SQUARED[::3]}),
    "MLR": Method("mlr", {"lam": SQUARED, "alpha": ALPHAS}, {"lam": SQUARED[::3], "alpha": ALPHAS[::2]}),
    "LDM": Method(
        "ldm",
        {"C": (1.0, 10.0, 100.0), "lambda1": LAMBDAS[::3], "lambda2": LAMBDAS[::3]},
        {"C": (1.0, 100.0), "lambda1": LAMBDAS[:1], "lambda2": LAMBDAS[:1]},
    ),
    "MDLM": Method(
        "mdlm",
        {"lambda1": LAMBDAS, "lambda2": LAMBDAS, "alpha": ALPHAS},
        {"lambda1": LAMBDAS[::3], "lambda2": LAMBDAS[::3], "alpha": ALPHAS[:1]},
        {"ridge": 0.0},
        instead=RIDGED,
    ),
}
"""The methods of table 3, as printed."""


def rows(sets: Sets, data: str) -> Rows:
    """Rows and labels of a set of tables 3 and 4, in the units of its file.

    Nominal columns are as the notes of `LINES` say; of the columns of vote, 1/2 stands for an answer that is missing.
    """
    if data == "house":
        found = sets.get("vote")
        return complete(found.X, found.y)
    found = sets.get(data)
    if data == "promoters" and found.codes is not None:
        return np.asarray(found.codes, dtype=np.float64), found.y
    X = np.asarray(found.X, dtype=np.float64)
    return np.where(np.isnan(X), 0.5, X), found.y


def has(sets: Sets, data: str) -> bool:
    """Whether a set can be had from a folder; house is made from vote."""
    return sets.has("vote" if data == "house" else data)


def split(X: np.ndarray, y: np.ndarray, seed: int, data: str, repeat: int) -> Parts:
    """One half of twofold cross-validation for training, the other for testing.

    Repeats 2 r and 2 r + 1 are the two ways round of the r-th division. Every class is divided, up to one row.
    """
    rng = generator(seed, data, repeat // 2)
    first = np.zeros(y.shape[0], dtype=bool)
    extra = 0
    for label in np.unique(y):
        mine = rng.permutation(np.flatnonzero(y == label))
        first[mine[: (mine.shape[0] + extra) // 2]] = True
        extra = (extra + mine.shape[0]) % 2  # odd classes give their odd row to the halves in turn
    train = first if repeat % 2 == 0 else ~first
    return taken(X, y, np.flatnonzero(train), np.flatnonzero(~train))


def told(values: Sequence[float]) -> str:
    """A grid in words."""
    return ", ".join(f"{value:g}" for value in values)
