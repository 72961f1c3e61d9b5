"""Certificates of columns over row blocks, from passes of their own: nothing of an engine's sums is used."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from mdlearn.data.census import Block, Summary
from mdlearn.data.pieces import Piece, Room
from mdlearn.data.rows import steps
from mdlearn.data.streams import RowBlocks, Sums
from mdlearn.forms.proof import Certificate, judge
from mdlearn.forms.streamed import StreamedForm, losses, total_loss

CLEAN = 1e-13
"""What is left of a sum that has to be 0, relative to its terms, that counts as rounding."""
ROUNDS = 3


@dataclass(frozen=True, eq=False)
class Exact:
    """Multipliers of some rows that are no function of their margins.

    Attributes
    ----------
    block, row : ndarray of shape (N,), int
        Where the rows are, block after block.
    beta : ndarray of shape (T, N)
    """

    block: np.ndarray
    row: np.ndarray
    beta: np.ndarray

    def within(self, number: int, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Those of a range of a block: places in the range, and multipliers."""
        low, high = np.searchsorted(self.block, [number, number + 1])
        first, last = low + np.searchsorted(self.row[low:high], [rows.start, rows.stop])
        return self.row[first:last] - rows.start, self.beta[:, first:last]


@dataclass(frozen=True, eq=False)
class Multipliers:
    """From what the multipliers of one column are made.

    Attributes
    ----------
    W, P : ndarray of shape (size,)
        They are slopes at W, moved along the second derivatives by the margins of P.
    h : float
        Half the width on which kinks are rounded.
    dh : float
        And along their derivative in h by this.
    exact : Exact or None
    scales : tuple of two float
        Factors for y = -1 and y = +1.
    shift : float
        What is taken from the multipliers of the variance, times c (y - mean y).
    """

    W: np.ndarray
    P: np.ndarray
    h: float
    dh: float = 0.0
    exact: Exact | None = None
    scales: tuple[float, float] = (1.0, 1.0)
    shift: float = 0.0


@dataclass(frozen=True, eq=False)
class Certify:
    """Work of a pass: the objective at the coefficients of a model, and a bound from multipliers.

    Attributes
    ----------
    form : StreamedForm
    held : ndarray of shape (p, size)
        Coefficients whose objective is asked for, of all columns.
    multipliers : tuple of Multipliers
    """

    form: StreamedForm
    held: np.ndarray
    multipliers: tuple[Multipliers, ...]

    def __call__(self, block: Block) -> Sums:
        """Value and moments at `held`; bound, moments of the variance's multipliers, and what all add up to."""
        form, p = self.form, len(self.form.columns)
        out = Sums({name: np.zeros(p) for name in ("value", "first", "second", "bound", "mass", "spread")})
        out |= {"signed": np.zeros((p, 2)), "element": np.zeros((p, form.size)), "size": np.zeros((p, form.size))}
        room = Room()
        for rows in steps(block.counts.shape[0], form.piece):
            X, n = block.X.piece(rows, room), rows.stop - rows.start
            A, sizes = np.empty((n, p)), np.empty((n, p))
            for j in range(p):
                A[:, j], sizes[:, j] = self._column(j, block, rows, X, out)
            out["element"] += form.adjoint(X, A)
            out["size"] += form.sizes(X, sizes)
        return out

    def _column(self, j: int, block: Block, rows: slice, X: Piece, out: Sums) -> tuple[np.ndarray, np.ndarray]:
        """Add what one column makes of some rows; its signed coefficients alpha, and the size of their terms."""
        one, made, counts = self.form.columns[j], self.multipliers[j], block.counts[rows]
        column, positive = one.column, block.codes[rows] == one.positive
        y = np.where(positive, 1.0, -1.0)
        held, z, dz = (y[:, None] * self.form.margins(X, np.vstack([self.held[j], made.W, made.P]))).T
        apart = held - float(one.centre @ self.held[j])
        out["value"][j] += total_loss(column.terms, held, counts)
        out["first"][j] += counts @ apart
        out["second"][j] += counts @ (apart * apart)
        scale = np.where(positive, made.scales[1], made.scales[0])
        exact = None if made.exact is None else made.exact.within(block.number, rows)
        found = losses(column.terms, z, counts, made.h, scale, dz, made.dh, exact)
        sigma = column.kappa * (z + dz - float(one.centre @ (made.W + made.P)))
        sigma += made.shift * (y - column.label_mean)
        out["bound"][j] += found.bound
        out["mass"][j] += counts @ sigma
        out["spread"][j] += counts @ (sigma * sigma)
        out["signed"][j] += [found.slope[~positive].sum(), found.slope[positive].sum()]
        pull = column.mean / column.total * counts
        size = np.abs(found.slope) + np.abs(counts * sigma) + pull
        return y * (found.slope - counts * sigma + pull), size


