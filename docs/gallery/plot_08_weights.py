"""
Weights are repetitions
=======================

An integer sample weight gives the model of the repeated rows, whatever the objective: in its loss, its mean and
variance, its default parameters and its kernel's width.
"""

import numpy as np
from sklearn.svm import SVC

import mdlearn
from mdlearn.plotting import COLOURS, decision_boundary

X, y = mdlearn.datasets.xor(80, noise=0.5, random_state=0)
counts = np.random.default_rng(0).integers(0, 4, len(y))
X_rep, y_rep = np.repeat(X, counts, axis=0), np.repeat(y, counts)

# %%
# A tight tolerance, because objectives that are close leave room for decision values that are less so.

for objective in ("svm", "ldm", "uldm", "lssvm", "lsldm", "lsvm"):
    settings = {"kernel": "rbf", "tol": 1e-12}
    weighted = mdlearn.fit(objective, X, y, sample_weight=counts, **settings)
    repeated = mdlearn.fit(objective, X_rep, y_rep, **settings)
    apart = abs(weighted.decision_function(X) - repeated.decision_function(X)).max()
    print(f"{objective:6s} decision values differ by {apart:.1e}")

# %%
# The boundary of the weighted machine, and the rows in the size of their weight; rows of weight 0 are absent.

model = mdlearn.fit("ldm", X, y, kernel="rbf", sample_weight=counts)
axes = decision_boundary(model, X[counts > 0], support=False)
for label, marker, colour in zip((-1, 1), "os", COLOURS[1:]):
    sizes = 25 * counts[y == label]
    axes.scatter(*X[y == label].T, s=sizes, marker=marker, color=colour, edgecolor="white", linewidth=0.5)

# %%
# scikit-learn's support vector machines multiply C by the weight, which for the loss alone is the same; but the width
# of the kernel does not know of the weights:

weighted = SVC(tol=1e-10).fit(X, y, sample_weight=counts)
repeated = SVC(tol=1e-10).fit(X_rep, y_rep)
apart = abs(weighted.decision_function(X) - repeated.decision_function(X)).max()
print(f"SVC    decision values differ by {apart:.1e}")
