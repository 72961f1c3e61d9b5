"""Solver "apg": accelerated proximal gradient, for penalties, and for problems that bring their own gradient.

By default FISTA with restart and a Newton finish (`mdlearn.solvers.proximal_gradient.fista`); by option the algorithm
as the MDLM paper prints it, or its stochastic version.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from mdlearn.data.features.basis import BasisFeatures
from mdlearn.data.features.linear_features import LinearFeatures
from mdlearn.data.rows.csr_rows import CsrRows
from mdlearn.data.validation import check_number
from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.decision_composite import DecisionComposite
from mdlearn.forms.joint.margin_composite import ColumnMarginComposite
from mdlearn.forms.losses import CURVED
from mdlearn.forms.margin import MarginForm
from mdlearn.numerics import memory
from mdlearn.solvers.base import NOT_BY_ROW, Claim, Solver, Steps
from mdlearn.solvers.proximal_gradient.fista import Fista
from mdlearn.solvers.systems.operations import (
    STEP_OPERATIONS,
    STEPS_OF_A_FIT,
    cheap_step_operations,
    dense_step_operations,
    second_order_operations,
)
from mdlearn.solvers.systems.system_choice import prefers_block_system

PROXIMAL_STEPS = 1000
"""Proximal steps of a usual fit with a penalty, each with two products over the rows."""
LARGEST_FLOAT = float(np.finfo(float).max)
ROUNDING_OF_VALUES = 1e-10
"""Difference of two values, in units of the larger one and that at W = 0, that counts as rounding."""


class APG(Solver):
    """Accelerated proximal gradient (``solver="apg"``)."""

    name: ClassVar[str] = "apg"
    purpose: ClassVar[str] = (
        "L1 and L2,1 penalties, all but hinges, explicit rows, and problems with a gradient of their own"
    )
    options: ClassVar[dict[str, Any]] = {"paper": False, "l0": 1.0, "sigma": 2.0, "batch": None, "epochs": 20}
    default_max_iter: ClassVar[int] = 20000
    kinds: ClassVar[frozenset[str]] = frozenset({"squared"}) | CURVED
    needs_ridge: ClassVar[bool] = False

    def refusal(self, form: Any) -> str | None:
        """Explicit rows and smooth terms, or a Composite."""
        if not isinstance(form, MarginForm):
            composite = isinstance(form, Composite)
            return None if composite else "it needs margins or a gradient; this problem brings neither"
        if not isinstance(form.features, LinearFeatures):
            return "its steps move a weight vector, which only kernel='linear' has"
        if form.coefficient_terms:
            return "it knows no penalty but that of the lengths of features' coefficients"
        if form.offsets:
            return "it knows no targets of regression"
        if form.by_row:
            return NOT_BY_ROW
        return None if form.kinds <= self.kinds else f"it takes no loss of the kind {min(form.kinds - self.kinds)!r}"

    def claims(self, form: Any) -> Claim | None:
        """Products with the rows, not matrices: for penalties and joint problems, else where matrices are large."""
        if self.refusal(form) is not None:
            return None
        features = form.features
        if not isinstance(form, MarginForm) or form.joint or form.penalty > 0:
            n = len(form.columns) if isinstance(form, MarginForm) else form.shape[1]
            return Claim(
                PROXIMAL_STEPS * 4.0 * n * max(features.n_rows, features.n_entries),
                "a penalty, several classes as one problem, or a gradient of its own: proximal steps",
            )
        if form.ridge == 0 or dense_step_operations(features) <= STEP_OPERATIONS or prefers_block_system(form):
            return None
        if isinstance(features, BasisFeatures) and features.rows.folded:
            # Products with such columns are cheap, their matrices are not.
            told = "linear kernel columns of many sparse rows: steps without matrices"
            return Claim(second_order_operations(form) * STEP_OPERATIONS, told)
        if CURVED.isdisjoint(form.kinds):
            return None
        rows = features.rows
        step = cheap_step_operations(rows) if isinstance(rows, CsrRows) else STEP_OPERATIONS
        return Claim(STEPS_OF_A_FIT * step, "logistic or given loss, many rows and columns: steps without matrices")

    def check_memory(self, form: Any, at_once: int = 1) -> None:
        """Ask for a few arrays of decision values."""
        k = form.shape[1] if isinstance(form, Composite) else len(form.columns)
        memory.require(48.0 * form.features.n_rows * k, f"decision values of {k} columns", "use fewer rows", 1)

    def check_options(self, given: dict[str, Any]) -> dict[str, Any]:
        """`paper` (the printed algorithm, with `l0` > 0 and `sigma` > 1), or `batch` >= 1 rows over `epochs` >= 1."""
        options = super().check_options(given)
        if not isinstance(options["paper"], (bool, np.bool_)):
            raise TypeError(f"solver option paper needs to be True or False; got {options['paper']!r}")
        options["l0"] = check_number(options["l0"], "solver option l0", low=0.0, high=LARGEST_FLOAT, strict=True)
        options["sigma"] = check_number(
            options["sigma"], "solver option sigma", low=1.0, high=LARGEST_FLOAT, strict=True
        )
        options["epochs"] = check_number(options["epochs"], "solver option epochs", low=1, integer=True)
        if options["batch"] is not None:
            options["batch"] = check_number(options["batch"], "solver option batch", low=1, integer=True)
            if options["paper"]:
                raise ValueError("solver options paper=True and batch exclude each other; give one of them")
        return options

    def ends_itself(self, options: dict[str, Any]) -> bool:
        """With batches, the end is the last epoch."""
        return options["batch"] is not None

    def iterate(self, form: Any, part: Any, shared: Any, options: dict[str, Any], rng: np.random.Generator) -> Steps:
        """Yield a report per step (with batches: per epoch)."""
        problem = part if isinstance(part, Composite) else ColumnMarginComposite(form, part)
        yield None
        if options["paper"]:
            yield from published_steps(problem, options["l0"], options["sigma"])
        elif options["batch"] is not None:
            if not isinstance(problem, DecisionComposite):
                raise ValueError("solver option batch needs an objective that is a sum over rows; leave it out")
            yield from published_stochastic_steps(problem, options["batch"], options["epochs"], rng)
        else:
            yield from Fista(problem).steps()


def published_steps(problem: Composite, l0: float, sigma: float) -> Steps:
    """Yield a report per iteration of the proximal gradient algorithm as published.

    Near the optimum the test of the line search is below rounding, and l would grow without end: from the Lipschitz
    constant on, where the test holds in exact arithmetic, it is taken to hold but for rounding. A given loss can bend
    more than that far out; then l grows on.
    """
    bounds = Fista(problem)
    yield from bounds.begin()
    cap = problem.lipschitz()
    W = before = np.zeros(problem.shape)
    mu, l, i = 1.0, l0, 0
    while True:
        i += 1
        mu, last = 2.0 / (i + 3.0), mu
        look = problem.at(W + (1.0 - last) * mu / last * (W - before))
        gradient, value = problem.slope(look), problem.smooth(look)
        yield None
        while True:
            found = problem.at(problem.prox(look.W - gradient / l, 1.0 / l))
            yield None
            step = found.W - look.W
            model = value + float((step * gradient).sum()) + 0.5 * l * float((step * step).sum())
            miss = problem.smooth(found) - model
            if miss <= (ROUNDING_OF_VALUES * (abs(value) + abs(problem.at_zero)) if l >= cap else 0.0):
                break
            l = min(sigma * l, cap) if l < cap else sigma * l
        W, before = found.W, W
        yield bounds.report(found)


def published_stochastic_steps(problem: DecisionComposite, size: int, epochs: int, rng: np.random.Generator) -> Steps:
    """Yield a report per epoch of the published stochastic algorithm: last step, later the average of steps.

    Rows are drawn without replacement within an epoch. The mean margin in the variance is that of all rows, so a
    batch's gradient has the exact one as its mean. Steps are 1 / l_t with l_t = l (1 + t / t0)^(1/2), t0 the steps of
    an epoch, and l what the gradient of a batch can bend at most on average.
    """
    m = problem.rows.shape[0]
    size = min(size, m)
    bounds = Fista(problem)
    yield from bounds.begin()
    l = published_batch_smoothness(problem, bounds.state.L, size)
    W = np.zeros(problem.shape)
    total, kept, t = np.zeros(problem.shape), 0, 0
    per_epoch = -(-m // size)
    for epoch in range(epochs):
        order = rng.permutation(m)
        for start in range(0, m, size):
            gradient = problem.sampled(W, np.sort(order[start : start + size]))
            step = 1.0 / (l * math.sqrt(1.0 + t / per_epoch))
            W = problem.prox(W - step * gradient, step)
            t += 1
            if epoch >= epochs // 2:
                total, kept = total + W, kept + 1
            if t % 8 == 0:
                yield None
        yield bounds.report(problem.at(total / kept if kept else W))


def published_batch_smoothness(problem: DecisionComposite, L: float, size: int) -> float:
    """Smoothness for batches of the published algorithm: between L for all rows and the largest row's for one."""
    m = problem.rows.shape[0]
    if m == 1:
        return L
    squares = problem.rows.squares() + (problem.bias != "none")
    one = problem.steepest * m * float((squares * problem.counts).max()) + float(problem.ridge.max())
    return (m * (size - 1) * L + (m - size) * one) / (size * (m - 1))
