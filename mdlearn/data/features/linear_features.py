"""Linear features: explicit rows as the feature space of a fit, phi(x) = x."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.gram import gram_matrix_by_blocks
from mdlearn.data.features.kernel_rounding import ROUNDINGS_HERE, UNIT, safe_length, safe_sum
from mdlearn.data.rows.rows import DenseRows, Rows, Selection, read_only_rows
from mdlearn.numerics.frozen_init import quick_init
from mdlearn.numerics.lazy_property import kept


@quick_init
@dataclass(frozen=True)
class LinearFeatures:
    """Linear features of explicit rows: phi(x) = x."""

    rows: Rows  # shape (m, d)
    ridge: np.ndarray | None = None  # shape (d,): weights > 0 of the squared norm sum_j ridge_j w_j^2; None: ones
    by_rows: ClassVar[bool] = True
    """Whether models keep dual coefficients over the rows."""
    by_products: ClassVar[bool] = False
    """Whether inner products of rows need no matrix that is kept, as those of some kernels."""

    @kept
    def n_rows(self) -> int:
        """Number of training rows."""
        return self.rows.shape[0]

    @kept
    def width(self) -> int:
        """Length of a coefficient vector: the number of columns."""
        return self.rows.shape[1]

    @kept
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the type of the rows, and of the coefficients that a model keeps."""
        return self.rows.dtype

    @property
    def n_entries(self) -> int:
        """Entries that a pass over the rows goes through."""
        return self.rows.n_entries

    @property
    def ready(self) -> bool:
        """Whether the rows are there."""
        return self.rows.complete

    def square(self, counts: np.ndarray) -> np.ndarray | None:
        """The rows where they are a kernel matrix whose columns have a ridge of one over the counts; else None."""
        return None

    def most(self, alpha: np.ndarray) -> float:
        """Upper bound of the squared norm of `expand` while rows are not there; infinity: nothing is known."""
        return 0.0 if not alpha.any() else np.inf

    def expand(self, alpha: np.ndarray) -> np.ndarray:
        """Return w = (X' alpha) / ridge, shape (d,)."""
        rows = self.rows.without_zeros if alpha.ndim == 1 else self.rows
        w = rows.adjoint(alpha) if np.count_nonzero(alpha) else np.zeros((self.width, *alpha.shape[1:]))
        return w if self.ridge is None else w / self.ridge

    def decision(self, coef: np.ndarray) -> np.ndarray:
        """Return f = X w on the training rows."""
        rows = self.rows.without_zeros if coef.ndim == 1 else self.rows
        return rows.dot(coef) if np.count_nonzero(coef) else np.zeros((self.n_rows, *coef.shape[1:]))

    @kept
    def lengths(self) -> np.ndarray:
        """Length of every column over the rows: what no entry of it is larger than."""
        return np.sqrt(self.rows.without_zeros.column_squares(np.ones(self.n_rows)))

    @kept
    def row_lengths(self) -> np.ndarray:
        """Length of every row."""
        return np.sqrt(self.squares() if self.ridge is None else self.rows.squares())

    def blur(self, coef: np.ndarray) -> np.ndarray:
        """Possible rounding error of every decision value, from sums: at least UNIT sum_j |x_ij coef_j|."""
        length = ROUNDINGS_HERE * UNIT * safe_length(coef)
        if length == 0:
            return np.zeros(self.n_rows)
        return np.minimum(self.row_lengths * length, ROUNDINGS_HERE * UNIT * float(self.lengths @ np.abs(coef)))

    @kept
    def longest_row(self) -> float:
        """Length of the longest row."""
        squares = self.squares() if self.ridge is None else self.rows.squares()
        return math.sqrt(float(squares[squares.argmax()]))  # `max` takes three times as long over few rows

    @kept
    def all_lengths(self) -> float:
        """Root of the sum of the squared lengths of all rows."""
        return math.sqrt(safe_sum(self.squares()))

    def longest(self, coef: np.ndarray) -> float:
        """Upper bound of the absolute value of every decision value."""
        return self.longest_row * safe_length(coef)

    def most_blur(self, coef: np.ndarray) -> float:
        """Upper bound of every value of `blur`, from lengths of rows alone; infinity: these say nothing."""
        length = safe_length(coef)
        return ROUNDINGS_HERE * UNIT * self.longest_row * length if length > 0 else 0.0

    def haze(self, alpha: np.ndarray, element: np.ndarray | None) -> float:
        """Possible rounding error by which half of the squared norm of `element`, the sum of alpha_i x_i, is too small.

        None: what it is at most, as no column adds up to more than its length allows.
        """
        most = safe_length(alpha) * (self.lengths if self.ridge is None else self.lengths / self.ridge)
        off = ROUNDINGS_HERE * UNIT * most
        longer = ((most if element is None else np.abs(element)) + 0.5 * off) * off
        return float(longer.sum() if self.ridge is None else longer @ self.ridge)

    def most_haze(self, alpha: np.ndarray, element: np.ndarray | None) -> float:
        """Upper bound of `haze`, from lengths of rows, alpha and `element` alone; infinity: these say nothing."""
        if self.ridge is not None:
            return np.inf
        length = safe_length(alpha)
        if length == 0:
            return 0.0
        most = length * self.all_lengths
        off = ROUNDINGS_HERE * UNIT * most
        return ((most if element is None else safe_length(element)) + 0.5 * off) * off

    def squared_norm(self, coef: np.ndarray, f: np.ndarray | None = None) -> float:
        """Return sum_j ridge_j w_j^2; decision values say nothing of it."""
        return float(coef.dot(coef) if self.ridge is None else coef @ (self.ridge * coef))

    def squared_length(self, coef: np.ndarray) -> float:
        """Squared norm of w as a function of x: what margins are divided by; here, as in the objective."""
        return self.squared_norm(coef)

    def computed(self) -> Generator[None, None, None]:
        """Compute what the rows are made of, in interruptible pieces: rows as given need nothing."""
        return
        yield  # what makes this a generator

    def squares(self) -> np.ndarray:
        """Squared norm of every row in feature space, sum_j x_ij^2 / ridge_j."""
        own = vars(self)
        if "found_squares" not in own:
            own["found_squares"] = read_only_rows(self.rows.squares(self.ridge))
        found: np.ndarray = own["found_squares"]
        return found

    def to_model(self, coef: np.ndarray, alpha: np.ndarray | None) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what a model keeps of coefficients: w, and alpha where f(x) = sum alpha_i k(x_i, x) + b."""
        return coef, alpha

    def from_model(self, coef: np.ndarray | None, alpha: np.ndarray | None) -> np.ndarray:
        """Coefficients in these features from what a model keeps: the inverse of `to_model`."""
        assert coef is not None
        return coef

    def attributes(self) -> dict[str, np.ndarray]:
        """Arrays that a model of these features has as attributes, by name."""
        return {}

    def mapping(self) -> Any:
        """Map that makes the features of new rows (a FeatureMap); None: rows are taken as they are."""
        return None

    def matrix(self) -> Any:
        """Rows whose products with coefficients are the decision values: X, an array or a CSR matrix."""
        return self.rows.matrix()

    def gram(self) -> Generator[None, None, np.ndarray]:
        """Compute X diag(1 / ridge) X' by row blocks, yielding between them."""

        def block(rows: Selection, columns: Selection) -> np.ndarray:
            left = self.rows.take(rows)
            if self.ridge is not None:
                left = DenseRows(left.block(slice(None)) / self.ridge)
            return left.inner(self.rows.take(columns))

        return gram_matrix_by_blocks(self.n_rows, self.width, block)
