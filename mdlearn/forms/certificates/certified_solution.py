"""Certificate of a margin form: primal and dual values recomputed outside every engine, in float64.

For multipliers beta in [0, caps], sigma with sum 0 and alpha = y (sum_t side_t beta_t + sigma + a c / m)::

    D = sum_t side_t threshold_t sum_i beta_ti - 1/2 sum delta beta^2 - sum sigma^2 / (2 kappa c)
        - 1/2 |sum alpha_i phi(x_i)|^2  [- 1/2 (sum alpha)^2 for a regularized bias; sum alpha = 0 for a free one]

is a lower bound of the objective whatever the engine did (hinge terms shown; every term knows its own share). Kernel
values are rounded: D and the objective are those of a matrix G, while the kernel's own is some G + E, of which only the
size of E is known. What E can make of them (`mdlearn.forms.certificates.rounding`) is taken from the bound and added to
the objective: both hold for the kernel's own matrix, and for every other one that rounding could have made of it.
Where nothing but the mean moves a free bias, what rounding leaves of sum alpha = 0 is taken from the bound, too.
Without a ridge, sum alpha_i phi(x_i) = 0 is a condition too, and the multipliers are corrected to meet it. Every value
here costs two passes over the data.
"""

from __future__ import annotations

import math
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from mdlearn._solvers import point_values
from mdlearn.data.features.kernel_rounding import safe_length
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.forms.certificates.dual import Dual, feasible_dual, feasible_variance_dual
from mdlearn.forms.certificates.primal import MISSED_BY_ROUNDING, improved_primal, primal
from mdlearn.forms.certificates.representer import EPS, ROUNDED_SUM, representer
from mdlearn.forms.certificates.rounding import (
    MOST_UNSEEN,
    SHARE_OF_TOL,
    UNSEEN_SHARE,
    certain_point,
    rounded,
    rounding_doubt_of_bound,
    rounding_may_show,
)
from mdlearn.forms.certificates.without_ridge import cheap_without_ridge, doubt_without_ridge
from mdlearn.forms.losses import growth_to_thresholds
from mdlearn.forms.margin import BIASES, Column, MarginForm, Point
from mdlearn.forms.proof import AT_REST, Solution, judge

ROUNDING_OF_VALUES = 1e-14
"""Relative difference of two objective values that rounding makes."""
BLURRED_BOUND = 1e-10
"""Relative error of a bound from which it is computed anew."""
MISSED_COEFFICIENT = 1e-6
"""Difference between coefficients and what their dual ones make, as a share of the largest, from which a model has what
these make. Rounding of steps on steep losses is no sum over rows; a small ridge lets it grow to the rest's size."""
ONE_PASS_ROWS = 8000
"""Rows up to which one pass is cheaper than products by BLAS and a call for every value, from three columns on."""
Proven = tuple[Dual, Solution]
"""What multipliers say, and the certificate of their representer."""


def certify(form: MarginForm, column: Column, point: Point, tol: float) -> Proven:
    """Certify a margin form by its multipliers' representer: coefficients and dual coefficients then say the same."""
    found = values_in_one_pass(form, column, point, own=False)
    if found is not None:
        return found.proof, _certified_as_stored(form, column, found.primal, found.proof, found.own, tol, z=found.z)
    proof = feasible_dual(form, column, point.beta, point.sigma)
    return proof, _certified_by_representer(form, column, point, proof, tol)


