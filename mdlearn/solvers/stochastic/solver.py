"""Solvers "sgd" and "asgd": stochastic gradient descent, Algorithm 2 of the LDM paper (averaged), or not averaged.

What is run on is g / (m C), so that step sizes are a matter of the data's scale; with C = 0 it is g itself. A step
draws two rows independently, with replacement, and with the counts as probabilities; its expectation is the exact
gradient. Step sizes follow Xu (2011), eta_t = eta0 (1 + a eta0 t)^(-3/4) with the modulus a of strong convexity.
"""

from __future__ import annotations

import sys
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.rows.rows import DenseRows
from mdlearn.data.validation import check_number
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.base import Solver, Steps
from mdlearn.solvers.common.dual_bound import DualBound
from mdlearn.solvers.common.primal_dual import report_of
from mdlearn.solvers.stochastic import portions
from mdlearn.solvers.stochastic.portions import DIVERGED_NORM, Descent
from mdlearn.solvers.stochastic.task import StochasticTask, TaskRowPairs, calibrate_task_step

LARGEST_FLOAT = float(np.finfo(float).max)


class SGD(Solver):
    """Stochastic gradient descent solver, the last iterate (``solver="sgd"``)."""

    name: ClassVar[str] = "sgd"
    purpose: ClassVar[str] = "any declared loss, linear: stochastic steps, last iterate; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"epochs": 5, "eta0": None}
    default_max_iter: ClassVar[int] = sys.maxsize
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared", "logistic", "native"})
    exact: ClassVar[bool] = False
    offsets: ClassVar[bool] = True
    by_row: ClassVar[bool] = True
    takes_blocks: ClassVar[bool] = True
    block_state: ClassVar[type] = Descent

    def refusal(self, form: MarginForm) -> str | None:
        """Explicit rows, a finite loss and a strongly convex objective are needed."""
        if isinstance(form, MarginForm) and "given" in form.kinds:
            return "its compiled steps need the derivative of a given loss as a NativeFunction"
        general = super().refusal(form)
        if general is not None:
            return general
        if not isinstance(form.features, LinearFeatures):
            return "its steps move a weight vector, which only kernel='linear' has"
        if not isinstance(form.features.rows, (DenseRows, CsrRows)):
            return "its steps read single rows, which kernel columns and landmark features do not store"
        if form.features.ridge is not None:
            return "its steps shrink all weights alike, so it needs a plain squared norm"
        if form.bias == "free":
            return "its step sizes need strong convexity, which bias='free' breaks"
        return None

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """`epochs` >= 1 passes, first step size `eta0` > 0 (None: calibrated), and for asgd `t0` >= 0 (None: m)."""
        options = super().check_options(given)
        options["epochs"] = check_number(options["epochs"], "solver option epochs", low=1, integer=True)
        if options["eta0"] is not None:
            options["eta0"] = check_number(
                options["eta0"], "solver option eta0", low=0.0, high=LARGEST_FLOAT, strict=True
            )
        if options.get("t0") is not None:
            options["t0"] = check_number(options["t0"], "solver option t0", low=0, high=2.0**62, integer=True)
        return options

    def ends_itself(self, options: dict[str, Any]) -> bool:
        """The published end is the last epoch."""
        return True

    def start_of_average(self, n_rows: int, options: dict[str, Any]) -> int:
        """Steps before averaging starts: here, never."""
        return sys.maxsize

    def begin_blocks(
        self, form: MarginForm, column: Column, options: dict[str, Any], n_rows: int, rng: np.random.Generator
    ) -> Descent:
        """Begin at w = 0, with a first step size chosen on the first block unless it is given."""
        return portions.begin_portions(options, form, column, n_rows, self.start_of_average(n_rows, options), rng)

    def over_block(self, state: Descent, form: MarginForm, column: Column, rng: np.random.Generator) -> Descent:
        """Take as many steps as the block has rows."""
        return portions.advance_portion(state, form, column, form.features.n_rows, rng)

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per epoch of as many steps as there are rows; the published end is the last epoch."""
        yield from form.features.rows.written()
        task = StochasticTask(form, column)
        draw = TaskRowPairs(column.counts, rng)
        n = int(np.count_nonzero(column.counts))
        t0 = self.start_of_average(n, options)
        epochs, eta0 = options["epochs"], options["eta0"]
        may_restart = eta0 is None
        if eta0 is None:
            eta0 = yield from calibrate_task_step(task, draw, n, n * epochs)
        track, bound, epoch = task.start(eta0, t0), DualBound(form, column), 0
        while epoch < epochs:
            for start in range(0, n, task.piece):
                task.run(track, *draw(min(task.piece, n - start)))
                yield None
            w, b, alpha = task.split(track.current())
            with np.errstate(over="ignore", invalid="ignore"):
                diverged = not float(w @ w) + b * b < DIVERGED_NORM
            if diverged and not may_restart:
                raise ValueError(
                    f"the steps diverge with eta0={eta0:.3g}; give a smaller solver option eta0, or scale the features"
                )
            if diverged:
                # The calibration's sample missed the rows that matter most.
                eta0, epoch, may_restart = task.safe_step(), 0, False
                track = task.start(eta0, t0)
                continue
            epoch += 1
            z = task.margins(w, b)
            yield None
            yield from bound.improve(z)
            best = bound.best
            yield report_of(form, column, Point(best.beta, best.sigma, w, b, alpha), z)


class ASGD(SGD):
    """Averaged stochastic gradient descent solver, Algorithm 2 of the LDM paper (``solver="asgd"``)."""

    name: ClassVar[str] = "asgd"
    purpose: ClassVar[str] = "any declared loss, linear: Algorithm 2 of the LDM paper; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"epochs": 5, "eta0": None, "t0": None}

    def start_of_average(self, n_rows: int, options: dict[str, Any]) -> int:
        """`t0`, by default after the first epoch."""
        t0 = options["t0"]
        return n_rows if t0 is None else int(t0)
