"""What passes over row blocks do for an engine: sums at a point, along a line, and of all but some rows."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from mdlearn.data.row_blocks.source import Sums
from mdlearn.data.row_blocks.summary import Block
from mdlearn.data.rows.rows import steps
from mdlearn.data.rows.scratch import Piece, Room
from mdlearn.streaming.sums.margins import StreamedForm, losses, total_loss


@dataclass(frozen=True, eq=False)
class Evaluate:
    """Work of a pass: everything a Newton step needs, of some columns at one point each.

    Attributes
    ----------
    form : StreamedForm
    places : tuple of int
        Which columns.
    W : ndarray of shape (p, size)
    h : ndarray of shape (p,)
        Widths of rounded kinks.
    origin, P : ndarray of shape (p, size)
        Where the step to W came from, and the full step: where kinks are rounded, multipliers there moved along it make
        another bound.
    before : ndarray of shape (p,)
        h at `origin`.
    """

    form: StreamedForm
    places: tuple[int, ...]
    W: np.ndarray
    h: np.ndarray
    origin: np.ndarray
    P: np.ndarray
    before: np.ndarray

    @classmethod
    def plain(cls, form: StreamedForm, places: tuple[int, ...], W: np.ndarray) -> Evaluate:
        """Of columns without kinks, which need nothing of the step to W."""
        ones, zeros = np.ones(len(places)), np.zeros_like(W)
        return cls(form, places, W, ones, zeros, zeros, ones)

    def __call__(self, block: Block) -> Sums:
        """Sums over a block, all with the columns first."""
        form, p, n = self.form, len(self.places), self.form.size
        out = Sums(
            {
                name: np.zeros((p, *shape))
                for name, shape in (
                    ("value", ()),
                    ("rounded", ()),
                    ("bound", ()),
                    ("first", ()),
                    ("second", ()),
                    ("inside", ()),
                    ("element", (n,)),
                    ("drift", (n,)),
                    ("hessian", (n, n)),
                    ("part", ()),
                    ("half", (n,)),
                    ("moved bound", ()),
                    ("moved part", ()),
                    ("moved half", (n,)),
                    ("moved first", ()),
                    ("moved second", ()),
                    ("moved element", (n,)),
                )
            }
        )
        room = Room()
        for rows in steps(block.counts.shape[0], form.piece):
            X, codes, counts = block.X.piece(rows, room), block.codes[rows], block.counts[rows]
            Z = form.margins(X, self.W)
            A = np.empty((counts.shape[0], 3 * p))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                column, positive = one.column, codes == one.positive
                y = np.where(positive, 1.0, -1.0)
                z = y * Z[:, j]
                found = losses(column.terms, z, counts, self.h[j], some=positive if form.sided(k) else None)
                centred = z - float(one.centre @ self.W[j])
                weighted = counts * centred
                out["inside"][j] += found.inside
                out["value"][j] += total_loss(column.terms, z, counts)
                out["rounded"][j] += found.rounded
                out["bound"][j] += found.bound
                out["part"][j] += found.part
                out["first"][j] += weighted.sum()
                out["second"][j] += weighted @ centred
                A[:, 2 * p + j] = np.where(positive, found.slope, 0.0)
                A[:, j] = y * (found.slope - column.kappa * weighted + (column.mean / column.total) * counts)
                A[:, p + j] = y * found.drift
                form.add_square(out["hessian"][j], X, found.bend + column.kappa * counts)
            for j, k in enumerate(self.places):
                if form.columns[k].kinked:
                    self._moved(j, k, X, codes, counts, out)
            summed = form.adjoint(X, A)
            out["element"] += summed[:p]
            out["drift"] += summed[p : 2 * p]
            out["half"] += summed[2 * p :]
        return out

    def _moved(self, j: int, k: int, X: Piece, codes: np.ndarray, counts: np.ndarray, out: Sums) -> None:
        """What the multipliers of the full step say."""
        one, some = self.form.columns[k], None
        column, positive = one.column, codes == one.positive
        y = np.where(positive, 1.0, -1.0)
        if self.form.sided(k):
            some = positive
        z, dz = (y[:, None] * self.form.margins(X, np.vstack([self.origin[j], self.P[j]]))).T
        before = float(self.before[j])
        found = losses(column.terms, z, counts, before, dz, float(self.h[j]) - before, some=some)
        centred = z + dz - float(one.centre @ (self.origin[j] + self.P[j]))
        weighted = counts * centred
        out["moved bound"][j] += found.bound
        out["moved part"][j] += found.part
        out["moved first"][j] += weighted.sum()
        out["moved second"][j] += weighted @ centred
        alpha = found.slope - column.kappa * weighted + (column.mean / column.total) * counts
        both = self.form.adjoint(X, np.column_stack([y * alpha, np.where(positive, found.slope, 0.0)]))
        out["moved element"][j] += both[0]
        out["moved half"][j] += both[1]


@dataclass(frozen=True, eq=False)
class Square:
    """Work of a pass: sum_i c_i x'_i x'_i', which the variance of every column is made of.

    Attributes
    ----------
    form : StreamedForm
    """

    form: StreamedForm

    def __call__(self, block: Block) -> Sums:
        """Of one block, shape (size, size)."""
        found, room = np.zeros((self.form.size, self.form.size)), Room()
        for rows in steps(block.counts.shape[0], self.form.piece):
            self.form.add_square(found, block.X.piece(rows, room), block.counts[rows])
        return Sums(square=found)


@dataclass(frozen=True, eq=False)
class Along:
    """Work of a pass: slopes of the rounded losses along a line, of some columns.

    Attributes
    ----------
    form : StreamedForm
    places : tuple of int
    W, P : ndarray of shape (p, size)
        Points and directions.
    h : ndarray of shape (p,)
    lengths : ndarray of shape (s,)
    """

    form: StreamedForm
    places: tuple[int, ...]
    W: np.ndarray
    P: np.ndarray
    h: np.ndarray
    lengths: np.ndarray

    def __call__(self, block: Block) -> Sums:
        """Slopes of the losses at all lengths, and the moments that the variance's slope is made of."""
        form, p = self.form, len(self.places)
        out = Sums({"slopes": np.zeros((p, self.lengths.shape[0])), "moments": np.zeros((p, 2))})
        room = Room()
        for rows in steps(block.counts.shape[0], form.piece):
            X, codes, counts = block.X.piece(rows, room), block.codes[rows], block.counts[rows]
            Z = form.margins(X, np.vstack([self.W, self.P]))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                y = np.where(codes == one.positive, 1.0, -1.0)
                z, dz = y * Z[:, j], y * Z[:, p + j]
                centred, change = z - float(one.centre @ self.W[j]), dz - float(one.centre @ self.P[j])
                weighted = counts * change
                out["moments"][j] += [weighted @ centred, weighted @ change]
                for i, length in enumerate(self.lengths):
                    found = losses(one.column.terms, z + length * dz, counts, self.h[j])
                    out["slopes"][j, i] -= found.slope @ dz
        return out


