"""MDO: margin distribution optimization (Garg and Roth, 2003)."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import Parameter
from mdlearn_baselines.sphere import Cost, SphereForm, SphereProblem

LARGEST = 500.0
"""exp(500) can still be summed and squared."""


class MDO(mdlearn.Objective):
    """MDO: directions whose margins have a small sum of exponential costs.

    ``sum_i c(t_i) over |w| = 1``, t_i = y_i w.x_i / R, c(t) = exp(-a t) for t >= 0 and exp(-b t) for t < 0

    R is the length of the longest training row, so that |t| <= 1. A row counts the less, the farther it lies on its
    right side, and the more, the farther on the wrong one. A regularized bias is a constant feature: then (w, b) has
    length 1, and R is that of the rows (x, 1). Linear only.

    On the sphere this is not convex. For a <= b and where at the end every shorter w would be worse, as on data that a
    plane tells apart tolerably, the sphere's minimum is that of the ball, which is convex: the certificate then has a
    lower bound and "converged" means a global minimum. Otherwise it is of kind "residual": "converged" then means that
    the direction is stationary (the gradient along the sphere is 0), and nothing more. The start is the mean of y x.

    Parameters
    ----------
    a : float, default 10
        Rate of margins t >= 0, 0 < a <= 500.
    b : float, default a
        Rate of margins t < 0, 0 < b <= 500.

    Raises
    ------
    ValueError
        At fit with bias="free".

    Notes
    -----
    Certain: a sum of costs of the margins of a unit vector that fall exponentially and weigh rows on the wrong side
    more; linear; by descent. Readings: this c with its two rates, one scale R for all rows, the defaults (a = b is a
    smooth cost), the start, the bias, one class against the rest for more than two. Steps are Newton's instead of plain
    descent: only the end counts. For a < b minima like to lie on the kink of some rows; they are found by rounding it
    ever less.

    As a goes to 0 the direction goes to MAMC's.

    References
    ----------
    A. Garg and D. Roth, "Margin distribution and learning algorithms", ICML 2003.
    """

    name = "mdo"
    summary = "margin distribution optimization: exponential costs of normalised margins"
    formula = "sum exp(-a t) for t >= 0, exp(-b t) for t < 0, t = y w.x / max |x|, over |w| = 1"
    parameters: ClassVar = {
        "a": Parameter(10.0, "rate at which the cost of rows on the right side falls", high=LARGEST, strict=True),
        "b": Parameter(lambda params, m: params["a"], "rate of rows on the wrong side", high=LARGEST, strict=True),
    }
    kernels = False

    def form(self, data, features, bias, params):
        """One problem for two classes, else one per class against the rest."""
        if bias == "free":
            raise ValueError(
                "objective 'mdo' has no free bias: its coefficients have length 1; give bias='regularized', where the "
                "intercept is one of them, or bias='none'"
            )
        cost = Cost(params["a"], params["b"])
        parts = tuple(SphereProblem(features, bias, y, data.counts, cost) for y in data.signs())
        return SphereForm(features, bias, parts)
