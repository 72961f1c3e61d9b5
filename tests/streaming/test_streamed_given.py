"""Losses given by functions over row blocks: the answer of the fit in memory, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from given_losses import LOGISTIC, RUBBER

import mdlearn
from mdlearn.extend import HingeTerm, LogisticTerm, NormTerm, RowTerms, Terms


def objective_of(terms, by_row=None):
    class Given(mdlearn.Objective):
        name = "given"

        def terms(self, params, total):
            return terms

    if by_row is not None:
        Given.row_terms = lambda self, data, params: by_row(data)
    return Given


def rows(m=400, d=4):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((m, d)) + 0.3
    return X, (X @ rng.standard_normal(d) + rng.standard_normal(m) > 0).astype(int)


def blocks(X, y):
    return [(X[part], y[part]) for part in (slice(0, 90), slice(90, 91), slice(91, None))]


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("rest", [{}, {"variance": 2.0, "mean": 1.0}], ids=["loss alone", "variance and mean"])
@pytest.mark.parametrize("loss", [LOGISTIC, RUBBER], ids=["one side", "two sides"])
def test_the_answer_of_the_fit_in_memory(loss, rest, bias):
    X, y = rows()
    task = objective_of(Terms(loss=(*loss.terms(0.7), LogisticTerm(0.2)), **rest))
    given = {"bias": bias, "tol": 1e-9}
    held, streamed = mdlearn.fit(task, X, y, **given), mdlearn.fit(task, blocks(X, y), None, **given)
    assert held.certificate.converged and streamed.certificate.converged
    for one, other in ((held, streamed), (streamed, held)):  # each bound holds for the other's objective
        assert one.certificate.lower_bound <= other.certificate.objective * (1.0 + 1e-13)
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=2e-9)


def test_under_a_penalty():
    X, y = rows()
    task = objective_of(Terms(loss=LOGISTIC.terms(0.7), penalty=3.0))
    held, streamed = (mdlearn.fit(task, *data, bias="none", tol=1e-8) for data in ((X, y), (blocks(X, y), None)))
    assert streamed.certificate.converged
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=2e-8)


@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("other", [LOGISTIC.terms(1.0), (HingeTerm(0.5, power=2),)], ids=["given", "squared"])
def test_beside_a_hinge(other, bias):
    X, y = rows()
    task = objective_of(Terms(loss=(HingeTerm(1.0), *other), variance=2.0))
    streamed = mdlearn.fit(task, blocks(X, y), None, bias=bias, tol=1e-4)
    w, b, s = streamed.coef_[0], float(streamed.intercept_[0]), np.where(y == streamed.classes_[1], 1.0, -1.0)
    z = s * (X @ w + b)
    losses = np.maximum(1.0 - z, 0.0).sum() + sum(term.value(z, np.ones(z.shape[0])) for term in other)
    value = losses + 2.0 * z.var() + 0.5 * float(w @ w) + (0.5 * b * b if bias == "regularized" else 0.0)
    assert streamed.certificate.converged
    assert streamed.certificate.objective == pytest.approx(value, rel=1e-10)
    with_term = objective_of(Terms(loss=(HingeTerm(1.0), *other), variance=2.0, coefficient_terms=(NormTerm(1e-12),)))
    held = mdlearn.fit(with_term, X, y, bias=bias, tol=1e-6)
    assert streamed.certificate.lower_bound <= held.certificate.objective
    assert held.certificate.lower_bound <= streamed.certificate.objective * (1.0 + 1e-9)


def test_costs_by_row_are_refused():
    task = objective_of(Terms(loss=LOGISTIC.terms(1.0)), lambda data: RowTerms(np.ones(len(data.counts))))
    with pytest.raises(ValueError, match="row_terms"):
        mdlearn.fit(task, blocks(*rows()), None)