def _certified_by_representer(form: MarginForm, column: Column, point: Point, proof: Dual, tol: float) -> Solution:
    """Certify a margin form by the representer of multipliers whose dual is known."""
    alpha = proof.alpha
    if form.ridge == 0:
        # Multipliers alone make no coefficients there.
        return _certified_own_point(form, column, point, proof, None, tol)
    expanded = form.features.expand(alpha) if proof.element is None else proof.element
    own = None
    if not column.terms and point.coef is not None:
        own = improved_primal(form, column, point.coef.copy(), point.intercept)
        if own[0] - proof.lower <= ROUNDING_OF_VALUES * abs(own[0]):  # nothing is better
            return _certified_as_stored(
                form, column, own, proof, _certified_own_coefficients(form, alpha, expanded, own), tol
            )
    f = form.features.decision(expanded)
    intercepts = {float(alpha.sum())} if form.bias == "regularized" else {point.intercept}
    if point.coef is None and point.intercept != 0.0:
        # An engine that moves the bias on its own has a better one than its multipliers stand for.
        intercepts.add(point.intercept)
    found = min([improved_primal(form, column, expanded, b, f) for b in sorted(intercepts)], key=itemgetter(0))
    same = found[1] is expanded
    alpha = alpha if same else _certified_grown_coefficients(alpha, expanded, found[1])
    # Multipliers of the variance alone are of the size of 1 / ridge: coefficients made of them lack those digits.
    if own is not None and own[0] <= found[0] + ROUNDING_OF_VALUES * abs(found[0]):
        found, same, alpha = own, False, _certified_own_coefficients(form, alpha, expanded, own)
    return _certified_as_stored(form, column, found, proof, alpha, tol, f if same else None)


def _certified_own_point(
    form: MarginForm, column: Column, point: Point, proof: Dual, alpha: np.ndarray | None, tol: float
) -> Solution:
    """Certify an engine's own coefficients in a margin form, improved unless they are better as they are."""
    assert point.coef is not None
    coef = point.coef.copy()  # the engine may go on writing into its arrays, for the next column
    f = form.features.decision(coef)
    found = improved_primal(form, column, coef, point.intercept, f)
    same = found[1] is coef
    better = _certified_as_stored(form, column, found, proof, alpha, tol, f if same else None)
    if found[2] == point.intercept and (same or np.array_equal(found[1], coef)):
        return better
    value, _, factor = primal(form, column, coef, point.intercept)
    if factor != 1.0:  # constraints that are missed: the improved ones meet them
        return better
    plain = _certified_as_stored(form, column, (value, coef, point.intercept), proof, alpha, tol)
    return plain if plain.certificate.objective < better.certificate.objective else better


