"""Where the engine of solver="auto" ends by itself without the gap asked for, others go on."""

from __future__ import annotations

import numpy as np
import pytest

import mdlearn
from mdlearn.plugins.registry import find
from mdlearn.solvers.base import Offer, Report
from mdlearn.solvers.quadratic.solver import Direct


@pytest.fixture
def sample():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1, 0)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_an_engine_that_ends_without_an_answer(sample, kernel, monkeypatch):
    X, y = sample
    expected = mdlearn.fit("lssvm", X, y, kernel=kernel).certificate

    def gives_up(self, form, column, shared, options, rng):
        yield None

    monkeypatch.setattr(Direct, "iterate", gives_up)
    model = mdlearn.fit("lssvm", X, y, kernel=kernel)
    assert model.certificate.converged
    assert model.certificate.objective == pytest.approx(expected.objective, rel=1e-6)
    with pytest.warns(mdlearn.ConvergenceWarning):  # who asks for an engine gets that one
        asked = mdlearn.fit("lssvm", X, y, kernel=kernel, solver="direct")
    assert asked.certificate.gap > 1e-3


@pytest.mark.parametrize(
    "objective, kernel",
    [
        ("svm", "linear"),
        ("svm", "rbf"),
        ("lsvm", "linear"),
        ("l3svm", "linear"),
        ("l2lr", "linear"),
    ],
)
@pytest.mark.parametrize("classes", [2, 3])
def test_an_engine_that_ends_a_little_early(sample, objective, kernel, classes, monkeypatch):
    """However near it came: any gap above tol is one that another engine may close."""
    X, y = sample
    y = y + (X[:, 1] > 0.5) if classes == 3 else y
    given = {"kernel": kernel, "tol": 1e-9}
    plain = mdlearn.fit(objective, X, y, **given)
    cls = find("solver", plain.solver)
    whole = cls.iterate

    def gap(report):
        if isinstance(report, Report):
            return (report.objective - report.lower_bound) / abs(report.objective)
        return report.gap if isinstance(report, Offer) else np.inf

    def ends_early(self, *given):
        for report in whole(self, *given):
            if isinstance(report, Offer) and np.isfinite(report.gap):
                report = report.make()
            if gap(report) < 1e-5:
                return
            yield report

    monkeypatch.setattr(cls, "iterate", ends_early)
    model = mdlearn.fit(objective, X, y, **given)
    assert plain.certificate.converged and model.certificate.converged and model.n_iter > 1
    with pytest.warns(mdlearn.ConvergenceWarning):
        assert not mdlearn.fit(objective, X, y, solver=plain.solver, **given).certificate.converged


def test_pairs_of_classes(sample, monkeypatch):
    X, y = sample
    y = y + (X[:, 1] > 0.5)
    monkeypatch.setattr(Direct, "iterate", lambda *given: iter_nothing())
    assert mdlearn.fit("lssvm", X, y, multiclass="ovo").certificate.converged


def iter_nothing():
    yield None


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
def test_a_gram_matrix_without_digits():
    """Multipliers of one engine are so long that their bound is lost, those of another are not."""
    worse = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = np.c_[rng.standard_normal((40, 2)), np.full(40, 1e6)]
        y = np.where(X[:, 0] + 0.5 * rng.standard_normal(40) > 0, 1, 0)
        given = {"kernel": "precomputed", "bias": "none", "C": 0.5, "lambda1": 4.0, "lambda2": 0.0}
        auto = mdlearn.fit("ldm", X @ X.T, y, **given).certificate
        own = mdlearn.fit("ldm", X @ X.T, y, solver=mdlearn.fit("ldm", X @ X.T, y, **given).solver, **given).certificate
        best = min(mdlearn.fit("ldm", X @ X.T, y, solver=s, **given).certificate.gap for s in ("cd", "interior"))
        assert auto.gap <= max(1e-3, 2.0 * best)
        worse += own.gap > 30.0 * auto.gap
    assert worse > 0
