"""Matrices of Newton steps over narrow rows: a first factor that columns share, a sum that is brought up to date."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest
from hybrid_cases import column_of, narrow_steps_of, sample

import mdlearn
from mdlearn._solvers.narrow_newton import NarrowNewton
from mdlearn.solvers.hybrid.loss_column import LossColumn
from mdlearn.solvers.systems.narrow_rows import NO_MATRIX, NUMBERS_OF_COLUMNS, ROOM, NarrowRows

HELD = 15
"""Place in a table of rows of the weights that a kept sum is made of."""


def places(newton, count=4):
    list(islice(newton.steps(), count))
    return newton.point()


@pytest.mark.parametrize("kind", ["squared", "logistic"])
@pytest.mark.parametrize("m", [200, 900])
def test_the_first_factor_is_that_of_the_column_before_where_rows_weigh_the_same(kind, m):
    """And made anew elsewhere: in any case places are those of a column alone."""
    first, parts, _ = column_of(kind, m, 5)
    second = LossColumn(replace(first.column, y=np.roll(first.y, 7)), parts.rows, parts.squares, parts.stored)
    (term,) = first.column.terms
    heavier = replace(first.column, terms=(replace(term, weight=2.0 * term.weight),))
    third = LossColumn(heavier, parts.rows, parts.squares, parts.stored)
    rows = NarrowRows(parts.rows, True)
    for problem in (first, second, third, second):
        alone = places(narrow_steps_of(problem, NarrowRows(parts.rows)))
        for a, b in zip(alone, places(narrow_steps_of(problem, rows)), strict=True):
            np.testing.assert_array_equal(a, b)
    # One that is wrong would be taken: nothing is made twice.
    size = rows.T.shape[0] * (rows.T.shape[0] + ROOM)
    rows.first_factor[-2 * size : -size] *= 3.0
    assert not np.array_equal(
        places(narrow_steps_of(second, rows), 1)[0], places(narrow_steps_of(second, parts.narrow), 1)[0]
    )
    assert parts.narrow.first_factor is None


@pytest.mark.parametrize("heavy", [1.0, 1e12])
def test_the_sum_over_squared_hinges_with_a_loss_is_brought_up_to_date(heavy):
    """And has the digits of one that is made anew, also after the heaviest row has gone."""
    problem, parts, R = column_of("squared", 397, 5)
    rows, n, softness = NarrowRows(parts.rows), R.shape[1], problem.softness.copy()
    i = int(np.flatnonzero(softness)[0])
    softness[i], rows.T[:-1, i] = softness[i] / heavy, 0.0
    table, space = rows.table(), rows.space()
    start, rest = np.zeros(397), (NO_MATRIX, NO_MATRIX, None, table, space, 1.0, True, 5.0, 0.4, 1e-12)
    newton = NarrowNewton(rows.T, problem.column.y, problem.caps, softness, start, *rest)
    newton.begin(None, problem.caps, 0.5, problem.column.counts, 0.0)
    used = []
    for _ in range(4):
        assert newton.steps(1, 0.0, 0.0)
        kept = space[NUMBERS_OF_COLUMNS * (n + ROOM) :].reshape(-1, n + ROOM)[n : 2 * n, :n]
        weights = table[HELD].copy()
        anew = np.eye(n) + (rows.T * weights) @ rows.T.T
        np.testing.assert_allclose(np.tril(kept), np.tril(anew), rtol=1e-9, atol=1e-9)
        used.append(weights)
    assert used[0][i] == 1.0 / softness[i]
    assert any(0 < np.count_nonzero(a != b) < np.count_nonzero(b) for a, b in pairwise(used))
    assert heavy == 1.0 or used[-1][i] == 0.0


def test_hinges_and_variances_have_no_first_factor_to_share():
    for kind, variance in (("hinge", 0.0), ("hinge", 5.0), ("squared", 5.0)):
        problem, parts, _ = column_of(kind, 200, 5, variance)
        rows = NarrowRows(parts.rows, True)
        assert narrow_steps_of(problem, rows).gap > 0 and rows.first_factor[0] == 0.0


def test_only_forms_of_several_columns_keep_a_first_factor(monkeypatch):
    X, y = sample(90, 4)
    seen, init = [], NarrowRows.__init__

    def recorded(rows, *given):
        init(rows, *given)
        seen.append(rows.first_factor is not None)

    monkeypatch.setattr(NarrowRows, "__init__", recorded)
    for labels in (y, np.where(X[:, 1] > 0.5, 2, y)):
        mdlearn.fit("lsvm", X, labels, solver="hybrid")
    assert seen == [False, True]
