"""Proof of a problem's solution: how it is judged, a fit's record, and where the next fit may begin.

Nothing here knows what a problem is made of: `mdlearn.forms.certificates.certified_solution` finds the values of margin
columns, other problems bring their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from mdlearn.data.features.kernel_features import Features
from mdlearn.numerics.frozen_init import quick_init

SMALLEST_NORMAL = float(np.finfo(float).tiny)
GAP_SHARE_AT_ZERO = 0.01
"""Share of the objective at w = 0 that a gap is relative to where the objective itself is less."""
UNSEEN_BY_PROOFS = 4e-12
"""Share of the values that certificates leave to rounding: half of it of the objective, half of the bound."""
AT_REST = 1e-13
"""Gap from which engines find nothing but other roundings: a tolerance below it is met by chance."""


@quick_init
@dataclass(frozen=True)
class Certificate:
    """Proof of how close a model's objective is to the optimum.

    Attributes
    ----------
    objective : float
        The full objective at the model's coefficients, constants included.
    lower_bound : float
        No coefficients have a smaller objective; -inf where nothing of the kind is known.
    gap : float
        (objective - lower_bound) / max(|objective|, 0.01 |objective at w = 0|, tiny); with C = inf the denominator is
        max(|objective|, |lower_bound|, tiny). For a problem that is not convex, what first-order conditions leave open
        (see `judge_residual`) over the first of these; then a gap of 0 means a stationary point, and nothing more.
    kind : str
        "duality gap", "closed form" (problems of plugins whose answer is a formula), "residual" (from first-order
        conditions; lower_bound is -inf where the problem is not convex), or "none" (then lower_bound is -inf, and gap
        is inf).
    tol : float
        The gap that the fit was asked for.
    converged : bool
        gap <= tol for every part; a proof only where `vouched_by` is empty.
    parts : tuple of Certificate
        One per class or pair; empty for a single problem.
    source : str
        "fit" where the values were computed with the model, "file" where they were read from a model file, which proves
        as much as its writer is trusted. Certificates of equal values are equal whatever their source.
    vouched_by : str
        Class of a plugin whose code made the bound, or the residual; mdlearn has compared its values with each other,
        not computed them. Empty where the proof is mdlearn's own.
    distance : float
        No optimum is farther from the coefficients: of |w - w*|, in the length of the features and with the intercept
        that a regularized bias squares; for several problems of all their coefficients together. Infinite where nothing
        bends the objective along all of them, as without a squared norm or with a free bias, and without a bound. It
        follows from the other values: certificates of equal ones are equal whatever it is.
    """

    objective: float
    lower_bound: float
    gap: float
    kind: str
    tol: float
    converged: bool
    parts: tuple[Certificate, ...] = field(default=(), repr=False)
    source: str = field(default="fit", compare=False)
    vouched_by: str = ""
    distance: float = field(default=math.inf, compare=False)

    @property
    def proven(self) -> bool:
        """Whether it has converged by a proof of mdlearn's own, not on the word of a plugin."""
        return self.converged and not self.vouched_by

    @property
    def verdict(self) -> str:
        """Words for tables and reports: "yes", "no", or who says so."""
        if not self.converged:
            return "no"
        return f"not proven; {self.vouched_by} says so" if self.vouched_by else "yes"


@dataclass(eq=False, slots=True)
class Solution:
    """Solution with its proof: coefficients of one column and multipliers; of all k classes where a problem is joint.

    Attributes
    ----------
    coef : ndarray of shape (d,) or (k, d), or None
        w of explicit columns; None for a kernel. float64, rounded to the type of the rows.
    intercept : float, or ndarray of shape (k,)
    alpha : ndarray of shape (m,) or (k, 1, m), or None
        Signed coefficients over the rows, f(x) = sum alpha_i k(x_i, x) + intercept; None where w is no combination of
        rows.
    beta : ndarray of shape (T, m) or (k, T, m)
        Multipliers.
    norm : float, or ndarray of shape (k,)
        |w| in the space of the features.
    certificate : Certificate
    at_limit : bool
        Rounding to the type of the rows alone costs more than `tol`, and than what is left of any gap in the end: no
        later point of an engine will do better.
    extras : dict of str to ndarray
        What else the features give a model as attributes.
    """

    coef: np.ndarray | None
    intercept: float | np.ndarray
    alpha: np.ndarray | None
    beta: np.ndarray
    norm: float | np.ndarray
    certificate: Certificate
    at_limit: bool = False
    extras: dict[str, np.ndarray] = field(default_factory=dict)


