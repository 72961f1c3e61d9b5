"""Where a decomposition begins: at the solution of some rows, then of four times as many, and so on."""

from __future__ import annotations

from collections.abc import Callable, Generator

import numpy as np

from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.common.warm_start import warm_start_multipliers
from mdlearn.solvers.decomposition.rounds import DecompositionRounds
from mdlearn.solvers.working_set.initialise import initial_column_on_rows

FIRST_PART_ROWS, PART_GROWTH = 2000, 4
"""Rows of the first part, and how many times as many the next one has."""
PART_GAP = 2e-2
"""Relative gap at which a part is solved well enough to tell what the next one begins with."""
PART_ROUNDS = 200
FEW_SUPPORT = 0.1
"""Share of the rows in the support of a part below which more rows hardly add any: all of them follow at once."""

KEPT_SHARE = 0.5
"""Share of such multipliers that the bounds of more rows leave, at least, for them to stay what they are."""


Rounds = Callable[[Column, np.ndarray | None], DecompositionRounds]
"""(column, rows) -> rounds of a decomposition over all rows, where these are None, or over some, with their column."""


def grow_to_all_rows(
    form: MarginForm, column: Column, make: Rounds, rng: np.random.Generator, one_set: bool
) -> Generator[None, None, DecompositionRounds]:
    """Grow a decomposition to rounds over all rows, from the column's start or from the solutions of parts.

    `one_set`: whether one working set has all rows; then there are no parts.
    """
    m = column.y.shape[0]
    if column.start is not None:
        whole = make(column, None)
        yield from whole.prepare()
        found = warm_start_multipliers(form, column)
        if found is not None:
            yield from whole.set_multipliers(column.y * (column.sides @ found[0]))
            return whole
    order, n = _order_of_growth(column, rng), m if one_set else FIRST_PART_ROWS
    part, known = None, order[:0]
    while known.shape[0] < m:
        n = m if PART_GROWTH * n > 2 * m or (part is not None and _growing_part_is_sparse(part)) else n
        rows = np.sort(order[:n])
        before = part
        part = make(column, None) if n == m else make(initial_column_on_rows(column, rows), rows)
        yield from part.prepare()
        if before is None:
            yield from part.set_multipliers(part.u)
        else:
            yield from _grow_from_part(part, before, np.searchsorted(rows, known))
        if n < m:
            yield from _solve_growing_part(part)
        known, n = rows, PART_GROWTH * n
    assert part is not None
    return part


def _order_of_growth(column: Column, rng: np.random.Generator) -> np.ndarray:
    """Draw the order in which rows join growing parts; every part has both signs, or a variance holds no bias."""
    order = rng.permutation(column.y.shape[0])
    _, firsts = np.unique(column.y[order], return_index=True)
    return np.concatenate([order[firsts], np.delete(order, firsts)])


def _growing_part_is_sparse(part: DecompositionRounds) -> bool:
    """Whether few rows of a growing part of a decomposition have a multiplier."""
    return int(np.count_nonzero(part.u)) <= FEW_SUPPORT * part.u.shape[0]


def _solve_growing_part(part: DecompositionRounds) -> Generator[None, None, None]:
    """Solve a growing part of a decomposition by rounds, to a gap or until nothing moves."""
    for _ in range(PART_ROUNDS):
        if part.gap <= PART_GAP or not (yield from part.climb_once()):
            return


def _grow_from_part(
    part: DecompositionRounds, before: DecompositionRounds, inside: np.ndarray
) -> Generator[None, None, None]:
    """Begin a growing part at the solution of the part before; other rows at upper bounds where these say so."""
    m, few = part.u.shape[0], _growing_part_is_sparse(before)
    old = np.zeros(m)
    old[inside] = before.u
    part.face(old)
    within = np.clip(old, part.low, part.high)
    if few and float(np.abs(within).sum()) >= KEPT_SHARE * float(np.abs(old).sum()):
        # Others hardly matter: multipliers stay what they are.
        yield from part.set_multipliers(within)
        return
    # Decision values of the part are about those of all rows.
    f = yield from before.values_over(part, inside)
    e = part.target - f - before.intercept(f[inside])
    part.u = np.clip(old * (inside.shape[0] / m), part.low, part.high)
    part.turn(e)
    beyond = np.ones(m, dtype=bool)
    beyond[inside] = False
    beyond &= part.signs * e > 0
    at_cap = beyond.copy()
    at_cap[inside] = (before.u != 0) & ((before.u == before.low) | (before.u == before.high))  # none of infinite ones
    new = np.flatnonzero(beyond | at_cap)
    far, soft = (part.low + part.high)[new], part.soft[new]
    # Without caps a multiplier is what the loss makes of its row's margin.
    part.u[new] = np.divide(e[new], soft, out=far, where=soft > 0)
    _balance_growing_part(part, np.flatnonzero(beyond), np.abs(e))
    yield from part.settle(part.u, e)


def _balance_growing_part(part: DecompositionRounds, rows: np.ndarray, distance: np.ndarray) -> None:
    """Make multipliers of a growing part sum to 0 where needed, by those of `rows` nearest to their kinks."""
    if not part.paired:
        return
    excess = float(part.u.sum())
    heavy = rows[part.u[rows] * excess > 0]
    heavy = heavy[np.argsort(distance[heavy], kind="stable")]
    sizes = np.abs(part.u[heavy])
    before = np.cumsum(sizes) - sizes
    part.u[heavy] -= np.sign(excess) * np.clip(abs(excess) - before, 0.0, sizes)
