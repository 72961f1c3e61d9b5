"""Points of a joint composite: what is known there, and what engines hand in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class CompositeEvaluation:
    """Value and gradient of a joint composite's h at a point, with measures of their rounding.

    Attributes
    ----------
    W : ndarray of shape (p, k)
    value : float
        h(W).
    gradient : ndarray of shape (p, k)
        That of h, without ridge.
    sizes : ndarray of shape (p,)
        What the terms of each row's gradient add up to without their signs: it tells rounding from slope.
    scores : ndarray of shape (m, k) or None
        Decision values on the training rows, where the problem has such.
    below : float
        How far below the value the tangent may lie: what rounding leaves open, and what mixing of tangents costs.
    """

    W: np.ndarray
    value: float
    gradient: np.ndarray
    sizes: np.ndarray
    scores: np.ndarray | None = None
    below: float = 0.0


@dataclass(frozen=True, eq=False)
class CompositePoint:
    """Point of a joint composite: coefficients, and others with a tangent less steep than every beta_j (or None)."""

    W: np.ndarray
    anchor: np.ndarray | None = None


def row_lengths(W: np.ndarray) -> np.ndarray:
    """Length |W_j| of every row of coefficients at a joint composite's point."""
    return np.sqrt(np.einsum("jk,jk->j", W, W))


def point_tangent_at_zero(look: CompositeEvaluation) -> float:
    """Value at W = 0 of the tangent at a joint composite's point."""
    return look.value - look.below - float((look.gradient * look.W).sum())
