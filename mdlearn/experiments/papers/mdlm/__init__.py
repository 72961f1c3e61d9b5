"""Tables and figures of: Margin distribution logistic machine (Ding, Huang, Zu and Zhang, SDM 2017)."""

from __future__ import annotations

from mdlearn.experiments.papers.mdlm import (
    binary,
    influence,
    losses,
    multiclass,
    noise,
    probabilities,
    spaces,
    synthetic,
)
from mdlearn.experiments.papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT for module in (synthetic, binary, noise, multiclass, losses, spaces, probabilities, influence)
)
