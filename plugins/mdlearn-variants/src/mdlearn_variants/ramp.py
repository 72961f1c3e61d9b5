"""Ramp losses: what a row costs has an upper limit, so that outliers cannot draw the boundary towards them."""

import math
from typing import ClassVar

import mdlearn
from mdlearn.extend import Parameter

from .distribution import DISTRIBUTION
from .ramp_problem import RampProblem
from .touched import TouchedForm

LARGEST_S = 0.99
"""Largest margin s: at 1 nothing would be left of the loss."""


class RampSVM(mdlearn.Objective):
    """SVM with the ramp loss, also called truncated hinge: a row costs at most C (1 - s).

    ``1/2 |w|^2 + C sum min(1 - s, max(0, 1 - z))``

    This is not convex. The certificate is of kind "residual" and claims a stationary point only: its gap is what the
    convex problem that touches the objective at the solution could still save. Other stationary points can have a
    smaller objective. Which one is found is settled by the way: from the SVM's solution, downwards.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0 and finite.
    s : float, default -1
        Margin below which a row costs no more, at most 0.99. The lower it is, the nearer is the SVM.

    Notes
    -----
    Certain: loss and procedure. For two classes the truncated hinge of Wu and Liu is the same loss. Reading: one class
    against the rest for more than two, where their loss takes all classes at once.

    References
    ----------
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Trading convexity for scalability", ICML 2006.
    Y. Wu and Y. Liu, "Robust truncated hinge loss support vector machines", JASA 102, 2007.
    """

    name = "ramp_svm"
    summary = "SVM with the ramp loss (truncated hinge): outliers cost no more than others"
    formula = "1/2 |w|^2 + C sum min(1-s, max(0, 1-z))"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "s": Parameter(-1.0, "margin below which a row costs no more", low=-math.inf, high=LARGEST_S),
    }

    def distribution(self, params):
        """Return the weights of Var(z) and mean(z)."""
        return 0.0, 0.0

    def form(self, data, features, bias, params):
        """Return one problem for two classes, else one per class against the rest."""
        own = bias, params["C"], params["s"], *self.distribution(params)
        return TouchedForm(features, bias, [RampProblem(features, y, data.counts, *own) for y in data.signs()])


class RampLDM(RampSVM):
    """LDM with the ramp loss: mean and variance of the margins, and rows that cost at most C (1 - s).

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum min(1 - s, max(0, 1 - z))``

    Certificate and procedure are those of `ramp_svm`; the way begins at the LDM's solution. The loss has a limit for
    each row, variance and mean have none: an outlier still draws by these.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0 and finite.
    s : float, default -1
        Margin below which a row costs no more, at most 0.99.
    lambda1 : float, default C m / 256
        Weight of twice the margin variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.

    Raises
    ------
    ValueError
        At fit with a free bias, a mean, no variance and classes of unequal weight: the bias then runs to infinity.

    Notes
    -----
    A combination: the loss is that of `ramp_svm`, the rest the LDM's. No paper is claimed for the two together.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Large margin distribution machine", KDD 2014.
    R. Collobert, F. Sinz, J. Weston and L. Bottou, "Trading convexity for scalability", ICML 2006.
    """

    name = "ramp_ldm"
    summary = "large margin distribution machine with the ramp loss"
    formula = "1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum min(1-s, max(0, 1-z))"
    parameters: ClassVar = {**RampSVM.parameters, **DISTRIBUTION}

    def distribution(self, params):
        """Return the weights of Var(z) and mean(z)."""
        return 2.0 * params["lambda1"], params["lambda2"]

    def form(self, data, features, bias, params):
        """Return the problems, unless a free bias runs to infinity: no loss holds it, each has a limit."""
        if bias == "free" and params["lambda1"] == 0 and params["lambda2"] > 0:
            if any(abs(float(data.counts @ y)) > 1e-12 * data.total for y in data.signs()):
                raise ValueError(
                    "with bias='free' and lambda1=0 the objective of ramp_ldm is unbounded below on classes of unequal "
                    f"weight; got lambda2={params['lambda2']:g}, give lambda1 > 0, lambda2=0 or bias='regularized'"
                )
        return super().form(data, features, bias, params)
