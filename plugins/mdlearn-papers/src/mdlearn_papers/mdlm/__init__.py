"""Tables and figures of: Margin distribution logistic machine (Ding, Huang, Zu and Zhang, SDM 2017)."""

from __future__ import annotations

from mdlearn_papers.mdlm import (
    binary,
    influence,
    losses,
    multiclass,
    noise,
    probabilities,
    spaces,
    synthetic,
)
from mdlearn_papers.studies import Experiment

EXPERIMENTS: tuple[Experiment, ...] = tuple(
    module.EXPERIMENT for module in (synthetic, binary, noise, multiclass, losses, spaces, probabilities, influence)
)
