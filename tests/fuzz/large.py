"""Problems that are too large for their time limit: what is held to account here is the limit alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

import mdlearn
from fuzz import runs
from fuzz.problems import KERNEL_OBJECTIVES, MULTICLASS, Problem, log_uniform, parameters
from fuzz.regression import Regression
from fuzz.runs import Run

EVERY = 100
"""One problem in so many."""
CALLS = {"path": mdlearn.fit_path, "validation": mdlearn.cross_validate, "selection": mdlearn.select}
PROPERTIES = ("late", "traceback", "warning", "finite")


class LargeCase:
    """A problem of many rows, classes, columns or kernel values, and a few fits with limits of 0.05 to 1 s.

    Attributes are those of `cases.Case` that its properties read.
    """

    def __init__(self, seed, index):
        self.rng = np.random.default_rng([seed, index, 2])
        self.seed, self.index = seed, index
        self.outcomes, self.pairs, self.others = [], [], []
        kind = str(self.rng.choice(list(KINDS)))
        self.problem, self.ways = KINDS[kind](self, kind)

    def problem_of(self, name, X, codes, kind, kernel="linear", kernel_params=None, multiclass="auto"):
        params = parameters(self.rng, name, len(codes), kernel == "linear")
        given = {"labels": "codes", "weight": None, "class_weight": None, "kernel": kernel}
        given |= {"kernel_params": kernel_params or {}, "params": params, "bias": None, "multiclass": multiclass}
        return Problem(
            self.seed, self.index, name, X, codes, single=False, sparse=sp.issparse(X), traits=("large", kind), **given
        )

    def gridded(self):
        """The problem without one of its numbers, and a grid of it: there is no default for what is given."""
        params = dict(self.problem.params)
        name = next((name for name, value in params.items() if type(value) is float), None)
        if name is None:
            return self.problem, {}
        value = params.pop(name)
        grid = [value, value * 4 if np.isfinite(value) else 1.0, 1.0]
        return replace(self.problem, params=params), {"grid": {name: grid}}

    def run(self):
        """Three fits, of ways that suit the problem."""
        for way in self.rng.choice(self.ways, 3).tolist():
            limit = log_uniform(self.rng, -1.3, 0)
            call = CALLS.get(way)
            solver = way if call is None and way != "blocks" else "auto"
            layout = "blocks" if way == "blocks" else "as it is"
            problem, given = self.gridded() if way in ("path", "selection") else (self.problem, {})
            out = runs.fit(problem, Run(f"large {way}", solver, layout, given), limit=limit, call=call)
            if call is not None:
                out.model = None  # judged as a model, a path would not be one
            self.outcomes.append(out)
        return self


def _labels(rng, X, k):
    return np.r_[np.arange(k), np.argmax(X[k:, :1] * np.arange(k) + rng.standard_normal((X.shape[0] - k, k)), axis=1)]


def _rows(case, kind):
    rng = case.rng
    m = int(log_uniform(rng, 4, 5.3))
    X = rng.standard_normal((m, 10))
    name = str(rng.choice([name for name in MULTICLASS if name not in ("rlp", "uldm")]))
    return case.problem_of(name, X, _labels(rng, X, 2), kind), ["auto", "blocks", "asgd", "path", "validation"]


def _classes(case, kind):
    rng = case.rng
    k = int(rng.integers(20, 200))
    X = rng.standard_normal((3000, 5))
    name = str(rng.choice(list(MULTICLASS)))
    multiclass = str(rng.choice(MULTICLASS[name]))
    return case.problem_of(name, X, _labels(rng, X, k), kind, multiclass=multiclass), ["auto", "blocks", "path"]


def _kernel(case, kind):
    rng = case.rng
    X = rng.standard_normal((int(rng.integers(1000, 2500)), 6))
    name = str(rng.choice(KERNEL_OBJECTIVES))
    problem = case.problem_of(name, X, _labels(rng, X, int(rng.integers(2, 4))), kind, "rbf", {"gamma": 0.2})
    return problem, ["auto", "auto", "path", "selection"]


def _sparse(case, kind):
    rng = case.rng
    X = sp.random(20000, 5000, 0.004, "csr", random_state=rng)
    codes = (np.asarray(X[:, :2500].sum(axis=1)).ravel() > 5).astype(int)
    codes[:2] = 0, 1
    name = str(rng.choice(["svm", "ldm", "lsvm", "lssvm", "l2lr", "mlr", "mdlm", "ww"]))
    return case.problem_of(name, X, codes, kind), ["auto", "asgd", "path", "validation"]


def _numbers(case, kind):
    rng = case.rng
    kernel = str(rng.choice(["linear", "rbf"]))
    X = rng.standard_normal((int(log_uniform(rng, 4, 5)) if kernel == "linear" else int(rng.integers(1000, 2500)), 6))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + log_uniform(rng, -2, 0) * rng.standard_normal(len(X))
    kernel_params = {} if kernel == "linear" else {"gamma": log_uniform(rng, -2, 0)}
    params = {"C": log_uniform(rng, -2, 3), "epsilon": float(rng.choice([0.0, 0.01, 0.1, 1.0]))}
    bias = str(rng.choice(["none", "regularized", "free"]))
    targets, codes = np.unique(y, return_inverse=True)
    problem = Regression(
        *(case.seed, case.index, "svr", X, codes, "codes", None, None, kernel, kernel_params, params, bias, "none"),
        *(False, False, ("large", kind), targets),
    )
    return problem, ["auto", "path", "selection", "cd", "interior", "asgd" if kernel == "linear" else "decomposition"]


KINDS = {"rows": _rows, "classes": _classes, "kernel": _kernel, "columns": _sparse, "numbers": _numbers}
