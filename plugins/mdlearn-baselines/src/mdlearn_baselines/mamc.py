"""The maximal average margin classifier (Pelckmans, Suykens and De Moor, 2008)."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import Terms


class MAMC(mdlearn.Objective):
    """MAMC: the direction of unit length with the largest mean margin.

    ``1/2 |w|^2 - mean(z)``

    What the paper prints, max mean(z) over |w| <= 1, has the solution w / |w| and the value |w| of this w, which is the
    mean of y_i phi(x_i): f(x) = mean of y_i k(x_i, x), the Parzen classifier. The objective at the optimum is
    -|w|^2 / 2. It is LDM with C = 0, lambda1 = 0 and lambda2 = 1.

    It has no parameters but those of the kernel. Where classes are of unequal size, the larger one can win everywhere;
    with ``class_weight="balanced"`` w is half the difference of the class means.

    Raises
    ------
    ValueError
        At fit with bias="free": the mean margin grows with b without end, or does not depend on it.

    Notes
    -----
    Certain: the problem and its solution. A reading: bias="none" by default, as in the paper's problem; a regularized
    bias is a constant feature, b = mean(y).

    References
    ----------
    K. Pelckmans, J. Suykens and B. De Moor, "A risk minimization principle for a class of Parzen estimators", NIPS 2007
    (2008).
    """

    name = "mamc"
    summary = "maximal average margin classifier: the mean of y phi(x)"
    formula = "1/2 |w|^2 - mean(z)"
    parameters: ClassVar = {}
    default_bias = "none"

    def terms(self, params, total):
        """The mean alone."""
        return Terms(mean=1.0)

    def check_column(self, params, column, bias):
        """A free bias runs to infinity, or, in classes of the same size, changes nothing."""
        if bias == "free":
            raise ValueError(
                "objective 'mamc' has no free bias: the mean margin grows with it without end, or, for classes of the "
                "same size, does not depend on it; give bias='none' or bias='regularized'"
            )
