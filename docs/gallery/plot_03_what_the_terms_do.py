"""
What the variance and mean terms do
===================================

A sweep of both weights of the LDM. They act where they are comparable with C m, the weight of the whole loss; far below
that the machine is a support vector machine.
"""

import numpy as np
from matplotlib import pyplot as plt
from sklearn.datasets import load_breast_cancer

import mdlearn
from mdlearn.plotting import COLOURS

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
order = np.random.default_rng(0).permutation(len(y))
train, test = order[: len(y) // 2], order[len(y) // 2 :]
m, C = len(train), 1.0
shares = 2.0 ** np.arange(-16, 5, 2)

# %%
# First lambda1 alone: the spread of the margins falls faster than their mean, so they become even. Then lambda2 grows
# beside a fixed lambda1: the margins become long, and a little less even. Margins are normalised by the length of w.


def figures(**weights):
    model = mdlearn.fit("ldm", X[train], y[train], C=C, **weights)
    z = model.margins(X[train], y[train], normalized=True)
    return mdlearn.margins.mean(z), mdlearn.margins.variance(z) ** 0.5, model.score(X[test], y[test])


by_variance = np.array([figures(lambda1=share * C * m, lambda2=0.0) for share in shares])
by_mean = np.array([figures(lambda1=C * m / 16, lambda2=share * C * m) for share in shares])

fig, axes = plt.subplots(2, 2, figsize=(9, 5), sharex="col", sharey="row", layout="constrained")
for (top, bottom), values, name in zip(axes.T, (by_variance, by_mean), ("lambda1 / (C m)", "lambda2 / (C m)")):
    top.plot(shares, values[:, 0], "-", color=COLOURS[0], label="mean")
    top.plot(shares, values[:, 1], "--", color=COLOURS[0], label="standard deviation")
    bottom.plot(shares, values[:, 2], color=COLOURS[1])
    bottom.set_xscale("log", base=2)
    bottom.set_xlabel(name)
axes[0, 0].set_ylabel("normalised margin")
axes[1, 0].set_ylabel("accuracy on the other half")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)

# %%
# On this split accuracy is best with little of the variance; beside lambda1 = C m / 16, a lambda2 of one to four times
# that makes good most of what it cost. The whole range is a matter of a few rows. There is no best value for all data:
# select lambda1 per data set, relative to C m. The default, lambda1 = C m / 256 and lambda2 a quarter of it, sits where
# the curves begin to move.

print({name: round(value, 3) for name, value in mdlearn.fit("ldm", X[train], y[train], C=C).params.items()})
