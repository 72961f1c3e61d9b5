"""KM-OMD, a kernel method for the optimization of the margin distribution (Aiolli, Da San Martino, Sperduti, 2008)."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

import mdlearn
from mdlearn.extend import (
    RELATIVE_MARGIN,
    Column,
    ColumnProblem,
    HingeTerm,
    MarginForm,
    Parameter,
    Several,
    judge,
    margin_bound,
    to_type,
)


class HullProblem(ColumnProblem):
    """The printed problem over gamma, certified by the SVM with squared hinges that engines solve in its place.

    That SVM has C = (1 - lam) / (2 lam) and a free bias. Its multipliers are beta = s gamma with a scale s and a gamma
    of the printed set; along s its dual is largest at D = 2 (1 - lam) / Q(gamma), Q the printed objective. So its
    optimum is 2 (1 - lam) / Q*: with any w and b of SVM objective P, 2 (1 - lam) / P is a lower bound of Q*. The
    relative gap is the same in both.
    """

    def __init__(self, form, column):
        super().__init__(form, column)
        self.lam = form.lam
        self.at_zero = 0.0  # gamma = 0 is none of the points: the gap is relative to the objective alone

    def values(self, objective, lower):
        """From the SVM's objective and bound to the printed ones: each becomes the other."""
        if self.lam == 1.0:
            value = self.look(self.part.counts)[0]
            return value, value
        return self._turned(lower), self._turned(objective)

    def _turned(self, value):
        if math.isinf(value) and value > 0:
            return 0.0
        return 2.0 * (1.0 - self.lam) / value if value > 0 else math.inf

    def certify(self, point, tol):
        """Certify gamma, the multipliers of a point with sum 1 in every class."""
        return self._printed(super().certify(point, tol), tol)

    def certify_best(self, point, tol):
        """The same, by the better of two SVM points."""
        return self._printed(super().certify_best(point, tol), tol)

    def certify_as_is(self, point, tol):
        """The same, by the engine's own SVM point."""
        return self._printed(super().certify_as_is(point, tol), tol)

    def untouched(self, tol, bounded):
        """None: w = 0 of the SVM is none of the printed problem's points."""

    def value_of(self, solution):
        """The printed objective at gamma."""
        return self.look(solution.beta[0])[0]

    def joined(self, primal, proof, tol):
        """The same, but the multipliers stay: they are gamma."""
        return replace(super().joined(primal, proof, tol), beta=primal.beta)

    def weights(self, raw):
        """Scale values >= 0 to the sum 1 in every class; a class of zeros gets equal weights."""
        y, gamma = self.part.y, np.zeros_like(raw)
        for side in (-1.0, 1.0):
            own = np.where(y == side, raw if raw[y == side].any() else self.part.counts, 0.0)
            gamma += own / own.sum()
        return gamma

    def look(self, gamma):
        """Return the printed objective at gamma, as the rows' type holds it, with w and gamma themselves."""
        features, counts = self.form.features, self.part.counts
        gamma = to_type(self.weights(gamma), features.dtype).astype(np.float64)
        w = features.expand(self.part.y * gamma)
        spread = float((gamma**2 / counts).sum())
        return (1.0 - self.lam) * features.squared_norm(w) + self.lam * spread, w, gamma

    def _printed(self, inner, tol):
        """The solution in terms of gamma, with the threshold half-way between the classes' projections."""
        features, y = self.form.features, self.part.y
        if not features.ready:
            nothing = judge(math.inf, -math.inf, 0.0, False, tol)
            return replace(inner, certificate=nothing)
        raw = self.part.counts if self.lam == 1.0 else inner.beta[0]
        objective, w, gamma = self.look(raw)
        if self.lam == 1.0:
            certificate = replace(judge(objective, objective, 0.0, False, tol), kind="closed form")
        else:
            certificate = judge(objective, self._turned(inner.certificate.objective), 0.0, False, tol)
        f = features.decision(w)
        threshold = 0.5 * float(gamma @ f)
        coef, alpha = features.to_model(w, y * gamma)
        norm = math.sqrt(features.squared_length(w))
        return replace(
            inner, coef=coef, intercept=-threshold, alpha=alpha, beta=gamma[None], norm=norm, certificate=certificate
        )

    def examine(self, point):
        """Raise ValueError once multipliers prove that the hulls intersect."""
        if self.hard:
            length = math.sqrt(float(self.form.features.squares().max()))
            if margin_bound(self.form, self.part, point.beta) <= RELATIVE_MARGIN * length:
                raise _intersecting()

    def explain(self):
        """Raise ValueError when a linear program says that the hulls intersect."""
        try:
            super().explain()
        except ValueError:
            raise _intersecting() from None

    def conclude(self, solution):
        """Raise ValueError where rounding hides whether the hulls intersect."""
        try:
            super().conclude(solution)
        except ValueError:
            raise _intersecting() from None


