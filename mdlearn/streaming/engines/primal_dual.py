"""What lies between two passes over row blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields

import numpy as np

from mdlearn.streaming.sums.certificate import Exact
from mdlearn.streaming.sums.margins import StreamedForm

STEP, LINE, GATHER, DONE = 0, 1, 2, 3
"""What a column needs next: an evaluation, a look along its line, the rows near a kink, nothing."""


@dataclass(eq=False)
class StreamedState:
    """Everything that goes from pass to pass, for columns j = 0 ... p - 1.

    Attributes
    ----------
    W, P : ndarray of shape (p, n)
        The present point and the direction of the step from it.
    length : ndarray of shape (p,)
        Of the step.
    h, before : ndarray of shape (p,)
        Half width at the end of the step, and at W.
    value, slope : ndarray of shape (p,)
        Objective with rounded kinks at W, and its slope along P; NaN: the step is taken whatever it gives.
    inside : ndarray of shape (p,)
        Margins near a kink when h last fell.
    mode : ndarray of shape (p,), int
    best, best_W : ndarray of shape (p,), (p, n)
        Smallest objective so far, and where.
    lower, lower_W, lower_P, lower_h, lower_dh : ndarray
        Largest bound so far, and where the multipliers are from: see `MultiplierSource`.
    plain : ndarray of shape (p,), bool
        Whether rows are no longer gathered.
    gap : ndarray of shape (p,)
    strict : ndarray of shape (p,)
        What the tolerance is multiplied by for estimates.
    stalled : ndarray of shape (p,), int
    exact : list of Exact or None
        Multipliers of the best bounds that are no function of margins.
    """

    W: np.ndarray
    P: np.ndarray
    length: np.ndarray
    h: np.ndarray
    before: np.ndarray
    value: np.ndarray
    slope: np.ndarray
    inside: np.ndarray
    mode: np.ndarray
    best: np.ndarray
    best_W: np.ndarray
    lower: np.ndarray
    lower_W: np.ndarray
    lower_P: np.ndarray
    lower_h: np.ndarray
    lower_dh: np.ndarray
    plain: np.ndarray
    gap: np.ndarray
    strict: np.ndarray
    stalled: np.ndarray
    exact: list[Exact | None] = field(default_factory=list)

    @classmethod
    def first(cls, form: StreamedForm) -> StreamedState:
        """At w = 0, with kinks rounded so that all rows are within."""
        p, n = len(form.columns), form.size
        h = [2.0 * max((abs(t.threshold) for t in one.column.terms), default=0.0) or 2.0 for one in form.columns]
        points = {name: np.zeros((p, n)) for name in ("W", "P", "best_W", "lower_W", "lower_P")}
        unknown = {name: np.full(p, math.nan) for name in ("value", "slope")}
        worst = {name: np.full(p, math.inf) for name in ("best", "gap", "inside")}
        counts = {name: np.zeros(p, dtype=np.int64) for name in ("mode", "stalled")}
        flags = {"plain": np.zeros(p, dtype=bool)}
        widths = {name: np.array(h) for name in ("h", "before", "lower_h")}
        widths |= {"lower_dh": np.zeros(p), "strict": np.ones(p), "length": np.ones(p), "lower": np.full(p, -math.inf)}
        return cls(**points, **unknown, **worst, **counts, **flags, **widths, exact=[None] * p)

    def arrays(self) -> dict[str, np.ndarray]:
        """The same as a mapping, for a file."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "exact"}
        for j, one in enumerate(self.exact):
            if one is not None:
                found |= {f"{name} {j}": getattr(one, name) for name in ("block", "row", "beta")}
        return found

    @classmethod
    def read(cls, found: dict[str, np.ndarray]) -> StreamedState:
        """What `arrays` gave."""
        plain = {name: values for name, values in found.items() if " " not in name}
        p = plain["mode"].shape[0]
        exact = [
            Exact(*(found[f"{name} {j}"] for name in ("block", "row", "beta"))) if f"beta {j}" in found else None
            for j in range(p)
        ]
        return cls(**plain, exact=exact)
