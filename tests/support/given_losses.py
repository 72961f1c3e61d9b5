"""Losses given as NumPy functions: smooth, kinked, without a minimum."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from mdlearn.forms.given import GivenLoss


def rubber(t):
    return np.sqrt(1.0 + (t - 1.0) ** 2) - 1.0


def rubber_slope(t):
    return (t - 1.0) / np.sqrt(1.0 + (t - 1.0) ** 2)


def rubber_bend(t):
    return (1.0 + (t - 1.0) ** 2) ** -1.5


def rubber_conjugate(s):
    return s + 1.0 - np.sqrt(1.0 - s * s)


RUBBER = GivenLoss(rubber, rubber_slope, rubber_bend)  # falls and rises, with slopes between -1 and 1
LOGISTIC = GivenLoss(lambda t: np.logaddexp(0.0, -t), lambda t: -expit(-t), lambda t: expit(t) * expit(-t))
SQUARE = GivenLoss(lambda t: (1.0 - t) ** 2, lambda t: 2.0 * (t - 1.0), lambda t: np.full_like(t, 2.0))
SHORT = GivenLoss(
    lambda t: np.maximum(0.0, 1.0 - t) ** 2, lambda t: -2.0 * np.maximum(0.0, 1.0 - t), lambda t: 2.0 * (t < 1.0)
)
BEYOND = GivenLoss(
    lambda t: np.maximum(0.0, t - 2.0) ** 2, lambda t: 2.0 * np.maximum(0.0, t - 2.0), lambda t: 2.0 * (t > 2.0)
)
HUBER = GivenLoss(
    lambda t: np.where(t > 1.0, 0.0, np.where(t < 0.5, 0.75 - t, (1.0 - t) ** 2)),
    lambda t: -np.clip(2.0 * (1.0 - t), 0.0, 1.0),
    lambda t: 2.0 * ((t > 0.5) & (t < 1.0)),
)
EXPONENTIAL = GivenLoss(lambda t: np.exp(-t), lambda t: -np.exp(-t), lambda t: np.exp(-t))
TAIL = GivenLoss(  # falls to 0, but no margin has the slope 0
    lambda t: np.where(t > 0, 1.0 / (1.0 + np.abs(t)), 1.0 - t),
    lambda t: np.where(t > 0, -((1.0 + np.abs(t)) ** -2.0), -1.0),
    lambda t: np.where(t > 0, 2.0 * (1.0 + np.abs(t)) ** -3.0, 0.0),
)
