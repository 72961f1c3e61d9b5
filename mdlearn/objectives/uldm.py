"""ULDM, the unconstrained large margin distribution machine (Abe, Pattern Recognition Letters 98, 2017).

A quadratic in coefficients of a basis.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.basis import basis_features, basis_positions, check_basis_indices, choose_basis_by_cholesky
from mdlearn.data.features.kernel_features import Features
from mdlearn.data.features.kernels import Kernel
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.data.rows.distinct import distinct
from mdlearn.data.rows.rows import steps
from mdlearn.data.validation import Data
from mdlearn.forms.certificates.without_ridge import MetricWithoutRidge
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.proof import ZeroProof
from mdlearn.objectives.base import Objective, Parameter, Setting, Terms, one_of
from mdlearn.objectives.declaration.parameters_and_terms import declared_objective_terms

SMALLEST_C = 1e-30
"""C in relation to a matrix of any usual size: below, the squares of 1 / C come near the end of the numbers."""
COLUMNS_AT_ONCE = 32
"""Classes whose signed sums are one product."""
BASES = ("auto", "all", "euclidean", "cholesky")


def _uldm_basis_setting(name: str, value: Any) -> Any:
    """Check of ULDM's `basis`: a name, or an array of row numbers."""
    named = one_of(*BASES, other=", or an array of row numbers")
    return named(name, value) if isinstance(value, str) else check_basis_indices(name, value)


def _c_scaling(name: str, value: Any) -> str | None:
    """Check of ULDM's `c_scaling`: None or "max_diag"."""
    if value is not None and value != "max_diag":
        raise ValueError(f"{name} needs to be None or 'max_diag'; got {value!r}")
    return value


class ULDM(Objective):
    """ULDM, eq. (34)-(35) of Abe's paper: margin mean and variance, and the length of the coefficients.

    ``1/2 C |beta|^2 - mean(z) + lambda0/2 Var(z)``

    f(x) = sum_j beta_j k(x, z_j) + b with basis rows z_j among the training rows, or f(x) = beta.x + b (basis
    "euclidean"). It is the coefficients that are punished, with a regularized bias b among them, not a norm in
    function space; so the basis is part of the problem.

    Parameters
    ----------
    C : float, default 1e-4
        Weight of half the squared coefficients, >= 0; 0 needs a matrix K, eq. (27), that is not singular.
    lambda0 : float, default 1
        Weight of half the margin variance, >= 0. Only C / lambda0 matters for the boundary.
    basis : {"auto", "all", "euclidean", "cholesky"} or array of int, default "auto"
        Rows whose kernel columns make f: all of them; those that an incomplete Cholesky factorisation of the Gram
        matrix chooses; or the caller's rows of these numbers (rows of weight 0 or of other classes drop out).
        "euclidean" takes the coordinates themselves (linear kernel only). "auto" is "euclidean" for a linear kernel
        with fewer columns than distinct rows, else "all".
    basis_tol : float, default 1e-6
        Where "cholesky" ends: largest squared distance of a row from the span of the basis, relative to the largest
        k(x, x).
    c_scaling : {None, "max_diag"}, default None
        "max_diag" multiplies C by the largest K_ii, eq. (31): the variance of the signed basis column i. The bias is
        left out of the maximum. Each class or pair has its own.

    Notes
    -----
    A row of weight w is w equal rows: with "all" or an index array its coefficient is shared among w equal columns.
    "cholesky" takes each distinct row once.
    """

    name: ClassVar[str] = "uldm"
    summary: ClassVar[str] = "unconstrained large margin distribution machine"
    formula: ClassVar[str] = "C/2 |w|^2 - mean(z) + lambda0/2 Var(z), w the coefficients of the basis"
    multiclass: ClassVar[tuple[str, ...]] = ("fuzzy-min", "fuzzy-avg", "ovr", "ovo")
    feature_parameters: ClassVar[tuple[str, ...] | None] = ("basis", "basis_tol")
    parameters: ClassVar[dict[str, Parameter | Setting]] = {
        "C": Parameter(1e-4, "weight of half the squared coefficients; 0 where the matrix is not singular"),
        "lambda0": Parameter(1.0, "weight of half the margin variance"),
        "basis": Setting("auto", f"{', '.join(BASES)}, or an array of row numbers", _uldm_basis_setting),
        "basis_tol": Parameter(1e-6, "squared distance, relative to k(x, x), at which 'cholesky' ends", high=1.0),
        "c_scaling": Setting(None, "None, or 'max_diag': C times the largest variance of a basis column", _c_scaling),
    }

    def grid(self, total: float) -> Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]]:
        """C of the paper's experiments: 1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1. Only C / lambda0 matters."""
        return super().grid(total) if "C" in self.given else {"C": [1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.1]}

    def features(
        self, data: Data, kernel: Kernel, params: dict[str, Any], rng: np.random.Generator
    ) -> Generator[None, None, Features]:
        """Make the columns of the basis."""
        basis, linear = params["basis"], kernel.name == "linear"
        if isinstance(basis, np.ndarray):
            return basis_features(data, kernel, basis_positions("basis", basis, data), shared=True)
        if basis == "auto":
            basis = "euclidean" if linear and _more_distinct_rows_than_columns(data) else "all"
        if basis == "euclidean":
            if not linear:
                raise ValueError(
                    f"basis='euclidean' takes the columns of X, so it needs kernel='linear'; got {kernel.name!r}, "
                    "give basis='all' or 'cholesky'"
                )
            return LinearFeatures(data.X)
        if basis == "all":
            return basis_features(data, kernel, np.arange(data.X.shape[0]), shared=True)
        index = yield from choose_basis_by_cholesky(data, kernel, params["basis_tol"])
        return basis_features(data, kernel, index, shared=False)

    def needs_all_rows(self, params: dict[str, Any]) -> str:
        """Only the columns themselves are known without the rows, and only a C of their own is free of scale."""
        basis = params["basis"]
        if isinstance(basis, np.ndarray) or basis not in ("auto", "euclidean"):
            return "its basis is made of single rows; give basis='euclidean'"
        if params["c_scaling"] is not None:
            return "c_scaling needs the variances of all columns; give c_scaling=None"
        return "with C=0 it needs a matrix that is not singular; give C > 0" if params["C"] == 0 else ""

    def terms(self, params: dict[str, Any], total: float) -> Terms:
        """C times (1/2 |w|^2 + lambda0/(2 C) Var - 1/C mean); without a ridge for C = 0."""
        C, lambda0 = params["C"], params["lambda0"]
        if C == 0:
            return Terms(0.5 * lambda0, 1.0, ridge=0.0)
        if C < SMALLEST_C:
            raise ValueError(f"C needs to be 0 or at least {SMALLEST_C:g}, scaled; got {C!r}, which rounding hides")
        return Terms(0.5 * lambda0 / C, 1.0 / C, unit=C)

    def at_zero(self, params: dict[str, Any], total: float) -> ZeroProof:
        """Without a loss, nothing: the form only scales weights."""
        return ZeroProof(0.0, -np.inf, False)

    def check_column(self, params: dict[str, Any], column: Column, bias: str) -> None:
        """Without variance, the mean drives a free bias to infinity unless the classes balance."""
        if bias == "free" and column.unbounded_in_bias:
            raise ValueError(
                "with bias='free' and lambda0=0 the objective is unbounded below: the margin mean drives the bias to "
                "infinity; give lambda0 > 0, or use bias='regularized'"
            )

    def form(self, data: Data, features: Features, bias: str, params: dict[str, Any]) -> MarginForm:
        """Write the form; with c_scaling every column has its own C."""
        assert isinstance(features, LinearFeatures)
        form = super().form(data, features, bias, params)
        if params["c_scaling"] == "max_diag" and params["C"] > 0:
            largest = _largest_variances_of_basis(form.columns, features)
            columns = tuple(self._scaled(params, column, size) for column, size in zip(form.columns, largest))
            form = replace(form, columns=columns, unit=1.0)
        if form.ridge == 0:
            for column in form.columns:
                _check_uldm_matrix(column, features, bias)
        return form

    def _scaled(self, params: dict[str, Any], column: Column, largest: float) -> Column:
        C = params["C"] * largest
        if not C > 0:
            raise ValueError("c_scaling='max_diag' needs a basis column that varies: here all of K_ii are 0")
        terms = declared_objective_terms(self, {**params, "C": C}, column.total)
        return replace(column, variance=terms.variance, mean=terms.mean, unit=terms.unit)


