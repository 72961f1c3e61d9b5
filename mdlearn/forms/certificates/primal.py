"""Primal side of the certificate: the objective of coefficients, and what exact arithmetic would have made of them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.affine import AffineRows
from mdlearn.forms.margin import Column, MarginForm, best_shift
from mdlearn.numerics.cholesky import nearly_inverse

SAME_ELEMENT = 1e-12
"""Relative difference of two elements of the feature space that counts as rounding."""
EPS = float(np.finfo(float).eps)
ROUNDED_SUM = 8.0
"""Units of eps that a sum over rows is known to: 4 were seen over 12,700 rows whose terms cancel."""
MOST_STEPS = 500
"""Most steps towards dual coefficients of a given element."""
LONGEST_STEP = 1e30
"""Step length beyond which a direction is rounding."""
FACTORED_COLUMNS = 2000
"""Columns up to which a matrix of their inner products is factored, of dense rows."""
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


def objective_at(column: Column, z: np.ndarray, squares: float) -> tuple[float, float]:
    """Return (objective, factor) at margins z and with `squares` as `MarginForm.norm` gives it.

    Constraints scale the point by `factor` >= 1 to reach feasibility.
    """
    factor = feasibility_factor(column, z)
    if math.isinf(factor):
        return math.inf, factor
    return 0.5 * factor * factor * squares + column.distribution_value(z if factor == 1.0 else factor * z), factor


def primal(form: MarginForm, column: Column, coef: np.ndarray, intercept: float) -> tuple[float, np.ndarray, float]:
    """Return (objective, margins, factor) of coefficients, from one pass over the rows."""
    return _at(form, column, coef, intercept, form.features.decision(coef))


def _at(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, f: np.ndarray
) -> tuple[float, np.ndarray, float]:
    """`primal` where the decision values f without the intercept are known."""
    z = column.y * (f + intercept)
    objective, factor = objective_at(column, z, form.norm(coef, intercept, f))
    return objective, z * factor if 1.0 < factor < math.inf else z, factor


def feasibility_factor(column: Column, z: np.ndarray) -> float:
    """Smallest factor >= 1 that takes margins z to side * (factor z - threshold) >= 0; inf when there is none."""
    factor = 1.0
    for term in column.terms:
        if term.hard:
            least = float((term.side * z[column.counts > 0]).min())
            need = term.side * term.threshold
            if least < need:
                factor = max(factor, need / least) if least > 0 and need > 0 else math.inf
    return factor


def improved(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, f: np.ndarray | None = None
) -> tuple[float, np.ndarray, float]:
    """Objective of a point made feasible, freed of rounding losses, with the best free intercept.

    `f` are the decision values of coef, where they are known: a pass over the rows less.
    """
    f = form.features.decision(coef) if f is None else f
    objective, z, factor = _at(form, column, coef, intercept, f)
    if math.isinf(objective):
        return objective, coef, intercept
    if factor != 1.0:
        coef, intercept = factor * coef, factor * intercept
    grown = _without_rounding_losses(form, column, coef, intercept, z, objective)
    if grown is not None:
        objective, growth = grown
        coef, intercept = growth * coef, growth * intercept
    if form.bias == "free":
        shifted = intercept + best_shift(column, z)
        same = factor == 1.0 and grown is None
        trial = _at(form, column, coef, shifted, f if same else form.features.decision(coef))[0]
        if trial <= objective + 1e-14 * abs(objective):  # on a flat interval rounding decides nothing
            objective, intercept = trial, shifted
    return objective, coef, intercept


def _without_rounding_losses(
    form: MarginForm, column: Column, coef: np.ndarray, intercept: float, z: np.ndarray, objective: float
) -> tuple[float, float] | None:
    """Grow a point whose margins miss their thresholds by rounding alone; (objective, factor) if that pays.

    With C = 1e7 a miss of 1e-15 per row is a loss of the size of |w|^2's last eight digits.
    """
    factor = 1.0 if column.hard else growth_to_thresholds(column, z, 1e-9)
    if factor == 1.0:
        return None
    value = primal(form, column, factor * coef, factor * intercept)[0]
    return (value, factor) if value < objective else None


def growth_to_thresholds(column: Column, z: np.ndarray, slack: float) -> float:
    """Factor that takes margins to their thresholds where they miss them by `slack`, relative, at most; else 1."""
    factor = 1.0
    if column.offset is not None:
        return factor  # longer coefficients do not make residuals smaller
    for term in column.terms:
        if term.kind == "logistic":
            return 1.0
        if term.side > 0 and term.threshold > 0 and term.weight > 0:
            least = float((z if column.whole else z[column.counts > 0]).min()) / term.threshold
            if not 1.0 - slack < least < 1.0:
                return 1.0
            factor = max(factor, 1.0 / least)
    return factor


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
    target = np.append(coef, intercept) if bias else coef
    if not target.any():
        return np.zeros_like(alpha)  # nearer ones would leave rounding of their own size behind

    def expand(v: np.ndarray) -> np.ndarray:
        return np.append(features.expand(v), v.sum()) if bias else features.expand(v)

    def adjoint(w: np.ndarray) -> np.ndarray:
        inner = w[: features.width] if features.ridge is None else w[: features.width] / features.ridge
        return features.decision(inner) + (w[-1] if bias else 0.0)

    if expanded is None:
        start = expand(alpha)
    else:
        start = np.append(expanded, alpha.sum()) if bias else expanded
    rest, largest = target - start, np.maximum(np.abs(target), np.abs(start))  # the target may be 0
    if (np.abs(rest) <= SAME_ELEMENT * largest).all():
        return alpha
    scale = _scale(features, bias)
    # A sum of alpha_i x_ij is known to a few eps |alpha| times the length of column j.
    enough = max(
        SAME_ELEMENT**2 * float(scale @ np.square(largest)),
        (ROUNDED_SUM * EPS) ** 2 * np.count_nonzero(scale) * float(alpha @ alpha),
    )
    narrow = features.width <= FACTORED_COLUMNS and not features.rows.sparse
    few = max(LEAST_STEPS, features.width // (COLUMNS_PER_STEP * sharing)) if narrow else MOST_STEPS
    if narrow and far and features.width <= FAR_COLUMNS * sharing:
        few = 0
    alpha, square = _nearer(alpha, rest, scale, enough, (expand, adjoint, lambda r: scale * r), few)
    if narrow and square > enough:
        # Where lengths say little of the columns, more steps would cost more than all their inner products.
        rest = target - expand(alpha)
        alpha, _ = _nearer(alpha, rest, scale, enough, (expand, adjoint, _whitening(features, bias, None)), MOST_STEPS)
    return alpha


def nearest(
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
    inverse, d = _whitening(features, bias, products), features.width
    found = np.array(alpha)
    target = np.vstack([coef, intercepts]) if bias else coef
    for _ in range(FACTORED_STEPS):
        sums = features.expand(found)
        rest = target - (np.vstack([sums, found.sum(axis=0)]) if bias else sums)
        if (np.abs(rest) <= ROUNDED_SUM * EPS * np.abs(target)).all():
            break
        towards = inverse(rest)
        found += features.decision(towards[:d]) + (towards[d] if bias else 0.0)
    return found


def _nearer(
    alpha: np.ndarray, rest: np.ndarray, scale: np.ndarray, enough: float, maps: tuple[Map, Map, Map], most: int
) -> tuple[np.ndarray, float]:
    """Steps that make `rest`, what alpha lacks of its target, shorter; the best alpha, and its error as `scale` has it.

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