@dataclass(frozen=True, eq=False)
class Near:
    """Rows near a kink, block after block.

    Attributes
    ----------
    X : ndarray of shape (N, size)
        Rows, with the constant of a bias.
    y, counts : ndarray of shape (N,)
    block, row : ndarray of shape (N,), int
        Where they are.
    """

    X: np.ndarray
    y: np.ndarray
    counts: np.ndarray
    block: np.ndarray
    row: np.ndarray

    def __add__(self, other: Near) -> Near:
        return Near.joined([self, other])

    @classmethod
    def joined(cls, parts: list[Near]) -> Near:
        """All of them, one after the other."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


@dataclass(frozen=True, eq=False)
class Gather:
    """Work of a pass: rows within `reach` of a kink, and sums over all others, whose multipliers are at a bound.

    Attributes
    ----------
    form : StreamedForm
    places : tuple of int
    W : ndarray of shape (p, size)
    reach : ndarray of shape (p,)
    """

    form: StreamedForm
    places: tuple[int, ...]
    W: np.ndarray
    reach: np.ndarray

    def __call__(self, block: Block) -> Sums:
        """Near rows; for the others bound and element; value and moments of all, and the variance's matrix."""
        form, p, n = self.form, len(self.places), self.form.size
        shapes = {"value": (), "first": (), "second": (), "bound": (), "part": (), "element": (n,), "half": (n,)}
        shapes["spread"] = (n, n)
        out = Sums({name: np.zeros((p, *shape)) for name, shape in shapes.items()})
        near: list[list[Near]] = [[] for _ in self.places]
        room = Room()
        for rows in steps(block.counts.shape[0], form.piece):
            X, codes, counts = block.X.piece(rows, room), block.codes[rows], block.counts[rows]
            Z = form.margins(X, self.W)
            A = np.empty((counts.shape[0], 2 * p))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                column, terms, positive = one.column, one.column.terms, codes == one.positive
                y = np.where(positive, 1.0, -1.0)
                z = y * Z[:, j]
                centred = z - float(one.centre @ self.W[j])
                out["first"][j] += counts @ centred
                out["second"][j] += counts @ (centred * centred)
                away = np.min([np.abs(z - t.threshold) for t in terms], axis=0)
                inside = np.flatnonzero(away <= self.reach[j])
                rest = counts.copy()
                rest[inside] = 0.0
                found = losses(terms, z, rest, self.reach[j], some=positive if form.sided(k) else None)
                out["value"][j] += total_loss(terms, z, counts)
                out["bound"][j] += found.bound
                out["part"][j] += found.part
                A[:, j], A[:, p + j] = y * found.slope, np.where(positive, found.slope, 0.0)
                places = np.full(inside.shape[0], block.number), rows.start + inside
                near[j].append(Near(form.extended(X.dense(inside)), y[inside], counts[inside], *places))
                if column.kappa > 0:
                    R = form.extended(X.dense(slice(None))) * y[:, None] - one.centre
                    R *= np.sqrt(column.kappa * counts)[:, None]
                    out["spread"][j] += R.T @ R
            both = form.adjoint(X, A)
            out["element"] += both[:p]
            out["half"] += both[p:]
        out |= {f"near {j}": Near.joined(parts) for j, parts in enumerate(near)}
        return out
