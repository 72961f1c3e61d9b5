"""Statistics of margins: what a margin distribution looks like, and what it promises.

A margin is ``z_i = y_i f(x_i)``; ``Model.margins(X, y)`` returns all of them. Functions of margins take such an array,
the leave-one-out margins take a matrix, and all take, optionally, ``sample_weight``. A weight is a repetition count: a
row of weight 3 counts as three equal rows, the number of rows is ``m = sum(sample_weight)``, and rows of weight 0 do
not exist.
"""

from typing import TYPE_CHECKING

from mdlearn.lazy import lazy_names

if TYPE_CHECKING:
    from mdlearn.margins.bounds import gao_zhou_bound, hessian_diagonal, loo_error_bound, stability, stability_bound
    from mdlearn.margins.closed_form_loo import lssvm_loo_margins, uldm_loo_margins
    from mdlearn.margins.statistics import (
        MarginDecomposition,
        cumulative_curve,
        decomposition,
        mean,
        minimum,
        top_p,
        variance,
    )

_LAZY = {
    "mdlearn.margins.bounds": ("gao_zhou_bound", "hessian_diagonal", "loo_error_bound", "stability", "stability_bound"),
    "mdlearn.margins.closed_form_loo": ("lssvm_loo_margins", "uldm_loo_margins"),
    "mdlearn.margins.statistics": (
        "MarginDecomposition",
        "cumulative_curve",
        "decomposition",
        "mean",
        "minimum",
        "top_p",
        "variance",
    ),
}

__all__ = [
    "MarginDecomposition",
    "cumulative_curve",
    "decomposition",
    "gao_zhou_bound",
    "hessian_diagonal",
    "loo_error_bound",
    "lssvm_loo_margins",
    "mean",
    "minimum",
    "stability",
    "stability_bound",
    "top_p",
    "uldm_loo_margins",
    "variance",
]

if not TYPE_CHECKING:  # so that a misspelt name is an error
    __getattr__, __dir__ = lazy_names(__name__, _LAZY)
