"""
Certificates, and stopping early
================================

Every report of an engine brings a better point or a better bound. The distance between both is what a certificate
proves, so a fit can be stopped as soon as it is good enough for the purpose, and says how good that is.
"""

import warnings

from sklearn.datasets import load_digits

import mdlearn
from mdlearn.plotting import gap_history

X, y = load_digits(return_X_y=True)
X, y = X / 16.0, y >= 5

# %%
# Two exact engines and the paper's stochastic one on the same problem. The last runs to its own end, whatever its gap.

models = {solver: mdlearn.fit("ldm", X, y, solver=solver, C=1.0, tol=1e-9) for solver in ("interior", "cd")}
models["asgd"] = mdlearn.fit("ldm", X, y, solver="asgd", C=1.0)

axes = gap_history(models)
axes.set_xscale("log")

# %%
# The two values behind the gap of the interior point: the optimum lies between objective and bound, wherever the fit
# stops.

axes = gap_history({"interior": models["interior"]}, against="iterations", value="bounds")

# %%
# A callback that is content with one percent. The model keeps the best point, with its true gap, and a warning says why
# the fit ended.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    early = mdlearn.fit("ldm", X, y, solver="interior", C=1.0, callback=lambda state: state.gap < 1e-2)
print(early.certificate)
print(caught[0].message)

# %%
# Accuracy hardly sees the difference. The objective does, which is why solvers are to be compared by it.

for name, model in {**models, "early": early}.items():
    proof = model.certificate
    print(f"{name:9s} objective {proof.objective:.4f}  gap {proof.gap:.0e}  training accuracy {model.score(X, y):.3f}")
