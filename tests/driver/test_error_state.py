"""NumPy's error state within a fit: overflows are told by certificates, and a callback sees what its caller has set."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn


@pytest.fixture
def xy(rng):
    X = rng.standard_normal((60, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(60) > 0, 1, -1)


@pytest.mark.parametrize("n_threads", [None, 2])
def test_a_callback_runs_in_the_error_state_of_its_caller(xy, n_threads):
    X, y = xy
    seen = []
    with np.errstate(over="raise", invalid="print", divide="call", under="ignore"):
        here = np.geterr()
        mdlearn.fit("svm", X, y, callback=lambda state: seen.append(np.geterr()), n_threads=n_threads)
        mdlearn.fit_path("svm", X, y, {"C": [0.1, 1.0]}, callback=lambda state: seen.append(np.geterr()))
        assert np.geterr() == here
    seen_by_default = []
    mdlearn.fit("svm", X, y, callback=lambda state: seen_by_default.append(np.geterr()))
    assert len(seen) > 2 and all(one == here for one in seen)
    assert seen_by_default and all(one == np.geterr() for one in seen_by_default)


def test_an_engine_and_an_objective_are_not_warned_of_overflows(xy):
    """What they reckon may be infinite; the certificate says so."""
    seen = []

    class Watching(mdlearn.Objective):
        name = "watching"

        def terms(self, params, total):
            from mdlearn.extend import HingeTerm, Terms

            seen.append(np.geterr())
            return Terms(loss=(HingeTerm(1.0),))

        def check_form(self, form, params):
            seen.append(np.geterr())

    mdlearn.fit(Watching, *xy)
    assert len(seen) > 1 and all(one["over"] == one["invalid"] == "ignore" for one in seen)
