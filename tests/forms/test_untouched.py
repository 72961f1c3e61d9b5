"""W = 0 of many classes, as paths and time limits leave it: no pass over the rows of each class."""

from __future__ import annotations

import numpy as np

import mdlearn
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.rows import DenseRows
from mdlearn.forms.joint.margin_composite import MarginComposite
from mdlearn.forms.losses import HingeTerm, LogisticTerm
from mdlearn.forms.margin import Column, MarginForm


def composite(alike=True):
    rng = np.random.default_rng(0)
    X, codes, counts = rng.standard_normal((60, 3)), np.arange(60) % 12, rng.uniform(0.5, 2.0, 60)
    first = Column(
        np.where(codes == 0, 1.0, -1.0), counts, 0.5, 0.2, (LogisticTerm(0.7, 2.0), HingeTerm(0.3, -1, 1.0, 2))
    )
    columns = tuple(first.against_rest(codes, range(12)))
    if not alike:
        columns = (*columns[:-1], Column(columns[-1].y, counts.copy(), 0.5, 0.2, first.terms[:1] + first.terms[1:]))
    form = MarginForm(LinearFeatures(DenseRows(X)), columns, "free", penalty=0.1, joint=True)
    return MarginComposite(form, columns)


def test_multipliers_of_zero_are_those_of_every_column():
    for alike in (True, False):
        problem = composite(alike)
        found = problem.untouched(1e-6, False)
        zero = np.zeros(60)
        assert np.array_equal(found.beta, [column.slopes(zero) for column in problem.columns])
        assert found.certificate.objective == problem.at_zero


def test_signs_are_not_made_for_it():
    problem = composite()
    problem.untouched(1e-6, False)
    assert "signs" not in vars(problem) and not any("y" in vars(column) for column in problem.columns)


def test_terms_are_read_once_and_serve_all():
    problem = composite()
    numbers = problem.losses.numbers
    assert (numbers == numbers[:, :1]).all() and numbers[:, 0].any(axis=1).all()
    alone = MarginComposite(problem.form, problem.columns[3:4])
    assert np.array_equal(alone.losses.numbers[:, 0], numbers[:, 3])
    assert alone.losses.steepest[0] == problem.losses.steepest[3] and alone.losses.reach == problem.losses.reach


def test_zeros_have_no_sign():
    # Without a loss w = 0 is the optimum; dual coefficients that are y times 0 had the sign of y.
    X, y = np.array([[1.0], [-1.0], [3.0]]), np.arange(3)
    model = mdlearn.fit("lssvm", X, y, kernel="rbf", gamma=0.5, C=0.0, bias="none")
    assert not model.dual_coef_.any() and not np.signbit(model.dual_coef_).any()
