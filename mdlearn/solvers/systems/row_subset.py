"""Some of the rows of an explicit system: the same elements and factorisations, less margins and sums."""

from __future__ import annotations

import numpy as np

from mdlearn.solvers.systems.explicit import Map, RowSystem
from mdlearn.solvers.systems.weighted_gram import Work


class PortionSystem:
    """The same element space, Q and factorisations; margins and sums over the chosen rows alone."""

    def __init__(self, system: RowSystem, rows: np.ndarray, n_rows: int) -> None:
        self.whole, self.chosen, self.n_rows, self.size = system, rows, n_rows, system.size
        self.decision, self.adjoint = system.restrict(rows)
        self.most_restricted, self.bias, self.metric = system.most_restricted, system.bias, system.metric
        self.solve, self.quadratic, self.split = system.solve, system.quadratic, system.split

    def factor(self, D: np.ndarray) -> Work:
        """Factor Q + R' D R of the chosen rows."""
        weights = np.zeros(self.n_rows)
        weights[self.chosen] = D
        yield from self.whole.factor(weights)

    def restrict(self, rows: np.ndarray) -> tuple[Map, Map]:
        """`decision` and `adjoint` of some of the chosen rows."""
        return self.whole.restrict(self.chosen[rows])
