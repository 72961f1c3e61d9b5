"""
LDM beside SVM: margin distributions
====================================

Figure 1 of the LDM paper: cumulative margins of a support vector machine and of large margin distribution machines. The
support vector machine looks at the smallest margins only; mean and variance look at all of them.
"""

# %%
# Where models have margins of different scale, the picture divides each model's by their mean absolute value.

from sklearn.datasets import load_breast_cancer

import mdlearn
from mdlearn.plotting import cumulative_margins

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
m, C = len(y), 10.0
models = {
    "SVM": mdlearn.fit("svm", X, y, C=C),
    "LDM, default (C m / 256)": mdlearn.fit("ldm", X, y, C=C),
    "LDM, lambda1 = C m": mdlearn.fit("ldm", X, y, C=C, lambda1=C * m),
}
axes = cumulative_margins(models, X, y)

# %%
# The more the variance weighs, the steeper is the curve: margins vary less, in relation to their mean. The price:
# normalised by the length of w, they are shorter altogether. By default the LDM stays close to the support vector
# machine.

for name, model in models.items():
    z = model.margins(X, y, normalized=True)
    mean, deviation = mdlearn.margins.mean(z), mdlearn.margins.variance(z) ** 0.5
    print(f"{name:25s} mean {mean:.3f}  deviation {deviation:.3f}  quotient {deviation / mean:.2f}")
