"""Stochastic descent over row blocks: epochs of single steps, then a pass that says how far they led."""

from __future__ import annotations

import math
import time
from collections.abc import Generator
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.census import Block, taken
from mdlearn.data.checks import Data
from mdlearn.data.features import LinearFeatures
from mdlearn.forms.history import State
from mdlearn.forms.margin import MarginForm
from mdlearn.forms.proof import Certificate
from mdlearn.forms.rounding import to_type
from mdlearn.forms.streamed_proof import Multipliers, certified
from mdlearn.solvers.sgd import SGD
from mdlearn.solvers.sgd_stream import Descent, advance, begin, restarted
from mdlearn.streaming.beginning import Begun
from mdlearn.streaming.newton import or_zero, seen_so_far
from mdlearn.streaming.passes import Passes

WIDTHS = 2.0 ** -np.arange(0, 12, 2)
"""Half widths of rounded kinks, in units of the largest: which multipliers make the best bound is not known before."""


def solve(engine: SGD, begun: Begun, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
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
    walk = Walk(engine, options, begun)
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


class Walk:
    """The steps on all columns.

    Parameters
    ----------
    engine : SGD
    options : dict
        Checked ones.
    begun : Begun
    """

    def __init__(self, engine: SGD, options: dict[str, Any], begun: Begun) -> None:
        self.engine, self.options, self.begun = engine, options, begun
        self.descents: list[Descent] = []

    def epoch(self, number: int, passes: Passes) -> Generator[None, None, bool]:
        """Steps over all blocks, one after the other."""
        for i, given in enumerate(passes.blocks):
            block = taken(given, self.begun.summary, i)
            if block is not None:
                form = self._form(block)
                self.descents = [self._advanced(form, j, number, block) for j in range(len(form.columns))]
            yield
        return True

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

    def _advanced(self, form: MarginForm, j: int, epoch: int, block: Block) -> Descent:
        column, n = form.columns[j], block.counts.shape[0]
        rng = np.random.default_rng([self.begun.call.seed, j, epoch, block.number])
        if len(self.descents) > j:
            return advance(self.descents[j], form, column, n, rng)
        start = begin(self.engine, self.options, form, column, self.begun.summary.n_rows, rng)
        try:
            return advance(start, form, column, n, rng)
        except ValueError:
            if self.options["eta0"] is not None:
                raise
            return advance(restarted(start, form, column), form, column, n, rng)

    def arrays(self) -> dict[str, np.ndarray]:
        """Where the steps have led, for a file."""
        return {
            name: np.array([getattr(one, name) for one in self.descents]) for name in ("w", "total", "eta0", "t0", "t")
        }

    def read(self, found: dict[str, np.ndarray]) -> None:
        """What `arrays` gave."""
        parts = zip(found["w"], found["total"], found["eta0"], found["t0"], found["t"], strict=True)
        self.descents = [Descent(w, total, float(eta0), int(t0), int(t)) for w, total, eta0, t0, t in parts]


def _judged(walk: Walk, begun: Begun, passes: Passes) -> tuple[list[Certificate], np.ndarray]:
    """Certificates with the best of some multipliers, from one pass for all."""
    form, p = begun.form, len(begun.form.columns)
    W = np.array([one.current for one in walk.descents]) if walk.descents else np.zeros((p, form.width + 1))
    held = to_type(W[:, : form.size], begun.summary.dtype).astype(np.float64)
    widths = [h * max((abs(t.threshold) for t in form.columns[0].column.terms), default=1.0) or h for h in WIDTHS]
    several = replace(form, columns=form.columns * len(widths))
    made = tuple(Multipliers(w, np.zeros_like(w), h) for h in widths for w in held)
    tol = passes.limits.tol
    work = certified(several, passes.blocks, begun.summary, np.tile(held, (len(widths), 1)), made, tol)
    found = passes.last(work) if passes.complete else None
    if found is None:  # nothing is known of these coefficients
        seen = [(math.inf, -math.inf, w) for w in held]
        best, held = seen_so_far(form, begun.summary, seen, tol)
    else:
        proven = [max(found[j::p], key=lambda one: one.lower_bound) for j in range(p)]
        best, held = or_zero(form, [(one.objective, one.lower_bound) for one in proven], held, tol)
    for j, one in enumerate(best):
        elapsed = time.perf_counter() - passes.limits.started
        passes.tell(State(passes.done, one.objective, one.lower_bound, one.gap, elapsed, j))
    return best, held
