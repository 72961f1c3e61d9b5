"""Published algorithm 1 of the MDLM paper, with its misprints corrected, and its stochastic version."""

from __future__ import annotations

import math

import numpy as np

from mdlearn.forms.composite import Composite
from mdlearn.forms.joint.decision_composite import DecisionComposite
from mdlearn.solvers.base import Steps
from mdlearn.solvers.proximal_gradient.fista import Fista

ROUNDING_OF_VALUES = 1e-10
"""Difference of two values, in units of the larger one and that at W = 0, that counts as rounding."""


def published_steps(problem: Composite, l0: float, sigma: float) -> Steps:
    """Yield a report per iteration of the proximal gradient algorithm as published.

    Near the optimum the test of the line search is below rounding, and l would grow without end: from the Lipschitz
    constant on, where the test holds in exact arithmetic, it is taken to hold but for rounding. A given loss can bend
    more than that far out; then l grows on.
    """
    bounds = Fista(problem)
    yield from bounds.begin()
    cap = problem.lipschitz()
    W = before = np.zeros(problem.shape)
    mu, l, i = 1.0, l0, 0
    while True:
        i += 1
        mu, last = 2.0 / (i + 3.0), mu
        look = problem.at(W + (1.0 - last) * mu / last * (W - before))
        gradient, value = problem.slope(look), problem.smooth(look)
        yield None
        while True:
            found = problem.at(problem.prox(look.W - gradient / l, 1.0 / l))
            yield None
            step = found.W - look.W
            model = value + float((step * gradient).sum()) + 0.5 * l * float((step * step).sum())
            miss = problem.smooth(found) - model
            if miss <= (ROUNDING_OF_VALUES * (abs(value) + abs(problem.at_zero)) if l >= cap else 0.0):
                break
            l = min(sigma * l, cap) if l < cap else sigma * l
        W, before = found.W, W
        yield bounds.report(found)


def published_stochastic_steps(problem: DecisionComposite, size: int, epochs: int, rng: np.random.Generator) -> Steps:
    """Yield a report per epoch of the published stochastic algorithm: last step, later the average of steps.

    Rows are drawn without replacement within an epoch. The mean margin in the variance is that of all rows, so a
    batch's gradient has the exact one as its mean. Steps are 1 / l_t with l_t = l (1 + t / t0)^(1/2), t0 the steps of
    an epoch, and l what the gradient of a batch can bend at most on average.
    """
    m = problem.rows.shape[0]
    size = min(size, m)
    bounds = Fista(problem)
    yield from bounds.begin()
    l = published_batch_smoothness(problem, bounds.state.L, size)
    W = np.zeros(problem.shape)
    total, kept, t = np.zeros(problem.shape), 0, 0
    per_epoch = -(-m // size)
    for epoch in range(epochs):
        order = rng.permutation(m)
        for start in range(0, m, size):
            gradient = problem.sampled(W, np.sort(order[start : start + size]))
            step = 1.0 / (l * math.sqrt(1.0 + t / per_epoch))
            W = problem.prox(W - step * gradient, step)
            t += 1
            if epoch >= epochs // 2:
                total, kept = total + W, kept + 1
            if t % 8 == 0:
                yield None
        yield bounds.report(problem.at(total / kept if kept else W))


def published_batch_smoothness(problem: DecisionComposite, L: float, size: int) -> float:
    """Smoothness for batches of the published algorithm: between L for all rows and the largest row's for one."""
    m = problem.rows.shape[0]
    if m == 1:
        return L
    squares = problem.rows.squares() + (problem.bias != "none")
    one = problem.steepest * m * float((squares * problem.counts).max()) + float(problem.ridge.max())
    return (m * (size - 1) * L + (m - size) * one) / (size * (m - 1))
