"""All runs of one problem: several engines, layouts, limits, starts and paths."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import mdlearn
from fuzz import runs
from fuzz.problems import number
from fuzz.regression import Regression, draw
from fuzz.runs import Run

ENGINES = {
    "ldm": ("cd", "interior", "asgd", "sgd"),
    "odm": ("cd", "newton", "smw", "interior", "asgd", "sgd"),
    "svm": ("cd", "interior", "asgd", "sgd"),
    "lssvm": ("cd", "newton", "direct", "interior", "asgd", "sgd"),
    "lsldm": ("cd", "newton", "direct", "interior", "asgd", "sgd"),
    "lsvm": ("cd", "newton", "smw", "interior", "asgd", "sgd"),
    "uldm": ("cd", "newton", "direct", "asgd"),
    "l2lr": ("newton", "apg", "asgd", "sgd"),
    "mlr": ("newton", "apg", "asgd", "sgd"),
    "mmlr": ("apg", "newton", "asgd"),
    "mdlm": ("apg", "newton", "asgd", "sgd"),
    "ww": ("cd", "interior", "asgd", "sgd"),
    "rlp": ("linprog", "interior"),
    "l3svm": ("cd", "interior", "newton", "asgd", "sgd"),
    "svr": ("cd", "interior", "asgd", "sgd"),
}
OTHERS = {
    "ldm": ("hybrid",),
    "odm": ("apg", "decomposition", "newton-cg"),
    "svm": ("hybrid", "decomposition"),
    "lssvm": ("newton-cg",),
    "lsldm": ("newton-cg",),
    "lsvm": ("hybrid", "decomposition", "newton-cg"),
    "l2lr": ("hybrid",),
    "mlr": ("hybrid",),
    "svr": ("decomposition",),
}
"""Engines that came later: each is tried once and last, so that a problem keeps the runs that it had without them."""
STEPS = (1, 2, 5, 10, 20, 50)
TOLS = (1e-6, 1e-6, 1e-6, 1e-3, 1e-9, 1e-12, 0.0)


def options(rng, solver):
    """Now and then, settings of the engine's own, or two threads."""
    if rng.random() > 0.15:
        return {"n_threads": 2} if rng.random() < 0.05 else {}
    some = {
        "asgd": {"epochs": int(rng.integers(1, 20))},
        "sgd": {"epochs": int(rng.integers(1, 20))},
        "cd": {"shrinking": False},
        "smw": {"stop": "step"},
    }
    return {"solver_options": some[solver]} if solver in some else {}


