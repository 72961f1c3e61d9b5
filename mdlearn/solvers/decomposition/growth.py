"""Where a decomposition begins: at the solution of some rows, then of four times as many, and so on."""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.forms.margin import Column, MarginForm
from mdlearn.solvers.common.warm_start import warm_start_multipliers
from mdlearn.solvers.decomposition.rounds import Rounds
from mdlearn.solvers.working_set.initialise import part_of

FIRST_PART_ROWS, PART_GROWTH = 2000, 4
"""Rows of the first part, and how many times as many the next one has."""
PART_GAP = 2e-2
"""Relative gap at which a part is solved well enough to tell what the next one begins with."""
PART_ROUNDS = 200
FEW_SUPPORT = 0.1
"""Share of the rows in the support of a part below which more rows hardly add any: all of them follow at once."""


def grown(
    form: MarginForm, column: Column, columns: KernelTiles, constant: float, rng: np.random.Generator
) -> Generator[None, None, Rounds]:
    """Rounds over all rows, begun at the column's start, if it has one, or at the solution of a part of the rows."""
    m = columns.n_rows
    if column.start is not None:
        whole = Rounds(form, column, columns, constant, rng)
        found = warm_start_multipliers(form, column)
        if found is not None:
            yield from _placed(whole, whole.signs * found[0][0])
            return whole
    order, n = rng.permutation(m), FIRST_PART_ROWS
    part, known = None, order[:0]
    while known.shape[0] < m:
        n = m if PART_GROWTH * n > 2 * m or (part is not None and _sparse(part)) else n
        rows = np.sort(order[:n])
        own = column if n == m else part_of(column, rows)
        before, part = part, Rounds(form, own, columns if n == m else columns.take(rows), constant, rng)
        if before is not None:
            yield from _start_from(part, before, np.searchsorted(rows, known))
        if n < m:
            yield from _solved(part)
        known, n = rows, PART_GROWTH * n
    assert part is not None
    return part


def _sparse(part: Rounds) -> bool:
    return int(np.count_nonzero(part.u)) <= FEW_SUPPORT * part.u.shape[0]


def _solved(part: Rounds) -> Generator[None, None, None]:
    for _ in range(PART_ROUNDS):
        if part.gap <= PART_GAP or not (yield from part.climb_once()):
            return


def _start_from(part: Rounds, before: Rounds, inside: np.ndarray) -> Generator[None, None, None]:
    """Begin where some rows, those of `before`, had been solved; the others at their caps where these say so."""
    m, few = part.u.shape[0], _sparse(before)
    old = np.zeros(m)
    old[inside] = before.u
    own = np.flatnonzero(old)
    if few:  # others hardly matter: multipliers stay what they are
        yield from _placed(part, np.clip(old, part.low, part.high))
        return
    # Decision values of the part are about those of all rows.
    yield from part.columns.add(part.f, own, old[own])
    e = part.target - part.f - before.b
    part.u = np.clip(old * (inside.shape[0] / m), part.low, part.high)
    beyond = np.ones(m, dtype=bool)
    beyond[inside] = False
    beyond &= part.signs * e > 0
    at_cap = beyond.copy()
    at_cap[inside] = (before.u != 0) & ((before.u == before.low) | (before.u == before.high))  # none of infinite ones
    soft = part.soft[0] > 0  # without caps: a multiplier is what the loss makes of its row's margin
    part.u[beyond | at_cap] = (e / part.soft if soft else part.low + part.high)[beyond | at_cap]
    _settle(part, np.flatnonzero(beyond), np.abs(e))
    yield from _placed(part, part.u)


def _placed(part: Rounds, u: np.ndarray) -> Generator[None, None, None]:
    """Begin at multipliers, but for what their sum is not to be."""
    part.u, part.f = u, np.zeros_like(part.f)
    part.balance()
    own = np.flatnonzero(part.u)
    yield from part.columns.add(part.f, own, part.u[own])
    part.evaluate()


def _settle(part: Rounds, rows: np.ndarray, distance: np.ndarray) -> None:
    """Where the sum of u has to be 0: take what is too much from those of `rows` that are nearest to their kinks."""
    if not part.paired:
        return
    excess = float(part.u.sum())
    heavy = rows[part.u[rows] * excess > 0]
    heavy = heavy[np.argsort(distance[heavy], kind="stable")]
    sizes = np.abs(part.u[heavy])
    before = np.cumsum(sizes) - sizes
    part.u[heavy] -= np.sign(excess) * np.clip(abs(excess) - before, 0.0, sizes)
