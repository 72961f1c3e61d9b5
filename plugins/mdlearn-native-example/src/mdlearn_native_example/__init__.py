"""The objective native_example for mdlearn: the hinge loss with a rounded corner, compiled."""

from functools import lru_cache

import mdlearn
from mdlearn.extend import GivenLoss, NativeFunction, Parameter, Terms
from scipy import LowLevelCallable

from . import _loss

requires_api = 1


def compiled(name, h):
    """A function of _loss.pyx with its parameter."""
    return NativeFunction(LowLevelCallable.from_cython(_loss, name), [h])


@lru_cache(maxsize=32)
def corner(h):
    """The loss of this width; its checks take two milliseconds, which later fits are spared."""
    # The conjugate f*(s) makes certificates cheaper; mdlearn does without it, too.
    return GivenLoss(compiled("value", h), compiled("slope", h), compiled("bend", h), compiled("conjugate", h))


class NativeExampleObjective(mdlearn.Objective):
    """1/2 |w|^2 + C sum loss(z); the loss is (1 - z)^2 / (2 h) for 1 - h < z < 1, a line before and 0 beyond."""

    name = "native_example"
    summary = "hinge loss with a rounded corner"
    formula = "1/2 |w|^2 + C sum loss(z), loss = (1 - z)^2 / (2 h) for 1 - h < z < 1"
    parameters = {
        "C": Parameter(1.0, "weight of the summed loss"),
        "h": Parameter(0.5, "width of the corner", low=0.001),
    }

    def terms(self, params, total):
        return Terms(loss=corner(params["h"]).terms(params["C"]))


@mdlearn.hookimpl
def mdlearn_objectives():
    """What this package offers."""
    return [NativeExampleObjective]
