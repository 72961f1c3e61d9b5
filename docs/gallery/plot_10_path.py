"""
A path of models
================

A grid of hyper-parameters is fitted as one: points share the Gram matrix and what follows from it, and each begins
where a neighbour ended. Every point is certified on its own.
"""

import time

import numpy as np
from sklearn.datasets import load_breast_cancer

import mdlearn
from mdlearn.plotting import path as plot_path

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
order = np.random.default_rng(0).permutation(len(y))
train, test = order[:400], order[400:]
grid = {"C": [1.0, 10.0, 100.0], "lambda1": [0.0, *(400 * 2.0 ** np.arange(-8, 5, 2))]}

# %%
# The same models, together and one by one, after a first fit that loads what is needed.

mdlearn.fit("ldm", X[train], y[train], kernel="rbf")
started = time.process_time()
path = mdlearn.fit_path("ldm", X[train], y[train], grid, kernel="rbf", lambda2=0.0)
together = time.process_time() - started

started = time.process_time()
alone = [mdlearn.fit("ldm", X[train], y[train], kernel="rbf", lambda2=0.0, **point) for point in path.points]
one_by_one = time.process_time() - started

print(path)
print(f"all converged: {path.converged.all()}; CPU time in units of single fits: {together / one_by_one:.2f}")

# %%
# Both kinds of fits are proven to be within the gap of the same optimum.

apart = max(
    abs(one - other.certificate.objective) / other.certificate.objective for one, other in zip(path.objective, alone)
)
print(f"objective values differ by a share of {apart:.0e} at most")

# %%
# How the score on the other rows moves along lambda1, for every C.

axes = plot_path(path, "lambda1", X=X[test], y=y[test])
axes.set_xscale("symlog", linthresh=1.0)
