"""
Kernels and decision boundaries
===============================

The same objective with four kernels, on a checkerboard: where f = 0, where f = -1 and 1, and which rows the boundary
rests on.
"""

import numpy as np
from matplotlib import pyplot as plt

import mdlearn
from mdlearn.plotting import decision_boundary

X, y = mdlearn.datasets.checkerboard(400, size=3, random_state=0)
X_new, y_new = mdlearn.datasets.checkerboard(4000, size=3, random_state=1)

# %%
# A function k(A, B) is a kernel, too, if it is symmetric and positive semidefinite.


def waves(A, B):
    """Products of cosines with the period of the board."""
    return np.prod(1 + np.cos(np.pi * (A[:, None] - B)), axis=2)


kernels = {
    "linear": {"kernel": "linear"},
    "poly, degree 5": {"kernel": "poly", "degree": 5, "gamma": 0.3, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 3.0},
    "a function": {"kernel": waves},
}
fig, axes = plt.subplots(2, 2, figsize=(8, 7.5), layout="constrained")
for ax, (name, settings) in zip(axes.flat, kernels.items()):
    model = mdlearn.fit("ldm", X, y, C=10, **settings)
    decision_boundary(model, X, y, support=False, ax=ax)
    ax.set_title(f"{name}: {model.score(X_new, y_new):.3f} on fresh rows", fontsize=10)
    if ax.get_legend() is not None:
        ax.get_legend().remove()

# %%
# Only what the kernel can express counts here: the linear machine has no chance, and the kernel that knows the board's
# period does best. The weight C = 10 is the same for all of them, and none was tuned.