def _intersecting():
    return ValueError(
        "with lam=0 the solution is w=0: the convex hulls of the classes intersect in the space of this kernel; give "
        "lam > 0 or another kernel"
    )


@dataclass(frozen=True, eq=False)
class HullForm(MarginForm, Several):
    """The SVM that stands for the printed problem, column by column.

    Attributes
    ----------
    lam : float
        In [0, 1].
    """

    lam: float = 0.0

    def problems(self):
        """One per column."""
        return tuple(HullProblem(self, column) for column in self.columns)


class KMOMD(mdlearn.Objective):
    """KM-OMD: the difference of two weighted class means, of little length and with spread-out weights.

    ``min over gamma  (1 - lam) |sum_i y_i gamma_i phi(x_i)|^2 + lam sum_i gamma_i^2``

    gamma >= 0 with sum 1 in every class. f(x) = sum_i y_i gamma_i k(x_i, x) - b, where b is half-way between the
    projections of the two weighted means. lam = 0 is the hard margin: the nearest points of the two convex hulls.
    lam = 1 is the difference of the class means, whatever the kernel.

    A row of weight c stands for c rows. These share its gamma_i alike, since that is least: its square becomes
    gamma_i^2 / c. `dual_coef_` is y gamma (the sum over the c rows), `duals` gamma, and the certificate is that of the
    printed objective.

    Parameters
    ----------
    lam : float, default 0.1
        Weight of the squared gamma, in [0, 1].

    Raises
    ------
    ValueError
        At fit with lam=0, when the convex hulls intersect: w would be 0. With another bias than "free".

    Notes
    -----
    For 0 < lam < 1 the direction of w is that of the SVM with the loss C (1 - z)_+^2, C = (1 - lam) / (2 lam), and a
    free bias; w is shorter (by half the SVM's sum of multipliers), and the threshold is another one.

    Certain: the problem, its two ends, its solution. Readings: the threshold (half-way between the weighted means,
    which is the SVM's where both classes have the same sum of squares of gamma), the default of lam, one class against
    the rest for more than two. The LDM paper chose a C of KM-OMD from {10, 50, 100}; the problem has none.

    References
    ----------
    F. Aiolli, G. Da San Martino and A. Sperduti, "A kernel method for the optimization of the margin distribution",
    ICANN 2008.
    """

    name = "kmomd"
    summary = "kernel method for the optimization of the margin distribution"
    formula = "(1-lam) |sum y gamma phi(x)|^2 + lam sum gamma^2 over gamma >= 0 with sum 1 per class"
    parameters: ClassVar = {"lam": Parameter(0.1, "weight of the squared gamma: 0 hard margin, 1 means", high=1.0)}
    default_bias = "free"

    def form(self, data, features, bias, params):
        """One column for two classes, else one per class against the rest."""
        if bias != "free":
            raise ValueError(f"objective 'kmomd' has a threshold of its own; got bias={bias!r}, give bias='free'")
        lam = params["lam"]
        loss = () if lam == 1.0 else (HingeTerm((1.0 - lam) / (2.0 * lam) if lam > 0 else math.inf, power=2),)
        columns = tuple(Column(y, data.counts, 0.0, float(lam == 1.0), loss) for y in data.signs())
        # Without a loss there is nothing to solve: any engine ends at once.
        return HullForm(features, columns, "none" if lam == 1.0 else "free", lam=lam)
