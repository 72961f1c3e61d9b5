"""More effort over row blocks is never worse: a slice of `fuzz_effort`, and what has gone wrong before."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from fuzz_effort import fit, in_blocks
from warm_cases import rows

import mdlearn


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1002, 1006, 1009, 1012, 1013, 1014, 1017, 1018, 1019, 1022, 1041, 1049, 1058, 1083, 1173, 1361]
)
def test_random_problems_over_row_blocks(seed):
    assert [(engine, found[0]) for engine, found in in_blocks(seed) if found] == []


@pytest.mark.parametrize("objective", ["svm", "ldm", "lsvm", "lssvm", "lsldm", "l2lr", "mlr", "mdlm"])
@pytest.mark.parametrize("seed", [0, 1])
def test_bounds_of_a_free_bias_over_row_blocks_are_true_and_never_fall(objective, seed):
    """Multipliers that do not add up to 0 are moved to where they do, and what that costs is known in every pass."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 3)) * [1.0, 10.0, 0.1] + 2.0
    y = np.where(X[:, 0] + rng.standard_normal(60) > 3.0, 1, 0)
    weight = rng.integers(1, 4, 60)
    source = [(X[s], y[s], weight[s]) for s in (slice(0, 25), slice(25, 60))]
    best = fit(objective, X, y, sample_weight=weight, bias="free", tol=1e-9).certificate
    models = [fit(objective, source, None, max_iter=n, bias="free", tol=1e-9) for n in (1, 2, 3, 4, 6, 8, 12, 100)]
    bounds = [model.certificate.lower_bound for model in models]
    assert models[-1].certificate.converged
    assert max(bounds) <= best.objective + 1e-8 * abs(best.objective)
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(bounds) if np.isfinite(a))
    assert np.isfinite(bounds[1])


@pytest.mark.parametrize("solver", ["sgd", "asgd", "newton"])
def test_an_early_end_over_row_blocks_is_not_above_w_0(solver):
    """The first epoch of these rows ends at 107."""
    X, y, *_ = rows()
    source = [(1e2 * X[:25], y[:25]), (1e2 * X[25:], y[25:])]
    for n in (1, 2):
        model = fit("svm", source, None, solver=solver, max_iter=n)
        assert model.certificate.objective <= len(y), n


@pytest.mark.parametrize("seed", [2, 3, 4])
def test_bounds_under_a_penalty_over_row_blocks_are_those_of_the_best_pass(seed):
    """A step that lowers the objective may lead to a place whose own bound is worse."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3)) * 10.0 ** rng.uniform(-1, 2, 3)
    y = np.where(X[:, 0] + 10.0 * rng.standard_normal(40) > 0, 1, 0)
    given = {"alpha": 4.0, "lambda1": 0.05, "beta": 1e-3, "bias": "regularized", "tol": 1e-9}
    source, efforts = [(X[:25], y[:25]), (X[25:], y[25:])], (1, 2, 3, 4, 6, 50)
    models = [fit("mdlm", source, None, max_iter=n, **given) for n in efforts]
    bounds = [model.certificate.lower_bound for model in models]
    best = fit("mdlm", X, y, **given).certificate
    assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(bounds))
    assert models[-1].certificate.converged and max(bounds) <= best.objective + 1e-8 * abs(best.objective)


@pytest.mark.parametrize("C", [1e-6, 1e-3, 1.0])
def test_passes_over_row_blocks_stop_at_the_first_report_that_meets_tol(C):
    """With a small C it is the bound that rows near a kink make, of w = 0, which is known."""
    X, y, *_ = rows()
    seen = []
    model = mdlearn.fit("svm", [(X[:25], y[:25]), (X[25:], y[25:])], None, C=C, tol=1e-3, callback=seen.append)
    for gaps in ([state.gap for state in model.history], [state.gap for state in seen]):
        assert gaps[-1] == pytest.approx(model.certificate.gap) and model.certificate.gap <= 1e-3 < min(gaps[:-1])
