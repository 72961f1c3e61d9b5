"""Folds: which rows train and which are held out; stratified, the caller's own pairs, or a splitter of scikit-learn's.

Folds are drawn among units, sets of rows with the same numbers and the same label, in an order of their own. So neither
the order of the caller's rows matters nor whether a row is repeated or has a weight. Units that differ in their label
alone stay together: what a model is judged by has never been among its training rows, with no label. (A held-out row
whose twins of the other label train the model is judged wrong more often than chance.)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mdlearn.data.rows.distinct import distinct_row_order
from mdlearn.data.rows.rows import BLOCK_ENTRIES, DenseRows, Rows, steps
from mdlearn.data.validation import Data, check_number
from mdlearn.errors import did_you_mean

TIE_LEVELS = 4
"""Smallest values that rows of a Gram matrix are told apart by before all of them are looked at."""
TIE_ROUNDS = 100
"""Looks at all values of rows that are still tied."""

Fold = tuple[np.ndarray, np.ndarray]
"""Positions of training rows and of held-out rows among the caller's rows; one that comes twice counts twice."""


@dataclass(frozen=True, eq=False)
class FoldUnits:
    """Sets of equal rows, which stay together in folds, sorted by label (or target), then by their numbers."""

    of: np.ndarray  # shape (m,), intp: unit of every row
    codes: np.ndarray  # shape (n,), intp: class of every unit; -1 where unknown; 0 for regression, several labels
    weights: np.ndarray  # shape (n,): sum of the weights of its rows
    twins: np.ndarray  # shape (n,), intp: same number for units whose rows have the same numbers, whatever their label


def fold_units(data: Data, weights: np.ndarray, square: bool) -> FoldUnits:
    """Fold units of checked data; `weights` are those of its rows, `square` says that X is a Gram matrix."""
    known = data.targets if data.indicators is None else data.indicators
    key = data.codes if known is None else np.unique(known, axis=0, return_inverse=True)[1].reshape(-1)
    m = data.X.shape[0]
    order, first = distinct_row_order(data.X, np.arange(m), key)
    leaders, of = order[first], np.empty(m, dtype=np.intp)
    of[order] = np.cumsum(first) - 1
    by = np.lexsort((weights, of))  # sums of weights do not depend on the order of rows
    sums = np.add.reduceat(weights[by], np.searchsorted(of[by], np.arange(leaders.shape[0])))
    if square:
        # Columns are rows as well: their order must not count.
        mine = _ordered_gram_fold_units(data.X, leaders, key[leaders], sums)
        place = np.empty_like(mine)
        place[mine] = np.arange(mine.shape[0])
        of, leaders, sums = place[of], leaders[mine], sums[mine]
    return FoldUnits(of, data.codes[leaders], sums, _fold_unit_twins(data.X, leaders))


def _fold_unit_twins(X: Rows, leaders: np.ndarray) -> np.ndarray:
    """Number of the distinct row that each fold unit repeats, whatever its label."""
    order, first = distinct_row_order(X, leaders)
    place = np.empty(X.shape[0], dtype=np.intp)
    place[order] = np.cumsum(first) - 1
    return place[leaders]


