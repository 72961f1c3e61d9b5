"""The band of the ODM: margins are drawn to 1, and what falls outside of a band around 1 is squared."""

from math import nextafter

from mdlearn.extend import HingeTerm, Parameter

BAND = {
    "C": Parameter(1.0, "weight of the summed loss"),
    "mu": Parameter(0.5, "weight of margins beyond the band, relative to those short of it"),
    "theta": Parameter(0.2, "half the width of the band around 1, below 1", high=nextafter(1.0, 0.0)),
}
"""Declared parameters of C/(1-theta)^2 sum l(z), l(z) = max(0, 1-theta-z)^2 + mu max(0, z-1-theta)^2."""


def band_terms(params):
    """Return the two terms of the band at margins z, each of the weight of one row."""
    theta, weight = params["theta"], params["C"] / (1.0 - params["theta"]) ** 2
    short = HingeTerm(weight, threshold=1.0 - theta, power=2)
    return short, HingeTerm(weight * params["mu"], side=-1, threshold=1.0 + theta, power=2)


def mirrored(term):
    """Return the term at -z in the place of z."""
    return HingeTerm(term.weight, side=-term.side, threshold=-term.threshold, power=term.power)
