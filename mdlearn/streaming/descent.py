"""Stochastic descent over row blocks: epochs of single steps, then a pass that says how far they led."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import fields, replace
from typing import Any

import numpy as np

from mdlearn.data.features.spaces import LinearFeatures
from mdlearn.data.row_blocks.summary import Block, taken
from mdlearn.data.validation import Data
from mdlearn.forms.certificates.float32 import to_type
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.progress import State
from mdlearn.forms.proof import Certificate, judge
from mdlearn.solvers.base import Solver
from mdlearn.streaming.first_passes import StreamedProblem
from mdlearn.streaming.passes import Passes
from mdlearn.streaming.sums.certificate import MultiplierSource, Values, certified, objective_of
from mdlearn.streaming.sums.margins import StreamedForm

WIDTHS = 2.0 ** -np.arange(0, 12, 2)
"""Half widths of rounded kinks, in units of the largest: which multipliers make the best bound is not known before."""


def solve(engine: Solver, begun: StreamedProblem, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
    """Certificates of all columns and their coefficients after the epochs, or as many as limits allow.

    A block's rows stand for all: their weights are scaled to the sum of all, and mean and variance of the margins are
    those of pairs of its rows. A row is met once in an epoch, in random order within its block.

    Raises
    ------
    ValueError
        For a problem that the engine cannot take, and steps that diverge.
    """
    options = engine.check_options(begun.call.options)
    if begun.summary.mapping is not None:
        raise ValueError(
            f"solver {engine.name!r} takes rows of blocks as they are, no features made of them; leave out solver"
        )
    passes.progress.problems = len(begun.form.columns)
    walk = StreamedDescent(engine, options, begun)
    found = passes.resume()
    if found:
        walk.read(found)
    try:
        most = passes.limits.max_iter or math.inf
        while passes.done < options["epochs"] and not passes.stopped:
            if passes.done >= most:
                passes.stopped = f"max_iter = {most} reached"
            elif passes.in_time(walk.epoch(passes.done, passes), after=2) is not None:
                passes.done += 1
                passes.keep(walk.arrays())
        certificates, held = _judged(walk, begun, passes)
        passes.show_end(certificates)
        return certificates, held
    finally:
        passes.progress.close()


class StreamedDescent:
    """The steps on all columns.

    Parameters
    ----------
    engine : Solver
        One that `takes_blocks`.
    options : dict
        Checked ones.
    begun : StreamedProblem

    Attributes
    ----------
    best, best_W : ndarray of shape (p,), (p, size)
        Smallest objective at the end of an epoch, or at w = 0, and where.
    open_W : ndarray of shape (p, size) or None
        The end of an epoch whose objective is not known.
    """

    def __init__(self, engine: Solver, options: dict[str, Any], begun: StreamedProblem) -> None:
        self.engine, self.options, self.begun = engine, options, begun
        self.descents: list[Any] = []
        form = begun.form
        self.best = np.array([one.column.at_zero for one in form.columns])
        self.best_W = np.zeros((len(form.columns), form.size))
        self.open_W: np.ndarray | None = None

    def epoch(self, number: int, passes: Passes) -> Generator[None, None, bool]:
        """Steps over all blocks, one after the other; on its way, the objective where the last epoch ended."""
        form = self.begun.form
        self.open_W = self.held() if self.descents else None
        values, sums = None if self.open_W is None else Values(form, self.open_W), None
        for i, given in enumerate(passes.blocks):
            block = taken(given, self.begun.summary, i)
            if block is not None:
                if values is not None:
                    sums = values(block) if sums is None else sums + values(block)
                part = self._form(block)
                self.descents = [self._advanced(part, j, number, block) for j in range(len(part.columns))]
            yield
        if self.open_W is not None and sums is not None:
            for j, w in enumerate(self.open_W):
                value = objective_of(form, j, w, sums)
                if value < self.best[j]:
                    self.best[j], self.best_W[j] = value, w
            self.open_W = None
        return True

    def held(self) -> np.ndarray:
        """Where the steps have led, as a model holds it."""
        W = np.array([one.current for one in self.descents])[:, : self.begun.form.size]
        return to_type(W, self.begun.summary.dtype).astype(np.float64)

    def _form(self, block: Block) -> MarginForm:
        """The problem over a block's rows."""
        summary, n = self.begun.summary, block.counts.shape[0]
        counts = block.counts * (summary.total / block.total)
        data = Data(block.X, block.codes, counts, summary.classes, np.arange(n), n, None)
        form = self.begun.task.form(data, LinearFeatures(block.X), self.begun.call.bias, self.begun.params)
        refusal = self.engine.refusal(form)
        if refusal is not None:
            raise ValueError(f"solver {self.engine.name!r} cannot take this problem: {refusal}; leave out solver")
        assert isinstance(form, MarginForm)
        return form

    def _advanced(self, form: MarginForm, j: int, epoch: int, block: Block) -> Any:
        column, engine = form.columns[j], self.engine
        rng = np.random.default_rng([self.begun.call.seed, j, epoch, block.number])
        known = len(self.descents) > j
        n_rows = self.begun.summary.n_rows
        state = self.descents[j] if known else engine.begin_blocks(form, column, self.options, n_rows, rng)
        return engine.over_block(state, form, column, rng)

    def _names(self) -> list[str]:
        """Of what lies between two blocks."""
        return [field.name for field in fields(self.engine.block_state)]

    def arrays(self) -> dict[str, np.ndarray]:
        """Where the steps have led, for a file."""
        found = {name: np.array([getattr(one, name) for one in self.descents]) for name in self._names()}
        return {**found, "best": self.best, "best_W": self.best_W}

    def read(self, found: dict[str, np.ndarray]) -> None:
        """What `arrays` gave."""
        names = [name for name in self._names() if name in found]
        self.descents = [
            self.engine.block_state(**{name: one if one.ndim else one.item() for name, one in zip(names, values)})
            for values in zip(*(found[name] for name in names), strict=True)
        ]
        self.best, self.best_W = found["best"].copy(), found["best_W"].copy()


