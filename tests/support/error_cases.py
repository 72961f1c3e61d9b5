"""Good rows and labels, and a judge of errors: one clear sentence, of the right type, before any long work."""

from __future__ import annotations

import re

import numpy as np
import pytest

import mdlearn

RNG = np.random.default_rng(0)
X = RNG.standard_normal((12, 3))
Y = np.array([1, -1] * 6)
NAN, INF = float("nan"), float("inf")


class CountingKernel:
    """A callable kernel that notes whether any work was begun."""

    def __init__(self):
        self.calls = 0

    def __call__(self, A, B):
        self.calls += 1
        return np.asarray(A) @ np.asarray(B).T


def one_sentence(error, sentence):
    """The message is one line and one sentence, and `sentence` (a regular expression) finds its main part."""
    message = str(error)
    assert message.strip() and "\n" not in message and len(message) < 500
    assert message.count(". ") == 0, f"more than one sentence: {message}"
    assert re.search(sentence, message), f"{sentence!r} is not in: {message}"


def refuse(kind, sentence, objective="ldm", data=X, labels=Y, **settings):
    """The call fails with `kind` and these words; no callback is reached."""
    reached = []
    settings.setdefault("callback", lambda state: reached.append(state))
    with pytest.raises((ValueError, TypeError) if kind is None else kind) as caught:
        mdlearn.fit(objective, data, labels, **settings)
    assert not reached
    one_sentence(caught.value, sentence)
