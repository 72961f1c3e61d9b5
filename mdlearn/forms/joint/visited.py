"""Visited evaluations of a plugin's composite, held against what it declares: a bound is as true as that.

A convex h lies above each of its tangents, and no bound lies above a value that was seen. Both are inequalities between
numbers that a fit has anyway. A certificate adds a few points of its own, for steps may leave out a direction in which
a gradient is wrong. This finds mistakes; that there are none is what a class declares.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.errors import FaultyProblem
from mdlearn.forms.base import overrides_problem_base
from mdlearn.forms.joint.composite_point import CompositeEvaluation, row_lengths
from mdlearn.numerics.errstate import overflow_errstate

ROUNDING_OF_TERMS = 1e-12
"""What sums may lose, relative to the sizes of their terms: some thousand roundings of float64."""
PROBES = (-1e-5, 1e-5, 1.0)
"""Steps to other points, in units of the largest coefficient: short ones for gradients, a long one for an h that bends
downwards."""
RATE_STEP = 1e-6
"""Step of the difference that tells a wrong gradient from an h that is not convex, once one of them is certain."""
DIFFERENT_RATE = 1e-4
"""Relative difference of a slope and such a difference that rounding and curvature do not make."""
MODEL_STEPS = 3
"""Proximal gradient steps on tangent, ridge and penalty; the first is exact where all rows have one ridge."""


class VisitedEvaluations:
    """Visited evaluations of a plugin's composite: those at W = 0, at the best point, and the last."""

    def __init__(self) -> None:
        self.kept: dict[str, CompositeEvaluation] = {}

    def visit(self, problem: Any, look: CompositeEvaluation) -> None:
        """Check an evaluation against those that are kept, and keep it."""
        with overflow_errstate():
            if not self.kept:
                self.kept = dict.fromkeys(("zero", "best", "last"), _copy_visited(problem.at(np.zeros(problem.shape))))
            for other in self.kept.values():
                _check_visited_tangents(problem, look, other)
            if look.value < problem.floor - _visited_rounding(problem, look, look):
                raise FaultyProblem(
                    f"{_title(problem, 'nonnegative')} is True, but at() gives the value {look.value!r} at a point "
                    "that the fit visited"
                )
            self.kept["last"], value = _copy_visited(look), problem.objective(look)
            if not (problem.objective(self.kept["best"]) <= value or math.isnan(value)):
                self.kept["best"] = self.kept["last"]

    def probe(self, problem: Any, held: CompositeEvaluation, look: CompositeEvaluation) -> None:
        """Visit what is to be certified, by the tangent at another evaluation, and a few points around that one.

        The declared minimum of this tangent and the declared value at W = 0 are checked, too.
        """
        self.visit(problem, held)
        self.visit(problem, look)
        length = float(np.abs(look.W).max(initial=0.0)) or 1.0
        step = length * np.random.default_rng(0).standard_normal(look.W.shape)
        for share in PROBES:
            self.visit(problem, problem.at(look.W + share * step))
        self._check_zero(problem)
        self._check_least(problem, look)
        _check_slopes_of_bare_rows(problem, look)

    def bound(self, problem: Any, look: CompositeEvaluation, anchor: CompositeEvaluation | None) -> tuple[float, str]:
        """Return the bound from an evaluation, which is not above the objective at any that is kept, and its kind."""
        for one in (look,) if anchor is None else (anchor, look):
            self.visit(problem, one)
        lower, kind = problem.bound(look, anchor)
        for other in self.kept.values():
            value = problem.objective(other)
            if lower > value + _visited_rounding(problem, look, other) + ROUNDING_OF_TERMS * (abs(lower) + abs(value)):
                culprit = "bound" if overrides_problem_base(type(problem), "bound") else "least"
                raise FaultyProblem(
                    f"{_title(problem, culprit)} is too high: the bound made with it is {lower!r}, and a point that "
                    f"the fit visited has the objective {value!r}"
                )
        return lower, kind

    def _check_zero(self, problem: Any) -> None:
        """Check the declared value at W = 0, the scale of the gap, by the sizes of values that were seen."""
        value, told = problem.objective(self.kept["zero"]), float(problem.at_zero)
        size = sum(abs(one.value) for one in self.kept.values())
        if abs(value - told) > ROUNDING_OF_TERMS * (size + abs(value) + abs(told)):
            raise FaultyProblem(
                f"{_title(problem, 'at_zero')} is {told!r}, but at() and penalty() give {value!r} at W = 0"
            )

    def _check_least(self, problem: Any, look: CompositeEvaluation) -> None:
        """Check the minimum of <G, V> + ridge + penalty against values at V near it: each has to be larger."""
        G, ridge, V = look.gradient, problem.ridge[:, None], np.zeros_like(look.W)
        with overflow_errstate():
            least, L = problem.least(G, look.sizes), float(problem.ridge.max()) or 1.0
            for _ in range(MODEL_STEPS):
                V = problem.prox(V - (G + ridge * V) / L, 1.0 / L)
                terms = float((G * V).sum()), 0.5 * float((ridge * V**2).sum()), problem.penalty(V)
                value, size = sum(terms), sum(map(abs, terms))
                size += float((look.sizes + row_lengths(G)) @ row_lengths(V))
                if least > value + ROUNDING_OF_TERMS * (size + abs(least)):
                    raise FaultyProblem(
                        f"{_title(problem, 'least')} is too high: it returns {least!r}, where <G, V> + ridge + penalty "
                        f"is {value!r} at some V"
                    )


