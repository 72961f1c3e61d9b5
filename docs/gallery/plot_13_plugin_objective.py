"""
An objective of your own, in twenty lines
=========================================

A new variant is a point of the family: weights of variance and mean, and a loss made of hinge terms. Engines, kernels,
weights and certificates come for nothing.
"""

# %%
# Margins are drawn into a band around 1: too small ones and too large ones cost alike. This is, but for the two
# weights, the optimal margin distribution machine, ``odm``.

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms
from mdlearn.plotting import cumulative_margins
from mdlearn.testing import CHECKS


class Band(mdlearn.Objective):
    """1/2 |w|^2 + C sum [max(0, 1 - theta - z)^2 + max(0, z - 1 - theta)^2]."""

    name = "band"
    summary = "margins outside a band around 1 are squared"
    formula = "1/2 |w|^2 + C sum [max(0, 1-theta-z)^2 + max(0, z-1-theta)^2]"
    parameters = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "theta": Parameter(0.2, "half the width of the band"),
    }

    def terms(self, params, total):
        short = HingeTerm(params["C"], threshold=1.0 - params["theta"], power=2)
        beyond = HingeTerm(params["C"], side=-1, threshold=1.0 + params["theta"], power=2)
        return Terms(loss=(short, beyond))


# %%
# ``fit`` takes the class itself. A package that offers it through a hook makes its name known everywhere.

X, y = mdlearn.datasets.xor(300, noise=0.35, random_state=0)
models = {
    "svm": mdlearn.fit("svm", X, y, kernel="rbf", C=10),
    "band, theta = 0.1": mdlearn.fit(Band, X, y, kernel="rbf", C=10, theta=0.1),
    "band, theta = 0.5": mdlearn.fit(Band, X, y, kernel="rbf", C=10, theta=0.5),
}
for name, model in models.items():
    print(f"{name:18s} engine {model.solver:8s} gap {model.certificate.gap:.0e}")
cumulative_margins(models, X, y)

# %%
# The conformance checks hold for it as for any objective:

for check in CHECKS:
    check(Band)
print(f"{len(CHECKS)} checks passed")
