"""Certificate over row blocks: values and bounds of columns from sums, and a pass of their own.

Nothing of an engine's sums is part of a certificate.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Block, Summary, SummarySums
from mdlearn.streaming.sums.multipliers import MOVED, MultiplierSource, no_multipliers, sum_multipliers
from mdlearn.streaming.sums.pass_sums import add_to_pass_sums, column_pass_sums
from mdlearn.streaming.sums.row_terms import row_term_sums
from mdlearn.streaming.sums.streamed_form import StreamedForm, term_rows

ROUNDING_OF_SUMS = 1e-13
"""What is left of a sum that has to be 0, relative to its terms, that counts as rounding."""
ROW_TERMS = "row terms"
"""Name of the sums of weights and thresholds by row, over all rows, among those of columns."""
Tried = tuple[np.ndarray, tuple[MultiplierSource, ...]]
"""Coefficients of all columns, shape (p, size), and multipliers of each."""
Candidate = tuple[float, float, np.ndarray]
"""Objective and lower bound of a problem, in units of the form, and coefficients of its k columns, (k, size)."""


@dataclass(frozen=True, eq=False)
class CertificatePass:
    """Work of a certificate's pass over blocks: the objective at a model's coefficients, a bound from multipliers."""

    form: StreamedForm
    held: np.ndarray  # shape (p, size): coefficients whose objective is asked for, of all columns
    multipliers: tuple[MultiplierSource, ...] = ()  # empty: no bound is asked for

    def __call__(self, block: Block) -> SummarySums:
        """Value and moments at `held`; what the dual's value at the multipliers is made of."""
        form, p = self.form, len(self.form.columns)
        out = SummarySums.zeros(p, "value first second")
        if self.multipliers:
            out |= no_multipliers(form, p, "size")
        proven_by_row = None if not self.multipliers else form.by_row
        squares = None if proven_by_row is None else proven_by_row.squares(block)
        for rows, X, labels, counts, own in form.pieces(block):
            Z = form.margins(X, self.held)
            for j, one in enumerate(form.columns):
                z = one.margins(labels, one.signs(labels), Z[:, j])
                each = term_rows(one.column.terms, z, counts, own)
                add_to_pass_sums(out, j, one, self.held[j], z, counts, each)
            if own is not None and squares is not None:
                out[ROW_TERMS] = out.get(ROW_TERMS, 0.0) + row_term_sums(own, counts, squares[rows])
            if self.multipliers:
                sum_multipliers(out, form, dict(enumerate(self.multipliers)), block, rows, X, own)
        return out


def certificate_candidates(
    form: StreamedForm, blocks: RowBlocks, summary: Summary, tried: Sequence[Tried]
) -> Generator[None, None, list[list[Candidate]]]:
    """Certificates over row blocks: objectives and bounds of every column, from one pass, for all that was tried."""
    several = replace(form, columns=form.columns * len(tried))
    held, made = np.concatenate([held for held, _ in tried]), tuple(one for _, sources in tried for one in sources)
    sums = yield from blocks.fold(CertificatePass(several, held, made), summary, proof=True)
    if form.by_row is not None:
        form.by_row.check_sums(sums.pop(ROW_TERMS))
    found: list[list[Candidate]] = [[] for _ in form.columns]
    for i, one in enumerate(made):
        j, mine = i % len(found), column_pass_sums(sums, i)
        lower, e = bound_of_sums(form, j, one.W + one.P, mine, MOVED)
        if (np.abs(e) > ROUNDING_OF_SUMS * mine[MOVED + "size"])[form.punished == 0].any():
            lower = -math.inf
        found[j].append((objective_of_sums(form, j, held[i], mine), lower, held[i : i + 1]))
    return found


