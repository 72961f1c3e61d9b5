"""
ULDM, and its leave-one-out margins
===================================

The unconstrained machine is one linear system, and so are all models that leave one row out: their margins follow in
closed form, for a whole grid of C from one decomposition.
"""

import numpy as np
from matplotlib import pyplot as plt

import mdlearn
from mdlearn.plotting import COLOURS

X, y = mdlearn.datasets.xor(200, noise=0.5, random_state=0)
gamma = 1.0
grid = 10.0 ** np.arange(-10, 1.0)

# %%
# The columns of the basis: here the kernel values against all rows, and ones for the bias.

columns = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(axis=2))
z = mdlearn.margins.uldm_loo_margins(np.column_stack([columns, np.ones(len(y))]), y, C=grid)
errors = (z <= 0).mean(axis=1)
best = grid[errors.argmin()]
print(f"least leave-one-out error {errors.min():.3f} at C = {best:g}")

# %%
# For comparison, the errors on fresh rows and on the training rows.

X_new, y_new = mdlearn.datasets.xor(4000, noise=0.5, random_state=1)
models = [mdlearn.fit("uldm", X, y, C=C, kernel="rbf", gamma=gamma, basis="all") for C in grid]
fresh = [1 - model.score(X_new, y_new) for model in models]

fig, ax = plt.subplots(figsize=(6.5, 3.8), layout="constrained")
ax.plot(grid, errors, "-", color=COLOURS[0], label="leave-one-out")
ax.plot(grid, fresh, "--", color=COLOURS[1], label="fresh rows")
ax.plot(grid, [1 - model.score(X, y) for model in models], ":", color=COLOURS[2], label="training rows")
ax.set_xscale("log")
ax.set_xlabel("C")
ax.set_ylabel("error")
ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False)

# %%
# The closed form holds the basis fixed, also where the row belongs to it. With a basis of given rows, leaving
# rows out one by one gives the same:

rows = np.arange(0, 200, 4)
columns = np.column_stack([np.exp(-gamma * ((X[:, None] - X[rows]) ** 2).sum(axis=2)), np.ones(len(y))])
closed = mdlearn.margins.uldm_loo_margins(columns, y, C=1e-3)[0]
for i in (1, 2, 3):
    kept = np.arange(len(y)) != i
    S, signed = columns[kept], y[kept]
    k = signed[:, None] * S
    h = k.mean(axis=0)
    beta = np.linalg.solve(1e-3 * np.eye(k.shape[1]) + k.T @ k / len(k) - np.outer(h, h), h)
    print(f"row {i}: closed form {closed[i]:.10f}, left out {y[i] * columns[i] @ beta:.10f}")
