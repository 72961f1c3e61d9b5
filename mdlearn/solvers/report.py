"""Reports and offers that a solver yields, and its claim on a form."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Claim:
    """Claim of a solver to be the one for a form: ``solver="auto"`` takes the cheapest.

    Attributes
    ----------
    operations : float
        Cost of the fit as floating-point operations of products of dense matrices, > 0, from the form's shapes.
    reason : str
        Why the solver suits such forms, as half a sentence: the model's `solver_reason`.
    """

    operations: float
    reason: str


@dataclass(eq=False, slots=True)
class Report:
    """Report that a solver yields: a point, its objective and a lower bound.

    Attributes
    ----------
    objective, lower_bound : float
        The engine's own estimates; the certificate is computed elsewhere.
    point : Point, or what the certificate of another Problem takes
        The point that these values belong to.
    residual : float, optional
        For a problem that is not convex: what first-order conditions leave open, as its certificate takes it (see
        `mdlearn.extend.judge_residual`). lower_bound is -inf then.
    row_dots : int, optional
        Products with single rows so far, where an engine counts them.
    """

    objective: float
    lower_bound: float
    point: Any
    residual: float | None = None
    row_dots: int | None = None

    @classmethod
    def estimated(cls, objective: float, lower_bound: float, point: Any, residual: float | None = None) -> Report:
        """A report in which estimates that overflowed say nothing."""
        upper = math.inf if math.isnan(objective) else objective
        return cls(upper, -math.inf if math.isnan(lower_bound) else lower_bound, point, residual)


@dataclass(eq=False, slots=True)
class Offer:
    """Offer that a solver yields between reports: a point reported only if the fit may end here.

    For phases whose points are good ones but whose reports would cost as much as the steps.

    Attributes
    ----------
    make : callable
        make() returns the Report. It is called once at most: at once where `gap` meets the tolerance, else after the
        engine's last step, if no Report came later.
    gap : float
        Relative gap that the point is thought to have; infinity: not known. Where it is known and beyond the
        tolerance, the offer is no heartbeat: it stands until the next one.
    seconds : callable
        Returns the wall seconds that its report and certificate are thought to take, where a time limit asks: it ends
        the engine that much before.
    """

    make: Callable[[], Report]
    gap: float = math.inf
    seconds: Callable[[], float] = float


Reports = Generator["Report | None", None, None]
"""Reports, and None as a heartbeat during long preparations."""
Steps = Generator["Report | Offer | None", None, Any]
"""The same of a whole engine, with what `Solver.iterate` returns: an Offer is a heartbeat, too."""
