"""Streamed form, a margin form as sums over row blocks: value, gradient, Hessian and bound of columns in one pass.

Multipliers are functions of the margins, so that nothing is kept per row::

    beta_ti = slope of term t at z_i (of a kink: of its rounding of width h),  sigma_i = -kappa c_i (z_i - mean z)

The mean margin is known before a pass, from the mean row of the class sums. With x' = (x, 1) where there is a bias,
alpha_i = y_i (sum_t side_t beta_ti + sigma_i + a c_i / m) and e = sum_i alpha_i x'_i, the gradient of the objective is
R w' - e (R: 1 where a coefficient is punished), and for a ridge of 1::

    D = sum_ti bound_t(beta_ti) - kappa/2 sum_i c_i (z_i - mean z)^2 - 1/2 |e|^2

is a lower bound of the objective (the dual of SPEC section 2), with e = 0 in a free bias's place. In a
regression y_i is 1 and z_i is f_i less a target t_i; sum_i alpha_i t_i is part of D then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from mdlearn.data.row_blocks.summary import Block, Summary
from mdlearn.data.rows.rows import steps
from mdlearn.data.rows.scratch import Room, ScratchPiece
from mdlearn.forms.losses import Term, Terms
from mdlearn.forms.margin import Column
from mdlearn.forms.penalised.blocks import CoefficientBlocks
from mdlearn.forms.penalised.coefficient_terms import CoefficientTerm, NormTerm
from mdlearn.forms.row_terms import RowTerms
from mdlearn.streaming.sums.row_terms import BlockRowTerms

KINK_REACH = 2.0
"""Rows within this many half widths of a kink may change sides when it is rounded no more."""
ENTRIES_PER_PIECE, FEW_ROWS = 1 << 18, 512
"""Entries of the rows that are worked on at once; rows that are worth eight times as many."""

SIGNS = np.array([1.0, -1.0])


def streamed_form_refusal(terms: Terms) -> str:
    """Reason why a streamed form cannot hold what an objective declares; empty when it can."""
    kinds = {term.kind for term in terms.loss if term.weight > 0}
    if "constraint" in kinds:
        return "a loss of infinite weight is a constraint of every single row; give it a finite weight"
    if "hinge" in kinds and terms.ridge == 0 and not terms.penalty > 0 and not _acting(terms):
        return "a hinge loss needs the squared norm, or a NormTerm, beside it; give it one"
    return ""


def _acting(terms: Terms) -> tuple[CoefficientTerm, ...]:
    """Return the coefficient terms of a streamed form but for norms of weight 0."""
    return tuple(one for one in terms.coefficient_terms if not isinstance(one, NormTerm) or np.any(one.weight))


def check_streamed_form_refusal(name: str, reason: str) -> None:
    """Raise ValueError where there is a reason why the objective of a name has no streamed form."""
    if reason:
        raise ValueError(f"objective {name!r} needs X and y, not row blocks: {reason}")


@dataclass(frozen=True, eq=False)
class StreamedColumn:
    """Column of a streamed form: one binary problem."""

    positive: int  # place of the class whose sign is +1
    column: Column  # weights and terms, over rows that stand for those of each sign
    centre: np.ndarray  # shape (n,): sum_i c_i y_i x'_i / m: its product with coefficients is the mean margin
    # shape (n,): sum_i c_i y_i (y_i - mean y) x'_i: what multipliers c (y - mean y) of the variance add up to
    turn: np.ndarray
    level: float | None = None  # mean of the targets of a regression; `labels` of rows are their targets then
    # where these take a pass: objective and lower bound at w = 0, and size of the residuals where steps begin
    zero: tuple[float, float, float] | None = None
    # shape (T, rows of `column`): sums of the counts times the weights by row of each term; None without row terms
    masses: np.ndarray | None = None

    def signs(self, labels: np.ndarray) -> np.ndarray:
        """+1 for rows of its class or label, -1 for all others; +1 of unknown labels and in a regression."""
        if self.level is not None:
            return np.ones(labels.shape[0])
        has = labels[:, self.positive] if labels.ndim > 1 else (labels == self.positive) | (labels < 0)
        return np.where(has, 1.0, -1.0)

    @property
    def possible_signs(self) -> np.ndarray:
        """Signs that rows may have; no row may have one of them, which `column` is without then."""
        return SIGNS if self.level is None else SIGNS[:1]

    def margins(self, labels: np.ndarray, y: np.ndarray, f: np.ndarray) -> np.ndarray:
        """z at decision values: y f, in a regression f less the targets."""
        return y * f if self.level is None else f - labels

    def mean_margin(self, w: np.ndarray) -> float:
        """Mean of z at coefficients, from sums of the first pass."""
        return float(self.centre @ w) - (0.0 if self.level is None else self.level)

    def bound_by_targets(self, labels: np.ndarray, alpha: np.ndarray) -> float:
        """Share of the targets in a lower bound from multipliers of z: sum_i alpha_i t_i; 0 without targets."""
        return 0.0 if self.level is None else float(alpha @ labels)

    @property
    def term_masses(self) -> np.ndarray:
        """Sums of the counts times the weights by row of each term, over the rows of each sign, (T, rows of column)."""
        own = self.column.counts
        return np.broadcast_to(own, (len(self.column.terms), *own.shape)) if self.masses is None else self.masses

    @property
    def averaged(self) -> Column:
        """Its `column`, whose terms have the mean weights by row of each sign."""
        own = self.column
        return own if self.masses is None else replace(own, by_row=RowTerms(self.masses / own.counts))

    @property
    def at_zero(self) -> float:
        """Objective at w = 0."""
        return self.column.at_zero if self.zero is None else self.zero[0]

    @property
    def bound_at_zero(self) -> float:
        """Lower bound of the objective from multipliers 0."""
        return self.column.bound_at_zero if self.zero is None else self.zero[1]

    @property
    def unit(self) -> float:
        """Size of margins: 1 for signs, as thresholds are; that of the first residuals in a regression."""
        return 1.0 if self.zero is None else self.zero[2] or 1.0

    @property
    def widest_kink(self) -> float:
        """Half width of rounded kinks within which about all rows are where steps begin."""
        most = max((abs(term.threshold) for term in self.column.terms), default=0.0)
        return 2.0 * (most if self.zero is None else most + self.zero[2]) or 2.0

    @property
    def n_portions(self) -> int:
        """Number of portions of the multipliers that sums are made of on their own, see `portions`."""
        return 1 if self.level is None else 2

    def portions(
        self,
        rows: Sequence[TermRows],
        beta: Iterable[np.ndarray],
        labels: np.ndarray,
        y: np.ndarray,
        *,
        bounds: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Portions of the loss's multipliers that may be made less to meet the condition of a free bias.

        One portion for signs: those whose share of alpha is positive. In a regression two: those of terms of either
        side. Returns what they say from below, shape (q,), zeros unless `bounds` are asked for; and their shares of
        alpha in every row, shape (q, n).
        """
        if self.level is None:
            told, alpha = 0.0, np.zeros((1, y.shape[0]))
            for own, mine in zip(rows, beta):
                some = own.term.side * y > 0
                alpha += np.where(some, mine, 0.0)
                told += own.take(some).bound(mine[some]) if bounds else 0.0
            return np.array([told]), alpha
        part, alpha = np.zeros(2), np.zeros((2, y.shape[0]))
        for own, mine in zip(rows, beta):
            side = own.term.side
            i = int(side < 0)
            alpha[i] += side * mine
            part[i] += own.bound(mine) + side * float(mine @ labels) if bounds else 0.0
        return part, alpha

    @property
    def kinked(self) -> bool:
        """Whether its loss has kinks, which passes round off."""
        return any(term.kind == "hinge" for term in self.column.terms)


