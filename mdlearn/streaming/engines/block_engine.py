"""Block engines, over row blocks: their contract, and what those that go on from sums share: state, gaps, their end."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np

from mdlearn.data.row_blocks.source import RowBlocks
from mdlearn.data.row_blocks.summary import Summary
from mdlearn.errors import FaultyProblem
from mdlearn.forms.certificates.rounding import to_type
from mdlearn.forms.proof import Certificate, judge, proven_gap
from mdlearn.streaming.sums.certificate import Candidate
from mdlearn.streaming.sums.multipliers import ExactMultipliers, MultiplierSource
from mdlearn.streaming.sums.streamed_form import StreamedForm

MOST_PASSES = 300
ROUNDING_OF_BOUNDS_OVER_BLOCKS = 1e-9
"""Height of a bound above an objective, relative to the larger of it and that at w = 0, that is rounding."""
TOLERANCE_SHRINKAGE, LEAST_TOLERANCE = 1e-2, 1e-7
"""Factor of the tolerance of estimates after a certificate that fell short of them, and where that ends."""

STEP, LINE, GATHER, DONE = 0, 1, 2, 3
"""What a problem needs next: an evaluation, a look along its line, the rows near a kink, nothing."""
HELD_BYTES, PER_COEFFICIENT = 16e6, 5
"""Memory for gathered rows of all columns together, and the fewest of one column per coefficient."""
SOURCE, EXACT = ("W", "P", "h", "dh"), ("block", "row", "beta")
"""Parts of a source of multipliers, and of exact ones, as a file names them."""


class BlockEngine(ABC):
    """Interface of block engines between two passes over row blocks; who makes the passes asks nothing else.

    `groups`: columns of every problem; `reserved`: passes that have to end in time after one more, for the certificate.
    """

    most_passes: float = MOST_PASSES  # without `max_iter`
    reserved = 1

    def __init__(self, form: StreamedForm, groups: Sequence[tuple[int, ...]], tol: float) -> None:
        self.form, self.groups, self.tol = form, groups, tol

    @abstractmethod
    def work(self) -> Any:
        """Work of the next pass; None: there is nothing to do."""

    def over(self, work: Any, blocks: RowBlocks, summary: Summary) -> Generator[None, None, Any]:
        """Go over the blocks once."""
        return blocks.fold(work, summary)

    @abstractmethod
    def take(self, work: Any, found: Any) -> Generator[None, None, None]:
        """Go on with what a pass found."""

    @abstractmethod
    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that goes from pass to pass, for a file."""

    def reports(self, work: Any) -> list[tuple[int, float, float, float]]:
        """Problem, objective, bound and gap of all that a pass has reached something for."""
        return []

    @abstractmethod
    def certified(
        self, blocks: RowBlocks, summary: Summary, late: bool
    ) -> Generator[None, None, list[list[Candidate]]]:
        """Candidates for the answer to every problem, from a pass of their own.

        `late`: the time is up, and the point that the next pass would have looked at is one of them.
        """

    @abstractmethod
    def candidates(self, dtype: np.dtype[Any]) -> list[list[Candidate]]:
        """Candidates as the passes so far have found them, for a model of this type."""

    def reopen(self, certificates: list[Certificate]) -> bool:
        """Go on where certificates fall short of estimates; whether there is anything to gain."""
        return False

    def zero(self, t: int) -> tuple[float, float, np.ndarray]:
        """The candidate w = 0 of a problem, with multipliers 0."""
        columns = [self.form.columns[j] for j in self.groups[t]]
        value, floor = sum(one.at_zero for one in columns), sum(one.bound_at_zero for one in columns)
        return value, floor, np.zeros((len(columns), self.form.size))

    def fallback(self, t: int) -> Candidate:
        """Return what is the answer to a problem where no pass has found a better one: w = 0."""
        return self.zero(t)

    def judged(self, found: list[list[Candidate]]) -> tuple[list[Certificate], np.ndarray]:
        """Certificates of problems and coefficients of columns: the best of the candidates, w = 0 among them."""
        certificates, W, unit = [], np.zeros((len(self.form.columns), self.form.size)), self.form.unit
        modulus = 0.0 if self.form.bias == "free" else self.form.ridge
        for t, group in enumerate(self.groups):
            zero = self.zero(t)
            mine = [*found[t], self.fallback(t)]
            value, _, W[list(group)] = min(mine, key=lambda one: math.inf if math.isnan(one[0]) else one[0])
            lower = max((one[1] for one in mine if math.isfinite(one[1])), default=-math.inf)
            if lower > value + ROUNDING_OF_BOUNDS_OVER_BLOCKS * max(abs(value), abs(zero[0])):
                raise FaultyProblem(
                    f"over the row blocks coefficients have the objective {unit * value:.10g} in one pass, below the "
                    f"bound {unit * lower:.10g} of another; give blocks, and weights by row, that stay the same"
                )
            certificates.append(judge(unit * value, unit * lower, unit * zero[0], False, self.tol, unit * modulus))
        return certificates, W


