"""The convex problem with fixed runners-up, one step of the method of multipliers: a smooth function and its minimum.

The loss a (low + max_l v_l)_+^2 of the lags v_l = f_l - f_y has a kink where several classes are equal. With centres
beta_l >= 0 from the last step, a smooth function takes its place, min_t a (low + max t)_+^2 + sigma/2 |v + beta/sigma
- t|^2: all v_l + beta_l/sigma above some tau are drawn down to tau, by forces that are the new beta_l.
"""

from dataclasses import dataclass

import numpy as np

from .coordinates import System
from .losses import Multipliers

STEPS = 60
"""Most Newton steps."""
SEARCHES, CLOSE = 20, 0.1
"""Most derivatives along a step, and the share of the first that may be left."""
ROUNDING = 1e-12
"""Relative change of the function that rounding may hide."""


@dataclass(frozen=True, eq=False)
class Look:
    """The smooth function at a point: value of its losses, multipliers, and the classes that are drawn down."""

    value: float
    multipliers: Multipliers
    drawn: np.ndarray


class Ties:
    """The convex problem.

    Parameters
    ----------
    losses : Losses
    runner : ndarray of shape (m,), intp
        The class against which margins beyond the band are taken.
    price : ndarray of shape (m,)
        What they cost, `losses.b` or 0.
    """

    def __init__(self, losses, runner, price):
        self.losses, self.runner, self.price = losses, runner, price

    def beyond(self, F):
        """Slope of the losses beyond the band."""
        return 2.0 * self.price * np.maximum(self.losses.lead(F, self.runner) - self.losses.high, 0.0)

    def look(self, F, centres, stiffness):
        """The smooth function at decision values F, with sigma = stiffness * 2 a."""
        losses, sigma = self.losses, stiffness * 2.0 * self.losses.a
        T = losses.lags(F) + centres / sigma[:, None]
        drawn, short = np.zeros(T.shape, dtype=bool), np.zeros(T.shape)
        live = np.flatnonzero(T.max(axis=1) > -losses.low)
        T = T[live]
        excess = _excess(T, losses.low, stiffness)[:, None]
        over = np.maximum(T + losses.low - excess, 0.0)
        drawn[live], short[live] = over > 0, sigma[live, None] * over
        beyond = self.beyond(F)
        used = beyond > 0
        value = float(losses.a[live] @ excess[:, 0] ** 2 + 0.5 * (sigma[live] @ np.square(over).sum(axis=1)))
        value += 0.25 * float((beyond[used] ** 2 / self.price[used]).sum())
        return Look(value, Multipliers(short, beyond, self.runner), drawn)

    def bend(self, look, stiffness):
        """Rows where the second derivative is not 0, and its product with values of these rows."""
        losses = self.losses
        live = np.flatnonzero(look.drawn.any(axis=1) | (look.multipliers.beyond > 0))
        at, own, runner = np.arange(live.shape[0]), losses.codes[live], self.runner[live]
        drawn, sigma = look.drawn[live], (stiffness * 2.0 * losses.a[live])[:, None]
        common = stiffness / (1.0 + stiffness * drawn.sum(axis=1, keepdims=True))
        push = np.where(look.multipliers.beyond[live] > 0, 2.0 * self.price[live], 0.0)

        def apply(Z):
            mine = Z[at, own]
            E = np.where(drawn, Z - mine[:, None], 0.0)
            E = sigma * np.where(drawn, E - common * E.sum(axis=1, keepdims=True), 0.0)
            against = push * (mine - Z[at, runner])
            E[at, own] = against - E.sum(axis=1)
            E[at, runner] -= against
            return E

        return live, apply


def _excess(T, low, stiffness):
    """low + tau of rows T with max T > -low: the common level of the n largest, n as large as it draws them down."""
    # The own class, -inf, comes last.
    down = np.sort(T, axis=1)[:, :0:-1] + low
    n = np.arange(1, down.shape[1] + 1)
    level = stiffness * np.cumsum(down, axis=1) / (1.0 + stiffness * n)
    count = (down > level).sum(axis=1)
    return level[np.arange(T.shape[0]), count - 1]


class Newton:
    """Newton steps on the smooth function; pieces are quadratic, so that they end when the pieces are found.

    Parameters
    ----------
    space : Coordinates
    ties : Ties
    centres : ndarray of shape (m, k)
    stiffness : float

    Attributes
    ----------
    taken : int
        Number of steps.
    """

    def __init__(self, space, ties, centres, stiffness):
        self.space, self.ties, self.centres, self.stiffness = space, ties, centres, stiffness
        self.taken = 0
        self.ridge = space.ridge[:, None]
        bends = 2.0 * float((ties.losses.a + ties.price).sum())
        self.metric = np.where(self.ridge > 0, self.ridge, bends)

    def minimise(self, V, F, goal):
        """Return coefficients, decision values and multipliers once half the squared slope is below the goal."""
        look, value = self._look(V, F)
        last = np.inf
        for self.taken in range(STEPS):
            G = self.ridge * V - self.space.adjoint(self.ties.losses.alpha(look.multipliers))
            yield
            size = 0.5 * float((np.square(G) / self.metric).sum())
            if size <= (goal if self.taken else 0.0):
                break
            live, apply = self.ties.bend(look, self.stiffness)
            step = -(yield from System(self.space, live, apply, V.shape[1]).solve(G))
            along, slope = self.space.times(step), float((G * step).sum())
            yield
            # Near the end values are all rounding; then full steps go on as long as they make the slope smaller.
            blind = -slope <= ROUNDING * value
            if blind and size > 0.5 * last:
                break
            last = size if blind else np.inf
            length = 1.0 if blind else (yield from self._length(V, F, step, along, slope))
            if length == 0.0:
                break
            V, F = V + length * step, F + length * along
            look, value = self._look(V, F)
        # Sums of steps have lost digits.
        F = self.space.times(V)
        yield
        return V, F, self._look(V, F)[0].multipliers

    def _length(self, V, F, step, along, slope):
        """Where the function stops falling along a step, roughly, but 1 at most: false position on its derivative.

        0 where even the first derivative is rounding.
        """
        ridge, losses = self.ridge, self.ties.losses

        def rate(t):
            A = losses.alpha(self._look(V + t * step, F + t * along)[0].multipliers)
            return float((ridge * (V + t * step) * step).sum()) - float((A * along).sum())

        left, right, at_left, at_right = 0.0, 1.0, slope, rate(1.0)
        yield
        if at_right <= 0.0:
            return 1.0
        for _ in range(SEARCHES):
            t = left + (right - left) * at_left / (at_left - at_right)
            found = rate(t)
            yield
            if abs(found) <= CLOSE * abs(slope):
                return t
            # The end that stays counts half, so that the other one moves as well.
            if found > 0.0:
                right, at_right, at_left = t, found, 0.5 * at_left
            else:
                left, at_left, at_right = t, found, 0.5 * at_right
        return left

    def _look(self, V, F):
        look = self.ties.look(F, self.centres, self.stiffness)
        return look, 0.5 * float((self.ridge * np.square(V)).sum()) + look.value
