"""Base classes of forms: the contract of a problem, one minimisation with one certificate, as the driver sees it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mdlearn.data.features.kernel_rounding import safe_sum
from mdlearn.errors import is_foreign
from mdlearn.forms.answer_faults import check_answers
from mdlearn.forms.proof import Certificate, Solution, Start, judge, proven_gap


def overrides_problem_base(cls: type, *methods: str) -> bool:
    """Whether a plugin writes one of these methods of a problem's class, which need not have them all."""
    owners = (next((one for one in cls.__mro__ if name in vars(one)), Problem) for name in methods)
    return any(map(is_foreign, owners))


class Problem(ABC):
    """Base class of the problems of forms: one minimisation, one certificate. Only its values are in units of the form.

    Attributes
    ----------
    part : object
        What an engine's `iterate` gets as its second argument.
    unit : float
        Value of the objective for one unit of the form.
    at_zero : float
        Value at w = 0, b = 0.
    hard : bool
        Whether there are constraints.
    estimates_hold : bool
        Whether an engine's estimates that promise a gap need not be looked at before they are certified.
    engine : str
        Name of the engine that ``solver="auto"`` takes, for a problem that needs one of its own; else "".
    """

    part: Any
    unit: float
    at_zero: float
    hard: bool = False
    estimates_hold: bool = False
    engine: str = ""

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        check_answers(cls)

    @abstractmethod
    def start(self) -> Any:
        """Return the point w = 0, known before any work."""

    def begin(self, starts: Sequence[Start]) -> None:
        """Take note of where an engine may begin, one Start per column; here: nothing can be made of it."""
        return

    def starting_point(self) -> Any:
        """Return the point where engines may begin, as `begin` was told; None: there is none beside w = 0."""
        return None

    def bounds_at_start(self) -> tuple[float, float]:
        """Return objective and bound of the point of `start`, as far as they are known without any work."""
        return math.inf, -math.inf

    def bound_at_start(self) -> float:
        """Return the bound of that point, which may take a pass over the rows; here, what is known."""
        return self.bounds_at_start()[1]

    def highest_bound_at_start(self) -> float:
        """Return a number that this bound is not above, without a pass over the rows; here, the bound itself."""
        return self.bounds_at_start()[1]

    def untouched(self, tol: float, bounded: bool) -> Solution | None:
        """Return w = 0 with its certificate, for a problem that a time limit leaves without any work.

        None: that takes more than is known without the rows. `bounded`: so does a bound, and one is wanted.
        """
        return None

    @abstractmethod
    def certify(self, point: Any, tol: float) -> Solution:
        """Certify a point that an engine holds for converged."""

    def certify_best(self, point: Any, tol: float) -> Solution:
        """Certify the best that can be made of a point, for a fit that ends early; here, the point."""
        return self.certify(point, tol)

    def certify_as_is(self, point: Any, tol: float) -> Solution:
        """Certify a point as a published method left it; here, the point."""
        return self.certify(point, tol)

    def examine(self, point: Any) -> None:
        """Raise ValueError when a point proves that there is no optimum; here, none does."""
        return

    def explain(self) -> None:
        """Raise ValueError when there is no finite objective, as the last resort; here, there always is."""
        return

    def conclude(self, solution: Solution) -> None:
        """Raise ValueError where what engines came to at their own end is no answer."""
        return

    def fault(self, point: Any) -> str | None:
        """Return why a point cannot be certified, as half a sentence; None: it can, or nothing is known of points."""
        return None

    def stored_objective(self, point: Any, objective: float) -> float:
        """Objective of a point as a model of the rows' type holds it, from the engine's own; here, the same."""
        return objective

    def stored_bound(self, point: Any, lower: float) -> float:
        """Bound of a point as its certificate states it, from the engine's own; here, the same."""
        return lower

    @property
    def corrects(self) -> bool:
        """Whether a point's bound may be larger than what its engine knows: here, never."""
        return False

    @property
    def expandable(self) -> bool:
        """Whether coefficients of any point can be told as dual coefficients, not only those of multipliers."""
        return True

    @property
    def unproven(self) -> str:
        """Why no certificate can say anything, for a problem that does not declare what a proof needs; else empty."""
        return ""

    def has_dual_coefficients(self, point: Any, tol: float) -> bool:
        """Whether a point has coefficients of its own with dual coefficients, which need not be looked for."""
        return False

    def values(self, objective: float, lower: float) -> tuple[float, float]:
        """Objective and bound of an engine's own estimates, as the certificate states them."""
        return self.unit * objective, self.unit * lower

    def value_of(self, solution: Solution) -> float | None:
        """Return the objective of a solution's coefficients as they are, for the certificate to be held against.

        None, as here: nothing is declared that it could be computed from.
        """
        return None

    @property
    def modulus(self) -> float:
        """Strong convexity of the objective along all coefficients; 0: none is known, as here."""
        return 0.0

    @property
    def reference(self) -> float:
        """Value at w = 0, b = 0, as the certificate states it."""
        return self.unit * self.at_zero

    def certificate_of(self, objective: float, lower: float, tol: float) -> Certificate:
        """Return the certificate of two values, which may come from two points."""
        return judge(objective, lower, self.reference, self.hard, tol, self.modulus)

    def gap_of(self, objective: float, lower: float) -> float:
        """Return the gap of that certificate; not a number is no proof."""
        return proven_gap(objective, lower, self.reference, self.hard)

    def joined(self, primal: Solution, proof: Solution, tol: float) -> Solution:
        """Return a solution with the bound of another and its multipliers, where that bound is the larger one."""
        ours, theirs = primal.certificate, proof.certificate
        if not theirs.lower_bound > ours.lower_bound:
            return primal
        certificate = replace(self.certificate_of(ours.objective, theirs.lower_bound, tol), kind=theirs.kind)
        return replace(primal, beta=proof.beta, certificate=certificate)


class Several(ABC):
    """Base class of a form that says itself which problems it consists of; it has `features` and `bias`.

    A MarginForm can be such a form as well: engines take its columns as they are, and what is certified and told is
    the business of its own problems.
    """

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        check_answers(cls)

    @abstractmethod
    def problems(self) -> tuple[Problem, ...]:
        """Return the problems: at least one."""


Form = Any
"""A MarginForm, a Problem that is its own form, or a form of Several: all have `features` and `bias`."""


def array_fault(name: str, value: Any, shape: tuple[int, ...]) -> str | None:
    """Fault of an array of an engine's point, as half a sentence of the base class's `Problem.fault`; or None."""
    if not isinstance(value, np.ndarray) or value.dtype.kind != "f" or value.shape != shape:
        array = isinstance(value, np.ndarray)
        told = f"an array of {value.dtype} and shape {value.shape}" if array else type(value).__name__
        return f"its point has as {name} {told}, floats of shape {shape} are needed"
    # The sum of sizes is sooner known; it may overflow.
    flat = value if value.ndim == 1 else value.ravel()
    finite = not value.size or math.isfinite(safe_sum(flat)) or np.isfinite(value).all()
    return None if finite else f"its point has NaN or infinity in {name}"