@dataclass(eq=False)
class BlockEngineState:
    """State of a block engine that goes from pass to pass, for p columns of size n and q problems.

    `W`, `P` (shape (p, n)): the present points and the directions of the steps from them; `length`, `value` (shape
    (q,)): of the step; the objective at W, NaN where the step is taken whatever it gives; `best`, `best_W` (shape (q,),
    (p, n)): smallest objective so far, and where; `lower`, `gap` (shape (q,)): largest bound so far, and smallest gap.
    """

    W: np.ndarray
    P: np.ndarray
    length: np.ndarray
    value: np.ndarray
    best: np.ndarray
    best_W: np.ndarray
    lower: np.ndarray
    gap: np.ndarray
    strict: np.ndarray  # shape (q,): what the tolerance is multiplied by for estimates
    stalled: np.ndarray  # shape (q,), int: passes without progress

    @staticmethod
    def at_zero(form: StreamedForm, q: int) -> dict[str, np.ndarray]:
        """Begin at w = 0, a free bias of a regression at the mean target."""
        points = {name: np.zeros((len(form.columns), form.size)) for name in ("P", "best_W")}
        points["W"] = form.first_coefficients()
        infinite = {"best": math.inf, "lower": -math.inf, "gap": math.inf}
        numbers = {"length": 1.0, "value": math.nan, "strict": 1.0, **infinite}
        each = {name: np.full(q, x) for name, x in numbers.items()}
        return {**points, **each, "stalled": np.zeros(q, dtype=np.int64)}

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of the state as a mapping, for a file."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: values for name, values in found.items() if isinstance(values, np.ndarray)}


@dataclass(eq=False)
class SourcedState(BlockEngineState):
    """State of a block engine whose bounds come from multipliers of rows: where those of the best ones are from."""

    sources: list[MultiplierSource]  # one for every column

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the state, its `sources` included, as a mapping for a file."""
        parts = {f"lower_{name}": np.array([getattr(one, name) for one in self.sources]) for name in SOURCE}
        exact = [(j, one.exact) for j, one in enumerate(self.sources) if one.exact is not None]
        return super().arrays() | parts | {f"{name} {j}": getattr(one, name) for j, one in exact for name in EXACT}

    @classmethod
    def read(cls, found: dict[str, np.ndarray]) -> Self:
        """Make the state from the mapping that `arrays` returned."""
        sources = []
        for j, (W, P, h, dh) in enumerate(zip(*(found[f"lower_{name}"] for name in SOURCE), strict=True)):
            exact = ExactMultipliers(*(found[f"{name} {j}"] for name in EXACT)) if f"beta {j}" in found else None
            sources.append(MultiplierSource(W, P, float(h), float(dh), exact))
        plain = {name: values for name, values in found.items() if " " not in name and not name.startswith("lower_")}
        return cls(**plain, sources=sources)


def rows_to_gather(form: StreamedForm, held: int | None) -> int:
    """Return how many rows of each column a block engine may gather; `held`: as asked for, None: by memory."""
    share = int(HELD_BYTES / (8.0 * form.size * len(form.columns)))
    return max(share, PER_COEFFICIENT * form.size) if held is None else held


class BlockStepEngine(BlockEngine):
    """Base of block engines that take steps from the sums of passes, for all columns.

    `form`, `groups`, `tol`: as for `BlockEngine`; `state`: where to begin; it is written to.
    """

    def __init__(
        self, form: StreamedForm, groups: Sequence[tuple[int, ...]], tol: float, state: BlockEngineState
    ) -> None:
        super().__init__(form, groups, tol)
        self.state = state

    @abstractmethod
    def patience(self, t: int) -> int:
        """Passes without progress after which rounding is taken to be reached."""

    @abstractmethod
    def resume(self, t: int, lower: float) -> None:
        """Go on with a problem whose certified bound is `lower`."""

    def arrays(self) -> dict[str, np.ndarray]:
        return self.state.arrays()

    def reports(self, work: Any) -> list[tuple[int, float, float, float]]:
        """The best so far of the problems that a pass was about."""
        state, unit, places = self.state, self.form.unit, set(work.places)
        at = [t for t, group in enumerate(self.groups) if places.issuperset(group)]
        gaps = [min(float(state.gap[t]), self._gap(t)) for t in at]
        return [(t, unit * float(state.best[t]), unit * float(state.lower[t]), gap) for t, gap in zip(at, gaps)]

    def candidates(self, dtype: np.dtype[Any]) -> list[list[Candidate]]:
        """The best points; the objective of rounded coefficients would take another pass."""
        state = self.state
        exact = np.array_equal(to_type(state.best_W, dtype), state.best_W)
        return [
            [(float(state.best[t]) if exact else math.inf, float(state.lower[t]), state.best_W[list(group)])]
            for t, group in enumerate(self.groups)
        ]

    def ended(self, t: int, onward: bool) -> bool:
        """Look at the gap: whether it is small, or stands still though the problem is not on its way elsewhere."""
        state, gap = self.state, self._gap(t)
        onward = onward or gap < 0.9 * state.gap[t]
        state.stalled[t] = 0 if onward else state.stalled[t] + 1
        state.gap[t] = min(gap, state.gap[t])
        return self.meets(t) or bool(state.stalled[t] >= self.patience(t))

    def meets(self, t: int) -> bool:
        """Whether the gap of a problem is as small as asked for."""
        return bool(self._gap(t) <= self.tol * self.state.strict[t])

    def _gap(self, t: int) -> float:
        best = float(self.state.best[t])
        return proven_gap(best, min(float(self.state.lower[t]), best), self.zero(t)[0], False)

    def reopen(self, certificates: list[Certificate]) -> bool:
        """Go on where certificates fall short of estimates, which then have to promise more."""
        state, found = self.state, False
        for t, one in enumerate(certificates):
            if one.converged or state.strict[t] < LEAST_TOLERANCE or state.stalled[t] >= self.patience(t):
                continue
            found = True
            state.strict[t] *= TOLERANCE_SHRINKAGE
            state.stalled[t], state.gap[t] = 0, math.inf
            self.resume(t, one.lower_bound / self.form.unit)
        return found
