"""Certificates of columns over row blocks, from passes of their own: nothing of an engine's sums is used."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks, Sums
from mdlearn.data.row_blocks.summary import Block, Summary
from mdlearn.data.rows.rows import steps
from mdlearn.data.rows.scratch import Piece, Room
from mdlearn.forms.proof import Certificate, judge
from mdlearn.streaming.sums.margins import DualSums, StreamedForm, dual_value, losses, total_loss

ROUNDING_OF_SUMS = 1e-13
"""What is left of a sum that has to be 0, relative to its terms, that counts as rounding."""


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
class MultiplierSource:
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
    """

    W: np.ndarray
    P: np.ndarray
    h: float
    dh: float = 0.0
    exact: Exact | None = None


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
    multipliers: tuple[MultiplierSource, ...]

    def __call__(self, block: Block) -> Sums:
        """Value and moments at `held`; what the dual's value at the multipliers is made of."""
        form, p = self.form, len(self.form.columns)
        out = Sums({name: np.zeros(p) for name in ("value", "first", "second", "bound", "part", "mass", "spread")})
        out |= {name: np.zeros((p, form.size)) for name in ("element", "half", "size")}
        room = Room()
        for rows in steps(block.counts.shape[0], form.piece):
            X, n = block.X.piece(rows, room), rows.stop - rows.start
            A, sizes = np.empty((n, 2 * p)), np.empty((n, p))
            for j in range(p):
                A[:, j], A[:, p + j], sizes[:, j] = self._column(j, block, rows, X, out)
            both = form.adjoint(X, A)
            out["element"] += both[:p]
            out["half"] += both[p:]
            out["size"] += form.sizes(X, sizes)
        return out

    def _column(
        self, j: int, block: Block, rows: slice, X: Piece, out: Sums
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Add what one column makes of some rows; its alphas, those of the loss where y = +1, and their terms' size."""
        one, made, counts = self.form.columns[j], self.multipliers[j], block.counts[rows]
        column, positive = one.column, block.codes[rows] == one.positive
        y = np.where(positive, 1.0, -1.0)
        held, z, dz = (y[:, None] * self.form.margins(X, np.vstack([self.held[j], made.W, made.P]))).T
        apart = held - float(one.centre @ self.held[j])
        out["value"][j] += total_loss(column.terms, held, counts)
        out["first"][j] += counts @ apart
        out["second"][j] += counts @ (apart * apart)
        exact = None if made.exact is None else made.exact.within(block.number, rows)
        some = positive if self.form.sided(j) else None
        found = losses(column.terms, z, counts, made.h, dz, made.dh, exact, some)
        sigma = column.kappa * (z + dz - float(one.centre @ (made.W + made.P)))
        out["bound"][j] += found.bound
        out["part"][j] += found.part
        out["mass"][j] += counts @ sigma
        out["spread"][j] += counts @ (sigma * sigma)
        pull = column.mean / column.total * counts
        size = np.abs(found.slope) + np.abs(counts * sigma) + pull
        return y * (found.slope - counts * sigma + pull), np.where(positive, found.slope, 0.0), size


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
    multipliers: tuple[MultiplierSource, ...],
    tol: float,
) -> Generator[None, None, list[Certificate]]:
    """Certificates of all columns, from one pass.

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
    sums = yield from blocks.fold(Certify(form, held, multipliers), summary)
    return [_judged(form, j, held[j], multipliers[j], sums, tol) for j in range(len(form.columns))]


def _judged(form: StreamedForm, j: int, w: np.ndarray, made: MultiplierSource, sums: Sums, tol: float) -> Certificate:
    """Certificate of one column."""
    one, R = form.columns[j], form.punished
    column, mass, variance = one.column, float(sums["mass"][j]), 0.0
    value = objective_of(form, j, w, sums)
    if column.kappa > 0:
        variance = 0.5 * (float(sums["spread"][j]) - mass * mass / column.total) / column.kappa
    # Multipliers of the variance add up to 0.
    element = sums["element"][j] + mass * one.centre
    told = DualSums(float(sums["bound"][j]), float(sums["part"][j]), variance, element, sums["half"][j])
    lower, e = dual_value(form, j, made.W + made.P, told)
    if (np.abs(e) > ROUNDING_OF_SUMS * sums["size"][j])[R == 0].any():
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
