"""Sums of a pass over row blocks: at a point, along a line, of all but some rows; and what multipliers say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

import numpy as np

from mdlearn.data.row_blocks.summary import Block, SummarySums
from mdlearn.data.rows.scratch import ScratchPiece
from mdlearn.streaming.sums.streamed_form import StreamedColumn, StreamedForm, streamed_losses, total_streamed_loss

MOVED = "moved "
"""Begins the names of sums at multipliers that are no slopes at the point of the pass."""


@dataclass(frozen=True, eq=False)
class Exact:
    """Exact multipliers of some rows, which sums of a pass take in place of functions of margins.

    `block`, `row` (shape (N,), int): where the rows are, block after block.
    """

    block: np.ndarray
    row: np.ndarray
    beta: np.ndarray  # shape (T, N)

    def within(self, number: int, rows: slice) -> tuple[np.ndarray, np.ndarray]:
        """Those of a range of a block: places in the range, and multipliers."""
        low, high = np.searchsorted(self.block, [number, number + 1])
        first, last = low + np.searchsorted(self.row[low:high], [rows.start, rows.stop])
        return self.row[first:last] - rows.start, self.beta[:, first:last]


@dataclass(frozen=True, eq=False)
class MultiplierSource:
    """Source of the multipliers of one column in the sums of a pass.

    `W`, `P` (shape (size,)): they are slopes at W, moved along the second derivatives by the margins of P.
    """

    W: np.ndarray
    P: np.ndarray
    h: float  # half the width on which kinks are rounded
    dh: float = 0.0  # and along their derivative in h by this
    exact: Exact | None = None


Sources = Mapping[int, MultiplierSource]
"""Where the multipliers of some columns are from, by their places."""


def zeros(p: int, names: str, **shapes: tuple[int, ...]) -> SummarySums:
    """Sums of a pass with all entries 0, the columns first: numbers by their names, and arrays by their shapes."""
    return SummarySums(
        {name: np.zeros((p, *shape)) for name, shape in {**dict.fromkeys(names.split(), ()), **shapes}.items()}
    )


def sum_values(
    out: SummarySums, i: int, one: StreamedColumn, w: np.ndarray, z: np.ndarray, counts: np.ndarray
) -> np.ndarray:
    """Add the losses and moments at margins z of w to the sums of a pass; return z less its mean."""
    centred = z - float(one.centre @ w)
    weighted = counts * centred
    out["value"][i] += total_streamed_loss(one.column.terms, z, counts)
    out["first"][i] += weighted.sum()
    out["second"][i] += weighted @ centred
    return centred


def no_multipliers(form: StreamedForm, p: int, *names: str) -> SummarySums:
    """Sums of a pass to which `sum_multipliers` has added nothing; `names`: further ones of the size of the columns."""
    found = zeros(p, "bound part first second", **dict.fromkeys(("element", "half", *names), (form.size,)))
    return SummarySums({MOVED + name: values for name, values in found.items()})


def sum_multipliers(
    out: SummarySums, form: StreamedForm, sources: Sources, block: Block, rows: slice, X: ScratchPiece
) -> None:
    """Add the bounds of multipliers to the sums of a pass; for "size", what the terms of their elements are in size."""
    codes, counts, p = block.codes[rows], block.counts[rows], len(sources)
    Z = form.margins(X, np.array([made.W for made in sources.values()] + [made.P for made in sources.values()]))
    A, sizes = np.empty((counts.shape[0], 2 * p)), np.empty((counts.shape[0], p))
    for i, (k, made) in enumerate(sources.items()):
        one = form.columns[k]
        column, y = one.column, one.signs(codes)
        z, dz = y * Z[:, i], y * Z[:, p + i]
        exact = None if made.exact is None else made.exact.within(block.number, rows)
        found = streamed_losses(column.terms, z, counts, made.h, dz, made.dh, exact, y > 0 if form.sided(k) else None)
        centred = z + dz - float(one.centre @ (made.W + made.P))
        weighted, pull = counts * centred, column.mean / column.total * counts
        for name, value in (("bound", found.bound), ("part", found.part), ("first", weighted.sum())):
            out[MOVED + name][i] += value
        out[MOVED + "second"][i] += weighted @ centred
        A[:, i] = y * (found.slope - column.kappa * weighted + pull)
        A[:, p + i] = np.where(y > 0, found.slope, 0.0)
        sizes[:, i] = np.abs(found.slope) + np.abs(column.kappa * weighted) + pull
    both = form.adjoint(X, A)
    out[MOVED + "element"] += both[:p]
    out[MOVED + "half"] += both[p:]
    if MOVED + "size" in out:
        out[MOVED + "size"] += form.sizes(X, sizes)


@dataclass(frozen=True, eq=False)
class PointPass:
    """Work of a pass: sums at a point, all that a Newton step needs, of some columns at one point each."""

    form: StreamedForm
    places: tuple[int, ...]  # which columns
    W: np.ndarray  # shape (p, size)
    h: np.ndarray  # shape (p,): widths of rounded kinks
    # of the same columns, multipliers that make another bound; empty: none
    sources: Sources = field(default_factory=dict)
    # whether sum_i c_i x'_i x'_i' is asked for as well, which the variance of every column is made of
    squared: bool = False

    def __call__(self, block: Block) -> SummarySums:
        """Sums over a block, all but the square with the columns first."""
        form, p, n = self.form, len(self.places), self.form.size
        vectors = dict.fromkeys(("element", "drift", "half"), (n,))
        out = zeros(p, "value rounded bound part first second inside", hessian=(n, n), **vectors)
        if self.sources:
            out |= no_multipliers(form, p)
        if self.squared:
            out["square"] = np.zeros((n, n))
        for rows, X, codes, counts in form.pieces(block):
            if self.squared:
                form.add_square(out["square"], X, counts)
            Z = form.margins(X, self.W)
            A = np.empty((counts.shape[0], 3 * p))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                column, y = one.column, one.signs(codes)
                z = y * Z[:, j]
                found = streamed_losses(column.terms, z, counts, self.h[j], some=y > 0 if form.sided(k) else None)
                centred = sum_values(out, j, one, self.W[j], z, counts)
                for name in ("inside", "rounded", "bound", "part"):
                    out[name][j] += getattr(found, name)
                A[:, j] = y * (found.slope - column.kappa * counts * centred + (column.mean / column.total) * counts)
                A[:, p + j] = y * found.drift
                A[:, 2 * p + j] = np.where(y > 0, found.slope, 0.0)
                form.add_square(out["hessian"][j], X, found.bend + column.kappa * counts)
            summed = form.adjoint(X, A)
            for i, name in enumerate(("element", "drift", "half")):
                out[name] += summed[i * p : (i + 1) * p]
            if self.sources:
                sum_multipliers(out, form, self.sources, block, rows, X)
        return out


@dataclass(frozen=True, eq=False)
class LinePass:
    """Work of a pass: sums along a line, slopes of the rounded losses of some columns.

    `W`, `P` (shape (p, size)): points and directions.
    """

    form: StreamedForm
    places: tuple[int, ...]
    W: np.ndarray
    P: np.ndarray
    h: np.ndarray  # shape (p,)
    lengths: np.ndarray  # shape (s,)

    def __call__(self, block: Block) -> SummarySums:
        """Slopes of the losses at all lengths, and the moments that the variance's slope is made of."""
        form, p = self.form, len(self.places)
        out = zeros(p, "", slopes=self.lengths.shape, moments=(2,))
        for _, X, codes, counts in form.pieces(block):
            Z = form.margins(X, np.vstack([self.W, self.P]))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                y = one.signs(codes)
                z, dz = y * Z[:, j], y * Z[:, p + j]
                centred, change = z - float(one.centre @ self.W[j]), dz - float(one.centre @ self.P[j])
                weighted = counts * change
                out["moments"][j] += [weighted @ centred, weighted @ change]
                for i, length in enumerate(self.lengths):
                    found = streamed_losses(one.column.terms, z + length * dz, counts, self.h[j])
                    out["slopes"][j, i] -= found.slope @ dz
        return out


