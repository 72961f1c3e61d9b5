"""Decomposition for one hinge or squared hinge of every row, with a kernel whose matrix is never there."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.kernel_features import KernelFeatures
from mdlearn.data.features.kernel_tiles import KernelTiles
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics import memory
from mdlearn.solvers.base import Offer, Report, Solver, Steps
from mdlearn.solvers.decomposition.growth import grow_to_all_rows
from mdlearn.solvers.decomposition.rounds import LARGEST_WORKING_ROWS, DecompositionRounds
from mdlearn.solvers.working_set.block_ascent import suits_block_ascent

MOST_DECOMPOSITION_ROUNDS, STALLED_ROUNDS, LEAST_RISE = 10000, 50, 1e-3
"""Rounds of a fit; rounds without a rise of the bound after which rounding is reached, and the least such rise, in
units of the gap."""


class KernelDecomposition(Solver):
    """Working sets of a kernel problem, with columns computed as multipliers change (``solver="decomposition"``)."""

    name: ClassVar[str] = "decomposition"
    purpose: ClassVar[str] = (
        "one hinge or squared hinge a row, no variance term, kernel 'rbf' or 'poly': no matrix of all rows"
    )

    def refusal(self, form: Any) -> str | None:
        """Refuse all but kernels made of inner products, with one term a row and no variance or mean; return why."""
        general = super().refusal(form)
        if general is not None:
            return general
        features = form.features
        if not isinstance(features, KernelFeatures) or not features.kernel.plain:
            return "it needs kernel 'rbf' or 'poly'"
        if any(one.kappa > 0 or one.pull.any() or not suits_block_ascent(form, one) for one in form.columns):
            return "it needs one hinge or squared hinge a row, no variance and no mean"
        return None

    def check_memory(self, form: MarginForm, at_once: int = 1) -> None:
        """Ask for the rows in single precision, a working set's block, and some numbers a row."""
        features = form.features
        assert isinstance(features, KernelFeatures)
        m, d = features.rows.shape
        n, bytes_of_value = min(m, LARGEST_WORKING_ROWS), 4.0 if features.kernel.name == "rbf" else 8.0
        size = 4.0 * m * (d + 2) + at_once * (bytes_of_value * n * n + 400.0 * m)
        memory.require(size, f"solver {self.name!r} on {m} rows", memory.FEWER, at_once)

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Return the rows as kernel values are made of them."""
        assert isinstance(form.features, KernelFeatures)
        yield
        return form.features.columns(single=True)

    def iterate(
        self, form: MarginForm, column: Column, shared: KernelTiles, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Offer a place per round; its report takes the drift from the decision values."""
        constant = 1.0 if form.bias == "regularized" else 0.0
        rounds = yield from grow_to_all_rows(form, column, shared, constant, rng)
        place = DecompositionPlace(form, rounds)
        least, stalled = np.inf, 0
        for _ in range(MOST_DECOMPOSITION_ROUNDS):
            yield Offer(place.report, rounds.gap)
            yield None
            before = rounds.lower_bound
            moved = yield from rounds.climb_once()
            least = min(least, rounds.objective)
            stalled = 0 if rounds.lower_bound - before > LEAST_RISE * (least - rounds.lower_bound) else stalled + 1
            if not moved or stalled >= STALLED_ROUNDS:
                known = place.gap
                yield place.report()
                least, stalled = rounds.objective, 0
                if not place.gap < 0.5 * known and not rounds.grow():
                    return


class DecompositionPlace:
    """Point that rounds have reached: reported with decision values in double precision, which they go on from."""

    def __init__(self, form: MarginForm, rounds: DecompositionRounds) -> None:
        self.form, self.rounds, self.gap = form, rounds, np.inf

    def report(self) -> Report:
        """The report of the present multipliers."""
        rounds = self.rounds
        alpha = rounds.u.copy()
        rounds.f[:] = self.form.features.decision(alpha)
        rounds.evaluate()
        self.gap = rounds.gap
        point = Point(rounds.beta(), np.zeros_like(alpha), alpha, rounds.b)
        return Report.estimated(rounds.objective, rounds.lower_bound, point)
