"""Objectives with one fault each, and the words in which the conformance kit tells it."""

from __future__ import annotations

from itertools import count
from typing import ClassVar

import numpy as np

from mdlearn.data.row_values import row_values
from mdlearn.forms.losses import HingeTerm
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.forms.row_terms import RowTerms
from mdlearn.objectives.base import Parameter, Setting, Terms
from mdlearn.objectives.ldm import LDM
from mdlearn.objectives.svm import SVM
from mdlearn.testing import checks


def written(task, data, features, bias, *, signs=None, counts=None, factor=1.0):
    """What `Objective.form` writes, with one thing changed."""
    terms = task.terms(task.resolve(data.total), data.total)
    loss = tuple(HingeTerm(factor * t.weight, t.side, t.threshold, t.power) for t in terms.loss)
    k = data.classes.shape[0]
    if signs is None:
        signs = [np.where(data.codes == c, 1.0, -1.0) for c in ([1] if k == 2 else range(k))]
    counts = data.counts if counts is None else counts
    return MarginForm(features, tuple(Column(y, counts, terms.variance, terms.mean, loss) for y in signs), bias)


class Faulty(SVM):
    """A name of its own, so that messages can be told apart."""

    name = "faulty"


class Capitals(SVM):
    name = "My SVM"


class NoSummary(Faulty):
    summary = ""


class Undocumented(Faulty):
    parameters: ClassVar = {"C": Parameter(1.0, "")}


class StrangeBias(Faulty):
    default_bias = "augmented"


class NegativeVariance(Faulty):
    def terms(self, params, total):
        return Terms(-1.0, 0.0, (HingeTerm(params["C"]),))


class WrongSignOfMean(Faulty):
    def terms(self, params, total):
        return Terms(0.0, -1.0, (HingeTerm(params["C"]),))


class SwallowsUnknown(Faulty):
    def __init__(self, **given):
        super().__init__(**{name: value for name, value in given.items() if name in self.parameters})


class Unchecked(Parameter):
    def check(self, name, value):
        return value


class NoBounds(Faulty):
    parameters: ClassVar = {"C": Unchecked(1.0, "weight of the loss")}

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(1.0),))


class InfinityAllowed(LDM):
    """lambda1 = infinity is within the declared bounds, but makes no problem."""

    name = "faulty"
    parameters: ClassVar = {**LDM.parameters, "lambda1": Parameter(1.0, "weight of the variance", finite=False)}


class DefaultOutside(Faulty):
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the loss", low=2.0)}


class HiddenDefault(Faulty):
    """What model.params shows is not what was used."""

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(params["C"] if "C" in self.given else 3.0),))


class DropsParameters(Faulty):
    def resolve(self, total):
        return {}

    def terms(self, params, total):
        return Terms(loss=(HingeTerm(1.0),))


class IgnoresWeights(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, counts=np.ones_like(data.counts))


class MeanOverRows(Faulty):
    """Divides by the number of rows, where it should be the sum of their weights."""

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=1.0 / data.rows.shape[0])


class Flipped(Faulty):
    """The first label is the positive one."""

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.codes == 0, 1.0, -1.0)])


class FormIsNotTerms(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=2.0)


class FirstRowCountsTwice(Faulty):
    def form(self, data, features, bias, multiclass):
        counts = data.counts.copy()
        counts[0] *= 2.0
        return written(self, data, features, bias, counts=counts)


class CostsByPosition(Faulty):
    """What a mistake costs depends on where the row stands."""

    def row_terms(self, data, params):
        return RowTerms(1.0 + np.arange(data.counts.shape[0]) / data.counts.shape[0])


class CostsWithCounts(Faulty):
    """Sample weights are taken twice."""

    def row_terms(self, data, params):
        return RowTerms(data.counts)


class Restless(Faulty):
    """Every problem is another one."""

    calls = count(1)

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=float(next(self.calls)))


class NumbersOnly(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.classes[data.codes] == 1, 1.0, -1.0)])


class LooksAtTheKernel(Faulty):
    def form(self, data, features, bias, multiclass):
        kernel = getattr(features, "kernel", None)
        return written(self, data, features, bias, factor=2.0 if kernel and kernel.name == "precomputed" else 1.0)


class ColumnPerClass(Faulty):
    """Two columns for two classes."""

    def form(self, data, features, bias, multiclass):
        k = data.classes.shape[0]
        return written(self, data, features, bias, signs=[np.where(data.codes == c, 1.0, -1.0) for c in range(k)])


class OneColumn(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.codes == 1, 1.0, -1.0)])


class ColumnsInDisorder(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, signs=[np.where(data.codes == c, 1.0, -1.0) for c in (1, 2, 0)])


class DenseAlone(Faulty):
    """NumPy's norm takes no CSR rows."""

    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=1.0 + 0.0 * np.linalg.norm(data.X.matrix(), 2))


class OtherWhereSparse(Faulty):
    def form(self, data, features, bias, multiclass):
        return written(self, data, features, bias, factor=2.0 if data.X.sparse else 1.0)


class ReadsCosts(SVM):
    """SVM with a cost for each row of X: no fault of its own."""

    name = "reads-costs"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "costs": Setting(
            None, "a cost for each row of X", lambda name, value: value, by_row=lambda n: 0.5 + np.arange(n)
        ),
    }

    def row_terms(self, data, params):
        return None if params["costs"] is None else RowTerms(row_values(data, params["costs"], "costs", low=0.0))


