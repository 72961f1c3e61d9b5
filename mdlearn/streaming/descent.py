"""Streamed descent over row blocks: epochs of single stochastic steps, then a pass that says how far they led."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import fields
from typing import Any

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.row_blocks.source import RowBlocks, plus
from mdlearn.data.row_blocks.summary import Block, Summary, SummarySums, block_checked_by_summary
from mdlearn.driver.checked_engine import CheckedEngine
from mdlearn.errors import call_with_error_notes, came, faulty, is_foreign
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.margin import MarginForm
from mdlearn.solvers.base import Solver
from mdlearn.streaming.engines.block_engine import BlockEngine
from mdlearn.streaming.first_passes import StreamedProblem
from mdlearn.streaming.sums.certificate import Candidate, CertificatePass, certificate_candidates, objective_of_sums
from mdlearn.streaming.sums.multipliers import MultiplierSource
from mdlearn.streaming.sums.pass_sums import column_pass_sums

WIDTHS = 2.0 ** -np.arange(0, 12, 2)
"""Half widths of rounded kinks, in units of the largest: which multipliers make the best bound is not known before."""


class StreamedDescent(BlockEngine):
    """Streamed stochastic descent over row blocks, on all columns.

    A block's rows stand for all: their weights are scaled to the sum of all, and mean and variance of the margins are
    those of pairs of its rows. A row is met once in an epoch, in random order within its block.

    `engine`: one that `takes_blocks`; `found`: the `arrays` of an earlier run, after some epochs; empty: there is none;
    `done`: how many epochs; `best`, `best_W` (shape (p,), (p, size)): smallest objective at the end of an epoch, or at
    w = 0, and where; `open_W`: the end of an epoch whose objective is not known. Raises ValueError for a problem that
    the engine cannot take, and steps that diverge.
    """

    most_passes = math.inf
    reserved = 2

    def __init__(self, engine: Solver, begun: StreamedProblem, found: dict[str, np.ndarray], done: int) -> None:
        form = begun.form
        super().__init__(form, [(j,) for j in range(len(form.columns))], begun.call.limits.tol)
        if begun.summary.mapping is not None:
            raise ValueError(
                f"solver {engine.name!r} takes rows of blocks as they are, no features made of them; leave out solver"
            )
        self.engine, self.begun, self.done = engine, begun, done
        self.options = CheckedEngine(engine).check_options(begun.call.options)
        self.names = [field.name for field in fields(engine.block_state)]  # of what lies between two blocks
        self.descents: list[Any] = []
        self.best = np.array([one.at_zero for one in form.columns])
        self.best_W = np.zeros((len(form.columns), form.size))
        self.open_W: np.ndarray | None = None
        if found:
            names = [name for name in self.names if name in found]
            self.descents = [
                engine.block_state(**{name: one if one.ndim else one.item() for name, one in zip(names, values)})
                for values in zip(*(found[name] for name in names), strict=True)
            ]
            self.best, self.best_W = found["best"].copy(), found["best_W"].copy()

    def work(self) -> int | None:
        """The number of the next epoch."""
        return self.done if self.done < self.options["epochs"] else None

    def over(self, work: int, blocks: RowBlocks, summary: Summary) -> Generator[None, None, SummarySums]:
        """Steps over all blocks, one after the other; on its way, the objective where the last epoch ended."""
        self.open_W = self.current_coefficients() if self.descents else None
        values, sums = None if self.open_W is None else CertificatePass(self.form, self.open_W), None
        for i, given in enumerate(blocks):
            block = block_checked_by_summary(given, summary, i)
            if block is not None:
                if values is not None:
                    sums = plus(sums, values(block))
                part = self._form(block)
                self.descents = [self._advanced(part, j, work, block) for j in range(len(part.columns))]
            yield
        return sums or SummarySums()

    def take(self, work: int, found: SummarySums) -> Generator[None, None, None]:
        """Note the objective where the epoch before ended."""
        if self.open_W is not None and found:
            for j, w in enumerate(self.open_W):
                value = objective_of_sums(self.form, j, w, column_pass_sums(found, j))
                if value < self.best[j]:
                    self.best[j], self.best_W[j] = value, w
            self.open_W = None
        self.done += 1
        yield from ()

    def current_coefficients(self) -> np.ndarray:
        """Where the steps have led, as a model holds it."""
        W = np.array([one.current for one in self.descents])[:, : self.form.size]
        return to_type(W, self.begun.summary.dtype).astype(np.float64)

    def _form(self, block: Block) -> MarginForm:
        """The problem over a block's rows."""
        summary = self.begun.summary
        data = block.data(summary, block.counts * (summary.total / block.total))
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
        state = self.descents[j] if known else None
        if not known:
            state = call_with_error_notes(engine, "solver", "begin_blocks", form, column, self.options, n_rows, rng)
            self._check_state("begin_blocks", state)
        state = call_with_error_notes(engine, "solver", "over_block", state, form, column, rng)
        if not known:
            self._check_state("over_block", state)
        return state

    def _check_state(self, method: str, state: Any) -> None:
        """Check what an engine says lies between two blocks, once."""
        engine, size = self.engine, self.form.size
        if not is_foreign(engine):
            return
        if not isinstance(state, engine.block_state):
            needed = f"a {engine.block_state.__name__}, its block_state, is needed"
            raise faulty(engine, "solver", method, f"returned {came(state)}, {needed}")
        current: Any = getattr(state, "current", None)
        if np.shape(current)[:1] < (size,) or np.ndim(current) != 1 or not np.isfinite(current).all():
            told = f"returned a state with {came(current)} as current, {size} finite numbers are needed"
            raise faulty(engine, "solver", method, told)

    def arrays(self) -> dict[str, np.ndarray]:
        """Where the steps have led, for a file."""
        found = {name: np.array([getattr(one, name) for one in self.descents]) for name in self.names}
        return {**found, "best": self.best, "best_W": self.best_W}

    def certified(
        self, blocks: RowBlocks, summary: Summary, late: bool
    ) -> Generator[None, None, list[list[Candidate]]]:
        """Candidates: the best ends of epochs, and points not judged yet, with multipliers of several widths."""
        form, seen = self.form, self.candidates(summary.dtype)
        groups = [W for W in (self.current_coefficients() if self.descents else None, self.open_W) if W is not None]
        widths = [0.5 * h * form.columns[0].widest_kink for h in WIDTHS]
        tried = [(W, tuple(MultiplierSource(w, np.zeros_like(w), h) for w in W)) for W in groups for h in widths]
        found = (yield from certificate_candidates(form, blocks, summary, tried)) if tried else [[] for _ in seen]
        return [known + made for known, made in zip(seen, found)]

    def candidates(self, dtype: np.dtype[Any]) -> list[list[Candidate]]:
        """The best ends of epochs; with a pull on the margins, multipliers of 0 say nothing."""
        return [[(float(value), -math.inf, w[None])] for value, w in zip(self.best, self.best_W)]