def _ordered_gram_fold_units(G: Rows, which: np.ndarray, key: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Order of the fold units of a Gram matrix by key, weight and values, whatever the order of its columns.

    Ranks go by the smallest value of a row, the next larger one, and so on; then by the values towards rows of each
    rank. Rows that this leaves tied are mirror images, and one is put first.
    """
    rank, level = _fold_unit_ranks(key, weights), np.full(which.shape[0], -np.inf)
    for _ in range(TIE_LEVELS):
        tied = _tied_fold_units(rank)
        for part in steps(tied.shape[0], BLOCK_ENTRIES // G.shape[1]):
            block = G.block(which[tied[part]])
            level[tied[part]] = np.where(block > level[tied[part], None], block, np.inf).min(axis=1)
        rank = _fold_unit_ranks(rank, level)
    for _ in range(TIE_ROUNDS):
        tied = _tied_fold_units(rank)
        if not 0 < tied.shape[0] * which.shape[0] <= 16 * BLOCK_ENTRIES:
            break
        columns = np.argsort(rank, kind="stable")
        values = G.block(which[tied])[:, which[columns]]
        by = np.argsort(values, axis=1, kind="stable")
        by = np.take_along_axis(by, np.argsort(rank[columns][by], axis=1, kind="stable"), axis=1)
        order, first = distinct_row_order(
            DenseRows(np.take_along_axis(values, by, axis=1)), np.arange(tied.shape[0]), rank[tied]
        )
        finer = np.zeros_like(rank)
        finer[tied[order]] = np.cumsum(first)
        before, rank = rank, _fold_unit_ranks(rank, finer)
        if np.array_equal(before, rank):
            mirrored = np.flatnonzero(rank == rank[tied].min())
            rank[mirrored[1:]] += 1
    return np.argsort(rank, kind="stable")


def _fold_unit_ranks(*keys: np.ndarray) -> np.ndarray:
    """Ranks of fold units by several keys, the first of them first; equal ones share a rank."""
    order = np.lexsort(keys[::-1])
    new = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    rank = np.empty(order.shape[0], dtype=np.intp)
    rank[order] = np.maximum.accumulate(np.where(np.append(True, new), np.arange(order.shape[0]), 0))
    return rank


def _tied_fold_units(rank: np.ndarray) -> np.ndarray:
    """Positions of fold units that share their rank with others."""
    return np.flatnonzero(np.bincount(rank)[rank] > 1)


def stratified_folds(units: FoldUnits, n_folds: int, seed: int) -> np.ndarray:
    """Fold of every unit: each class is spread over the folds, heavy units first, in random order among equal ones.

    A unit goes where its class has least weight so far, then all classes together. Twins go first, together.
    """
    rng = np.random.default_rng(seed)
    fold = np.full(units.codes.shape[0], -1, dtype=np.intp)
    loads = _assign_folds_to_twins(units, fold, n_folds, rng)
    total = loads.sum(axis=1)
    for code in range(loads.shape[1]):
        mine = rng.permutation(np.flatnonzero((units.codes == code) & (fold < 0)))
        mine = mine[np.argsort(-units.weights[mine], kind="stable")]
        waiting = [(float(loads[j, code]), float(total[j]), j) for j in range(n_folds)]
        heapq.heapify(waiting)
        for unit, weight in zip(mine.tolist(), units.weights[mine].tolist()):
            own, whole, j = waiting[0]
            fold[unit] = j
            heapq.heapreplace(waiting, (own + weight, whole + weight, j))
        for _, whole, j in waiting:
            total[j] = whole
    return fold


def _assign_folds_to_twins(units: FoldUnits, fold: np.ndarray, n_folds: int, rng: np.random.Generator) -> np.ndarray:
    """Set the fold of units that have twins; return the weight of every class in every fold, shape (n_folds, k).

    The heaviest set of twins goes first, each where its classes, by their weight in it, have least.
    """
    loads = np.zeros((n_folds, int(units.codes.max()) + 1))
    shared = np.flatnonzero(np.bincount(units.twins)[units.twins] > 1)
    if not shared.shape[0]:
        return loads
    _, first, of = np.unique(units.twins[shared], return_index=True, return_inverse=True)
    table = np.zeros((first.shape[0], loads.shape[1]))
    np.add.at(table, (of.reshape(-1), units.codes[shared]), units.weights[shared])
    place = np.empty(first.shape[0], dtype=np.intp)
    mine = rng.permutation(np.argsort(first))
    for i in mine[np.argsort(-table.sum(axis=1)[mine], kind="stable")].tolist():
        j = int(np.lexsort((loads.sum(axis=1), loads @ table[i]))[0])
        place[i], loads[j] = j, loads[j] + table[i]
    fold[shared] = place[of.reshape(-1)]
    return loads


def make_folds(cv: Any, X: Any, y: Any, data: Data, weights: np.ndarray, square: bool, seed: int) -> tuple[Fold, ...]:
    """Return the folds that `cv` asks for, without rows of weight 0.

    Raises ValueError, TypeError for what makes no folds, or folds without training rows of every class.
    """
    if isinstance(cv, str):
        hint = did_you_mean(cv, ("loo", "pseudo-loo"))
        raise ValueError(
            f"cv {cv!r} is unknown; give a number of folds, 'loo', 'pseudo-loo', pairs or a splitter{hint}"
        )
    if isinstance(cv, type):
        raise TypeError(f"cv needs a splitter, not its class; got {cv.__name__}, give {cv.__name__}()")
    if hasattr(cv, "split"):
        folds = _checked_folds(cv.split(X, y), data)
    elif isinstance(cv, Iterable) and getattr(cv, "ndim", 1) != 0:
        folds = _checked_folds(cv, data)
    else:
        folds = _random_stratified_folds(cv, data, weights, square, seed)
    for j, (train, _) in enumerate(folds):
        missing = _classes_missing_in_fold(train, data)
        if missing.shape[0]:
            raise ValueError(
                f"fold {j} has no training row of class {data.classes[missing].tolist()[0]!r}; every training part "
                f"needs all {data.classes.shape[0]} classes: give fewer folds, other folds, or more rows of that class"
            )
    return folds


def _random_stratified_folds(cv: Any, data: Data, weights: np.ndarray, square: bool, seed: int) -> tuple[Fold, ...]:
    """Random stratified folds, as many as the number `cv`; equal rows stay in one fold."""
    n_folds = check_number(cv, "cv", low=2, integer=True)
    units = fold_units(data, weights, square)
    judged = np.unique(units.twins[units.codes >= 0])
    n = judged.shape[0]
    if n < n_folds:
        told = "distinct rows of positive weight" + " and a known label" * data.partial
        raise ValueError(f"cv is {n_folds} but there are {n} {told}; give at most {n} folds")
    fold = stratified_folds(replace(units, codes=units.codes + 1) if data.partial else units, n_folds, seed)
    # Rows of unknown labels train in every fold, unless one of their twins is held out.
    fold = np.where(np.isin(units.twins, judged), fold, -1)[units.of]
    return tuple((data.rows[fold != j], data.rows[(fold == j) & (data.codes >= 0)]) for j in range(n_folds))


def _checked_folds(pairs: Iterable[Any], data: Data) -> tuple[Fold, ...]:
    """Folds of the caller, checked: pairs (train, test) of row numbers or masks."""
    folds = []
    counted, known = np.zeros((2, data.n_given), dtype=bool)
    counted[data.rows], known[data.rows] = True, data.codes >= 0
    for j, pair in enumerate(pairs):
        parts = tuple(pair) if isinstance(pair, Iterable) else ()
        if len(parts) != 2 or isinstance(pair, (str, bytes)):
            raise ValueError(f"cv needs pairs (train, test) of row numbers or masks; entry {j} is {pair!r:.60}")
        train = _fold_row_numbers(parts[0], data.n_given, f"training part of fold {j}")
        test = _fold_row_numbers(parts[1], data.n_given, f"test part of fold {j}")
        train, test = train[counted[train]], test[known[test]]
        for part, name in ((train, "training"), (test, "test")):
            if part.shape[0] == 0:
                label = " and a known label" * (data.partial and name == "test")
                raise ValueError(f"the {name} part of fold {j} has no row of positive weight{label}; give at least one")
        folds.append((train, test))
    if not folds:
        raise ValueError("cv has no folds; give at least one pair (train, test)")
    return tuple(folds)


def _fold_row_numbers(part: Any, m: int, what: str) -> np.ndarray:
    """Row numbers of one part of a fold, from row numbers or a mask."""
    index = np.asarray(part)
    if index.dtype == bool:
        if index.shape != (m,):
            raise ValueError(f"the {what} is a mask of shape {index.shape}; X has {m} rows")
        return np.flatnonzero(index)
    if index.ndim != 1 or (index.dtype.kind not in "iu" and index.size):
        raise TypeError(f"the {what} needs to be an array of row numbers or a mask; got {part!r:.60}")
    if index.size and (int(index.min()) < 0 or int(index.max()) >= m):
        wrong = index[(index < 0) | (index >= m)][0]
        raise ValueError(f"the {what} names row {wrong}; X has rows 0 to {m - 1}")
    return index.astype(np.intp)


def _classes_missing_in_fold(train: np.ndarray, data: Data) -> np.ndarray:
    """Classes without a training row in a fold; a label that no row has is no fault."""
    k = data.classes.shape[0]
    if data.indicators is not None:
        return np.empty(0, dtype=np.intp)
    code = np.full(data.n_given, k)
    code[data.rows] = np.where(data.codes < 0, k, data.codes)
    return np.flatnonzero(np.bincount(code[train], minlength=k)[:k] == 0)