def objective_of_sums(
    form: StreamedForm, j: int, w: np.ndarray, sums: Mapping[str, np.ndarray | float], loss: str = "value"
) -> float:
    """Objective of one column in a streamed certificate, from its sums at w; `loss` names those of the losses."""
    one = form.columns[j]
    column, total, first = one.column, one.column.total, float(sums["first"])
    value = 0.5 * float(form.punished @ (w * w)) + float(sums[loss])
    value -= column.mean * (one.mean_margin(w) + first / total)
    return value + 0.5 * column.kappa * (float(sums["second"]) - first * first / total)


@dataclass(frozen=True, eq=False)
class ZeroPass:
    """Work of a pass that says what a certificate of w = 0 needs, where that takes the rows: targets, or row terms."""

    form: StreamedForm

    def __call__(self, block: Block) -> SummarySums:
        """Value and moments; with row terms, masses of the terms, and the squares of their shifts."""
        form, by_row = self.form, self.form.by_row
        out = CertificatePass(form, np.zeros((len(form.columns), form.size)))(block)
        if by_row is not None:
            own = by_row.checked(block)
            signs = [one.signs(block.labels)[:, None] == one.possible_signs for one in form.columns]
            out["masses"] = np.array([(own[0] * block.counts) @ of for of in signs])
            squares = block.counts @ np.square(own[1]).max(axis=0, initial=0.0)
            out["shifts"] = np.full(len(form.columns), squares)
            out[ROW_TERMS] = row_term_sums(own, block.counts, by_row.squares(block))
        return out


def form_at_zero(form: StreamedForm, sums: SummarySums) -> StreamedForm:
    """Form of a regression or with row terms, with its streamed certificate of w = 0, from the sums of a `ZeroPass`.

    Multipliers 0 make a bound unless a mean pulls at them.
    """
    by_row = None if form.by_row is None else replace(form.by_row, first=sums.pop(ROW_TERMS))
    columns = []
    for j, one in enumerate(form.columns):
        column, mine = one.column, column_pass_sums(sums, j)
        if "masses" in mine:
            there = np.isin(one.possible_signs, column.y)
            one = replace(one, masses=np.ascontiguousarray(mine["masses"][:, there]))
        floor = sum(float(term.bound(np.zeros(mass.shape), mass)) for term, mass in zip(column.terms, one.term_masses))
        squares = float(mine["second"] if one.level is not None else 0.0) + float(mine.get("shifts", 0.0))
        away = 0.0 if form.bias == "free" else one.level or 0.0
        value = objective_of_sums(form, j, np.zeros(form.size), mine)
        known = value, -math.inf if column.mean > 0 else floor, math.hypot(math.sqrt(squares / column.total), away)
        columns.append(replace(one, zero=known))
    return replace(form, columns=tuple(columns), by_row=by_row)


def bound_of_sums(
    form: StreamedForm, j: int, w: np.ndarray, sums: Mapping[str, np.ndarray], which: str = ""
) -> tuple[float, np.ndarray]:
    """Bound of one column in a streamed certificate, a dual value from sums, and its element."""
    one = form.columns[j]
    column, first = one.column, float(sums[f"{which}first"])
    variance = 0.5 * column.kappa * (float(sums[f"{which}second"]) - first * first / column.total)
    # Multipliers of the variance add up to 0.
    element = sums[f"{which}element"] + column.kappa * first * one.centre
    bound = float(sums[f"{which}bound"]) + column.kappa * first * (one.level or 0.0)
    return dual_bound_of_sums(form, j, w, bound - variance, sums[f"{which}part"], element, sums[f"{which}half"])


