"""The bias of sweeps that do not have it in their rows: it moves between them, by a response learned on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mdlearn.solvers.coordinate_descent.centred_rows import CentredDual

LEAST_RESPONSE = 0.05
"""Least response of a free bias, in units of the first guess: nothing else holds it where no multiplier is free."""


class LearnedBias:
    """Moves the offset between sweeps: Newton on Y(b) = weight b with a learned slope -dY/db.

    The weight of b^2 is 1 for a regularized bias and 0 for a free one.
    """

    def __init__(self, kind: str, dual: CentredDual) -> None:
        self.dual, self.moves_at_all = dual, kind != "none"
        self.weight = 1.0 if kind == "regularized" else 0.0
        self.response = self.least = self.last = self.step = 0.0
        self.moves = 0

    def move(self) -> None:
        """Answer the sweep that just ended."""
        p = self.dual.problem
        if not self.moves_at_all or p.live:
            return
        rho = p.total - self.weight * p.offset
        if self.moves == 0:
            self.response = self._first_response()
            self.least = 0.0 if self.weight else LEAST_RESPONSE * self.response
        elif self.step != 0.0:
            secant = -(rho - self.last) / self.step - self.weight
            if rho * self.last < 0 and abs(rho) > 0.5 * abs(self.last):
                self.response *= 3.0
            elif secant > 0:
                self.response = float(np.clip(secant, 0.25 * self.response, 2.0 * self.response))
            else:
                self.response *= 0.5
            self.response = max(self.response, self.least)
        self.step = rho / (self.weight + self.response)
        p.offset += self.step
        self.last = rho
        self.moves += 1

    def _first_response(self) -> float:
        """Every free multiplier, and every variance multiplier, answers a move of the bias by about 1 / |x|^2."""
        dual, column = self.dual, self.dual.column
        square = max(float(dual.squares.mean()), 1e-300)
        stiff = column.kappa * square
        free = max(dual.free(), 0.01 * column.y.shape[0])  # none may be free yet
        return (free + (column.y.shape[0] - free) * stiff / (1.0 + stiff)) / square
