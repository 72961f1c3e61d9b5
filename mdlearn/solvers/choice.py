"""What ``solver="auto"`` means: a table of shapes and needs, the first row that fits decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mdlearn.data.features import KernelFeatures, LinearFeatures
from mdlearn.forms.margin import MarginForm

WIDE = 5000
"""Columns (or rows) beyond which the interior point's matrices cost more than coordinate descent's epochs."""


STIFF = 1e4
"""Box width in units of a typical multiplier, 1 / k(x, x), beyond which coordinate steps are too short."""


@dataclass(frozen=True)
class Rule:
    """One row of the table: when `fits`, use `solver`, because of `reason`."""

    solver: str
    reason: str
    fits: Callable[[MarginForm], bool]


def _linear_small(form: MarginForm) -> bool:
    features = form.features
    return isinstance(features, LinearFeatures) and min(features.width, features.n_rows) <= WIDE


def _stiff(form: MarginForm) -> bool:
    features = form.features
    if not isinstance(features, KernelFeatures):
        return False
    widest = max((t.weight for column in form.columns for t in column.terms if t.power == 1), default=0.0)
    return widest * features.typical_square() > STIFF


RULES = (
    Rule("interior", f"explicit rows with at most {WIDE} columns or rows: second-order steps", _linear_small),
    Rule("interior", "free bias: an equality constraint", lambda form: form.bias == "free"),
    Rule("interior", f"C k(x, x) beyond {STIFF:g}: nearly a hard margin, where sweeps crawl", _stiff),
    Rule("cd", "kernel: one Gram matrix, cheap sweeps", lambda form: isinstance(form.features, KernelFeatures)),
    Rule("cd", "explicit rows with many columns: matrices of that size cost too much", lambda form: True),
)


def choose(form: MarginForm) -> Rule:
    """Return the first rule that fits."""
    return next(rule for rule in RULES if rule.fits(form))