@dataclass(frozen=True, eq=False)
class StreamedForm:
    """Margin form over row blocks, of which classes, weights and sums are known."""

    columns: tuple[StreamedColumn, ...]
    bias: str
    ridge: float  # 0 or 1
    unit: float
    width: int  # features of a row
    penalty: float  # factor of the lengths of all coefficients: L1, or L2,1 where columns are one problem
    coefficient_terms: tuple[CoefficientTerm, ...]
    by_row: BlockRowTerms | None = None  # None: terms are the same in all rows

    @classmethod
    def of(cls, terms: Terms, summary: Summary, bias: str, by_row: BlockRowTerms | None = None) -> StreamedForm:
        """Write an objective's terms: one column for two classes or targets, one per class against the rest else."""
        columns = [] if summary.level is None else [_column_of_targets(terms, summary, summary.level, bias)]
        for positive in summary.positives:
            (mine, moment), total, whole = summary.of_positive(positive), summary.total, summary.moment
            masses = np.array([mine, total - mine])
            there = masses > 0  # no row may have a label, or all
            column = Column(SIGNS[there], masses[there], terms.variance, terms.mean, terms.loss)
            centre = (2.0 * moment - whole) / total
            if bias != "none":
                centre, whole = np.append(centre, column.label_mean), np.append(whole, total)
            turn = whole - (column.label_mean * total) * centre
            columns.append(StreamedColumn(positive, column, centre, turn))
        width = summary.n_features
        rest = terms.penalty, _acting(terms), by_row
        return cls(tuple(columns), bias, terms.ridge, terms.unit, width, *rest)

    @property
    def penalised(self) -> bool:
        """Whether there are terms of the coefficients beside the ridge."""
        return self.penalty > 0 or bool(self.coefficient_terms)

    @property
    def proximal(self) -> bool:
        """Whether Newton steps alone do not lead to the minimum: beside terms of the coefficients, or of mixed losses.

        Those are hinges and others.
        """
        kinds = self.columns[0].column.kinds
        return self.penalised or ("hinge" in kinds and len(kinds) > 1)

    def coefficient_blocks(self, k: int) -> CoefficientBlocks:
        """The coefficient terms over k columns as one problem."""
        penalty = np.full(self.width + (self.bias == "regularized"), self.penalty)
        return CoefficientBlocks(self.coefficient_terms, penalty, (self.size, k), self.width)

    @property
    def size(self) -> int:
        """Coefficients of a column, with the bias where there is one."""
        return self.width + (self.bias != "none")

    @property
    def punished(self) -> np.ndarray:
        """R: the diagonal of the ridge, shape (size,)."""
        R = np.full(self.size, self.ridge)
        if self.bias == "free":
            R[-1] = 0.0
        return R

    def first_coefficients(self) -> np.ndarray:
        """Where steps begin, shape (p, size): at 0; in a regression with a free bias, that is the mean target."""
        W = np.zeros((len(self.columns), self.size))
        if self.bias == "free":
            W[:, -1] = [one.level or 0.0 for one in self.columns]
        return W

    def sided(self, j: int) -> bool:
        """Whether the condition of a free bias is met by multipliers of the loss: by less of one portion.

        A variance of margins of both signs meets it, one of residuals or of margins of one sign does not. Without ridge
        and penalty a regularized bias is free.
        """
        one = self.columns[j]
        bounded, alike = self.ridge > 0 or self.penalised, one.level is not None or one.column.y.shape[0] == 1
        free = self.bias == "free" or (self.bias == "regularized" and self.ridge == 0 and self.penalty == 0)
        return free and bounded and (one.column.kappa == 0 or alike)

    def pieces(self, block: Block) -> Iterator[tuple[slice, ScratchPiece, np.ndarray, np.ndarray, np.ndarray | None]]:
        """Yield the rows of a block that are worked on at once: where they are, features, labels, counts, row terms."""
        own = None if self.by_row is None else self.by_row(block)
        room, n = Room(), max(1, ENTRIES_PER_PIECE // self.width, min(FEW_ROWS, 8 * ENTRIES_PER_PIECE // self.width))
        for rows in steps(block.counts.shape[0], n):
            mine = None if own is None else own[..., rows]
            yield rows, block.X.piece(rows, room), block.labels[rows], block.counts[rows], mine

    def margins(self, P: ScratchPiece, W: np.ndarray) -> np.ndarray:
        """Decision values of some rows, shape (n, columns of W)."""
        Z = P.dot(W[:, : self.width])
        return Z if self.bias == "none" else Z + W[:, -1]

    def extended(self, X: np.ndarray) -> np.ndarray:
        """Rows with the constant of a bias."""
        return X if self.bias == "none" else np.hstack([X, np.ones((X.shape[0], 1))])

    def adjoint(self, P: ScratchPiece, A: np.ndarray) -> np.ndarray:
        """sum_i A_ij x'_i, shape (columns of A, size)."""
        return self._bordered(P.adjoint(A), A)

    def sizes(self, P: ScratchPiece, A: np.ndarray) -> np.ndarray:
        """sum_i A_ij |x'_i|, shape (columns of A, size)."""
        return self._bordered(P.sizes(A), A)

    def _bordered(self, found: np.ndarray, A: np.ndarray) -> np.ndarray:
        return found if self.bias == "none" else np.hstack([found, A.sum(axis=0)[:, None]])

    def add_square(self, H: np.ndarray, P: ScratchPiece, weights: np.ndarray) -> None:
        """Add sum_i weights_i x'_i x'_i' to H, shape (size, size)."""
        d = self.width
        P.add_square(H[:d, :d], weights)
        if self.bias != "none":
            border = P.adjoint(weights[:, None])[0]
            H[d, :d] += border
            H[:d, d] += border
            H[d, d] += weights.sum()


def _column_of_targets(terms: Terms, summary: Summary, level: float, bias: str) -> StreamedColumn:
    """Column of a regression in a streamed form; what is known at w = 0 takes a pass of its own."""
    total = summary.total
    loss = Column(np.ones(1), np.array([total]), terms.variance, terms.mean, terms.loss, offset=np.array([level]))
    centre = summary.moments[0] / total
    if bias != "none":
        centre = np.append(centre, 1.0)
    return StreamedColumn(0, loss, centre, np.zeros(centre.shape), level)


class TermRows(NamedTuple):
    """Rows of a streamed form as one of its loss terms has them."""

    term: Term
    z: np.ndarray  # shape (n,): margins, less what its threshold is higher by in a row
    counts: np.ndarray  # shape (n,): times its weights by row
    shift: np.ndarray | None = None  # shape (n,): what its threshold is higher by; None: nothing

    def take(self, rows: np.ndarray) -> TermRows:
        """Return some of them."""
        return TermRows(self.term, self.z[rows], self.counts[rows], None if self.shift is None else self.shift[rows])

    def bound(self, beta: np.ndarray) -> float:
        """Return the contribution of multipliers of the term to a lower bound."""
        told = self.term.bound(beta, self.counts)
        return told if self.shift is None else told + self.term.side * float(self.shift @ beta)


def term_rows(terms: tuple[Term, ...], z: np.ndarray, counts: np.ndarray, own: np.ndarray | None) -> list[TermRows]:
    """Return rows of a streamed form at margins z as each term has them; `own`: their row terms, shape (2, T, n)."""
    if own is None:
        return [TermRows(term, z, counts) for term in terms]
    return [TermRows(term, z - shift, weight * counts, shift) for term, weight, shift in zip(terms, *own)]


@dataclass(frozen=True, eq=False)
class StreamedLosses:
    """Losses of a streamed form's column at some margins.

    `rounded`, `bound`: sum of the losses with rounded kinks, and what the multipliers `beta` of all terms say from
    below; `slope`, `bend`, `drift` (shape (n,)): sum_t side_t beta_t, the second derivative, and what the
    slope changes by per unit of h.
    """

    rounded: float
    bound: float
    beta: list[np.ndarray]
    slope: np.ndarray
    bend: np.ndarray
    drift: np.ndarray
    inside: int  # how many margins are within `KINK_REACH` h of a kink


def streamed_losses(
    rows: Sequence[TermRows],
    n: int,
    h: float,
    dz: np.ndarray | None = None,
    dh: float = 0.0,
    exact: tuple[np.ndarray, np.ndarray] | None = None,
) -> StreamedLosses:
    """Evaluate all loss terms of a streamed form's column.

    `rows`: n of them as all terms have them; `h`: half the width of what is rounded about a kink; `dz` (shape (n,),
    optional): multipliers are moved along the second derivatives by this, and kept within their bounds; `dh`: and along
    their derivative in h by this; `exact`: multipliers of some rows, shape (T, len(places)), in place of slopes.
    """
    rounded, bound, found = 0.0, 0.0, list[np.ndarray]()
    slope, bend, drift, inside = np.zeros(n), np.zeros(n), np.zeros(n), 0
    for t, (term, z, counts, _) in enumerate(rows):
        if term.kind == "hinge":
            s, caps = term.side * (term.threshold - z), term.weight * counts
            near = np.abs(s) < h
            share = np.clip((s + h) * (0.5 / h), 0.0, 1.0)
            beta, curve = caps * share, np.where(near, caps * (0.5 / h), 0.0)
            rounded += float(caps @ np.where(near, (s + h) * (0.5 * share), np.maximum(s, 0.0)))
            drift -= term.side * curve * (s / h)
            inside += int(np.count_nonzero(np.abs(s) <= KINK_REACH * h))
        else:
            beta, curve = term.slopes(z, counts), term.curvatures(z, counts)
            rounded += term.value(z, counts)
        if dz is not None:
            turn = -term.side * dz
            if dh != 0:
                turn -= term.side * (term.threshold - z) * (dh / h)
            beta = np.clip(beta + curve * turn, 0.0, term.caps(counts))
        if exact is not None:
            beta[exact[0]] = exact[1][t]
        bound += rows[t].bound(beta)
        found.append(beta)
        slope += term.side * beta
        bend += curve
    return StreamedLosses(rounded, bound, found, slope, bend, drift, inside)