def _judged(walk: StreamedDescent, begun: StreamedProblem, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
    """Certificates of the best coefficients with the best of some multipliers, from one pass for all."""
    form, p, tol = begun.form, len(begun.form.columns), passes.limits.tol
    groups = [walk.held()] if walk.descents else []
    groups += [] if walk.open_W is None else [walk.open_W]
    widths = [h * max((abs(t.threshold) for t in form.columns[0].column.terms), default=1.0) or h for h in WIDTHS]
    seen = [_known(walk, form, j) for j in range(p)]
    if groups and passes.complete:
        held = np.concatenate([np.tile(group, (len(widths), 1)) for group in groups])
        made = tuple(MultiplierSource(w, np.zeros_like(w), h) for group in groups for h in widths for w in group)
        several = replace(form, columns=form.columns * (len(groups) * len(widths)))
        told = passes.last(certified(several, passes.blocks, begun.summary, held, made, tol)) or []
        for i, one in enumerate(told):  # none where time does not suffice
            seen[i % p].append((one.objective, one.lower_bound, held[i]))
    found, W = [], np.zeros((p, form.size))
    for j, mine in enumerate(seen):
        least = min(mine, key=lambda one: one[0])
        W[j], lower, scale = least[2], max(one[1] for one in mine), mine[0][0]
        found.append(judge(least[0], lower, scale, False, tol))
        elapsed = time.perf_counter() - passes.limits.started
        passes.tell(State(passes.done, least[0], found[j].lower_bound, found[j].gap, elapsed, j))
    return found, W


def _known(walk: StreamedDescent, form: StreamedForm, j: int) -> list[tuple[float, float, np.ndarray]]:
    """Objective, bound and coefficients of w = 0 and of the best epoch: what is known without a pass.

    With a pull on the margins, multipliers of 0 say nothing.
    """
    column = form.columns[j].column
    unit, lower = form.unit * column.unit, form.columns[j].floor
    best = (unit * float(walk.best[j]), -math.inf, walk.best_W[j])
    return [(unit * column.at_zero, unit * lower, np.zeros(form.size)), best]
