"""Costs of mistakes by class and by row."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import HingeTerm, Parameter, RowTerms, Setting, Terms, check_number, row_values

from .distribution import DISTRIBUTION, check_free_bias


def row_costs(name, value):
    """Return costs of rows as an array, or None."""
    if value is None:
        return None
    found = np.asarray(value)
    if found.dtype.kind in "biuf" and found.size and float(found.min()) < 0:
        raise ValueError(f"{name} needs to be numbers >= 0; the smallest is {float(found.min()):g}")
    return found


def label_costs(name, value):
    """Return costs of classes as a list of [label, cost], which a model file can hold, or None."""
    if value is None:
        return None
    if not isinstance(value, (Mapping, list)):
        raise TypeError(f"{name} needs to be a mapping from labels to numbers >= 0; got {type(value).__name__}")
    plain = [(getattr(label, "item", lambda label=label: label)(), cost) for label, cost in dict(value).items()]
    return [[label, float(check_number(cost, f"{name}[{label!r}]", low=0.0))] for label, cost in plain]


COSTS = {
    "class_costs": Setting(None, "a number >= 0 for each label, as a mapping; a label left out has 1", label_costs),
    "costs": Setting(
        None, "a number >= 0 for each row of X; None: 1", row_costs, by_row=lambda n: 0.5 + np.arange(n) % 3
    ),
}
"""Declared costs of mistakes."""


def costs_of(data, params):
    """Return the cost of every row: that of its class times its own; None where neither is given."""
    by_class, by_row = params["class_costs"], params["costs"]
    if by_class is None and by_row is None:
        return None
    known = dict(map(tuple, by_class or ()))
    found = np.array([known.get(label, 1.0) for label in data.classes.tolist()])[data.codes]
    return RowTerms(found if by_row is None else found * row_values(data, by_row, "costs"))


class FuzzySVM(mdlearn.Objective):
    """SVM in which the cost of a mistake differs by class and by row (fuzzy SVM).

    ``1/2 |w|^2 + C sum_i s_i max(0, 1 - z_i)``, s_i the cost of the row's class times its own

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0 and finite.
    class_costs : mapping of label to float, optional
        Cost of a mistake for rows of a class, >= 0; 1 for labels that are left out.
    costs : array-like of shape (n,), optional
        Cost of a mistake for each row of X, >= 0: the fuzzy membership of the paper.

    Notes
    -----
    Certain: the problem with costs by row. A sample weight does the same here, since nothing but the loss has one; with
    a variance (`cost_ldm`) they differ.

    References
    ----------
    C.-F. Lin and S.-D. Wang, "Fuzzy support vector machines", IEEE Transactions on Neural Networks 13(2), 2002.
    """

    name = "fuzzy_svm"
    summary = "SVM with costs of mistakes by class and by row"
    formula = "1/2 |w|^2 + C sum_i s_i max(0, 1-z_i)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss"), **COSTS}

    def terms(self, params, total):
        """Return the hinge loss of a row of cost 1."""
        return Terms(loss=(HingeTerm(params["C"]),))

    def row_terms(self, data, params):
        """Return the costs."""
        return costs_of(data, params)

    def needs_all_rows(self, params):
        """Return nothing: the cost of a row follows from its class and its own number."""
        return ""


class CostLDM(mdlearn.Objective):
    """LDM in which the cost of a mistake differs by class and by row; mean and variance are those of all rows alike.

    ``1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum_i s_i max(0, 1 - z_i)``

    s_i is the cost of the row's class times its own.

    Parameters
    ----------
    C : float, default 1
        Weight of the summed loss, >= 0 and finite.
    lambda1 : float, default C m / 256
        Weight of twice the margin variance; m is the sum of the sample weights.
    lambda2 : float, default lambda1 / 4
        Weight of the margin mean.
    class_costs : mapping of label to float, optional
        Cost of a mistake for rows of a class, >= 0; 1 for labels that are left out.
    costs : array-like of shape (n,), optional
        Cost of a mistake for each row of X, >= 0.

    Notes
    -----
    Certain: a penalty with costs is part of the paper's CS-LDM. The paper's margin mean has costs as well, which a mean
    of declared terms cannot say: here it has none. With sample weights instead of costs, rows would count more in the
    loss, the mean and the variance alike.

    References
    ----------
    F. Cheng, J. Zhang and C. Wen, "Cost-sensitive large margin distribution machine for classification of imbalanced
    data", Pattern Recognition Letters 80, 2016.
    """

    name = "cost_ldm"
    summary = "large margin distribution machine with costs of mistakes by class and by row"
    formula = "1/2 |w|^2 + 2 lambda1 Var(z) - lambda2 mean(z) + C sum_i s_i max(0, 1-z_i)"
    parameters: ClassVar = {"C": Parameter(1.0, "weight of the summed loss"), **DISTRIBUTION, **COSTS}

    def terms(self, params, total):
        """Return the LDM of rows of cost 1."""
        return Terms(2.0 * params["lambda1"], params["lambda2"], (HingeTerm(params["C"]),))

    def row_terms(self, data, params):
        """Return the costs."""
        return costs_of(data, params)

    def needs_all_rows(self, params):
        """Return nothing: the cost of a row follows from its class and its own number."""
        return ""

    def check_column(self, params, column, bias):
        """Refuse a free bias that runs to infinity."""
        check_free_bias(params, column, bias)
