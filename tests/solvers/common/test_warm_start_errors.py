"""Starts that do not fit: one sentence each, before any work. What may differ, may; plugins need not know of starts."""

from __future__ import annotations

import numpy as np
import pytest
from regression_cases import Tube
from warm_cases import rows

import mdlearn
from mdlearn.forms.margin import Point
from mdlearn.solvers.common.primal_dual import report_of

X, Y, *_ = rows()
START = mdlearn.fit("svm", X, Y)
RBF = mdlearn.fit("svm", X, Y, kernel="rbf", gamma=0.5)
THREE = mdlearn.fit("svm", *rows(k=3)[:2])


def value(A, B):
    """A kernel of the user's."""
    return A @ B.T


FAULTS = {
    "no model": ("svm", {"warm_start": {"coef_": 1.0}}, TypeError, "needs to be a Model, which fit returns; got dict"),
    "objective": ("ldm", {"warm_start": START}, ValueError, "objective: 'svm' there, 'ldm' here"),
    "bias": ("svm", {"warm_start": START, "bias": "none"}, ValueError, "bias: 'regularized' there, 'none' here"),
    "kernel": ("svm", {"warm_start": START, "kernel": "rbf"}, ValueError, "kernel: 'linear' there, 'rbf' here"),
    "gamma": (
        "svm",
        {"warm_start": RBF, "kernel": "rbf", "gamma": 0.7},
        ValueError,
        "kernel parameter gamma: 0.5 there, 0.7 here",
    ),
    "function": (
        "svm",
        {"warm_start": mdlearn.fit("svm", X, Y, kernel=value), "kernel": lambda A, B: value(A, B)},
        ValueError,
        "kernel: 'another function' there, 'this one' here",
    ),
    "classes": ("svm", {"warm_start": THREE}, ValueError, r"classes: \[0, 1, 2\] there, \[0, 1\] here"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_what_differs_is_named(name):
    objective, settings, kind, told = FAULTS[name]
    with pytest.raises(kind, match=told) as caught:
        mdlearn.fit(objective, X, Y, **settings)
    assert str(caught.value).startswith("warm_start needs") and "\n" not in str(caught.value)


def test_rows_columns_and_ways_of_several_classes():
    with pytest.raises(ValueError, match="number of rows: 90 there, 80 here"):
        mdlearn.fit("svm", X[:80], Y[:80], warm_start=START)
    with pytest.raises(ValueError, match="number of columns: 4 there, 3 here"):
        mdlearn.fit("svm", X[:, :3], Y, warm_start=START)
    with pytest.raises(ValueError, match="multiclass: 'ovr' there, 'ovo' here"):
        mdlearn.fit("svm", *rows(k=3)[:2], multiclass="ovo", warm_start=THREE)
    with pytest.raises(ValueError, match="classes: "):
        mdlearn.fit("svm", X, np.where(Y > 0, "b", "a"), warm_start=START)


def test_other_landmarks_are_other_features():
    settings = {"n_clusters": 3, "n_landmarks": 4}
    start = mdlearn.fit("l3svm", X, Y, **settings)
    for kernel in ("linear", "rbf"):
        start = mdlearn.fit("l3svm", X, Y, kernel=kernel, **settings)
        assert mdlearn.fit("l3svm", X, Y, kernel=kernel, C=5.0, warm_start=start, **settings).certificate.converged
        with pytest.raises(ValueError, match="features"):
            mdlearn.fit("l3svm", X, Y, kernel=kernel, random_state=1, warm_start=start, **settings)


def test_weights_tol_solver_and_seed_may_differ():
    _, _, first, second = rows()
    start = mdlearn.fit("svm", X, Y, sample_weight=first, class_weight="balanced", tol=1e-3, solver="cd")
    model = mdlearn.fit(
        "svm", X, Y, sample_weight=second, tol=1e-9, solver="interior", random_state=5, warm_start=start
    )
    assert model.certificate.converged


@pytest.mark.parametrize("solver", ["cd", "interior"])
def test_regression(solver):
    rng = np.random.default_rng(0)
    y = 30.0 + X @ rng.standard_normal(4) * 5.0 + rng.standard_normal(len(X))
    start = mdlearn.fit(Tube, X, y, C=2.0, v=1.0, solver=solver)
    for change in ({"C": 9.0}, {"v": 40.0}, {"k": 1.0}):
        given = {"C": 2.0, "v": 1.0, "solver": solver, "tol": 1e-9, **change}
        warm, cold = (mdlearn.fit(Tube, X, y, warm_start=one, **given) for one in (start, None))
        a, b = warm.certificate, cold.certificate
        assert a.converged and b.converged
        assert abs(a.objective - b.objective) <= 2e-9 * b.objective


class Steepest(mdlearn.Solver):
    """An engine as the documentation of plugins has it: it knows of no starts, and need not."""

    name = "steepest"
    purpose = "for tests"
    kinds = frozenset({"squared"})

    def iterate(self, form, column, shared, options, rng):
        w, b = np.zeros(form.features.width), 0.0
        for _ in range(3):
            z = column.y * (form.features.decision(w) + b)
            yield report_of(form, column, Point(column.slopes(z), column.spread(z), w, b), z)


def test_engines_of_plugins_need_not_know():
    start = mdlearn.fit("lsvm", X, Y)
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = mdlearn.fit("lsvm", X, Y, nu=2.0, solver=Steepest, warm_start=start)
    assert model.n_iter == 3
