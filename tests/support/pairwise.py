"""Parametrisation by several factors, of which most faults are seen by some pair of values."""

from itertools import combinations, product

import pytest


def pairs_first(but=None, **values):
    """Arguments of `parametrize`: all combinations, those slow that add no pair of values to the other ones.

    `but` says of the values of a combination whether there is no such test.
    """
    factors = list(values.values())
    places = product(*(range(len(one)) for one in factors))
    given = {place: [one[k] for one, k in zip(factors, place)] for place in places}
    given = {place: chosen for place, chosen in given.items() if but is None or not but(*chosen)}
    needed = _covering(given)
    marks = {place: () if place in needed else pytest.mark.slow for place in given}
    return ",".join(values), [pytest.param(*chosen, marks=marks[place]) for place, chosen in given.items()]


def _covering(places):
    """Combinations that have all pairs of two factors' values that there are; each next one has most of those left."""
    pairs = {place: {*combinations(enumerate(place), 2)} for place in places}
    left, chosen = set().union(*pairs.values()), set()
    while left:
        best = max(pairs, key=lambda place: len(pairs[place] & left))
        chosen.add(best)
        left -= pairs[best]
    return chosen
