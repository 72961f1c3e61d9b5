"""Sums of a pass over row blocks: at a point, along a line, of all but some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields

import numpy as np

from mdlearn.data.row_blocks.summary import Block, SummarySums
from mdlearn.streaming.sums.multipliers import MultiplierSources, no_multipliers, sum_multipliers
from mdlearn.streaming.sums.streamed_form import StreamedColumn, StreamedForm, TermRows, streamed_losses, term_rows


def column_pass_sums(sums: SummarySums, i: int) -> dict[str, np.ndarray]:
    """Sums of one column, from the sums of a pass that have the columns first."""
    return {name: values[i] for name, values in sums.items() if isinstance(values, np.ndarray)}


def add_to_pass_sums(
    out: SummarySums,
    i: int,
    one: StreamedColumn,
    w: np.ndarray,
    z: np.ndarray,
    counts: np.ndarray,
    each: Sequence[TermRows],
) -> np.ndarray:
    """Add the losses and moments at margins z of w to the sums of a pass; return z less its mean.

    `each`: the rows as the terms have them.
    """
    centred = z - one.mean_margin(w)
    weighted = counts * centred
    out["value"][i] += sum(own.term.value(own.z, own.counts) for own in each)
    out["first"][i] += weighted.sum()
    out["second"][i] += weighted @ centred
    return centred


@dataclass(frozen=True, eq=False)
class PointPass:
    """Work of a pass: sums at a point, all that a Newton step needs, of some columns at one point each."""

    form: StreamedForm
    places: tuple[int, ...]  # which columns
    W: np.ndarray  # shape (p, size)
    h: np.ndarray  # shape (p,): widths of rounded kinks
    # of the same columns, multipliers that make another bound; empty: none
    sources: MultiplierSources = field(default_factory=dict)
    # whether sum_i c_i x'_i x'_i' is asked for as well, which the variance of every column is made of
    squared: bool = False

    def __call__(self, block: Block) -> SummarySums:
        """Sums over a block, all but the square with the columns first."""
        form, p, n = self.form, len(self.places), self.form.size
        q = form.columns[0].n_portions
        shapes = {"element": (n,), "drift": (n,), "half": (q, n), "part": (q,), "hessian": (n, n)}
        out = SummarySums.zeros(p, "value rounded bound first second inside", **shapes)
        if self.sources:
            out |= no_multipliers(form, p)
        if self.squared:
            out["square"] = np.zeros((n, n))
        for rows, X, labels, counts, own in form.pieces(block):
            if self.squared:
                form.add_square(out["square"], X, counts)
            Z = form.margins(X, self.W)
            A = np.empty((counts.shape[0], (2 + q) * p))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                column, y = one.column, one.signs(labels)
                z = one.margins(labels, y, Z[:, j])
                each = term_rows(column.terms, z, counts, own)
                found = streamed_losses(each, z.shape[0], self.h[j])
                part, portions = one.portions(each, found.beta, labels, y, bounds=form.sided(k))
                centred = add_to_pass_sums(out, j, one, self.W[j], z, counts, each)
                pushed = found.slope - column.kappa * counts * centred + (column.mean / column.total) * counts
                bound = found.bound + one.bound_by_targets(labels, pushed)
                given = {"inside": found.inside, "rounded": found.rounded, "bound": bound, "part": part}
                for name, value in given.items():
                    out[name][j] += value
                A[:, j], A[:, p + j], A[:, 2 * p + j :: p] = y * pushed, y * found.drift, portions.T
                form.add_square(out["hessian"][j], X, found.bend + column.kappa * counts)
            summed = form.adjoint(X, A)
            for i, name in enumerate(("element", "drift")):
                out[name] += summed[i * p : (i + 1) * p]
            out["half"] += summed[2 * p :].reshape(q, p, n).swapaxes(0, 1)
            if self.sources:
                sum_multipliers(out, form, self.sources, block, rows, X, own)
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
        out = SummarySums.zeros(p, "", slopes=self.lengths.shape, moments=(2,))
        for _, X, labels, counts, own in form.pieces(block):
            Z = form.margins(X, np.vstack([self.W, self.P]))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                y = one.signs(labels)
                z, dz = one.margins(labels, y, Z[:, j]), y * Z[:, p + j]
                centred, change = z - one.mean_margin(self.W[j]), dz - float(one.centre @ self.P[j])
                weighted = counts * change
                out["moments"][j] += [weighted @ centred, weighted @ change]
                for i, length in enumerate(self.lengths):
                    each = term_rows(one.column.terms, z + length * dz, counts, own)
                    found = streamed_losses(each, z.shape[0], self.h[j])
                    out["slopes"][j, i] -= found.slope @ dz
        return out


@dataclass(frozen=True, eq=False)
class GatherPassRows:
    """Rows near a kink that a pass gathers beside its sums, block after block.

    `y`, `labels`, `counts` of shape (N,); `block`, `row` (shape (N,), int): where they are; `own` (shape
    (N, 2 T)): weights by row of T terms, and shifts; (N, 0) without row terms.
    """

    X: np.ndarray  # shape (N, size): rows, with the constant of a bias
    y: np.ndarray
    labels: np.ndarray
    counts: np.ndarray
    block: np.ndarray
    row: np.ndarray
    own: np.ndarray

    @property
    def by_row(self) -> np.ndarray | None:
        """Their row terms, shape (2, T, N); None where there are none."""
        return np.array(np.split(self.own.T, 2)) if self.own.size else None

    def __add__(self, other: GatherPassRows) -> GatherPassRows:
        return GatherPassRows.joined([self, other])

    @classmethod
    def joined(cls, parts: list[GatherPassRows]) -> GatherPassRows:
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
        """Near rows; for the others bound and element; value and moments of all, and the variance's matrix.

        What targets add to bound and element by the variance, whatever the coefficients are, is that of all rows.
        """
        form, p, n = self.form, len(self.places), self.form.size
        q = form.columns[0].n_portions
        shapes = {"part": (q,), "element": (n,), "half": (q, n), "spread": (n, n)}
        out = SummarySums.zeros(p, "value first second bound", **shapes)
        near: list[list[GatherPassRows]] = [[] for _ in self.places]
        for rows, X, labels, counts, own in form.pieces(block):
            Z = form.margins(X, self.W)
            A = np.empty((counts.shape[0], (1 + q) * p))
            for j, k in enumerate(self.places):
                one = form.columns[k]
                column, y = one.column, one.signs(labels)
                z = one.margins(labels, y, Z[:, j])
                each = term_rows(column.terms, z, counts, own)
                add_to_pass_sums(out, j, one, self.W[j], z, counts, each)
                away = np.min([np.abs(mine.z - mine.term.threshold) for mine in each], axis=0)
                inside = np.flatnonzero(away <= self.reach[j])
                rest = counts.copy()
                rest[inside] = 0.0
                each = term_rows(column.terms, z, rest, own)
                found = streamed_losses(each, z.shape[0], self.reach[j])
                part, portions = one.portions(each, found.beta, labels, y, bounds=form.sided(k))
                out["bound"][j] += found.bound + one.bound_by_targets(labels, found.slope)
                out["part"][j] += part
                A[:, j], A[:, p + j :: p] = y * found.slope, portions.T
                if one.level is not None and column.kappa > 0:
                    off = labels - one.level
                    A[:, j] += column.kappa * counts * off
                    out["bound"][j] += 0.5 * column.kappa * float(counts @ (off * off))
                places = np.full(inside.shape[0], block.number), rows.start + inside
                held = form.extended(X.dense(inside)), y[inside], labels[inside], counts[inside]
                mine = np.empty((inside.shape[0], 0)) if own is None else own.reshape(-1, z.shape[0])[:, inside].T
                near[j].append(GatherPassRows(*held, *places, mine))
                if column.kappa > 0:
                    R = form.extended(X.dense(slice(None))) * y[:, None] - one.centre
                    R *= np.sqrt(column.kappa * counts)[:, None]
                    out["spread"][j] += R.T @ R
            both = form.adjoint(X, A)
            out["element"] += both[:p]
            out["half"] += both[p:].reshape(q, p, n).swapaxes(0, 1)
        out |= {f"near {j}": GatherPassRows.joined(parts) for j, parts in enumerate(near)}
        return out