def _certified_grown_coefficients(alpha: np.ndarray, expanded: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Dual coefficients in a margin form's certificate of `coef`, which `expanded` with alpha grew to."""
    size = float(np.abs(expanded).max(initial=0.0))
    return alpha if size == 0 else alpha * (float(np.abs(coef).max()) / size)


def _certified_own_coefficients(
    form: MarginForm, alpha: np.ndarray, expanded: np.ndarray, own: tuple[float, np.ndarray, float]
) -> np.ndarray:
    """Dual coefficients of an engine's own point in a margin form's certificate; alpha, if `expanded` is the same."""
    _, coef, intercept = own
    if np.abs(coef - expanded).max() <= ROUNDING_OF_VALUES * np.abs(coef).max():
        return alpha
    return representer(form, alpha, coef, intercept, expanded, sharing=len(form.columns))


def certify_best(
    form: MarginForm, column: Column, point: Point, tol: float, known: Proven | None, own_first: bool
) -> Solution:
    """Certify a margin form by the better of representer and engine's own point, for a fit that ends early.

    Where rounding or a limit stops an engine, its own point can be far better than what its multipliers stand for;
    the dual coefficients are then the ones nearest to the multipliers' that give the same function. `known` is what
    `certify` made of the point; `own_first`: whether the point's own coefficients come before all else.
    """
    nothing = _certified_zero(form, column, point, tol)
    if nothing is not None:
        return nothing
    if known is None and own_first and point.alpha is not None:
        found = values_in_one_pass(form, column, point, own=True)
        if found is not None:
            quick = _certified_as_stored(form, column, found.primal, found.proof, found.own, tol, z=found.z)
            if quick.certificate.converged and quick.coef is found.primal[1]:
                return quick
        proof, made_of = feasible_dual(form, column, point.beta, point.sigma), point.alpha.copy()
        own = _certified_own_point(form, column, point, proof, made_of, tol)
        if own.certificate.converged:
            return _certified_with_coefficients(form, column, (own, proof), made_of, tol, far=False)
        known = proof, _certified_by_representer(form, column, point, proof, tol)
    proof, solution = certify(form, column, point, tol) if known is None else known
    if point.coef is None or form.ridge == 0:
        return solution
    own = _certified_own_point(form, column, point, proof, solution.alpha, tol)
    least = solution.certificate.objective
    if not own.certificate.objective < (least - ROUNDING_OF_VALUES * abs(least) if math.isfinite(least) else least):
        return solution
    assert solution.alpha is not None
    near = solution.alpha if point.alpha is None else point.alpha.copy()
    return _certified_with_coefficients(form, column, (own, proof), near, tol, far=point.alpha is None)


def _certified_with_coefficients(
    form: MarginForm, column: Column, known: tuple[Solution, Dual], near: np.ndarray, tol: float, far: bool
) -> Solution:
    """Certified solution of a margin form, with dual coefficients that make its coefficients, near given ones.

    Coefficients that no dual ones make are those of the nearest, where these are as good: margins are the same.
    """
    own, proof = known
    coef, regularized = form.features.from_model(own.coef, own.alpha), form.bias == "regularized"
    alpha = representer(form, near, coef, float(own.intercept), far=far, sharing=len(form.columns))
    if alpha is not near and isinstance(form.features, LinearFeatures):
        made, b = form.features.expand(alpha), float(alpha.sum()) if regularized else float(own.intercept)
        if np.abs(made - coef).max() > MISSED_COEFFICIENT * np.abs(coef).max():
            found = improved_primal(form, column, made, b)
            grown = alpha if found[1] is made else _certified_grown_coefficients(alpha, made, found[1])
            again = _certified_as_stored(form, column, found, proof, grown, tol)
            if again.certificate.converged or again.certificate.objective <= own.certificate.objective:
                return again
    held = form.features.to_model(coef, alpha)[1]
    return Solution(own.coef, own.intercept, held, own.beta, own.norm, own.certificate, own.at_limit, own.extras)


def _certified_zero(form: MarginForm, column: Column, point: Point, tol: float) -> Solution | None:
    """Certify w = 0 in a margin form with multipliers 0, from labels and weights; None where that takes the rows.

    Of many classes that a time limit leaves without any work, each would else cost some passes over its rows.
    """
    if column.hard or form.ridge == 0 or form.bias == "free" or column.pulled or point.intercept != 0:
        return None
    if point.coef is None or np.count_nonzero(point.coef) or np.count_nonzero(point.beta):
        return None
    objective, lower = column.at_zero, column.bound(point.beta, np.zeros_like(column.y))
    zero, none = np.zeros(form.features.width), np.zeros_like(column.y)
    return _certified_as_stored(form, column, (objective, zero, 0.0), Dual(lower, none, point.beta, None), none, tol)


def certify_as_is(form: MarginForm, column: Column, point: Point, tol: float) -> Solution:
    """Certify an engine's own point in a margin form without a better one: the multipliers only prove the bound."""
    if point.coef is None:
        return certify(form, column, point, tol)[1]
    proof = feasible_dual(form, column, point.beta, point.sigma)
    coef, intercept = point.coef.copy(), point.intercept  # as in `_certified_own_point`
    held = None if point.alpha is None else point.alpha.copy()
    objective, _, factor = primal(form, column, coef, intercept)
    if 1.0 < factor < math.inf:
        coef, intercept, held = factor * coef, factor * intercept, None if held is None else factor * held
    if held is None and form.ridge > 0:
        held = representer(form, proof.alpha, coef, intercept)
    return _certified_as_stored(form, column, (objective, coef, intercept), proof, held, tol)


def stored_objective(form: MarginForm, column: Column, point: Point, objective: float) -> float:
    """Objective that a margin form's certificate states, of an engine's own coefficients or its multipliers'.

    That costs passes over the rows: an engine's own value is the answer where neither rounding to the type of the
    rows nor that of products can show in it.
    """
    coef, features = point.coef, form.features
    if features.dtype == np.float64:
        if not features.ready or (coef is None and isinstance(features, LinearFeatures)):
            return objective
        near = _certified_signed_coefficients(column, point) if coef is None else coef
        if not rounding_may_show(form, column, objective, near, point.intercept):
            return objective
    if coef is None:
        return certify(form, column, point, 1.0)[1].certificate.objective / (form.unit * column.unit)
    value, _, factor = primal(form, column, coef, point.intercept)
    if math.isinf(factor):
        return math.inf
    held = rounded(form, column, value, factor * coef, factor * point.intercept)
    return certain_point(form, column, *held[:3]).objective


def _certified_signed_coefficients(column: Column, point: Point) -> np.ndarray:
    """Signed dual coefficients in a margin form's certificate, from multipliers moved within their bounds."""
    beta = np.minimum(np.maximum(point.beta, 0.0), column.caps)
    return column.alpha(beta, feasible_variance_dual(column, point.sigma))


def stored_bound(form: MarginForm, column: Column, point: Point, lower: float) -> float:
    """Bound that a margin form's certificate states, of an engine's multipliers, where that may be another one.

    Without a ridge, or where a free bias left the engine without any bound, it is that of corrected multipliers.
    """
    features = form.features
    corrected = form.ridge == 0 or (form.bias == "free" and math.isinf(lower))
    if not features.ready or (corrected and not cheap_without_ridge(form)):
        return lower
    if not corrected:
        alpha, limit = _certified_signed_coefficients(column, point), BLURRED_BOUND * abs(lower)
        if features.most_haze(alpha, None) <= limit or features.haze(alpha, None) <= limit:
            return lower
    proof = feasible_dual(form, column, point.beta, point.sigma)
    held = proof.lower - rounding_doubt_of_bound(form, column, proof, point.intercept)
    return -math.inf if math.isnan(held) else held


def _certified_as_stored(
    form: MarginForm,
    column: Column,
    found: tuple[float, np.ndarray, float],
    proof: Dual,
    alpha: np.ndarray | None,
    tol: float,
    f: np.ndarray | None = None,
    z: np.ndarray | None = None,
) -> Solution:
    """Certify a point (objective, coefficients, intercept) of a margin form as the model will store it.

    `f` are the decision values of these coefficients or z the margins, where they are known.
    """
    objective, coef, intercept, longer = rounded(form, column, *found)
    if coef is not found[1]:
        f = z = None
    unit = form.unit * column.unit
    at_zero = unit * column.at_zero
    # What rounding may have taken from the objective, and added to the bound.
    unseen = min(max(SHARE_OF_TOL * tol, UNSEEN_SHARE), MOST_UNSEEN)
    objective, coef, intercept, growth = certain_point(form, column, objective, coef, intercept, f, unseen, z)
    if alpha is not None and longer * growth != 1.0:
        alpha = longer * growth * alpha
    doubt = rounding_doubt_of_bound(form, column, proof, intercept, unseen)
    if form.ridge == 0:
        doubt += doubt_without_ridge(form, proof.alpha, coef, intercept)
    element, apart = proof.element, None
    if form.modulus == 1.0 and (coef is element or (element is not None and isinstance(form.features, LinearFeatures))):
        moved = intercept - float(proof.alpha.sum()) if form.bias == "regularized" else 0.0
        apart = abs(moved) if coef is element else math.hypot(safe_length(coef - element), moved)
    values = unit * objective, unit * (proof.lower - doubt)
    certificate = judge(*values, at_zero, column.hard, tol, unit * form.modulus, apart)
    at_limit = False
    if not certificate.converged:
        # Without rounding the point would do, and rounding alone costs more than is left; far from the optimum, what it
        # costs says nothing of later points.
        exact = judge(unit * found[0], unit * proof.lower, at_zero, column.hard, tol)
        rounding = judge(unit * objective, unit * (found[0] - doubt), at_zero, column.hard, tol)
        at_limit = exact.gap <= max(tol, AT_REST) < rounding.gap
    norm = math.sqrt(max(form.features.squared_length(coef), 0.0)) if np.count_nonzero(coef) else 0.0
    w, alpha = form.features.to_model(coef, alpha)
    return Solution(w, intercept, alpha, proof.beta, norm, certificate, at_limit, form.features.attributes())


class OnePassValues(NamedTuple):
    """Values of a certificate by one pass over explicit rows.

    `primal`: objective, coefficients and intercept; `own` (shape (m,)): dual coefficients of the coefficients; `z`
    (shape (m,)): margins.
    """

    primal: tuple[float, np.ndarray, float]
    proof: Dual
    own: np.ndarray
    z: np.ndarray


def values_in_one_pass(form: MarginForm, column: Column, point: Point, own: bool) -> OnePassValues | None:
    """Values for the certificate of a point's multipliers, and of coefficients; None: this pass cannot tell.

    `own`: the coefficients are the point's, with the dual ones that it has; else those that the multipliers stand for.
    None where rows are neither a small array by rows nor, but for `own`, CSR; where terms differ from row to row, where
    coefficients are not those that the dual ones make, and where a free intercept, or one that was moved, may have a
    better one. Coefficients whose margins just miss a threshold are made longer, as by `improved_primal`.
    """
    if form.bias == "free" and (not own or column.kappa > 0 or column.kinds == {"hinge"}):
        return None
    moved = form.bias == "regularized" and point.coef is None and point.intercept != 0.0
    if not own and (form.ridge == 0 or moved):
        return None
    features, terms = form.features, column.table
    if terms is None or type(features) is not LinearFeatures or features.ridge is not None:
        return None
    if features.dtype != np.float64:
        return None
    rows, stored, (m, d) = features.rows.whole, None, features.rows.shape
    if m > ONE_PASS_ROWS or type(rows) is not np.ndarray or not rows.flags.c_contiguous:
        rows, stored = None, features.rows.without_zeros
        if own or type(stored) is not CsrRows:
            return None
    # Copies: the engine may go on writing into its arrays, for the next column.
    coef, alphas = (np.array(point.coef, float), np.array(point.alpha, float)) if own else (None, None)
    beta, alpha, z = np.array(point.beta, float), np.empty(m), np.empty(m)
    y, counts = np.ascontiguousarray(column.y), np.ascontiguousarray(column.counts)
    weights = column.total, column.variance, column.mean, BIASES.index(form.bias)
    sigma, b = np.ascontiguousarray(point.sigma, float), float(point.intercept)
    if stored is None:
        sums = np.empty((3, d))
        objective, intercept, lower, least, missed = point_values.values(
            rows, y, counts, column.caps, terms, *weights, coef, b, alphas, sigma, beta, alpha, z, sums
        )
        element = sums[0]
    else:
        lower, missed = point_values.feasible(y, counts, column.caps, terms, *weights, sigma, beta, alpha, z), 0.0
        element = stored.adjoint(alpha)
        z = stored.dot(element)
        objective, intercept, taken, least = point_values.at_multipliers(
            y, counts, terms, *weights, b, alpha, element, z
        )
        lower -= taken
    for (term, counts), b in zip(column.shares, beta):  # what no numbers say
        if term.kind in ("given", "native"):
            objective, lower = objective + term.value(z, counts), lower + term.bound(b, counts)
    if coef is None or alphas is None:
        coef, alphas = element, alpha
    if not missed <= (ROUNDED_SUM * EPS) ** 2 or not np.count_nonzero(coef):
        return None
    proof = Dual(lower, alpha, beta, element)
    growth = 1.0 if "logistic" in column.kinds else growth_to_thresholds(column.terms, least, MISSED_BY_ROUNDING)
    if growth != 1.0:
        longer, b = growth * coef, growth * intercept
        value, there, _ = primal(form, column, longer, b)
        if value < objective:
            return OnePassValues((value, longer, b), proof, growth * alphas, there)
    return OnePassValues((objective, coef, intercept), proof, alphas, z)
