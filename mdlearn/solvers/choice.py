"""What ``solver="auto"`` means: a table of shapes and needs, the first row that fits decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdlearn.data.features import KernelFeatures, LinearFeatures
from mdlearn.forms.margin import MarginForm

WIDE = 5000
"""Columns (or rows) beyond which the interior point's matrices cost more than coordinate descent's epochs."""


@dataclass(frozen=True)
class Rule:
    """One row of the table: when `fits`, use `solver`, because of `reason`."""

    solver: str
    reason: str
    fits: Callable[[MarginForm], bool]


def _linear_small(form: MarginForm) -> bool:
    features = form.features
    return isinstance(features, LinearFeatures) and min(features.width, features.n_rows) <= WIDE


RULES = (
    Rule("interior", f"explicit rows with at most {WIDE} columns or rows: second-order steps", _linear_small),
    Rule("interior", "free bias: an equality constraint", lambda form: form.bias == "free"),
    Rule("cd", "kernel: one Gram matrix, cheap sweeps", lambda form: isinstance(form.features, KernelFeatures)),
    Rule("cd", "explicit rows with many columns: matrices of that size cost too much", lambda form: True),
)


def choose(form: MarginForm) -> Rule:
    """Return the first rule that fits."""
    return next(rule for rule in RULES if rule.fits(form))