@dataclass(frozen=True, eq=False)
class Values:
    """Work of a pass: what objectives at some coefficients are made of.

    Attributes
    ----------
    form : StreamedForm
    held : ndarray of shape (p, size)
        Coefficients of all columns.
    """

    form: StreamedForm
    held: np.ndarray

    def __call__(self, block: Block) -> Sums:
        """Losses and moments of the margins."""
        form, p = self.form, len(self.form.columns)
        out, room = Sums({name: np.zeros(p) for name in ("value", "first", "second")}), Room()
        for rows in steps(block.counts.shape[0], form.piece):
            Z, counts = form.margins(block.X.piece(rows, room), self.held), block.counts[rows]
            for j, one in enumerate(form.columns):
                z = np.where(block.codes[rows] == one.positive, 1.0, -1.0) * Z[:, j]
                apart = z - float(one.centre @ self.held[j])
                out["value"][j] += total_loss(one.column.terms, z, counts)
                out["first"][j] += counts @ apart
                out["second"][j] += counts @ (apart * apart)
        return out


def certified(
    form: StreamedForm,
    blocks: RowBlocks,
    summary: Summary,
    held: np.ndarray,
    multipliers: tuple[Multipliers, ...],
    tol: float,
) -> Generator[None, None, list[Certificate]]:
    """Certificates of all columns, from one pass; of a free bias, whose condition is met in a second one, from two.

    Parameters
    ----------
    form : StreamedForm
    blocks : RowBlocks
    summary : Summary
    held : ndarray of shape (p, size)
        Coefficients as the model will have them.
    multipliers : tuple of Multipliers
    tol : float
    """
    for _ in range(ROUNDS):
        sums = yield from blocks.fold(Certify(form, held, multipliers), summary)
        better = tuple(_balanced(form, j, one, sums) for j, one in enumerate(multipliers))
        if all(mine is theirs for mine, theirs in zip(better, multipliers)):
            break
        multipliers = better
    return [_judged(form, j, held[j], sums, tol) for j in range(len(form.columns))]


def _judged(form: StreamedForm, j: int, w: np.ndarray, sums: Sums, tol: float) -> Certificate:
    """Certificate of one column."""
    one, R = form.columns[j], form.punished
    column, total = one.column, one.column.total
    value = objective_of(form, j, w, sums)
    e, mass = _element(form, j, sums), float(sums["mass"][j])
    lower = float(sums["bound"][j]) - 0.5 * float(R @ (e * e))
    if column.kappa > 0:
        lower -= 0.5 * (float(sums["spread"][j]) - mass * mass / total) / column.kappa
    if (np.abs(e) > CLEAN * sums["size"][j])[R == 0].any():
        lower = -math.inf
    unit = form.unit * column.unit
    return judge(unit * value, unit * lower, unit * column.at_zero, False, tol)


def objective_of(form: StreamedForm, j: int, w: np.ndarray, sums: Sums) -> float:
    """Objective of one column at w, in units of the form, from the sums there."""
    one = form.columns[j]
    column, total, first = one.column, one.column.total, float(sums["first"][j])
    value = 0.5 * float(form.punished @ (w * w)) + float(sums["value"][j])
    value -= column.mean * (float(one.centre @ w) + first / total)
    return value + 0.5 * column.kappa * (float(sums["second"][j]) - first * first / total)


def _element(form: StreamedForm, j: int, sums: Sums) -> np.ndarray:
    """sum_i alpha_i x'_i with multipliers of the variance that add up to 0."""
    return np.asarray(sums["element"][j] + float(sums["mass"][j]) * form.columns[j].centre)


def _balanced(form: StreamedForm, j: int, made: Multipliers, sums: Sums) -> Multipliers:
    """Multipliers with sum_i alpha_i = 0, the condition of a free bias; the same where they have it."""
    column, excess = form.columns[j].column, float(_element(form, j, sums)[-1])
    if form.bias != "free" or form.ridge == 0 or abs(excess) <= CLEAN * sums["size"][j, -1]:
        return made
    if column.kappa > 0:
        return replace(made, shift=made.shift + excess / (column.total * (1.0 - column.label_mean**2)))
    heavy = int(excess > 0)
    room = float(sums["signed"][j, heavy])
    if not room > 0:
        return made
    scales = list(made.scales)
    scales[heavy] *= max(0.0, 1.0 - abs(excess) / room)
    return replace(made, scales=(scales[0], scales[1]))
