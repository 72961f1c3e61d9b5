"""Multipliers over row blocks: where those of a column are from, and what they say in the sums of a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from mdlearn.data.row_blocks.summary import Block, SummarySums
from mdlearn.data.rows.scratch import ScratchPiece
from mdlearn.streaming.sums.streamed_form import StreamedForm, streamed_losses, term_rows

MOVED = "moved "
"""Begins the names of sums at multipliers that are no slopes at the point of the pass."""


@dataclass(frozen=True, eq=False)
class ExactMultipliers:
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
    exact: ExactMultipliers | None = None


MultiplierSources = Mapping[int, MultiplierSource]
"""Where the multipliers of some columns are from, by their places."""


def no_multipliers(form: StreamedForm, p: int, *names: str) -> SummarySums:
    """Sums of a pass to which `sum_multipliers` has added nothing; `names`: further ones of the size of the columns."""
    q = form.columns[0].n_portions
    shapes = {"part": (q,), **dict.fromkeys(("element", *names), (form.size,)), "half": (q, form.size)}
    found = SummarySums.zeros(p, "bound first second", **shapes)
    return SummarySums({MOVED + name: values for name, values in found.items()})


def sum_multipliers(
    out: SummarySums,
    form: StreamedForm,
    sources: MultiplierSources,
    block: Block,
    rows: slice,
    X: ScratchPiece,
    own: np.ndarray | None,
) -> None:
    """Add the bounds of multipliers to the sums of a pass; for "size", what the terms of their elements are in size.

    `rows`, `X`, `own`: a piece of the block, as `StreamedForm.pieces` yields it.
    """
    labels, counts, p, q = block.labels[rows], block.counts[rows], len(sources), form.columns[0].n_portions
    Z = form.margins(X, np.array([made.W for made in sources.values()] + [made.P for made in sources.values()]))
    A, sizes = np.empty((counts.shape[0], (1 + q) * p)), np.empty((counts.shape[0], p))
    for i, (k, made) in enumerate(sources.items()):
        one = form.columns[k]
        column, y = one.column, one.signs(labels)
        z, dz = one.margins(labels, y, Z[:, i]), y * Z[:, p + i]
        exact = None if made.exact is None else made.exact.within(block.number, rows)
        each = term_rows(column.terms, z, counts, own)
        found = streamed_losses(each, z.shape[0], made.h, dz, made.dh, exact)
        part, portions = one.portions(each, found.beta, labels, y, bounds=form.sided(k))
        centred = z + dz - one.mean_margin(made.W + made.P)
        weighted, pull = counts * centred, column.mean / column.total * counts
        pushed = found.slope - column.kappa * weighted + pull
        bound = found.bound + one.bound_by_targets(labels, pushed)
        for name, value in (("bound", bound), ("part", part), ("first", weighted.sum())):
            out[MOVED + name][i] += value
        out[MOVED + "second"][i] += weighted @ centred
        A[:, i], A[:, p + i :: p] = y * pushed, portions.T
        sizes[:, i] = np.abs(found.slope) + np.abs(column.kappa * weighted) + pull
    both = form.adjoint(X, A)
    out[MOVED + "element"] += both[:p]
    out[MOVED + "half"] += both[p:].reshape(q, p, form.size).swapaxes(0, 1)
    if MOVED + "size" in out:
        out[MOVED + "size"] += form.sizes(X, sizes)
