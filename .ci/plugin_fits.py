"""What the installed plugins bring: every objective is fitted to real data.

Run by plugins.py, in the environment where the plugins are installed. A fit needs a certificate of convergence; solvers
and kernels of plugins need a fit that takes them.
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import mdlearn
from mdlearn.model.task import task_of
from mdlearn.plugins.registry import find

SETS = {
    "labels": (load_breast_cancer, load_iris),
    "numbers": (load_diabetes,),
    "none": (load_breast_cancer,),
    "some labels": (load_breast_cancer, load_iris),
    "indicators": (load_iris,),
}
"""Data sets, by what y is to a task."""
MADE = {
    "none": lambda y: None,
    "some labels": lambda y: np.where(np.arange(len(y)) % 5 == 0, y, -1),
    "indicators": lambda y: np.column_stack([y > 0, y < 2]).astype(int),
}
"""Functions that make y from the labels of a data set, by what y is to a task; others take the labels."""


def main():
    """Print a line per fit; the answer is a list of faults."""
    records = mdlearn.list_plugins()
    faults, ran = [], set()
    for name in (name for record in records for name in record.objectives):
        cls = find("objective", name)
        home = Path(sys.modules[cls.__module__].__file__)
        if not home.is_relative_to(sys.prefix):
            faults.append(f"{name} comes from {home}, which is not installed")
        for load in SETS[task_of(cls).y]:
            for kernel in ("linear", "rbf") if cls.kernels else ("linear",):
                ran.add(fitted(name, load, kernel, faults))
    for kernel in (kernel for record in records for kernel in record.kernels):
        fitted("svm", load_breast_cancer, kernel, faults)
    idle = {name for record in records for name in record.solvers} - ran
    return [*faults, *(f"no fit took the solver {name}" for name in sorted(idle))]


def fitted(name, load, kernel, faults):
    """Fit one objective with its defaults to one data set, features scaled to [-1, 1]; return the solver's name."""
    X, y = load(return_X_y=True)
    X = X / abs(X).max(axis=0)
    y = MADE.get(task_of(find("objective", name)).y, lambda y: y)(y)
    model = mdlearn.fit(name, X, y, kernel=kernel)
    certificate = model.certificate
    where = f"{name}, {kernel}, on {load.__name__.removeprefix('load_')} {X.shape[0]} x {X.shape[1]}"
    line = f"{where}: {model.solver}, {certificate.kind} {certificate.gap:.1e}, score {model.score(X, y):.3f}"
    print(line)
    if not certificate.converged:
        faults.append(f"not converged: {line}")
    return model.solver


if __name__ == "__main__":
    found = main()
    sys.exit("\n".join(found) if found else 0)
