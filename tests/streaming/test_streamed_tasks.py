"""Tasks of plugins over row blocks: classes with decision values of their own are taken, and others refused."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.extend import HingeTerm, LogisticTerm, RowTerms, Task, Terms
from mdlearn.model.model import Model


class RareModel(Model):
    """Model that calls a row one of the class with the largest decision value, the last one where none is positive."""

    task: ClassVar[str] = "rare"

    def predictions(self, f):
        F = np.column_stack([-f, f]) if f.ndim == 1 else f
        return np.where(F.max(axis=1) > 0, self.classes_[F.argmax(axis=1)], self.classes_[-1])


class Rare(mdlearn.Objective):
    """Hinges or squared hinges of each class against the rest."""

    name = "rare"
    summary = "for tests"
    power = 2

    def terms(self, params, total):
        return Terms(2.0, 0.0, (HingeTerm(0.7, power=self.power),))


def of(task, **given):
    return type("Mine", (Rare,), {"task": task, **given})


def sample(k):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 4))
    return X, np.array(["a", "b", "c", "d"])[
        np.digitize(X[:, 0] + 0.5 * rng.standard_normal(200), np.arange(k - 1) - 0.5)
    ]


def cut(X, y):
    return [(X[part], y[part]) for part in (slice(0, 60), slice(60, 61), slice(61, None))]


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_classes_with_decision_values_of_their_own(k, power, tmp_path):
    X, y = sample(k)
    task, given = of(Task("labels", RareModel, by_class=True), power=power), {"tol": 1e-8, "class_weight": "balanced"}
    streamed, held = mdlearn.fit(task, cut(X, y), None, **given), mdlearn.fit(task, X, y, **given)
    assert type(streamed) is type(held) is RareModel
    for one, other in ((held.certificate, streamed.certificate), (streamed.certificate, held.certificate)):
        assert one.converged and one.lower_bound <= other.objective * (1.0 + 1e-13)
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=2e-8)
    assert np.array_equal(streamed.predict(X), held.predict(X)) and set(held.predict(X)) <= set(y)


TASKS = {y: Task(y, RareModel) for y in ("labels", "some labels", "indicators")}


@pytest.mark.parametrize("case", TASKS)
def test_tasks_of_one_decision_value_are_refused(case):
    task = TASKS[case]
    with pytest.raises(ValueError, match=f"'rare' is one of {task.name}, which takes no row blocks; give X and y"):
        mdlearn.fit(of(task), cut(*sample(2)), None)


class InsideModel(Model):
    """Model that says which rows reach a level."""

    task: ClassVar[str] = "inside"

    def predictions(self, f):
        return f >= 1.0


LOSSES = {
    "hinge": (HingeTerm(0.05),),
    "band": (HingeTerm(0.05), HingeTerm(0.02, side=-1, threshold=3.0)),
    "squared hinge": (HingeTerm(0.05, power=2),),
    "logistic": (LogisticTerm(0.3),),
}


def alone(loss, by_row=False, **rest):
    def row_terms(self, data, params):
        assert data.targets is None and not data.classes.size
        return RowTerms(np.exp(data.X.block(slice(None))[:, 0])) if by_row else None

    terms = Terms(loss=LOSSES[loss], **rest)
    methods = {"terms": lambda *_: terms, "row_terms": row_terms, "needs_all_rows": lambda *_: ""}
    return of(Task("none", InsideModel), **methods)


def rows(m=200):
    rng = np.random.default_rng(4)
    return rng.standard_normal((m, 4)) + [1.0, 0.5, 0.0, 2.0], np.arange(m) % 3 + 0.0


def check_both_fits(streamed, held, rel):
    """Check that both are certified, and that each bound holds for the other's objective."""
    for one, other in ((held.certificate, streamed.certificate), (streamed.certificate, held.certificate)):
        assert one.converged and one.lower_bound <= other.objective + 1e-13 * abs(other.objective)
    assert streamed.certificate.objective == pytest.approx(held.certificate.objective, rel=rel)


@pytest.mark.parametrize("bias", ["none", "regularized"])
@pytest.mark.parametrize("rest", [{}, {"variance": 5.0}, {"variance": 5.0, "mean": 2.0}, {"mean": 2.0}], ids=str)
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_alone(loss, rest, bias):
    X, counts = rows()
    task, given = alone(loss, **rest), {"bias": bias, "tol": 1e-8}
    held = mdlearn.fit(task, X, None, sample_weight=counts, **given)
    for y in (None, np.ones(200)):
        streamed = mdlearn.fit(task, mdlearn.sources.of_arrays(X, y, counts, rows=70), None, **given)
        assert type(streamed) is type(held) is InsideModel and streamed.predict(X).dtype == bool
        check_both_fits(streamed, held, 2e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_rows_alone_with_costs_of_rows_and_as_repetitions(loss):
    X, counts = rows()
    task, times = alone(loss, by_row=True, variance=5.0), counts.astype(int)
    held = mdlearn.fit(task, X, None, sample_weight=counts, tol=1e-8)
    check_both_fits(mdlearn.fit(task, mdlearn.sources.of_arrays(X, None, counts, rows=70), None, tol=1e-8), held, 2e-8)
    repeated = mdlearn.sources.of_arrays(np.repeat(X, times, axis=0), None, rows=70)
    check_both_fits(mdlearn.fit(task, repeated, None, tol=1e-8), held, 2e-8)


@pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_alone_in_an_interrupted_fit(loss, tmp_path):
    X, counts = rows()
    task, given = alone(loss, variance=5.0), {"tol": 1e-9}
    straight = mdlearn.fit(task, mdlearn.sources.of_arrays(X, None, counts, rows=70, held=9), None, **given)
    for most in (1, 2, None):
        kept = mdlearn.sources.of_arrays(X, None, counts, rows=70, held=9, checkpoint=tmp_path / "fit.npz")
        model = mdlearn.fit(task, kept, None, max_iter=most, **given)
    assert model.certificate.converged and np.array_equal(model.coef_, straight.coef_)
    assert model.certificate.lower_bound == straight.certificate.lower_bound and model.n_iter == straight.n_iter


def test_rows_alone_under_a_kernel_and_in_single_steps():
    X, counts = rows()
    task, given = alone("hinge"), {"kernel": "rbf", "approximation": "nystroem", "n_components": 20, "tol": 1e-7}
    blocks = mdlearn.sources.of_arrays(X, None, counts, rows=70)
    held = mdlearn.fit(task, X, None, sample_weight=counts, **given)
    check_both_fits(mdlearn.fit(task, blocks, None, **given), held, 1e-6)
    best = mdlearn.fit(task, X, None, sample_weight=counts).certificate
    rough = mdlearn.fit(task, blocks, None, solver="asgd", solver_options={"epochs": 5}).certificate
    assert rough.lower_bound <= best.objective <= rough.objective * (1.0 + 1e-12)


def test_what_rows_alone_refuse():
    X, _ = rows(50)
    with pytest.raises(ValueError, match="block 0: y holds another number than 1 in row 3; this objective takes rows"):
        mdlearn.fit(alone("hinge"), [(X, np.where(np.arange(50) == 3, 2.0, 1.0))], None)
    with pytest.raises(ValueError, match="class_weight 'balanced' is for classifiers"):
        mdlearn.fit(alone("hinge"), [(X, None)], None, class_weight="balanced")
    for objective in ("svm", "svr"):
        with pytest.raises((TypeError, ValueError), match="block 0: "):
            mdlearn.fit(objective, [(X, None)], None)
