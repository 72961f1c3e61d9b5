"""
A first LDM, and its margins
============================

The large margin distribution machine on a bundled data set, and the distribution of its margins on rows that it has
not seen.
"""

# %%
# The data: 569 rows and 30 columns of very different size. Half of the rows are for training. Features are scaled to
# [0, 1] with figures of the training rows, as in the LDM paper.

import numpy as np
from sklearn.datasets import load_breast_cancer

import mdlearn
from mdlearn.plotting import cumulative_margins

X, y = load_breast_cancer(return_X_y=True)
order = np.random.default_rng(0).permutation(len(y))
train, test = order[: len(y) // 2], order[len(y) // 2 :]
low, high = X[train].min(axis=0), X[train].max(axis=0)
X = (X - low) / (high - low)

# %%
# Parameters that are not given have defaults that follow the scale of the problem; the model shows all of them.

model = mdlearn.fit("ldm", X[train], y[train], C=10)
print(model)
print(model.params)

# %%
# The certificate says by how much the objective could be smaller, at most.

print(model.certificate)

# %%
# The margins: a curve gives, for each value, the share of rows whose margin is at most that. Its height at 0 is the
# error.

print(f"accuracy on the other half: {model.score(X[test], y[test]):.3f}")
cumulative_margins({"training rows": model.margins(X[train], y[train]), "test rows": model.margins(X[test], y[test])})
