"""The way of one small fit through the package: files, functions and Python calls, which are most of its time."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

import mdlearn

FILES, FUNCTIONS, CALLS = 44, 216, 269
"""At most so many; comprehensions count as calls before Python 3.12."""
ROOT = os.path.dirname(mdlearn.__file__)


@pytest.mark.parametrize("objective", ["svm", "ldm", "lsvm", "l2lr"])
def test_a_small_fit_enters_few_files_and_makes_few_calls(objective, rng):
    X = rng.standard_normal((300, 8))
    y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(300))
    entered = []

    def seen(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(ROOT):
            entered.append((frame.f_code.co_filename, frame.f_code.co_qualname))

    mdlearn.fit(objective, X, y)  # imports, and what is known of classes
    before = sys.getprofile()
    sys.setprofile(seen)
    try:
        mdlearn.fit(objective, X, y)
    finally:
        sys.setprofile(before)
    assert 20 < len({file for file, _ in entered}) <= FILES
    assert 100 < len(set(entered)) <= FUNCTIONS and 200 < len(entered) <= CALLS
