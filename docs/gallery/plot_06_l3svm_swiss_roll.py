"""
Local linear machines on a Swiss roll
=====================================

The L3-SVM divides the plane into clusters and gives each a linear machine over shared landmarks. Figure 2 of its paper
has two sheets rolled up together, which no single line can part.
"""

import numpy as np
from matplotlib import pyplot as plt

import mdlearn
from mdlearn.plotting import COLOURS

X, y = mdlearn.datasets.swiss_roll(400, random_state=0)
X_new, y_new = mdlearn.datasets.swiss_roll(4000, random_state=1)
models = {
    "linear SVM": mdlearn.fit("svm", X, y, C=1),
    "L3-SVM, 30 clusters": mdlearn.fit("l3svm", X, y, n_clusters=30, C=100),
    "L3-SVM, 100 clusters": mdlearn.fit("l3svm", X, y, n_clusters=100, C=100),
}

# %%
# The two sides of each machine, its centres, and its accuracy on fresh rows.

reach = 1.05 * abs(X).max()
side = np.linspace(-reach, reach, 201)
plane = np.stack(np.meshgrid(side, side), axis=-1)
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    f = model.decision_function(plane.reshape(-1, 2)).reshape(plane.shape[:2])
    ax.contourf(side, side, f >= 0, levels=[-0.5, 0.5, 1.5], colors=[COLOURS[2], COLOURS[1]], alpha=0.2)
    ax.contour(side, side, f, levels=[0.0], colors=COLOURS[0], linewidths=0.8)
    for label, marker, colour in ((-1, "o", COLOURS[2]), (1, "^", COLOURS[1])):
        ax.scatter(*X[y == label].T, s=7, marker=marker, color=colour, linewidth=0, label=f"label {label}")
    if model.objective == "l3svm":
        ax.scatter(*model.centers_.T, s=18, marker="+", color=COLOURS[0], linewidth=0.8, label="centres")
    ax.set_title(f"{name}: {model.score(X_new, y_new):.3f}", fontsize=10)
    ax.set_aspect("equal")
fig.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)

# %%
# With dot projections the landmarks fold away: a prediction is one search for the nearest centre and one product.

model = models["L3-SVM, 100 clusters"]
nearest = ((X_new[:, None] - model.centers_) ** 2).sum(axis=2).argmin(axis=1)
f = (model.folded_coef_[0][nearest] * X_new).sum(axis=1) + model.intercept_[0]
print(abs(f - model.decision_function(X_new)).max())
