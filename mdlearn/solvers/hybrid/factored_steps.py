"""Factored steps of the smooth Newton method: by conjugate gradients with the factor of other second derivatives."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from mdlearn.numerics import cholesky
from mdlearn.solvers.hybrid.loss_column import LossColumn, SmoothFactor


class SmoothStep(NamedTuple):
    """Step of the smooth Newton method, its change of the margins, and the multipliers that it leads to.

    Where it is `made_of_rows`, R' towards are the coefficients that it leads to.
    """

    step: np.ndarray
    dz: np.ndarray
    towards: np.ndarray
    iterations: int
    made_of_rows: bool


class SmoothSystem(NamedTuple):
    """System of a smooth Newton step: (diag(ridge) + R' diag(bends) R) step = -slope, at multipliers u."""

    problem: LossColumn
    ridge: np.ndarray
    bends: np.ndarray
    u: np.ndarray
    slope: np.ndarray


def conjugate_gradient_step(
    system: SmoothSystem, inverse: SmoothFactor | np.ndarray, residual: float, energy: float, most: int
) -> Generator[None, None, SmoothStep]:
    """Make a smooth Newton step by at most so many iterations, with a factor of other second derivatives or a diagonal.

    They end where the residual, or the energy that is left, is that share of its first value. With a factor F and the
    residual r of p, the step is p + F^-1 r. With slope = diag(ridge) w - R'u it leads to coefficients diag(ridge) (w +
    step) = R'(u - bends R p - F.bends R F^-1 r): what multipliers stand for, without a pass over the rows. The factor
    of the present second derivatives needs no iteration.
    """
    problem, ridge, bends, u, slope = system
    rows, y = problem.affine_stored, problem.y  # products of second derivatives do without the signs
    factor = inverse if isinstance(inverse, SmoothFactor) else None

    def solve(b: np.ndarray) -> np.ndarray:
        return b / inverse if factor is None else cholesky.cholesky_solve(factor.L, b)

    p, change, r = np.zeros_like(slope), np.zeros_like(u), -slope
    s = v = solve(r)
    rho = first = float(r @ s)
    enough, used = residual * residual * float(r @ r), 0
    while used < most and rho > energy * first and float(r @ r) > enough:
        q = rows.dot(v)
        yield
        product = rows.adjoint(bends * q)
        product += ridge * v
        bend = float(v @ product)
        if not bend > 0.0:  # or no number
            break
        length = rho / bend
        p += length * v
        change += length * q
        r -= length * product
        s, last = solve(r), rho
        rho = float(r @ s)
        v, used = s + (rho / last) * v, used + 1
        yield
    dz = y * change
    towards = u - bends * dz
    if factor is not None:
        q = problem.margins(s)
        p, dz, towards = p + s, dz + q, towards - factor.bends * q
    return SmoothStep(cholesky.finite_solution(p), dz, towards, used, factor is not None)
