"""LSVM, the Lagrangian SVM (Mangasarian and Musicant, JMLR 2001): squared hinge, regularized bias."""

from __future__ import annotations

from collections.abc import Generator
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.basis import basis_features, basis_positions, check_basis_indices
from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.validation import Data, check_number
from mdlearn.forms.losses import HingeTerm
from mdlearn.objectives.base import Objective, Parameter, Setting, Terms


def _check_lsvm_reduced(name: str, value: Any) -> Any:
    """Check of LSVM's `reduced`: None, a number of rows, or an array of row numbers."""
    if value is None:
        return None
    if isinstance(value, Integral) and not isinstance(value, bool):
        return check_number(value, name, low=1, integer=True)
    return check_basis_indices(name, value)


class LSVM(Objective):
    """LSVM: the squared hinge loss; with its regularized bias the optimum is unique.

    ``1/2 |w|^2 + nu/2 sum max(0, 1 - z)^2``

    The paper's gamma is ``-intercept_``, its dual variables u = nu max(0, 1 - z) are the multipliers in ``duals``.

    Parameters
    ----------
    nu : float, default 1
        Weight of half the summed squared hinge loss, > 0; `C` is another name of it.
    reduced : int or array of int, optional
        The reduced machine: the columns k(x, z_j) of some training rows z_j take the place of x in the linear problem,
        and |w| is the length of their coefficients. A number r draws that many of the distinct rows at random; an
        array names the caller's rows (those of weight 0 or of other classes drop out). Default: all rows, and the norm
        of the kernel's function space.
    """

    name: ClassVar[str] = "lsvm"
    summary: ClassVar[str] = "Lagrangian support vector machine (squared hinge loss)"
    formula: ClassVar[str] = "1/2 |w|^2 + nu/2 sum max(0, 1 - z)^2"
    feature_parameters: ClassVar[tuple[str, ...] | None] = ("reduced",)
    parameters: ClassVar[dict[str, Parameter | Setting]] = {
        "nu": Parameter(1.0, "weight of half the summed squared hinge loss, > 0; C is another name", strict=True),
        "reduced": Setting(
            None, "None, or a number of random rows or their numbers: kernel columns", _check_lsvm_reduced
        ),
    }

    aliases: ClassVar[dict[str, str]] = {"C": "nu"}

    def features(
        self, data: Data, kernel: Kernel, params: dict[str, Any], rng: np.random.Generator
    ) -> Generator[None, None, Features]:
        """Those of the kernel, or the columns of some rows."""
        reduced = params["reduced"]
        if reduced is None:
            return (yield from super().features(data, kernel, params, rng))
        if isinstance(reduced, np.ndarray):
            return basis_features(data, kernel, basis_positions("reduced", reduced, data), shared=True)
        choice = distinct(data.X, data.counts)
        choice.require(reduced, "reduced")
        drawn = np.sort(rng.choice(len(choice), reduced, replace=False))
        return basis_features(data, kernel, choice.where[drawn], shared=False)

    def own_features(self, params: dict[str, Any]) -> bool:
        """Those of the reduced machine."""
        return params["reduced"] is not None

    def needs_all_rows(self, params: dict[str, Any]) -> str:
        """The reduced machine takes rows for its columns."""
        return "" if params["reduced"] is None else "its columns are made of single rows; leave out reduced"

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """Squared hinge alone."""
        return Terms(loss=(HingeTerm(0.5 * params["nu"], power=2),))
