"""Tasks of plugins over row blocks: classes with decision values of their own are taken, and others refused."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import mdlearn
from mdlearn.extend import MULTI_LABEL, SEMI_SUPERVISED, HingeTerm, Task, Terms
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


TASKS = {
    "one decision value": Task("labels", RareModel),
    "some labels": SEMI_SUPERVISED,
    "several labels": MULTI_LABEL,
    "no labels": Task("none", RareModel),
}


@pytest.mark.parametrize("case", TASKS)
def test_other_tasks_are_refused(case):
    task = TASKS[case]
    with pytest.raises(ValueError, match=f"'rare' is one of {task.name}, which takes no row blocks; give X and y"):
        mdlearn.fit(of(task), cut(*sample(2)), None)
