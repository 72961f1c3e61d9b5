"""The stochastic version of the accelerated proximal gradient: batches of rows, the exact mean, a tail average."""

from __future__ import annotations

import math

import numpy as np

from mdlearn.forms.joint.decision_values import DecisionComposite
from mdlearn.solvers.base import Steps
from mdlearn.solvers.proximal_gradient.fista import Accelerated


def batches(problem: DecisionComposite, size: int, epochs: int, rng: np.random.Generator) -> Steps:
    """Yield a report per epoch: the average of the steps since half of all epochs, before that the last step.

    Rows are drawn without replacement within an epoch. The mean margin in the variance is that of all rows, so a
    batch's gradient has the exact one as its mean. Steps are 1 / l_t with l_t = l (1 + t / t0)^(1/2), t0 the steps of
    an epoch, and l what the gradient of a batch can bend at most on average.
    """
    m = problem.rows.shape[0]
    size = min(size, m)
    bounds = Accelerated(problem)
    yield from bounds.begin()
    l = expected_bend(problem, bounds.state.L, size)
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


def expected_bend(problem: DecisionComposite, L: float, size: int) -> float:
    """Smoothness of the mean of a random batch: between L for all rows and the largest row's for one."""
    m = problem.rows.shape[0]
    if m == 1:
        return L
    squares = problem.rows.squares() + (problem.bias != "none")
    one = problem.steepest * m * float((squares * problem.counts).max()) + float(problem.ridge.max())
    return (m * (size - 1) * L + (m - size) * one) / (size * (m - 1))
