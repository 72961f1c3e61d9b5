"""Few rows of a kernel: greedy steps on the whole matrix go on until the first report meets the gap."""

import numpy as np
import pytest

import mdlearn


def rows_of_classes(n, k):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, k, n)
    return rng.normal(size=(n, 4)) + rng.normal(size=(k, 4))[codes], codes


def test_pairs_of_classes_take_one_report_each():
    X, y = rows_of_classes(300, 8)
    found = mdlearn.fit("svm", X, y, kernel="rbf", multiclass="ovo", bias="free", C=3.0, tol=1e-4)
    assert found.certificate.converged and found.n_iter == 28


@pytest.mark.parametrize("bias", ["free", "none", "regularized"])
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-3, 1e-4])
def test_bounds_and_objectives_agree_for_all_gaps(bias, C, tol):
    X, y = rows_of_classes(120, 2)
    given = {"kernel": "rbf", "solver": "cd", "bias": bias, "C": C}
    rough, exact = (mdlearn.fit("svm", X, y, tol=gap, **given).certificate for gap in (tol, 1e-9))
    assert rough.converged and exact.converged
    assert rough.lower_bound <= exact.objective * (1 + 1e-9) and exact.lower_bound <= rough.objective * (1 + 1e-9)


@pytest.mark.parametrize("bias", ["none", "regularized"])
def test_a_mean_pulls_at_first_steps_too(bias):
    X, y = rows_of_classes(120, 2)
    given = {"kernel": "rbf", "solver": "cd", "bias": bias, "lambda1": 0.0, "lambda2": 0.5}
    rough, exact = (mdlearn.fit("ldm", X, y, tol=gap, **given).certificate for gap in (1e-3, 1e-9))
    assert rough.converged and rough.objective <= exact.objective * (1 + 1e-3) + 1e-12
