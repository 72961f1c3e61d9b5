"""Grids of hyper-parameters over kernels, ladders of tolerances, pairs of classes: each against single fits."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

import mdlearn
from fuzz import problems, regression, runs
from fuzz.cases import OTHERS, Case, replace_outcome
from fuzz.runs import Run

EVERY, FIRST = 10, 4
"""Numbers of problems of grids; those of regression give every second of theirs."""
AWAY = 10**9
"""What is added to a number until its problem suits grids."""
LADDER = (1e-1, 1e-3, 1e-6, 1e-9)
FOLDS = 3


def is_grid(index):
    """Whether the problem of this number is solved over grids."""
    return index % EVERY == FIRST or index % (2 * EVERY) == EVERY + regression.FIRST


def draw(seed, index):
    """The problem of this seed and index, three of four of them over a kernel, and half of many classes by pairs."""
    rng = np.random.default_rng([seed, index, 6])
    linear = rng.random() < 0.25
    for number in range(index + AWAY, index + 1000 * AWAY, AWAY):
        if regression.is_regression(index):
            found = regression.draw(seed, number)
        else:
            found = problems.draw(seed, number, 500, 0.2)
        if found.linear == linear and (found.linear or found.objective in (*problems.KERNEL_OBJECTIVES, "svr")):
            break
    pairs = found.k > 2 and "ovo" in problems.MULTICLASS[found.objective] and rng.random() < 0.5
    traits = (*found.traits, "grid")
    return replace(found, index=index, traits=traits, **({"multiclass": "ovo"} if pairs else {}))


@dataclass
class Grid:
    """A path: what all of it came to, its points, and a single fit of each."""

    whole: Any
    points: list
    singles: list


@dataclass
class Chosen:
    """A selection: what it came to, its splits, and for each a single fit of every point without held-out rows."""

    whole: Any
    selection: Any
    splits: list
    singles: list


class GridCase(Case):
    """A problem, the fits of which are a path, a selection, ever smaller tolerances and single pairs of classes."""

    def __init__(self, seed, index):
        super().__init__(seed, index)
        self.problem = draw(seed, index)

    def run(self):
        """All of them."""
        first = self.fit("first")
        for solver in OTHERS.get(self.problem.objective, ()):
            self.fit("engine", solver)
        self._again()
        self._ladder()
        self._path_of_grid()
        self._selection()
        self._pairs(first)
        return self

    def _ladder(self):
        solver = self._able()
        self.ladders.append([self.fit("ladder", solver, tol=tol) for tol in LADDER])

    def _able(self):
        """An engine that takes the problem."""
        solver = self.engine()
        return "auto" if self.fit("engine", solver).model is None else solver

    def _grid(self, most):
        """Names to values, around those of the problem; None where there is nothing to vary."""
        rng, params = self.rng, self.problem.params
        here = {name: value for name, value in params.items() if type(value) is float and 0 < value < np.inf}
        if not here:
            return None
        name = next(iter(here))
        steps = float(rng.choice([2.0, 10.0])) ** np.arange(-1, most - 1)
        values = [v for v in (here[name] * steps).tolist() if 0 < v < np.inf]
        grid = {name: rng.permutation(values).tolist() if rng.random() < 0.3 else values}
        gamma = self.problem.kernel_params.get("gamma")
        if gamma is not None and gamma * 4 < np.inf and rng.random() < 0.4:
            grid["gamma"] = [gamma, gamma * 4]
        return grid

    def _points(self, grid):
        """The problem at every point, in the order of a path."""
        for values in product(*grid.values()):
            point = dict(zip(grid, values))
            kernel = {key: value for key, value in point.items() if key == "gamma"}
            own = {key: value for key, value in point.items() if key != "gamma"}
            yield replace(
                self.problem,
                params={**self.problem.params, **own},
                kernel_params={**self.problem.kernel_params, **kernel},
            )

    def _without(self, grid):
        """The problem with those parameters that no grid gives."""
        params, kernel_params = (
            {key: value for key, value in given.items() if key not in grid}
            for given in (self.problem.params, self.problem.kernel_params)
        )
        return replace(self.problem, params=params, kernel_params=kernel_params)

    def _path_of_grid(self):
        grid = self._grid(int(self.rng.integers(3, 7)))
        if grid is None:
            return
        solver = self._able() if self.rng.random() < 0.3 else "auto"
        points = list(self._points(grid))
        run = Run("path", solver, given={"tol": self.tol, "grid": grid})
        whole = runs.fit(self._without(grid), run, call=mdlearn.fit_path, limit=len(points) * runs.LIMIT)
        if whole.model is None:
            self.others.append([whole])
            return
        done = [replace_outcome(whole, own, model) for own, model in zip(points, whole.model)]
        singles = [runs.fit(own, Run("single", solver, given={"tol": self.tol})) for own in points]
        self.others += [list(pair) for pair in zip(done, singles)]
        self.grids.append(Grid(whole, done, singles))

    def _selection(self):
        grid = self._grid(3)
        if grid is None or "approximation" in self.problem.kernel_params:
            return
        m = len(self.problem.codes)
        order = self.rng.permutation(m)
        order = order[np.argsort(self.problem.codes[order], kind="stable")]
        splits = [(np.setdiff1d(np.arange(m), part), np.sort(part)) for part in (order[i::FOLDS] for i in range(FOLDS))]
        points = list(self._points(grid))
        given = {"tol": self.tol, "grid": grid, "cv": splits}
        limit = (FOLDS + 1) * len(points) * runs.LIMIT
        whole = runs.fit(self._without(grid), Run("selection", given=given), call=mdlearn.select, limit=limit)
        self.others.append([whole])
        selection, whole.model = whole.model, None  # judged as a model, a selection would not be one
        if selection is None:
            return
        single = Run("single", given={"tol": self.tol})
        fits = [[runs.fit(rows_of(own, train), single) for own in points] for train, _ in splits]
        best = points[selection.best_index]
        self.others.append([replace_outcome(whole, best, selection.model), runs.fit(best, single)])
        self.selections.append(Chosen(whole, selection, splits, fits))

    def _pairs(self, first):
        """A fit of every pair of classes alone, with the parameters that the fit of all has."""
        model, p = first.model, self.problem
        if model is None or p.k < 3 or p.multiclass not in problems.PAIRWISE or "approximation" in p.kernel_params:
            return
        if isinstance(model.params.get("reduced"), int):  # some rows, drawn among those of all classes
            return
        gamma = {key: model.params[key] for key in p.kernel_params.keys() | {"gamma"} if key in model.params}
        own = {key: value for key, value in model.params.items() if key not in gamma}
        common = {"class_weight": None, "labels": "codes", "multiclass": "auto", "kernel_params": gamma, "params": own}
        weight = p.weight if p.class_weight is None else p.counts
        for j, (a, b) in enumerate(combinations(range(len(model.classes_)), 2)):
            here = np.flatnonzero((p.counts > 0) & ((p.known == a) | (p.known == b)))
            alone = rows_of(replace(p, weight=weight, **common), here)
            alone = replace(alone, codes=(p.known[here] == b).astype(int))
            self.class_pairs.append((first, j, runs.fit(alone, Run("pair", given={"tol": self.tol})), here))


def rows_of(problem, some):
    """The problem of some rows."""
    X = problem.X[np.ix_(some, some)] if problem.kernel == "precomputed" else problem.X[some]
    weight = None if problem.weight is None else problem.weight[some]
    return replace(problem, X=X, codes=problem.codes[some], weight=weight)
