"""The losses of mcODM at decision values: both sides of the band, multipliers, and what first-order conditions miss.

A row x_i of class y_i has the margin gamma_i = f_y - max_(l != y) f_l; the class that attains the maximum is its
runner-up. Its loss is a_i (low - gamma_i)_+^2 + b_i (gamma_i - high)_+^2 with low = 1 - theta, high = 1 + theta. The
first part is convex in f. The second is not: it is the smallest, over l, of the convex b_i (f_y - f_l - high)_+^2.
"""

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Slopes of the losses.

    Attributes
    ----------
    short : ndarray of shape (m, k)
        >= 0: pull of class l on rows whose lead over it is below the band; 0 in the own class.
    beyond : ndarray of shape (m,)
        >= 0: push on margins above the band.
    runner : ndarray of shape (m,), intp
        The class against which `beyond` holds.
    """

    short: np.ndarray
    beyond: np.ndarray
    runner: np.ndarray


class Losses:
    """The losses of all rows.

    Parameters
    ----------
    codes : ndarray of shape (m,), intp
        Class of every row.
    counts : ndarray of shape (m,)
        Repetitions of every row.
    k : int
        Number of classes, at least 3.
    lam, mu, theta : float
    """

    def __init__(self, codes, counts, k, lam, mu, theta):
        self.codes, self.counts, self.k = codes, counts, k
        self.at = np.arange(codes.shape[0])
        self.low, self.high = 1.0 - theta, 1.0 + theta
        self.a = counts * (lam / (float(counts.sum()) * self.low**2))
        self.b = mu * self.a

    @property
    def convex(self):
        """Whether no margin beyond the band has a price."""
        return not self.b.any()

    def lags(self, F):
        """f_l - f_y for every class; -inf for the own one."""
        V = F - F[self.at, self.codes][:, None]
        V[self.at, self.codes] = -np.inf
        return V

    def runners(self, F):
        """The strongest other class of every row, the first of equals."""
        return self.lags(F).argmax(axis=1)

    def lead(self, F, runner):
        """f_y - f_l for one class l per row."""
        return F[self.at, self.codes] - F[self.at, runner]

    def value(self, F):
        """The sum of all losses."""
        margin = self.lead(F, self.runners(F))
        return float(
            self.a @ np.maximum(self.low - margin, 0.0) ** 2 + self.b @ np.maximum(margin - self.high, 0.0) ** 2
        )

    def natural(self, F):
        """Derivatives of the losses; where several classes are equal runners-up, each has the same share."""
        V = self.lags(F)
        best = V.max(axis=1)
        ties = V == best[:, None]
        short = ties * (2.0 * self.a * np.maximum(self.low + best, 0.0) / ties.sum(axis=1))[:, None]
        return Multipliers(short, 2.0 * self.b * np.maximum(-best - self.high, 0.0), V.argmax(axis=1))

    def against_runners(self, F, multipliers):
        """The same multipliers, with `beyond` against the runners-up at F: where these are others, its derivative."""
        runner = self.runners(F)
        here = 2.0 * self.b * np.maximum(self.lead(F, runner) - self.high, 0.0)
        beyond = np.where(runner == multipliers.runner, multipliers.beyond, here)
        return replace(multipliers, beyond=beyond, runner=runner)

    def alpha(self, multipliers):
        """Signed coefficients of the rows, (m, k): minus the slopes of the losses."""
        A = -multipliers.short
        A[self.at, self.codes] = multipliers.short.sum(axis=1)
        A[self.at, self.codes] -= multipliers.beyond
        A[self.at, multipliers.runner] += multipliers.beyond
        return A

    def missed(self, F, multipliers, price):
        """What multipliers lack to be slopes of the convex majoriser at F, in units of the objective; >= 0.

        The majoriser takes what is beyond the band, at `price` (b, or 0), against the fixed classes `runner`. This is
        the sum of loss and conjugate less their product, written as a sum of terms >= 0: it keeps its digits near 0.
        """
        lags, total = self.lags(F), multipliers.short.sum(axis=1)
        top = lags.max(axis=1)
        short, room = np.maximum(self.low + top, 0.0), np.maximum(-self.low - top, 0.0)
        slack = np.where(multipliers.short > 0, room[:, None] + (top[:, None] - lags), 0.0)
        excess = self.lead(F, multipliers.runner) - self.high
        beyond = np.maximum(excess, 0.0)
        value = float((multipliers.short * slack).sum() + (multipliers.beyond * (beyond - excess)).sum())
        for weight, size, slope in ((self.a, short, total), (price, beyond, multipliers.beyond)):
            used = weight > 0
            value += float(((weight * size - 0.5 * slope)[used] ** 2 / weight[used]).sum())
        return value

    def balanced(self, multipliers):
        """Multipliers whose coefficients add up to 0 in every class, as free intercepts demand: some are raised.

        Raising the pull of class l on rows of class y moves weight from l to y.
        """
        sums = self.alpha(multipliers).sum(axis=0)
        lacks, has = np.maximum(-sums, 0.0), np.maximum(sums, 0.0)
        if not has.any():
            return multipliers
        move = np.multiply.outer(lacks, has) / has.sum()
        member = self.codes[:, None] == np.arange(self.k)
        pulls = member.T.astype(float) @ multipliers.short
        grow = np.divide(move, pulls, out=np.zeros_like(move), where=pulls > 0)
        share = self.counts / (member.T @ self.counts)[self.codes]
        fresh = np.where(pulls > 0, 0.0, move)
        short = multipliers.short * (1.0 + grow[self.codes]) + share[:, None] * fresh[self.codes]
        return replace(multipliers, short=short)