def _scale(features: LinearFeatures, bias: bool) -> np.ndarray:
    """One over the squared length of every column; 0 for columns of zeros."""
    lengths = np.square(features.lengths)
    lengths = lengths if features.ridge is None else lengths / features.ridge**2
    lengths = np.append(lengths, features.n_rows) if bias else lengths
    return np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def _whitening(features: LinearFeatures, bias: bool, products: np.ndarray | None) -> Map:
    """The inverse of alpha -> element times its transpose, nearly: columns of length 1, and a trace of the identity.

    It depends on rows and bias alone: classes share it, and features keep it.
    """
    known: dict[bool, Map] = vars(features).setdefault("_whitenings", {})
    if bias not in known:
        known[bias] = _whitened(features, bias, products)
    return known[bias]


def _scaled(features: LinearFeatures, bias: bool, root: np.ndarray) -> np.ndarray:
    """Inner products of the columns, these times `root`."""
    M, rows, by = np.zeros((root.shape[0], root.shape[0])), AffineRows(features.rows, bias), root.copy()
    if features.ridge is not None:
        by[: features.width] /= features.ridge
    for span in features.rows.spans():
        B = rows.block(span) * by
        M += B.T @ B
    return M


def _whitened(features: LinearFeatures, bias: bool, products: np.ndarray | None) -> Map:
    root = np.sqrt(_scale(features, bias))
    n = root.shape[0]
    inverse = nearly_inverse(
        _scaled(features, bias, root) if products is None else products[:n, :n] * np.outer(root, root)
    )
    return lambda rest: (root * inverse((root * rest.T).T).T).T
