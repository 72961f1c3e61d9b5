"""Stochastic gradient descent: Algorithm 2 of the LDM paper (averaged), and the same without averaging.

What is run on is g / (m C), so that step sizes are a matter of the data's scale; with C = 0 it is g itself. A step
draws two rows independently, with replacement, and with the counts as probabilities; its expectation is the exact
gradient. Step sizes follow Xu (2011), eta_t = eta0 (1 + a eta0 t)^(-3/4) with the modulus a of strong convexity.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from mdlearn._solvers.sgd import Problem, Walk, walk_csr, walk_dense
from mdlearn.data.checks import check_number
from mdlearn.data.features import LinearFeatures
from mdlearn.data.rows import BLOCK_ENTRIES, CsrRows, DenseRows
from mdlearn.forms.given import GivenTerm
from mdlearn.forms.losses import Term
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.solvers.base import Solver, Steps
from mdlearn.solvers.bound import DualBound
from mdlearn.solvers.state import report_of

SAMPLE = 1000
"""Rows on which the first step size is chosen."""
DOUBLINGS = 60
"""Most halvings or doublings of the first step size."""
PIECE = 1 << 21
"""Entries of rows that one call of the kernel reads: about 20 ms."""
FINITE = float(np.finfo(float).max)
LARGEST = 1e200
"""Squared norm beyond which steps have diverged: objective and bound would overflow."""


class SGD(Solver):
    """Stochastic gradient descent, the last iterate (``solver="sgd"``)."""

    name: ClassVar[str] = "sgd"
    purpose: ClassVar[str] = "any declared loss, linear: stochastic steps, last iterate; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"epochs": 5, "eta0": None}
    default_max_iter: ClassVar[int] = sys.maxsize
    kinds: ClassVar[frozenset[str]] = frozenset({"hinge", "squared", "logistic", "native"})
    exact: ClassVar[bool] = False

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
            options["eta0"] = check_number(options["eta0"], "solver option eta0", low=0.0, high=FINITE, strict=True)
        if options.get("t0") is not None:
            options["t0"] = check_number(options["t0"], "solver option t0", low=0, high=2.0**62, integer=True)
        return options

    def ends_itself(self, options: dict[str, Any]) -> bool:
        """The published end is the last epoch."""
        return True

    def start_of_average(self, n_rows: int, options: dict[str, Any]) -> int:
        """Steps before averaging starts: here, never."""
        return sys.maxsize

    def prepare(self, form: MarginForm, options: dict[str, Any]) -> Generator[None, None, Any]:
        """Nothing is shared between columns."""
        return None
        yield  # what makes this a generator

    def iterate(
        self, form: MarginForm, column: Column, shared: Any, options: dict[str, Any], rng: np.random.Generator
    ) -> Steps:
        """Yield a report per epoch of as many steps as there are rows; the published end is the last epoch."""
        task = Task(form, column)
        draw = Stream(column.counts, rng)
        n = int(np.count_nonzero(column.counts))
        t0 = self.start_of_average(n, options)
        epochs, eta0 = options["epochs"], options["eta0"]
        may_restart = eta0 is None
        if eta0 is None:
            eta0 = yield from calibrate(task, draw, n, n * epochs)
        track, bound, epoch = task.start(eta0, t0), DualBound(form, column), 0
        while epoch < epochs:
            for start in range(0, n, task.piece):
                task.run(track, *draw(min(task.piece, n - start)))
                yield None
            w, b, alpha = task.split(track.current())
            with np.errstate(over="ignore", invalid="ignore"):
                diverged = not float(w @ w) + b * b < LARGEST
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
    """Averaged stochastic gradient descent, Algorithm 2 of the LDM paper (``solver="asgd"``)."""

    name: ClassVar[str] = "asgd"
    purpose: ClassVar[str] = "any declared loss, linear: Algorithm 2 of the LDM paper; bias none or regularized"
    options: ClassVar[dict[str, Any]] = {"epochs": 5, "eta0": None, "t0": None}

    def start_of_average(self, n_rows: int, options: dict[str, Any]) -> int:
        """`t0`, by default after the first epoch."""
        t0 = options["t0"]
        return n_rows if t0 is None else int(t0)


@dataclass(frozen=True, eq=False)
class Track:
    """A walk with its vectors.

    Attributes
    ----------
    walk : Walk
    u, total : ndarray of shape (d + 1 + m,)
        What the walk writes: columns, intercept, rows.
    """

    walk: Walk
    u: np.ndarray
    total: np.ndarray

    def current(self) -> np.ndarray:
        """The average since step t0, before that the iterate."""
        steps = self.walk.t - self.walk.t0
        if steps <= 0:
            return self.walk.scale * self.u
        return (self.total + self.walk.carried * self.u) / steps


def _entries(term: Term, per_row: float) -> list[float]:
    """A term as the kernel reads it: side, threshold, jump, rise, height, sharpness."""
    weight = per_row * term.weight
    slope = [weight, 0.0, 0.0, 0.0]
    if term.kind == "squared":
        slope = [0.0, 2.0 * weight, 0.0, 0.0]
    elif term.kind == "logistic":
        slope = [0.0, 0.0, weight, 4.0 * term.steepest / term.weight if weight > 0 else 0.0]
    return [term.side, term.threshold, *slope]


class Task:
    """A column divided by m C, with the rows that the kernel runs over."""

    def __init__(self, form: MarginForm, column: Column) -> None:
        assert isinstance(form.features, LinearFeatures)
        self.column, self.rows = column, form.features.rows
        self.constant = 1.0 if form.bias == "regularized" else 0.0
        C = max((t.weight for t in column.terms), default=0.0)
        self.scale = column.total * C if C > 0 else 1.0
        per_row = column.total / self.scale
        self.terms = np.array([_entries(t, per_row) for t in column.terms if t.kind != "native"]).reshape(-1, 6)
        self.bend = per_row * sum(t.steepest for t in column.terms if t.kind == "native")
        compiled = [(t, t.loss.native) for t in column.terms if isinstance(t, GivenTerm)]
        natives = [(f.callback, per_row * t.weight, t.side) for t, f in compiled if f is not None]
        self.spread = 2.0 * column.variance / self.scale
        self.problem = Problem(
            column.y,
            np.ascontiguousarray(self.terms.T),
            self.spread,
            column.mean / self.scale,
            1.0 / self.scale,
            self.constant,
            natives,
        )
        # Compiled steps read the arrays themselves.
        if isinstance(self.rows, CsrRows):
            A = self.rows.X
            self._walk, entries = partial(walk_csr, A.data, A.indices, A.indptr), A.nnz / A.shape[0]
        else:
            assert isinstance(self.rows, DenseRows)
            self._walk, entries = partial(walk_dense, self.rows.X), self.rows.shape[1]
        self.piece = max(1, int(PIECE / (2.0 * entries + 16.0)))

    def start(self, eta0: float, t0: int) -> Track:
        """Return a track at w = 0."""
        size = self.rows.shape[1] + 1 + self.rows.shape[0]
        u, total = np.zeros(size), np.zeros(size)
        return Track(Walk(eta0, t0, u, total), u, total)

    def run(self, track: Track, i: np.ndarray, j: np.ndarray) -> None:
        """Take one step per pair of rows."""
        self._walk(self.problem, track.walk, i, j)

    def split(self, entries: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """Return w, intercept, and w's coefficients as a combination of rows."""
        d = self.rows.shape[1]
        return entries[:d], float(entries[d]), entries[d + 1 :]

    def margins(self, w: np.ndarray, b: float) -> np.ndarray:
        """z = y f on all rows."""
        return self.column.y * (self.rows.dot(w) + b)

    def sampled(self, w: np.ndarray, b: float, rows: np.ndarray) -> float:
        """Estimate g / (m C) from some rows, drawn with the counts as probabilities."""
        z = np.empty(rows.shape[0])
        step = max(1, BLOCK_ENTRIES // self.rows.shape[1])
        for k in range(0, rows.shape[0], step):
            some = rows[k : k + step]
            z[k : k + step] = self.column.y[some] * (self.rows.take(some).dot(w) + b)
        c = self.column
        sample = Column(c.y[rows], np.full(rows.shape[0], c.total / rows.shape[0]), c.variance, c.mean, c.terms)
        return (0.5 * (float(w @ w) + b * b) + sample.distribution_value(z)) / self.scale

    def safe_step(self) -> float:
        """A first step size that no row can make diverge: one over the largest curvature (or jump) of one step."""
        largest = float(self.rows.squares().max()) + self.constant
        bend = self.bend + float(self.terms[:, 2:4].sum()) + 0.25 * float(self.terms[:, 4] @ self.terms[:, 5])
        return 1.0 / (largest * (bend + 2.0 * self.spread) + 1.0 / self.scale)


class Stream:
    """Pairs of rows drawn independently, with replacement, the counts as probabilities.

    Rows are places on a line of length sum(counts): integer counts draw the very rows that repetition would.
    """

    def __init__(self, counts: np.ndarray, rng: np.random.Generator) -> None:
        self.rng = rng
        self.last = int(np.flatnonzero(counts)[-1])
        equal = bool((counts == counts[0]).all())
        self.ends = None if equal else np.cumsum(counts)

    def __call__(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """The next n pairs; how a stream is cut into calls does not matter."""
        places = self.rng.random((n, 2)).T
        if self.ends is None:
            rows = (places * (self.last + 1)).astype(np.int64)
        else:
            rows = np.searchsorted(self.ends, places * self.ends[-1], side="right").astype(np.int64)
        i, j = np.minimum(rows, self.last)  # rounding can reach the end of the line
        return np.ascontiguousarray(i), np.ascontiguousarray(j)


def calibrate(task: Task, draw: Stream, n: int, steps: int) -> Generator[None, None, float]:
    """Choose eta0 by factors of 2 from 1: the least objective on a sample after one short pass over it.

    The objective is taken at the average of the pass's second half, since that of the last iterate is mostly noise.
    Such an average prefers longer steps than a run that averages longer, so the choice shrinks by the fourth root of
    the ratio of the lengths.
    """
    i, j = draw(min(SAMPLE, n))
    length = i.shape[0]

    def cost(eta0: float) -> Generator[None, None, float]:
        track = task.start(eta0, length // 2)
        for start in range(0, length, task.piece):
            part = slice(start, start + task.piece)
            task.run(track, i[part], j[part])
            yield
        with np.errstate(over="ignore", invalid="ignore"):
            w, b, _ = task.split(track.current())
            value = task.sampled(w, b, i)
        yield
        return value if np.isfinite(value) else np.inf

    eta0 = 1.0
    value = yield from cost(eta0)
    for factor in (2.0, 0.5):
        before = eta0
        for _ in range(DOUBLINGS):
            trial = yield from cost(eta0 * factor)
            if not trial < value and (np.isfinite(value) or factor > 1.0):
                break
            eta0, value = eta0 * factor, trial
        if eta0 != before:
            break
    return eta0 * float(length / steps) ** 0.25 if np.isfinite(value) else task.safe_step()
