"""Objectives and composites with one mistake each that authors make, beside those of other tests."""

from __future__ import annotations

from dataclasses import replace

import faulty_maps
import faulty_objectives as faulty
import faulty_problems as problems
import numpy as np
from faulty_problems import Net

from mdlearn.extend import GivenLoss, RowTerms, Terms


class FactorTwice(faulty.Faulty):
    """The weight of the loss is taken twice, which does not show at its default 1."""

    def form(self, data, features, bias, params):
        return faulty.written(self, data, features, bias, factor=params["C"])


class SlopeNegated(faulty.Faulty):
    """The derivative of a given loss has the wrong sign."""

    def terms(self, params, total):
        loss = GivenLoss(
            value=lambda t: np.logaddexp(0.0, -t),
            derivative=lambda t: 1.0 / (1.0 + np.exp(t)),
            second=lambda t: 0.25 / np.cosh(0.5 * t) ** 2,
        )
        return Terms(loss=loss.terms(params["C"]))


class ConjugateOfTwice(faulty.Faulty):
    """The conjugate of a given loss is that of another loss."""

    def terms(self, params, total):
        loss = GivenLoss(
            value=lambda t: 0.5 * (t - 1.0) ** 2,
            derivative=lambda t: t - 1.0,
            second=lambda t: np.ones_like(t),
            conjugate=lambda s: s + 0.25 * s**2,
        )
        return Terms(loss=loss.terms(params["C"]))


class CostsOfOtherRows(faulty.Faulty):
    """Costs are made for all rows from 0 on, and rows of weight 0 are not left out."""

    needs_rows = True

    def row_terms(self, data, params):
        return RowTerms(np.linspace(1.0, 2.0, 1 + int(data.rows.max())))


class ClassesInDisorder(faulty.Faulty):
    """Columns begin with the second class, where there are more than two."""

    def form(self, data, features, bias, params):
        k = data.classes.shape[0]
        columns = [1] if k == 2 else np.roll(np.arange(k), -1)
        signs = [np.where(data.codes == c, 1.0, -1.0) for c in columns]
        return faulty.written(self, data, features, bias, signs=signs)


PLANTED_OBJECTIVES = (
    (faulty.IgnoresWeights, "check_certificate does not hold: .* and data.counts", "right"),
    (faulty.MeanOverRows, "check_certificate does not hold: .* pass on the terms", "right"),
    (faulty.Flipped, "check_certificate does not hold: .* y as -1/.1 of data.codes", "right"),
    (faulty.CostsWithCounts, "check_weights does not hold: .* data.counts for every sum over rows", "right"),
    (ClassesInDisorder, "check_three_classes does not hold: .* column j of form", "right"),
    (FactorTwice, "check_certificate does not hold: .* at C=1.75", "right"),
    (SlopeNegated, "check_declaration does not hold: .*derivative of a given loss is not that of value", "refused"),
    (ConjugateOfTwice, "check_declaration does not hold: .*conjugate of a given loss needs to be", "refused"),
    (CostsOfOtherRows, "does not hold: .*row_terms returned RowTerms with weights that are an array", "refused"),
    (faulty_maps.with_map(faulty_maps.LooksAround), "check_certificate does not hold: curved", "right"),
)
"""Faulty objectives, and words of the sentence in which `check_objective` tells the fault; what a fit comes to."""


# ---------------------------------------------------------------- composites


class ProxOfTheRidge(Net):
    """The prox shrinks all coefficients by a factor, as that of a squared norm does."""

    def prox(self, V, step):
        return V / (1.0 + step * self.lam)


class StepForgotten(Net):
    """The prox has the weight of the penalty, and not the step."""

    def prox(self, V, step):
        return np.sign(V) * np.maximum(np.abs(V) - self.lam, 0.0)


class CountsForgotten(Net):
    """The loss is the plain mean over the rows."""

    def __init__(self, data, *given):
        super().__init__(data, *given)
        self.share = np.full_like(self.share, 1.0 / len(self.share))


class NoSizes(Net):
    """Sums have no rounding, it says."""

    def at(self, W):
        look = super().at(W)
        return replace(look, sizes=0.0 * look.sizes)


class RidgeTwice(Net):
    """The ridge that the form has is also part of the smooth value, and not of its gradient."""

    def at(self, W):
        look = super().at(W)
        return replace(look, value=look.value + 0.5 * float((self.ridge[:, None] * W**2).sum()))


PLANTED_COMPOSITES = (
    (problems.LongGradient, "check_composite does not hold: .* of the gradient is", "refused"),
    (problems.HighLeast, "check_composite does not hold: .* it is too high", "refused"),
    (problems.HighBound, "does not hold: .*HighBound.bound is too high", "refused"),
    (problems.Waves, "check_composite does not hold: .*convex is True", "refused"),
    (problems.HighZero, "check_composite does not hold: .*at_zero is 1000000000.0", "refused"),
    (ProxOfTheRidge, "check_composite does not hold: .*prox: penalty", "open"),
    (StepForgotten, "check_composite does not hold: .*prox: penalty", "open"),
    (CountsForgotten, "check_weights does not hold", "right"),
    (NoSizes, "check_composite does not hold: .* another order of the rows changes row", "right"),
    (RidgeTwice, "check_composite does not hold: .* of the gradient is", "refused"),
)
"""Faulty composites, and words of the sentence in which `check_objective` tells the fault; what a fit comes to."""