def _check_slopes_of_bare_rows(problem: Any, look: CompositeEvaluation) -> None:
    """Check that slopes which the sizes of an evaluation make rounding lead nowhere: of rows without ridge and penalty.

    Their step is long enough for a slope that is none: h falls by half its square over the largest second derivative.
    """
    if overrides_problem_base(type(problem), "penalty"):
        return
    bare = (problem.ridge == 0) & (problem.beta == 0)
    with overflow_errstate():
        slopes = np.where(bare[:, None], look.gradient, 0.0)
        if not slopes.any() or not math.isfinite(problem.least(look.gradient, look.sizes)):
            return
        value = problem.objective(look)
        further = problem.objective(problem.at(look.W - slopes / problem.lipschitz()))
    if further < value - ROUNDING_OF_TERMS * (abs(value) + abs(float(problem.at_zero))):
        j = int(row_lengths(slopes).argmax())
        raise FaultyProblem(
            f"{_title(problem, 'at')} returns sizes that are too large: sizes[{j}] = {float(look.sizes[j])!r} makes "
            f"the slope {float(row_lengths(slopes)[j])!r} of row {j} rounding, but along it the objective falls from "
            f"{value!r} to {further!r}"
        )


def _copy_visited(look: CompositeEvaluation) -> CompositeEvaluation:
    """Return a visited evaluation with arrays of its own: engines and plugins may write into theirs."""
    W, gradient, sizes = map(np.array, (look.W, look.gradient, look.sizes))
    return replace(look, W=W, gradient=gradient, sizes=sizes, scores=None)


def _check_visited_tangents(problem: Any, one: CompositeEvaluation, other: CompositeEvaluation) -> None:
    """Check that each of two evaluations lies above the tangent at the other, up to rounding."""
    allowed, step = _visited_rounding(problem, one, other), other.W - one.W
    for at, to, sign in ((one, other, 1.0), (other, one, -1.0)):
        slope = sign * float((at.gradient * step).sum())
        if to.value < at.value + slope - allowed:
            raise FaultyProblem(_visited_violation(problem, at, to, slope))


def _visited_rounding(problem: Any, one: CompositeEvaluation, other: CompositeEvaluation) -> float:
    """Return what rounding may make of a tangent at one of two evaluations and the value at the other."""
    size = abs(float(problem.at_zero))
    reach = row_lengths(one.W) + row_lengths(other.W)
    for look in (one, other):
        size += abs(look.value) + float((look.sizes + row_lengths(look.gradient)) @ reach)
    return one.below + other.below + ROUNDING_OF_TERMS * size


def _visited_violation(problem: Any, at: CompositeEvaluation, to: CompositeEvaluation, slope: float) -> str:
    """Return the sentence about two evaluations of which one lies below the tangent at the other."""
    step = RATE_STEP * (to.W - at.W)
    rate = (problem.at(at.W + step).value - problem.at(at.W - step).value) / (2.0 * RATE_STEP)
    told = f"at one point of the fit h is {to.value!r}, below its tangent at another, {at.value + slope!r}"
    if abs(rate - slope) > DIFFERENT_RATE * (abs(rate) + abs(slope)):
        return (
            f"{_title(problem, 'at')} returns a wrong gradient: {told}; towards the first the gradient says {slope!r}, "
            f"the value changes by {rate!r}"
        )
    return (
        f"{_title(problem, 'convex')} is declared True, and h is not convex: {told}; leave the declaration out and "
        "write residual()"
    )


def _title(problem: Any, member: str) -> str:
    """Return the name of a plugin's composite and what it declares, for a sentence about visited evaluations."""
    return f"{type(problem).__module__}.{type(problem).__qualname__}.{member}"
