"""Time limits over row blocks: no pass is begun that cannot end in time, and certificates have theirs reserved."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import mdlearn
from mdlearn.data.clustering.kmeans import Lloyd

SECONDS, BLOCKS = 0.05, 20
"""What a block takes, and how many there are: a pass takes a second."""
CASES = {
    "newton": ("ldm", {}),
    "float32": ("svm", {"dtype": np.float32}),
    "free bias": ("svm", {"bias": "free"}),
    "penalty": ("mdlm", {"beta": 0.1}),
    "stochastic": ("svm", {"solver": "asgd", "solver_options": {"epochs": 50}}),
    "classes": ("l2lr", {"classes": 4}),
    "landmarks": ("l3svm", {"n_clusters": 3}),
    "approximation": ("ldm", {"kernel": "rbf", "approximation": "nystroem", "n_components": 20}),
}
PULLED = {"newton", "penalty", "approximation"}
"""Those with a margin mean."""


def slow(clock, classes=2, dtype=np.float64):
    """A source whose blocks take their time."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20 * BLOCKS, 4)).astype(dtype)
    y = np.arange(20 * BLOCKS) % classes
    X[np.arange(len(y)), y % 4] += 1.0

    def source():
        for k in range(BLOCKS):
            clock.sleep(SECONDS)
            yield X[20 * k : 20 * k + 20], y[20 * k : 20 * k + 20]

    return source


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("limit", [0.0, 0.4, 1.5, 2.5, 3.7, 6.0, 12.0])
def test_time_limits_hold(case, limit, clock):
    objective, given = CASES[case]
    given = dict(given)
    source = slow(clock, given.pop("classes", 2), given.pop("dtype", np.float64))
    begun = clock()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        try:
            model = mdlearn.fit(objective, source, None, time_limit=limit, **given)
        except ValueError as error:
            assert "ended before the first passes over the row blocks" in str(error) and limit < 4.0
            model = None
    assert clock() - begun <= 1.1 * limit + 0.3 - 0.05  # what is no block takes time as well
    if model is not None:
        assert np.isfinite(model.certificate.objective)
        assert model.certificate.objective >= model.certificate.lower_bound
        if case not in PULLED:  # multipliers 0 say something, without any pass
            assert model.certificate.lower_bound > -np.inf
    if limit >= 12.0:  # room for steps
        assert model.coef_.any() and model.certificate.lower_bound > -np.inf


def test_centres_are_looked_for_until_the_deadline_only(clock, monkeypatch):
    """k-means over a sample of the rows ends with the centres that it has."""
    looked, assign = [], Lloyd.assign

    def slower(self):
        looked.append(1)
        clock.sleep(5.0)
        return assign(self)

    monkeypatch.setattr(Lloyd, "assign", slower)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("l3svm", slow(clock), None, n_clusters=7, time_limit=8.0)
    assert len(looked) <= 2 and model.centers_.shape == (7, 4)


def value(model, source):
    """The objective of lsvm at the model's coefficients, as a plain sum."""
    X, y = (np.concatenate(parts) for parts in zip(*source()))
    z = np.where(y == 1, 1.0, -1.0) * model.decision_function(X)
    square = (model.coef_**2).sum() + (model.intercept_**2).sum()
    return 0.5 * square + 0.5 * np.square(np.maximum(1.0 - z, 0.0)).sum()


def test_the_answer_is_the_best_of_what_was_seen(clock):
    """One pass and the certificate: the point that the next pass would have looked at is certified."""
    source = slow(clock)
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("lsvm", source, None, time_limit=3.5)
    assert model.n_iter == 1 and not model.certificate.converged
    assert model.certificate.objective == pytest.approx(value(model, source), rel=1e-12)
    assert model.certificate.objective < 0.7 * 10.0 * BLOCKS  # nu / 2 times the rows, at w = 0


def test_without_time_for_certificates_what_passes_have_seen_counts(clock):
    """Blocks that become slower after the third pass of the steps."""
    pace, source = [], slow(clock)

    def slower():
        for block in source():
            pace.append(None)
            clock.sleep(0.0 if len(pace) <= 4 * BLOCKS else 10.0)
            yield block

    begun = clock()
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit reached"):
        model = mdlearn.fit("lsvm", slower, None, time_limit=20.0, tol=1e-14)
    assert clock() - begun < 20.0 + 2 * 10.0 + 1.0  # two blocks that were being read
    assert model.n_iter == 3 and model.coef_.any()
    certificate = model.certificate
    assert certificate.objective == pytest.approx(value(model, source), rel=1e-12)
    best = mdlearn.fit("lsvm", source, None, tol=1e-12).certificate.objective
    assert -np.inf < certificate.lower_bound <= best * (1 + 1e-12) and best <= certificate.objective * (1 + 1e-12)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("given", [{"objective": "lsvm"}, {"objective": "mdlm", "beta": 0.01, "ridge": 0.1}], ids=str)
def test_converged_is_a_gap_of_tol_whoever_found_it(given, clock):
    """Certificates of earlier passes had gaps below tol and were called not converged."""
    ends, source = set(), slow(clock)
    for passes in range(2, 14):
        pace = []

        def slower(pace=pace, passes=passes):
            for block in source():
                pace.append(None)
                clock.sleep(0.0 if len(pace) <= passes * BLOCKS else 10.0)
                yield block

        one = mdlearn.fit(X=slower, y=None, time_limit=20.0, tol=1e-2, **given).certificate
        assert one.converged == (one.gap <= 1e-2)
        ends.add((one.converged, len(pace) > passes * BLOCKS))
    assert (True, True) in ends and (False, True) in ends
