"""Dual coefficients whose representer has given coefficients: sum alpha_i phi(x_i) = coef, by Craig's method."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows, affine_coefficients
from mdlearn.forms.margin import MarginForm
from mdlearn.numerics.cholesky import nearly_inverse_by_cholesky

SAME_ELEMENT = 1e-12
"""Relative difference of two elements of the feature space that counts as rounding."""
EPS = float(np.finfo(float).eps)
ROUNDED_SUM = 8.0
"""Units of eps that a sum over rows is known to: 4 were seen over 12,700 rows whose terms cancel."""
LOST_SHARE = 1e-6
"""Share of an element that rounding of the sum for given dual coefficients may make: beyond, the search begins at 0."""
MOST_STEPS = 500
"""Most steps towards dual coefficients of a given element."""
LONGEST_STEP = 1e30
"""Step length beyond which a direction is rounding."""
FACTORED_COLUMNS, FULL_SHARE = 2000, 0.25
"""Columns up to which a matrix of their inner products is factored, and the share of entries that are not zeros there.

Rows of one cluster are full as well: 20,000 x 1,000 of them took 500 steps to no avail, 5 s of each search."""
LEAST_STEPS, COLUMNS_PER_STEP = 4, 32
"""Steps before that: at least, and columns per step that cost as much."""
FAR_COLUMNS = 100
"""Columns up to which the matrix comes first where elements are far, for each class that shares it: without it steps
were 65 to no avail on mnist, 4 seconds of each class."""
FACTORED_STEPS = 3
"""Steps with the factor of that matrix for several columns at once."""
Map = Callable[[np.ndarray], np.ndarray]
RUNAWAY_ERROR = 1e8
"""Growth of a squared error beyond the least so far that ends the steps."""


def representer(
    form: MarginForm,
    alpha: np.ndarray,
    coef: np.ndarray,
    intercept: float,
    expanded: np.ndarray | None = None,
    far: bool = False,
    sharing: int = 1,
) -> np.ndarray:
    """Dual coefficients nearest to `alpha` with sum alpha_i phi(x_i) = coef (and sum alpha = a regularized bias).

    Craig's method (conjugate gradients on the normal equations of the second kind), columns scaled to equal length: two
    passes over the rows a step. It ends where the difference is what rounding of the sum itself makes. `expanded` is
    the sum for `alpha`, where it is known; `far`: it differs from the target by more than rounding, so that a few
    steps are not enough. `sharing` is the number of classes over the same rows.
    """
    features = form.features
    if not isinstance(features, LinearFeatures):
        return coef
    if not features.by_rows:
        return alpha  # nobody asks for it
    bias = form.bias == "regularized"
    target = affine_coefficients(coef, intercept) if bias else coef
    if not np.count_nonzero(target):
        return np.zeros_like(alpha)  # nearer ones would leave rounding of their own size behind

    def expand(v: np.ndarray) -> np.ndarray:
        return affine_coefficients(features.expand(v), v.sum()) if bias else features.expand(v)

    def adjoint(w: np.ndarray) -> np.ndarray:
        inner = w[: features.width] if features.ridge is None else w[: features.width] / features.ridge
        return features.decision(inner) + (w[-1] if bias else 0.0)

    known = features.expand(alpha) if expanded is None else expanded
    start = affine_coefficients(known, alpha.sum()) if bias else known
    rest, scale = target - start, _shared_by_representers(features, _representer_scale, bias)
    # A sum of alpha_i x_ij is known to a few eps |alpha| times the length of column j.
    enough: float = (ROUNDED_SUM * EPS) ** 2 * np.count_nonzero(scale) * float(alpha @ alpha)
    if enough > LOST_SHARE**2 * float(scale @ np.square(target)):
        alpha, start, rest, enough = np.zeros_like(alpha), np.zeros_like(target), target, 0.0
    if scale @ np.square(rest) <= enough:
        return alpha
    largest = np.maximum(np.abs(target), np.abs(start))  # the target may be 0
    enough = max(enough, SAME_ELEMENT**2 * float(scale @ np.square(largest)))
    full = features.n_entries >= FULL_SHARE * features.n_rows * features.width
    narrow = features.width <= FACTORED_COLUMNS and full
    few = max(LEAST_STEPS, features.width // (COLUMNS_PER_STEP * sharing)) if narrow else MOST_STEPS
    if narrow and far and features.width <= FAR_COLUMNS * sharing:
        few = 0
    alpha, square = _craig_steps_to_representer(alpha, rest, scale, enough, (expand, adjoint, lambda r: scale * r), few)
    if narrow and square > enough and features.n_rows < features.width:
        # Steps of fewer rows than columns end where nothing of what is left is a sum over rows.
        solved, by = _shared_by_representers(features, _representer_gram_inverse, bias)
        wanted = by * adjoint(target - expand(alpha))
        for _ in range(FACTORED_STEPS):
            nearer = alpha + by * solved(wanted)
            left = by * adjoint(target - expand(nearer))
            if not float(left @ left) < float(wanted @ wanted):
                break
            alpha, wanted = nearer, left
    elif narrow and square > enough:
        # Where lengths say little of the columns, more steps would cost more than all their inner products.
        whitened = _shared_by_representers(features, _representer_whitening, bias)
        rest = target - expand(alpha)
        square = float(scale @ np.square(rest))
        for _ in range(FACTORED_STEPS):
            # Of full length: what of the target is no sum over rows, by rounding, would rule the lengths of Craig's.
            nearer = alpha + adjoint(whitened(rest))
            left = target - expand(nearer)
            if not (less := float(scale @ np.square(left))) < square:
                break
            alpha, rest, square = nearer, left, less
            if square <= enough:
                return alpha
        maps = expand, adjoint, whitened
        alpha, _ = _craig_steps_to_representer(alpha, rest, scale, enough, maps, MOST_STEPS)
    return alpha


def nearest_representers(
    features: LinearFeatures,
    bias: bool,
    alpha: np.ndarray,
    coef: np.ndarray,
    intercepts: np.ndarray,
    products: np.ndarray | None,
) -> np.ndarray | None:
    """Dual coefficients of k problems at once, each as by `representer`; None for many or sparse columns.

    `alpha` has shape (m, k), `coef` (d, k). The matrix of inner products is factored once, and a few steps with it are
    passes over the rows for all columns. `products` are the inner products of the columns, and of one of ones behind
    them, where they are known.
    """
    if features.width > FACTORED_COLUMNS or features.rows.sparse or not features.by_rows or features.ridge is not None:
        return None
    inverse, d = _shared_by_representers(features, _representer_whitening, bias, products), features.width
    found = np.array(alpha)
    target = affine_coefficients(coef, intercepts) if bias else coef
    for _ in range(FACTORED_STEPS):
        sums = features.expand(found)
        rest = target - (affine_coefficients(sums, found.sum(axis=0)) if bias else sums)
        if (np.abs(rest) <= ROUNDED_SUM * EPS * np.abs(target)).all():
            break
        towards = inverse(rest)
        found += features.decision(towards[:d]) + (towards[d] if bias else 0.0)
    return found


def _craig_steps_to_representer(
    alpha: np.ndarray, rest: np.ndarray, scale: np.ndarray, enough: float, maps: tuple[Map, Map, Map], most: int
) -> tuple[np.ndarray, float]:
    """Craig's steps to a representer: they shorten `rest`, which alpha lacks; returns best alpha and squared error.

    `maps` are alpha -> element, its transpose, and a metric of elements.
    """
    expand, adjoint, metric = maps
    square = float(scale @ np.square(rest))
    step, last, best, least = np.zeros_like(alpha), math.inf, alpha, square
    for _ in range(most):
        # Errors do not fall evenly; where they run away, rounding rules.
        if not enough < square < RUNAWAY_ERROR * least:
            break
        towards = metric(rest)
        inner = float(towards @ rest)
        step = adjoint(towards) + (inner / last) * step
        size = float(step @ step)
        if not inner < LONGEST_STEP * size:
            break  # what is left of the element is no combination of rows
        length = inner / size
        alpha = alpha + length * step
        rest = rest - length * expand(step)
        last, square = inner, float(scale @ np.square(rest))
        if square < least:
            best, least = alpha, square
    return best, least


def _representer_scale(features: LinearFeatures, bias: bool) -> np.ndarray:
    """Inverse squared length of every column, which scales steps to a representer; 0 for columns of zeros."""
    lengths = np.square(features.lengths)
    lengths = lengths if features.ridge is None else lengths / features.ridge**2
    lengths = affine_coefficients(lengths, features.n_rows) if bias else lengths
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _shared_by_representers(features: LinearFeatures, make: Callable[..., Any], bias: bool, *given: Any) -> Any:
    """Return what is made for representers of rows and bias alone: classes share it, and features keep it."""
    known: dict[tuple[Any, bool], Any] = vars(features).setdefault("_for_representers", {})
    if (make, bias) not in known:
        known[make, bias] = make(features, bias, *given)
    return known[make, bias]


def _representer_products(features: LinearFeatures, bias: bool, root: np.ndarray) -> np.ndarray:
    """Inner products of the columns scaled by `root`, which `_representer_whitening` factors for representers."""
    M, rows, by = np.zeros((root.shape[0], root.shape[0])), AffineRows(features.rows, bias), root.copy()
    if features.ridge is not None:
        by[: features.width] /= features.ridge
    for span in features.rows.spans():
        B = rows.block(span) * by
        M += B.T @ B
    return M


def _representer_gram_inverse(features: LinearFeatures, bias: bool) -> tuple[Map, np.ndarray]:
    """Nearly the inverse of inner products of rows of length 1, for representers, and the inverse lengths.

    For rows that are fewer than the columns.
    """
    rows = AffineRows(features.rows, bias)
    A = np.vstack([rows.block(span) for span in features.rows.spans()])
    if features.ridge is not None:
        A[:, : features.width] /= features.ridge
    lengths = np.sqrt(np.einsum("ij,ij->i", A, A))
    root = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    A *= root[:, None]
    return nearly_inverse_by_cholesky(A @ A.T), root


def _representer_whitening(features: LinearFeatures, bias: bool, products: np.ndarray | None = None) -> Map:
    """Whitening for representers: nearly the inverse of the map alpha -> element times its transpose.

    Of inner products of columns of length 1, plus a trace of I.
    """
    root = np.sqrt(_representer_scale(features, bias))
    n = root.shape[0]
    inverse = nearly_inverse_by_cholesky(
        _representer_products(features, bias, root) if products is None else products[:n, :n] * np.outer(root, root)
    )
    return lambda rest: (root * inverse((root * rest.T).T).T).T