def proven_gap(objective: float, lower: float, at_zero: float, hard: bool) -> float:
    """Relative gap of two values in a proof, as `Certificate` defines it; infinite unless both are finite."""
    gap = objective - lower
    if not -math.inf < gap < math.inf:
        return math.inf
    if gap <= 0.0:  # rounding alone makes it negative
        return 0.0
    return gap / max(abs(objective), abs(lower) if hard else GAP_SHARE_AT_ZERO * abs(at_zero), SMALLEST_NORMAL)


def judge(
    objective: float,
    lower: float,
    at_zero: float,
    hard: bool,
    tol: float,
    modulus: float = 0.0,
    apart: float | None = None,
) -> Certificate:
    """Judge the proof of one problem by its two values: its certificate; NaN (overflows of either sign) is no proof.

    `modulus`: of strong convexity of the objective along all coefficients; 0: none is known. `apart`: distance of the
    coefficients from those that the multipliers of the bound make, where it is known. With w* the optimum, w the
    coefficients, v those of the multipliers and a gap of `room` times the modulus, 1/2 |w - w*|^2 <= room, and even
    1/2 |w - w*|^2 + 1/2 |v - w*|^2 <= room: by strong convexity of the objective at w, and of minus the dual at v.
    """
    objective, lower = math.inf if math.isnan(objective) else float(objective), float(lower)
    if not math.isfinite(lower):
        return Certificate(objective, -math.inf, math.inf, "none", tol, False)
    lower = min(lower, objective)
    gap = proven_gap(objective, lower, at_zero, hard)
    distance = math.inf
    if modulus > 0.0:
        room = (objective - lower + UNSEEN_BY_PROOFS * max(abs(objective), abs(lower))) / modulus
        if apart is None or apart * apart >= 2.0 * room:  # more than that is rounding
            distance = math.sqrt(2.0 * room)
        else:
            distance = 0.5 * (apart + math.sqrt(4.0 * room - apart * apart))
    return Certificate(objective, lower, gap, "duality gap", tol, gap <= tol, distance=distance)


def judge_residual(objective: float, residual: float, at_zero: float, tol: float) -> Certificate:
    """Judge the proof of a problem that is not convex: no lower bound, the gap is that of first-order conditions.

    Parameters
    ----------
    objective : float
    residual : float
        What first-order conditions leave open, >= 0 and in units of the objective: 0 where they hold, and what a convex
        model that touches the objective at the point could still save elsewhere. For example |g|^2 / (2 ridge) with the
        gradient g of an objective that has ridge/2 |w|^2.
    at_zero : float
        Objective at w = 0, for the scale of the gap.
    tol : float

    Returns
    -------
    Certificate
        Of kind "residual", with lower_bound -inf; of kind "none" when objective or residual are not finite.
    """
    objective, residual = float(objective), float(residual)
    if not (math.isfinite(objective) and math.isfinite(residual)):
        return Certificate(objective, -math.inf, math.inf, "none", tol, False)
    gap = proven_gap(objective, objective - residual, at_zero, False)
    return Certificate(objective, -math.inf, gap, "residual", tol, gap <= tol)


def combine_proofs(parts: list[Certificate], scales: Sequence[tuple[float, bool]], tol: float) -> Certificate:
    """Combine the certificates of several problems: sums of the values; converged when every part is.

    Where a part has no bound, the sum has none: its gap is the largest of the parts. `scales` are as in `fit_history`.
    """
    if len(parts) == 1:
        return parts[0]
    at_zero, hard = map(sum, zip(*scales))
    objective, lower = sum(p.objective for p in parts), sum(p.lower_bound for p in parts)
    whole = judge(objective, lower, at_zero, bool(hard), tol)
    if math.isinf(lower):
        gap = max(p.gap for p in parts)
        whole = replace(whole, gap=gap, kind="none" if math.isinf(gap) else "residual")
    vouched_by = ", ".join(dict.fromkeys(p.vouched_by for p in parts if p.vouched_by))
    converged, distance = all(p.converged for p in parts), math.hypot(*(p.distance for p in parts))
    return replace(whole, tol=tol, converged=converged, parts=tuple(parts), vouched_by=vouched_by, distance=distance)


class ZeroProof(NamedTuple):
    """Proof at w = 0, b = 0 without the rows: objective and lower bound of a problem, as certificates state them.

    `value`: the objective but for constraints; the scale of the gap; `lower`: what multipliers 0 say; -inf where a mean
    pulls at the rows; `hard`: whether there are constraints.
    """

    value: float
    lower: float
    hard: bool


