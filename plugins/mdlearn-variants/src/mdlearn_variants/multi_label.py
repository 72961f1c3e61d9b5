"""Several labels a row: one optimal margin distribution machine for each label."""

from typing import ClassVar

import mdlearn
from mdlearn.extend import MULTI_LABEL, Terms

from .band import BAND, band_terms


class MultiLabelODM(mdlearn.Objective):
    """Multi-label ODM: for each label, margins of all rows are drawn to 1.

    ``sum_k [ 1/2 |w_k|^2 + C/(1 - theta)^2 sum_i (max(0, 1 - theta - z_ik)^2 + mu max(0, z_ik - 1 - theta)^2) ]``

    z_ik = f_k(x_i) where row i has the label k, else -f_k(x_i). y is a matrix of 0 and 1 with a column for each label;
    `predict` returns one as well.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0.
    mu : float, default 0.5
        Weight of margins beyond the band, relative to those short of it, >= 0.
    theta : float, default 0.2
        Half the width of the band, in [0, 1).

    Notes
    -----
    Certain: the loss of the ODM, with C in the place of lam/m. Reading: a problem for each label ("binary relevance"),
    so that f_k >= 0 says that a row has it; the paper on multi-label ODM compares pairs of labels of a row instead, and
    needs thresholds beside them.

    References
    ----------
    T. Zhang and Z.-H. Zhou, "Optimal margin distribution machine", IEEE TKDE 32(6), 2020.
    Z.-H. Tan, P. Tan, Y. Jiang and Z.-H. Zhou, "Multi-label optimal margin distribution machine", Machine Learning 109,
    2020.
    """

    name = "multi_label_odm"
    summary = "optimal margin distribution machine of rows with several labels"
    formula = "sum_k [1/2 |w_k|^2 + C/(1-theta)^2 sum_i (max(0, 1-theta-z_ik)^2 + mu max(0, z_ik-1-theta)^2)]"
    parameters: ClassVar = BAND
    task = MULTI_LABEL

    def terms(self, params, total):
        """Return the band."""
        return Terms(loss=band_terms(params))
