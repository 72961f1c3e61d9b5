"""The record of a fitted model: its coefficients, what they belong to, and decision values without intercept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.feature_map import FeatureMap
from mdlearn.data.features.kernel_tiles import KernelTileSums
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.rows.rows import BLOCK_ENTRIES, Rows, steps
from mdlearn.errors import ErrorNotes, call_with_error_notes, came, faulty, is_foreign
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.proof import Certificate
from mdlearn.numerics.blas_threads import blas_threads_for
from mdlearn.numerics.frozen_init import quick_init
from mdlearn.numerics.lazy_property import kept
from mdlearn.numerics.pieces_in_threads import threads_for_pieces


@quick_init
@dataclass(frozen=True, eq=False, repr=False)
class FittedRecord:
    """Fields of a fitted model, as `Model` describes them: what files and exports of models are made of."""

    objective: str
    params: dict[str, Any]
    kernel: Kernel
    bias: str
    multiclass: str
    probabilities: bool
    solver: str
    solver_reason: str
    n_iter: int
    history: list[Any]
    certificate: Certificate
    classes_: np.ndarray
    n_features_in_: int
    intercept_: np.ndarray
    duals: np.ndarray
    support_: np.ndarray
    n_support_: np.ndarray
    _names: tuple[str, ...] | None
    _coef: np.ndarray | None
    _alpha: np.ndarray | None
    _rows: Rows | None
    _norms: np.ndarray
    solver_claims: dict[str, float | None] = field(default_factory=dict)
    extras: dict[str, Any] = field(default_factory=dict)
    _map: FeatureMap | None = None

    task: ClassVar[str]
    """Name of the task, as `mdlearn.extend.Task` describes it."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(type(self), name, None)
        if isinstance(found, property):
            return found.__get__(self)  # it has raised AttributeError, and says why once more
        extras = self.__dict__.get("extras", {})
        if name not in extras:
            told = f"; it has {', '.join(extras)}" if extras else ""
            raise AttributeError(f"this model of {self.__dict__.get('objective')!r} has no attribute {name!r}{told}")
        return extras[name]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles: all but what is prepared for predictions."""
        return {name: value for name, value in vars(self).items() if name not in ("_scorer", "_decision_room")}

    def __repr__(self) -> str:
        gap, voucher = f"gap={self.certificate.gap:.2g}", self.certificate.vouched_by
        gap += f" (vouched by {voucher})" if voucher else ""
        told = "" if self.approximation is None else f", approximation={self.approximation!r}"
        return f"Model({self.objective!r}, kernel={self.kernel.name!r}{told}, solver={self.solver!r}, {gap})"

    @property
    def approximation(self) -> str | None:
        """Approximation solved in place of the kernel's problem ("nystroem", "landmarks"); None: the problem itself.

        The certificate of an approximation is that of the problem over its explicit features.
        """
        return None if self._map is None else self._map.approximation

    @property
    def dual_coef_(self) -> np.ndarray:
        """Signed alpha over all training rows, shape (p, m): f(x) = sum alpha_i k(x_i, x) + intercept.

        AttributeError for objectives without a squared norm: their w need not be a combination of rows.
        """
        if self._alpha is None:
            raise AttributeError(f"dual_coef_ does not exist: w of {self.objective!r} is no combination of rows here")
        return self._alpha

    @property
    def coef_(self) -> np.ndarray:
        """Weights of shape (p, d), or what the objective's features show; AttributeError unless the kernel is linear.

        Landmark models: theta of shape (p, K, L). Approximate kernels: weights of the explicit features.
        """
        if self._coef is None:
            raise AttributeError(f"coef_ exists for the linear kernel only; this model has kernel {self.kernel.name!r}")
        if self._map is None:
            return self._coef
        shown = call_with_error_notes(self._map, "a feature map", "shown", self._coef)
        if not isinstance(shown, np.ndarray):
            raise faulty(self._map, "a feature map", "shown", f"returned {came(shown)}, an array is needed")
        return shown

    @property
    def folded_coef_(self) -> np.ndarray:
        """w_k = sum_l theta_kl landmark_l, shape (p, K, d): f(x) = w_k . x + intercept in cluster k.

        AttributeError for models without landmarks, with another projection than "dot" or another kernel than linear.
        """
        folded = None if self._map is None or self._coef is None else self._map.folded(self._coef)
        if folded is None or self._coef is None:
            raise AttributeError("folded_coef_ exists for landmark models with dot projections and linear kernel only")
        return to_type(folded, self._coef.dtype)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Column names of the data frame given at fit; AttributeError when there was none."""
        if self._names is None:
            raise AttributeError("feature_names_in_ exists only after a fit on a data frame with string column names")
        return np.array(self._names, dtype=object)

    @property
    def _n_terms(self) -> int:
        """Products with a row of which its decision values are made: coefficients, support rows or features."""
        if self._coef is None:
            return self.support_.shape[0]
        return int(self._coef.shape[0] if self._map is None else self._coef.size)

    def _choose_threads(self, work: float) -> int | None:
        """Number of threads for decision values that take this many multiplications; None: as BLAS is set."""
        by_pieces = self._coef is None and self._map is None and self.kernel.plain
        return threads_for_pieces(work) if by_pieces else blas_threads_for(work)

    def _scores(self, A: Rows) -> np.ndarray:
        """Decision values without intercept, (n, 1) or (n, k), summed in float64."""
        if self._scorer is not None:
            return self._checked_scores(A) if self._coef is not None and is_foreign(self._map) else self._scorer(A)
        return A.dot((self.dual_coef_ if self._coef is None else self._coef).T)

    def _checked_scores(self, A: Rows) -> np.ndarray:
        """Decision values as a map outside mdlearn finds them."""
        assert self._scorer is not None and self._coef is not None
        with ErrorNotes(self._map, "a feature map", "scores"):
            scores = self._scorer(A)
        shape = A.shape[0], self._coef.shape[0]
        if not isinstance(scores, np.ndarray) or scores.dtype.kind != "f" or scores.shape != shape:
            what = f"returned {came(scores)}, floats of shape {shape} are needed"
            raise faulty(self._map, "a feature map", "scores", what)
        return scores

    @kept
    def _scorer(self) -> Callable[[Rows], np.ndarray] | None:
        """Function from rows to decision values, prepared once; None: these are products with the coefficients."""
        if self._coef is not None:
            return None if self._map is None else self._map.scorer(self._coef)
        if self._rows is None:
            return None
        # Basis rows and support rows: nothing else has a coefficient.
        alpha = self.dual_coef_[:, self.support_].T.astype(np.float64)
        return kernel_scorer(self._rows, alpha, self.kernel, self._map)


def kernel_scorer(
    rows: Rows, alpha: np.ndarray, kernel: Kernel, mapping: FeatureMap | None
) -> Callable[[Rows], np.ndarray]:
    """Decision values of a model as a function of rows a: sum_i alpha_ij k(x_i, a) over s `rows`, alpha (s, p)."""
    if mapping is None:
        return KernelTileSums(kernel, rows, alpha)
    kernel, support = mapping.over(kernel).centred_copy(rows)

    def scores(A: Rows) -> np.ndarray:
        F = np.empty((A.shape[0], alpha.shape[1]))
        for some in steps(A.shape[0], max(64, 4 * BLOCK_ENTRIES // max(1, alpha.shape[0]))):
            F[some] = kernel.block(A.take(some), support) @ alpha
        return F

    return scores
