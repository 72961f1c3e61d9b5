"""
MDLM takes features out
=======================

The L2,1 penalty of the margin distribution logistic machine adds up, over features, the length of their coefficients in
all classes. So a feature goes out of all classes together.
"""

import numpy as np
from matplotlib import pyplot as plt

import mdlearn
from mdlearn.plotting import COLOURS

rng = np.random.default_rng(0)
m, d, useful = 300, 40, 4
X = rng.standard_normal((m, d))
y = np.argmax(X[:, :useful] + 0.5 * rng.standard_normal((m, useful)), axis=1)
X_new = rng.standard_normal((4000, d))
y_new = np.argmax(X_new[:, :useful] + 0.5 * rng.standard_normal((4000, useful)), axis=1)

# %%
# A fit per weight of the penalty, from strong to weak; each starts where the last one ended.

betas = 2.0 ** np.arange(-0.5, -7.0, -0.25)
models = []
for beta in betas:
    models.append(mdlearn.fit("mdlm", X, y, lambda1=0.1, beta=beta, warm_start=models[-1] if models else None))
lengths = np.array([np.linalg.norm(model.coef_, axis=0) for model in models])
assert all(model.certificate.converged for model in models)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
others = axes[0].plot(betas, lengths[:, useful:], color="0.75", linewidth=0.8)
makers = axes[0].plot(betas, lengths[:, :useful], color=COLOURS[1])
axes[0].set_ylabel("length of a feature's coefficients")
axes[1].plot(betas, [model.score(X_new, y_new) for model in models], color=COLOURS[0])
axes[1].set_ylabel("accuracy on fresh rows")
for ax in axes:
    ax.set_xscale("log", base=2)
    ax.set_xlabel("beta")
names = ["features that make the classes", "noise"]
fig.legend([makers[0], others[0]], names, loc="outside upper center", ncols=2, frameon=False)

# %%
# The four features that make the classes (in colour) come in first. Rows of zeros are exact zeros.

for beta, model in zip(betas[::5], models[::5]):
    print(f"beta {beta:.3f}: features {np.flatnonzero(np.linalg.norm(model.coef_, axis=0)).tolist()}")