class ProvenZeros:
    """Solutions w = 0 with their proof, in the shape of another problem's."""

    def __init__(self, like: Solution, tol: float) -> None:
        self.like, self.tol = like, tol
        self.coef = None if like.coef is None else np.zeros(like.coef.shape)
        self.none = np.zeros(np.shape(like.intercept)) if np.ndim(like.intercept) else 0.0
        self.arrays: dict[int, tuple[np.ndarray | None, np.ndarray]] = {}

    def solution(self, n_rows: int, zero: ZeroProof) -> Solution:
        """Return w = 0 for a problem of so many rows, certified."""
        if n_rows not in self.arrays:
            alpha, beta = (
                None if one is None else np.broadcast_to(0.0, (*one.shape[:-1], n_rows))
                for one in (self.like.alpha, self.like.beta)
            )
            assert beta is not None
            self.arrays[n_rows] = alpha, beta
        alpha, beta = self.arrays[n_rows]
        objective = np.inf if zero.hard else zero.value
        certificate = judge(objective, zero.lower, zero.value, zero.hard, self.tol)
        return Solution(self.coef, self.none, alpha, beta, self.none, certificate)


@quick_init
@dataclass(frozen=True)
class State:
    """State of a fit's proof at one report: what a callback sees, and one record of a model's history.

    Attributes
    ----------
    iteration : int
        Reports of this problem so far, from 1.
    objective, lower_bound, gap : float
        Best values so far, as the engine estimates them.
    elapsed : float
        Seconds since fit was entered.
    problem : int
        Index of the class or pair being solved.
    row_dots : int or None
        Products with single rows so far, where the engine counts them (``cd`` on sparse rows): a measure of work that
        does not depend on the machine. Not kept in files.
    point : int or None
        Position in its grid of the point of a path; None for a single fit. For callbacks: models do not keep it.
    """

    iteration: int
    objective: float
    lower_bound: float
    gap: float
    elapsed: float
    problem: int
    row_dots: int | None = field(default=None, compare=False)
    point: int | None = field(default=None, compare=False)


def fit_history(
    history: Sequence[State], certificates: Sequence[Certificate], scales: Sequence[tuple[float, bool]]
) -> list[State]:
    """History of the proofs of a fit by problems: it promises no more than the last certificates, and ends with these.

    Estimates of engines can be better than what is true, and are withdrawn where a later look finds less. Problems in
    threads report in any order.

    `certificates`: one for each problem; `scales`: the problem's value at w = 0, and whether it has constraints: what
    gaps are relative to.
    """
    found = sorted(history, key=attrgetter("problem")) if len(certificates) > 1 else list(history)
    for i in reversed(range(len(found))):
        state, told = found[i], certificates[found[i].problem]
        values, gap = (told.objective, told.lower_bound), told.gap
        if i + 1 < len(found) and found[i + 1].problem == state.problem:
            later = found[i + 1]
            same, gap = (later.objective, later.lower_bound), later.gap
            values = max(state.objective, same[0]), min(state.lower_bound, same[1])
            if not math.isfinite(values[1]):
                gap = state.gap
            elif values != same:
                gap = proven_gap(*values, *scales[state.problem])
        if (*values, gap) != (state.objective, state.lower_bound, state.gap):
            found[i] = replace(state, objective=values[0], lower_bound=values[1], gap=gap)
    return found


@dataclass(frozen=True, eq=False)
class Start:
    """Start for a problem from a solution with its proof: one column's values, in that problem's rows and features.

    `coef` (shape (width,)), `intercept`: of the features; `beta` (shape (T, m)): multipliers, within the boxes of the
    problem that they come from; `alpha` (shape (m,)): dual coefficients, where there are such.
    """

    coef: np.ndarray
    intercept: float
    beta: np.ndarray
    alpha: np.ndarray | None


def starts_of(solution: Solution, features: Features) -> list[Start]:
    """Make a Start of every column of a Solution with its proof over features of the same shape; none for another."""
    several = np.ndim(solution.intercept) > 0
    parts: list[Any] = [solution.coef, solution.alpha, solution.beta, solution.intercept]
    columns = list(zip(*([None] * len(parts[3]) if part is None else part for part in parts))) if several else [parts]
    found = []
    for coef, alpha, beta, intercept in columns:
        alpha = None if alpha is None else alpha.reshape(-1)
        start = Start(features.from_model(coef, alpha), float(intercept), beta, alpha)
        if start.coef.shape != (features.width,) or beta.shape[-1] != features.n_rows:
            return []
        found.append(start)
    return found