class Case:
    """A problem and its outcomes.

    Attributes
    ----------
    outcomes : list of Outcome
        Every fit of the problem itself, whatever its engine and limits.
    pairs : list of (Outcome, Outcome)
        Two runs that are to have the same bits.
    efforts : list of list of Outcome
        One engine with rising max_iter.
    starts : list of (Outcome, Model)
        Fits from a start.
    weighted : (Outcome, Outcome) or None
        The fit of weights, and of repeated rows.
    others : list of list of Outcome
        Outcomes of other problems, those of a path, each with a fit of the same.
    ladders, grids, selections, class_pairs : list
        What `grids.GridCase` fits.
    """

    def __init__(self, seed, index):
        self.rng = np.random.default_rng([seed, index, 1])
        self.index, self.problem = index, draw(seed, index)
        self.outcomes, self.pairs, self.efforts, self.starts, self.others = [], [], [], [], []
        self.ladders, self.grids, self.selections, self.class_pairs = [], [], [], []
        self.weighted = None
        self.tol = float(self.rng.choice(TOLS))

    def fit(self, role, solver="auto", layout="C", limit=runs.LIMIT, **given):
        out = runs.fit(self.problem, Run(role, solver, layout, {"tol": self.tol, **given}), limit=limit)
        self.outcomes.append(out)
        return out

    def layout(self):
        """One that suits the kernel."""
        return str(self.rng.choice(list(runs.DENSE if self.dense() else runs.LAYOUTS)))

    def dense(self):
        """Whether the kernel takes arrays only."""
        return self.problem.kernel == "precomputed" or callable(self.problem.kernel)

    def engine(self):
        return str(self.rng.choice(["auto", *ENGINES[self.problem.objective]]))

    def run(self):
        """All of them."""
        rng = self.rng
        first = self.fit("first")
        for solver in rng.permutation(ENGINES[self.problem.objective])[:3].tolist():
            self.fit("engine", solver, **options(rng, solver))
        self.fit("layout", self.engine(), self.layout())
        if self.problem.linear and self.problem.objective not in ("ww", "mmlr") and rng.random() < 0.15:
            self.fit("blocks", layout="blocks")
        if rng.random() < 0.15:
            self.fit("limit", self.engine(), limit=float(10.0 ** rng.uniform(-4, -1)))
        self._again()
        self._effort()
        self._start(first)
        if self.problem.weight is not None and self.problem.weight.dtype.kind == "i" and rng.random() < 0.8:
            self._repeated(first)
        if rng.random() < 0.08:
            self._path()
        for solver in OTHERS.get(self.problem.objective, ()):
            self.fit("engine", solver)
        if isinstance(self.problem, Regression):
            self._mirrored(first)
        return self

    def _mirrored(self, first):
        out = runs.fit(self.problem.mirrored(), Run("mirrored", given={"tol": self.tol}))
        if first.model is not None and out.model is not None and first.key == out.key:
            self.others.append([first, out])

    def _again(self):
        fitted = [out for out in self.outcomes if out.model is not None]
        if fitted:
            out = fitted[self.rng.integers(len(fitted))]
            self.pairs.append((out, runs.fit(self.problem, out.run, limit=out.limit)))

    def _effort(self):
        solver, tol = self.engine(), float(self.rng.choice([1e-6, 1e-9, 0.0]))
        steps = sorted(self.rng.choice(STEPS, 4, replace=False).tolist())
        layouts = list(runs.DENSE if self.dense() else runs.LAYOUTS)
        layout = layouts[self.index % len(layouts)]  # drawn, it would change every problem after it
        done = [self.fit("effort", solver, layout, max_iter=n, tol=tol) for n in steps]
        self.efforts.append(done)

    def _start(self, first):
        """From its own solution, one that was left early, or that of other parameters."""
        rng, which = self.rng, self.rng.integers(3)
        if which == 0:
            begin = first.model
        elif which == 1:
            begin = next((out.model for out in self.efforts[0] if out.model is not None), None)
        else:
            params = {
                key: value * 3 if isinstance(value, float) and rng.random() < 0.6 else value
                for key, value in self.problem.params.items()
            }
            out = runs.fit(replace(self.problem, params=params), Run("neighbour", given={"tol": self.tol}))
            begin = out.model
        if begin is not None:
            out = self.fit("start", self.engine(), warm_start=begin)
            self.starts.append((out, begin, self._cold(out.run.solver)))

    def _cold(self, solver):
        """Without a start: the fit that has been made already, if one has."""
        wanted = solver, "C", {"tol": self.tol}, runs.LIMIT
        for out in self.outcomes:
            if (out.run.solver, out.run.layout, out.run.given, out.limit) == wanted:
                return out
        return self.fit("cold", solver)

    def _repeated(self, first):
        if np.asarray(self.problem.weight).sum() > 400:
            return
        other, origin = runs.repeated(self.problem)
        out = runs.fit(other, Run("repeated", given=first.run.given), origin=origin)
        self.outcomes.append(out)
        self.weighted = first, out

    def _path(self):
        name = next((key for key, value in self.problem.params.items() if isinstance(value, float)), None)
        if name is None:
            return
        here = self.problem.params[name]
        grid = [here, here * 4 if np.isfinite(here) else 1.0, number(self.rng, 0.0)]
        rest = {key: value for key, value in self.problem.params.items() if key != name}
        common = replace(self.problem, params=rest)
        run = Run(
            "path", self.engine() if self.rng.random() < 0.4 else "auto", given={"tol": self.tol, "grid": {name: grid}}
        )
        done = runs.fit(common, run, call=mdlearn.fit_path, limit=3 * runs.LIMIT)
        if done.model is None:
            self.others.append([done])
            return
        for value, model in zip(grid, done.model):
            own = replace(self.problem, params={**rest, name: value})
            out = replace_outcome(done, own, model)
            if value == here:
                self.outcomes.append(out)
            else:
                self.others.append([out, runs.fit(own, Run("single", given={"tol": self.tol}))])


def replace_outcome(out, problem, model):
    """One point of a path."""
    return replace(out, problem=problem, model=model, _values=None)