class FirstCosts(ReadsCosts):
    """It takes the first costs for those of the rows that are left."""

    name = "first-costs"

    def row_terms(self, data, params):
        return None if params["costs"] is None else RowTerms(params["costs"][: len(data.counts)])


class CostsOfAnyLength(ReadsCosts):
    """It picks costs itself, from an array of any length."""

    name = "costs-of-any-length"

    def row_terms(self, data, params):
        return None if params["costs"] is None else RowTerms(np.asarray(params["costs"])[data.rows])


class CostsByTheirMean(ReadsCosts):
    """It says that row blocks will do, where a cost depends on those of all rows."""

    name = "costs-by-their-mean"

    def needs_all_rows(self, params):
        return ""

    def row_terms(self, data, params):
        if params["costs"] is None:
            return None
        costs = row_values(data, params["costs"], "costs", low=0.0)
        return RowTerms(costs / (data.counts @ costs / data.total))


class CostsUntried(ReadsCosts):
    """Nothing says how costs are to be made."""

    name = "costs-untried"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "costs": Setting(None, "a cost for each row of X", lambda name, value: value),
    }


class CostsOfTenRows(ReadsCosts):
    """It makes ten costs whatever is asked for."""

    name = "costs-of-ten-rows"
    parameters: ClassVar = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "costs": Setting(None, "a cost for each row of X", lambda name, value: value, by_row=lambda n: np.ones(10)),
    }


class CostsAlone(ReadsCosts):
    """Without costs it makes some up by position; with them all is well."""

    name = "costs-alone"
    parameters: ClassVar = {
        **ReadsCosts.parameters,
        "shifts": Setting(None, "a number for each row", lambda name, value: value, by_row=lambda n: np.arange(n) / n),
    }

    def row_terms(self, data, params):
        if params["shifts"] is None:
            return super().row_terms(data, params)
        own = super().row_terms(data, params) or RowTerms(1.0 + np.arange(len(data.counts)))
        return RowTerms(own.weights, row_values(data, params["shifts"], "shifts"))


FAULTS = (
    (
        checks.check_values_by_row,
        CostsOfAnyLength,
        "costs of 37 values for 36 rows of X is accepted; take",
    ),
    (
        checks.check_values_by_row,
        CostsByTheirMean,
        "says other weights of rows without the rest, although",
    ),
    (checks.check_values_by_row, CostsUntried, "row_terms returns None here, so that nothing tries it; declare by_row"),
    (checks.check_values_by_row, CostsOfTenRows, "'costs' of costs-of-ten-rows: by_row"),
    (checks.check_values_by_row, CostsAlone, "with shifts by row, alone: check_weights_where_taken does not hold"),
    (checks.check_values_by_row, FirstCosts, "with costs by row: check_weights does not hold"),
    (checks.check_declaration, Capitals, "lower-case"),
    (checks.check_declaration, NoSummary, "summary needs to be one line"),
    (checks.check_declaration, Undocumented, "C has no doc"),
    (checks.check_declaration, StrangeBias, "default_bias"),
    (checks.check_declaration, NegativeVariance, "Terms.variance is -1.0"),
    (checks.check_declaration, WrongSignOfMean, "Terms.mean is -1.0"),
    (checks.check_unknown_parameter, SwallowsUnknown, "the constructor accepts no_such_parameter"),
    (checks.check_bounds, NoBounds, "C=nan is accepted"),
    (checks.check_bounds, InfinityAllowed, "lambda1=inf, which its bounds allow"),
    (checks.check_params, DefaultOutside, "outside its own bounds"),
    (checks.check_params, HiddenDefault, "the defaults given explicitly"),
    (checks.check_params, DropsParameters, "resolve"),
    (checks.check_certificate, IgnoresWeights, "data.counts"),
    (checks.check_certificate, Flipped, "data.codes"),
    (checks.check_certificate, FormIsNotTerms, "pass on the terms"),
    (checks.check_perturbations, FormIsNotTerms, "below the certified bound"),
    (checks.check_weights, IgnoresWeights, "use `total` for m"),
    (checks.check_weights, MeanOverRows, "use `total` for m"),
    (checks.check_row_order, FirstRowCountsTwice, "positions"),
    (checks.check_row_order, CostsByPosition, "positions"),
    (checks.check_weights, CostsWithCounts, "use `total` for m"),
    (checks.check_engines_agree, Restless, "disagree"),
    (checks.check_determinism, Restless, "other bits"),
    (checks.check_string_labels, NumbersOnly, "data.codes"),
    (checks.check_precomputed, LooksAtTheKernel, "precomputed"),
    (checks.check_model, ColumnPerClass, "2 columns for 2 classes, 1 is needed"),
    (checks.check_three_classes, OneColumn, "1 column for 3 classes, 3 are needed"),
    (checks.check_three_classes, ColumnsInDisorder, "column j of form"),
    (checks.check_sparse_rows, DenseAlone, "Improper number of dimensions .*; features.matrix\\(\\) is dense or CSR"),
    (checks.check_sparse_rows, OtherWhereSparse, "the same dense rows make another model"),
)
