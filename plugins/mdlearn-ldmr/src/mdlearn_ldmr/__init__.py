"""Large-margin Distribution Machine-based Regression, an objective for mdlearn."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, Terms

requires_api = 1


class LDMR(mdlearn.Objective):
    """LDMR: the epsilon-insensitive and the squared loss of the residual at the same time.

    ``1/2 |w|^2 + k/2 sum (f - y)^2 + C sum max(0, |f - y| - epsilon)``

    Parameters
    ----------
    C : float, default 1
        Weight of the summed epsilon-insensitive loss, >= 0.
    k : float, default 1
        Weight of half the summed squared loss, >= 0. With ``k=0`` this is support vector regression, with ``C=0`` ridge
        regression.
    epsilon : float, default 0.1
        Half the width of the tube without epsilon-insensitive loss, in units of y, >= 0.

    Notes
    -----
    The sum of the two losses is the paper's. That its factors stand as C and k beside 1/2 |w|^2 is a reading: a common
    factor of the whole objective changes no model.

    References
    ----------
    R. Rastogi, P. Anand and S. Chandra, "Large-margin Distribution Machine-based regression", Neural Computing and
    Applications 32, 2020.
    """

    name = "ldmr"
    summary = "large-margin distribution machine-based regression"
    formula = "1/2 |w|^2 + k/2 sum (f-y)^2 + C sum max(0, |f-y| - epsilon)"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed epsilon-insensitive loss"),
        "k": Parameter(1.0, "weight of half the summed squared loss"),
        "epsilon": Parameter(0.1, "half the width of the tube, in units of y"),
    }
    task = "regression"

    def terms(self, params, total):
        """Two losses with two sides each; z is the residual f - y, and a squared term weighs (f - y)^2."""
        tube, square = params["epsilon"], params["k"] / 2.0
        loss = tuple(HingeTerm(params["C"], side, -side * tube) for side in (1, -1))
        loss += tuple(HingeTerm(square, side, 0.0, power=2) for side in (1, -1))
        return Terms(loss=loss)


@mdlearn.hookimpl
def mdlearn_objectives():
    """What this package offers."""
    return [LDMR]
