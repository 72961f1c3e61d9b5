"""Of the functions of a given loss, the one that is wrong alone is named; where two may be, both are."""

from __future__ import annotations

import numpy as np
import pytest
from given_losses import rubber, rubber_bend, rubber_conjugate, rubber_slope
from scipy.special import expit

from mdlearn.forms.given import GivenLoss

NAMES = ("value", "derivative", "second", "conjugate")
LOSSES = {
    "rubber": (rubber, rubber_slope, rubber_bend, rubber_conjugate),
    "logistic": (
        lambda t: np.logaddexp(0.0, -t),
        lambda t: -expit(-t),
        lambda t: expit(t) * expit(-t),
        lambda s: -s * np.log(-s) + (1.0 + s) * np.log1p(s),
    ),
    "exponential": (lambda t: np.exp(-t), lambda t: -np.exp(-t), lambda t: np.exp(-t), lambda s: s - s * np.log(-s)),
    "corner": (  # its second derivative jumps
        lambda t: np.where(t >= 1.0, 0.0, np.where(t > 0.5, (1.0 - t) ** 2, 0.75 - t)),
        lambda t: np.where(t >= 1.0, 0.0, np.where(t > 0.5, 2.0 * (t - 1.0), -1.0)),
        lambda t: np.where((t < 1.0) & (t > 0.5), 2.0, 0.0),
        None,
    ),
}
WRONG = {
    "negated": lambda f: lambda t: -f(t),
    "doubled": lambda f: lambda t: 2.0 * f(t),
    "two percent": lambda f: lambda t: 1.02 * f(t),
    "zero": lambda f: np.zeros_like,
    "wavy": lambda f: lambda t: f(t) * (1.0 + 0.1 * np.sin(3.0 * t)),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("loss", "place"), [(loss, i) for loss in LOSSES for i in range(4) if LOSSES[loss][i]])
def test_the_function_that_is_wrong_alone_is_named(loss, place, wrong):
    functions = list(LOSSES[loss])
    GivenLoss(*functions)
    functions[place] = WRONG[wrong](functions[place])
    with pytest.raises(ValueError, match=f"^{NAMES[place]} of a given loss "):
        GivenLoss(*functions)


@pytest.mark.parametrize(
    ("place", "other"), [(0, lambda t: rubber(t) + 0.1 * t), (1, lambda t: rubber_slope(t) + 0.1)], ids=NAMES[:2]
)
def test_a_slope_that_differs_by_a_constant_may_be_the_fault_of_two(place, other):
    """f + a t and f' belong together as badly as f and f' - a do."""
    functions = list(LOSSES["rubber"][:3])
    functions[place] = other
    with pytest.raises(ValueError, match=r"^value or derivative of a given loss is wrong"):
        GivenLoss(*functions)


@pytest.mark.parametrize("place", [0, 3], ids=["value", "conjugate"])
def test_a_constant_may_be_the_fault_of_two(place):
    functions = list(LOSSES["rubber"])
    right = functions[place]
    functions[place] = lambda t: right(t) + 2.0
    with pytest.raises(ValueError, match=r"^value or conjugate of a given loss is wrong by the constant 2:"):
        GivenLoss(*functions)


@pytest.mark.parametrize("place", range(4), ids=NAMES)
def test_errors_inside_and_complex_numbers(place):
    functions = list(LOSSES["rubber"])
    right = functions[place]
    functions[place] = lambda t: {}["no"]
    with pytest.raises(KeyError) as raised:
        GivenLoss(*functions)
    assert raised.value.args == ("no",)
    assert raised.value.__notes__ == [f"(raised in {NAMES[place]} of a given loss)"]
    functions[place] = lambda t: right(t) + 0j
    with pytest.raises(
        TypeError, match=f"^{NAMES[place]} of a given loss needs to return real numbers; it returned an "
    ):
        GivenLoss(*functions)
