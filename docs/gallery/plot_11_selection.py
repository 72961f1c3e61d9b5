"""
Cross-validation and selection
==============================

How well does an objective do on rows that it has not seen, and which parameters should it have? Folds are stratified
and drawn by a seed, and points of a grid share their work within a fold.
"""

import numpy as np
from sklearn.datasets import load_breast_cancer

import mdlearn
from mdlearn.plotting import grid as plot_grid
from mdlearn.plotting import path as plot_path

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
order = np.random.default_rng(0).permutation(len(y))
train, test = order[:400], order[400:]

# %%
# Defaults against each other, on the same folds. Scores of folds are not independent, so read p as a hint.

results = {name: mdlearn.cross_validate(name, X[train], y[train], cv=10) for name in ("ldm", "svm", "uldm", "l2lr")}
for name, result in results.items():
    print(f"{name:5s} {result.mean:.3f} +- {result.std:.3f}")
print(mdlearn.selection.paired_test(results["ldm"].scores, results["svm"].scores))

# %%
# A selection over C and the kernel's width; the best point is fitted to all training rows.

grid = {"C": [1.0, 10.0, 100.0, 1000.0], "gamma": [0.03, 0.1, 0.3, 1.0, 3.0]}
chosen = mdlearn.select("ldm", X[train], y[train], grid, kernel="rbf", cv=5)
print(chosen)
print(chosen.model)

# %%
# The score of the chosen point is a little too good, since it was chosen by it. Rows kept aside are honest.

print(f"folds {chosen.best_score:.3f}, rows kept aside {chosen.model.score(X[test], y[test]):.3f}")
axes = plot_path(chosen, "gamma")
axes.set_xscale("log")

# %%
# All mean scores at a glance; the frame marks the chosen point.

axes = plot_grid(chosen, "gamma", "C")

# %%
# For quadratic objectives leaving one out has a closed form, for a whole grid without a further fit.

loo = mdlearn.select("uldm", X[train], y[train], {"C": 10.0 ** np.arange(-8.0, 0.0)}, kernel="rbf", cv="loo")
print(loo)