def dual_bound_of_sums(
    form: StreamedForm, j: int, w: np.ndarray, value: float, part: np.ndarray, e: np.ndarray, half: np.ndarray
) -> tuple[float, np.ndarray]:
    """Dual value in a streamed certificate, from sums: a lower bound in units of the form, and its element.

    With a free bias and a ridge, alphas have to add up to 0. Multipliers of a variance make up for what they lack, and
    their value is exact. Without one, those that pull to one side are scaled by s <= 1: a
    concave function of s is at least what lies between its values at 0 and 1. So what passes find on their way is what
    a certificate finds again.

    `j`: the column; `w` (shape (size,)): it has the variance's margins; `value`, `part` (shape (q,)): what all
    multipliers say from below but for the ridge's share, and those of the loss in each of its portions; `e` (shape
    (size,)), `half` (shape (q, size)): sum_i alpha_i x'_i, of all rows, and the part of these portions.
    """
    one, R, excess = form.columns[j], form.punished, float(e[-1])
    column = one.column
    if form.bias == "free" and form.ridge > 0 and column.kappa > 0 and one.turn[-1] > 0:
        t = excess / float(one.turn[-1])
        value -= t * (float(w @ one.turn) + 0.5 * t * float(one.turn[-1]) / column.kappa)
        e = e - t * one.turn
    elif form.sided(j):
        value, e = balance_bias(form, j, value, part, e, half)
    return value - 0.5 * float(R @ (e * e)), e


def balance_bias(
    form: StreamedForm, j: int, value: float, part: np.ndarray, e: np.ndarray, half: np.ndarray
) -> tuple[float, np.ndarray]:
    """Scale one portion of the multipliers in a streamed certificate such that a free bias has slope 0.

    Arguments as for `dual_bound_of_sums`; returns `value` and `e` of the multipliers that are left, -inf where no
    scale will do.
    """
    one, excess = form.columns[j], float(e[-1])
    if excess == 0:
        return value, e
    heavy, column = int(excess > 0), one.column
    each = list(zip(column.terms, one.term_masses))
    if one.level is None:
        mine = half[0] if heavy else e - half[0] - column.mean * one.centre
        own = float(part[0]) if heavy else value - float(part[0])
        each = [(term, mass[column.y == (1.0 if (term.side > 0) == heavy else -1.0)]) for term, mass in each]
    else:
        mine, own = half[1 - heavy], float(part[1 - heavy])
        each = [(term, mass) for term, mass in each if int(term.side > 0) == heavy]
    less = excess / float(mine[-1]) if mine[-1] != 0 else math.inf
    if not 0 <= less <= 1:
        return -math.inf, e
    zero = sum(term.bound(np.zeros(mass.shape), mass) for term, mass in each)
    return value + less * (zero - own), e - less * mine


def tangent_of_sums(
    form: StreamedForm, j: int, w: np.ndarray, sums: Mapping[str, np.ndarray], which: str = ""
) -> tuple[float, np.ndarray]:
    """Value and slope at w of what lies below one column's objective without its coefficient terms.

    In the place of the losses are their tangents, by the multipliers at w; ridge, variance and mean are whole. `which`:
    begins the names of the sums. -inf where the multipliers cannot meet the condition of a free bias.
    """
    one, first = form.columns[j], float(sums[f"{which}first"])
    bound, e = float(sums[f"{which}bound"]), sums[f"{which}element"] + one.column.kappa * first * one.centre
    losses = loss_tangent_of_sums(form, j, w, sums, which)
    value = objective_of_sums(form, j, w, {"value": losses, "first": first, "second": sums[f"{which}second"]})
    if form.sided(j):
        targets = one.column.kappa * first * (one.level or 0.0)
        moved, balanced = balance_bias(form, j, bound + targets, sums[f"{which}part"], e, sums[f"{which}half"])
        value += moved - bound - targets + float((e - balanced) @ w)
        e = balanced
    return value, form.punished * w - e


def loss_tangent_of_sums(
    form: StreamedForm, j: int, w: np.ndarray, sums: Mapping[str, np.ndarray], which: str = ""
) -> float:
    """Value at w of the tangents of one column's losses in a streamed certificate, by the multipliers there."""
    one, first, second = form.columns[j], float(sums[f"{which}first"]), float(sums[f"{which}second"])
    column, mean = one.column, one.mean_margin(w)
    found = float(sums[f"{which}bound"]) - float(w @ sums[f"{which}element"])
    return found - column.kappa * (second + mean * first) + column.mean * (mean + first / column.total)
