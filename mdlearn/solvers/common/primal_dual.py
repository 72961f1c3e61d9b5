"""Primal-dual values of one column: objective and bound of a primal element with its multipliers."""

from __future__ import annotations

import numpy as np

from mdlearn.forms.certificates.dual import feasible_dual
from mdlearn.forms.certificates.primal import primal_objective
from mdlearn.forms.margin import Column, MarginForm, Point
from mdlearn.numerics.lazy_property import kept
from mdlearn.solvers.base import Report
from mdlearn.solvers.systems.row_and_gram import GramSystem, RowSystem, SubsetSystem
from mdlearn.solvers.systems.system_choice import typical_multiplier

BALANCED = 1e-13
"""Share of its terms that the sum of multipliers is where it counts as 0."""


STIFF_STEPS = 1e6
"""Stiffness of a matrix from which what a step leaves out shows in a bound: solutions have lost that many digits."""


class PrimalDual:
    """Primal-dual pair: a column together with the system that solves its quadratic part."""

    def __init__(self, form: MarginForm, column: Column, system: RowSystem | GramSystem | SubsetSystem) -> None:
        self.form = form
        self.column = column
        self.system = system

    def multipliers(self, beta: np.ndarray) -> np.ndarray:
        """Signed representer weights of the linear part: y (sum_t side_t beta_t + a c / m)."""
        return self.column.y * (self.column.sides @ beta + self.column.pull)

    def margins(self, element: np.ndarray) -> np.ndarray:
        """z = y f on all rows."""
        return self.column.y * self.system.decision(element)

    def slopes(self, z: np.ndarray) -> np.ndarray:
        """side (z - kink) of every term and row: negative where there is a loss."""
        return self.column.sides[:, None] * (z - self.column.kinks)

    def distances(self, z: np.ndarray) -> np.ndarray:
        """Distance of every row from its nearest kink, among terms that have a weight there."""
        return np.min(np.abs(self.slopes(z)), axis=0, initial=np.inf, where=self.column.caps > 0)

    def residual(self, element: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Gradient of the Lagrangian: Q w - sum_i (mu_i + a c_i / m) r_i."""
        held = self.system.adjoint(self.multipliers(beta)) if self.column.terms else self.pulled
        return self.system.quadratic(element) - held

    def curvature(self, step: np.ndarray, dz: np.ndarray) -> float:
        """Second derivative along a step with margins dz, of everything but the loss."""
        return self.form.norm(*self.coefficients(step)) - float(dz @ self.column.spread(dz))

    @kept
    def pulled(self) -> np.ndarray:
        """Sum of y_i pull_i phi_i: the contribution of the mean term alone."""
        return self.system.adjoint(self.column.y * self.column.pull)

    def coefficients(self, element: np.ndarray) -> tuple[np.ndarray, float]:
        """Coefficients and intercept of an element, as the certificate knows them."""
        coef, intercept = self.system.split(element)
        if isinstance(self.system, GramSystem):
            coef = self.form.features.expand(coef)
        return coef, intercept

    @kept
    def typical_multiplier(self) -> float:
        """Multiplier with which one average row would reach margin 1 on its own."""
        return typical_multiplier(self.form)

    @kept
    def typical_kink(self) -> float:
        """Size of margins: 1 for signs, as thresholds are; that of the targets where they are larger."""
        return 1.0 if self.column.level else max(1.0, float(np.abs(self.column.kinks).mean()))


class PrimalDualOnRows(PrimalDual):
    """A `PrimalDual` over some rows of a column: the gradient of all that is not theirs is Q element - fixed.

    `system`: with Q of all rows; `fixed`: sum of r_i times what the mean term and multipliers that stay give every row.
    """

    def __init__(self, form: MarginForm, column: Column, system: RowSystem | SubsetSystem, fixed: np.ndarray) -> None:
        super().__init__(form, column, system)
        self.fixed = fixed

    @classmethod
    def of(cls, state: PrimalDual, rows: np.ndarray, fixed: np.ndarray) -> PrimalDualOnRows:
        """Chosen rows of a state over explicit ones, in ascending order."""
        column = state.column
        assert isinstance(state.system, RowSystem)
        found = cls(state.form, column.take(rows), SubsetSystem(state.system, rows, column.y.shape[0]), fixed)
        found.typical_multiplier, found.typical_kink = state.typical_multiplier, state.typical_kink
        return found

    def residual(self, element: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """Gradient of the Lagrangian of the whole problem, the other rows' multipliers as they are."""
        pushed = self.system.adjoint(self.column.y * (self.column.sides @ beta))
        return self.system.quadratic(element) - self.fixed - pushed


def primal_dual_report(state: PrimalDual, element: np.ndarray, beta: np.ndarray, z: np.ndarray) -> Report:
    """Report primal and dual values of an element with margins z and multipliers; one pass over the rows beyond z."""
    coef, intercept = state.coefficients(element)
    return report_of(state.form, state.column, Point(beta, state.column.spread(z), coef, intercept), z)


def report_of(form: MarginForm, column: Column, point: Point, z: np.ndarray) -> Report:
    """Report primal and dual values of a point whose margins z are known.

    Parameters
    ----------
    form : MarginForm
    column : Column
    point : Point
        With coefficients of its own.
    z : ndarray of shape (m,)
        Scores y f(x) at these coefficients, with the intercept; targets are not taken off yet.

    Returns
    -------
    Report
    """
    assert point.coef is not None
    objective = primal_objective(column, z, form.norm(point.coef, point.intercept), estimated=True)[0]
    return Report.estimated(objective, feasible_dual(form, column, point.beta, point.sigma, estimated=True)[0], point)


def primal_dual_report_without_pass(
    state: PrimalDual, element: np.ndarray, z: np.ndarray, beta: np.ndarray, sigma: np.ndarray, stand_for: np.ndarray
) -> Report:
    """Report primal and dual values where it is known for which element multipliers within their boxes stand.

    Explicit rows under a ridge alone; elsewhere the bound takes a pass, as it does after stiff steps and where
    multipliers miss the condition of a free bias.
    """
    form, column = state.form, state.column
    point = Point(beta, sigma, *state.coefficients(element))
    if form.ridge == 0 or isinstance(state.system, GramSystem) or state.system.stiffness > STIFF_STEPS:
        return report_of(form, column, point, z)
    if form.bias == "free":
        multipliers = column.sides @ beta + column.pull
        miss = abs(float(column.y @ (multipliers + sigma)))
        if miss > BALANCED * float(np.abs(multipliers).sum()):
            return report_of(form, column, point, z)
    assert point.coef is not None
    objective = primal_objective(column, z, form.norm(point.coef, point.intercept), estimated=True)[0]
    bound = column.bound(beta, sigma, estimated=True) - 0.5 * form.norm(*state.coefficients(stand_for))
    return Report.estimated(objective, bound, point)