def _more_distinct_rows_than_columns(data: Data) -> bool:
    """Whether X has more distinct rows than columns, for ULDM's basis "auto"; the first rows mostly suffice."""
    m, d = data.X.shape
    n = min(m, 2 * d + 2)
    while len(distinct(data.X.take(slice(0, n)), data.counts[:n])) <= d:
        if n == m:
            return False
        n = min(m, 4 * n)
    return True


def _largest_variances_of_basis(columns: Sequence[Column], features: LinearFeatures) -> list[float]:
    """Largest K_ii of ULDM without the bias, for every column: variances of the signed basis columns."""
    rows, counts, m = features.rows, columns[0].counts, columns[0].total
    squares, found = rows.column_squares(counts) / m, np.empty(len(columns))
    for part in steps(len(columns), COLUMNS_AT_ONCE):
        means = rows.adjoint(np.stack([counts * column.y for column in columns[part]], axis=1)) / m
        found[part] = (squares[:, None] - means * means).max(axis=0)
    return np.maximum(found, 0.0).tolist()


def _check_uldm_matrix(column: Column, features: LinearFeatures, bias: str) -> None:
    """Raise ValueError when ULDM has C = 0 and its K is singular: then the objective has no minimum, or many."""
    rows = AffineRows(features.rows, bias != "none")
    n = rows.width
    # K is a sum of m centred products: its rank is below m.
    possible = n < features.n_rows and column.variance > 0
    if not possible or MetricWithoutRidge(rows, column, np.zeros(features.n_rows)).rank < n:
        raise ValueError(
            f"with C=0 the matrix K of the {n} coefficients (bias included) needs to be non-singular with lambda0 > 0, "
            "and it is singular; give C > 0, or a basis of fewer rows"
        )