@dataclass(frozen=True, eq=False)
class KinkRows:
    """Rows near a kink that a pass gathers beside its sums, block after block.

    `y`, `counts` of shape (N,); `block`, `row` (shape (N,), int): where they are.
    """

    X: np.ndarray  # shape (N, size): rows, with the constant of a bias
    y: np.ndarray
    counts: np.ndarray
    block: np.ndarray
    row: np.ndarray

    def __add__(self, other: KinkRows) -> KinkRows:
        return KinkRows.joined([self, other])

    @classmethod
    def joined(cls, parts: list[KinkRows]) -> KinkRows:
        """All of them, one after the other."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))


@dataclass(frozen=True, eq=False)
class GatherPass:
    """Work of a pass: rows within `reach` of a kink, and sums over all others, whose multipliers are at a bound."""

    form: StreamedForm
    places: tuple[int, ...]
    W: np.ndarray  # shape (p, size)
    reach: np.ndarray  # shape (p,)

    def __call__(self, block: Block) -> SummarySums:
        """Near rows; for the others bound and element; value and moments of all, and the variance's matrix."""
        form, p, n = self.form, len(self.places), self.form.size
        out = zeros(p, "value first second bound part", element=(n,), half=(n,), spread=(n, n))
        near: list[list[KinkRows]] = [[] for _ in self.places]
        for rows, X, codes, counts in form.pieces(block):
            Z = form.margins(X, self.W)
            A = np.empty((counts.shape[0], 2 * p))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                column, terms, y = one.column, one.column.terms, one.signs(codes)
                z = y * Z[:, j]
                sum_values(out, j, one, self.W[j], z, counts)
                away = np.min([np.abs(z - t.threshold) for t in terms], axis=0)
                inside = np.flatnonzero(away <= self.reach[j])
                rest = counts.copy()
                rest[inside] = 0.0
                found = streamed_losses(terms, z, rest, self.reach[j], some=y > 0 if form.sided(k) else None)
                out["bound"][j] += found.bound
                out["part"][j] += found.part
                A[:, j], A[:, p + j] = y * found.slope, np.where(y > 0, found.slope, 0.0)
                places = np.full(inside.shape[0], block.number), rows.start + inside
                near[j].append(KinkRows(form.extended(X.dense(inside)), y[inside], counts[inside], *places))
                if column.kappa > 0:
                    R = form.extended(X.dense(slice(None))) * y[:, None] - one.centre
                    R *= np.sqrt(column.kappa * counts)[:, None]
                    out["spread"][j] += R.T @ R
            both = form.adjoint(X, A)
            out["element"] += both[:p]
            out["half"] += both[p:]
        out |= {f"near {j}": KinkRows.joined(parts) for j, parts in enumerate(near)}
        return out
