"""Tasks: how the y of a fit is read, and of which kind its model is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mdlearn.data.validation import (
    Data,
    check_data,
    validate_multi_label,
    validate_partly_labelled,
    validate_regression,
    validate_unlabelled,
)
from mdlearn.model.class_decisions import EACH_LABEL, PAIRWISE
from mdlearn.model.model import Model
from mdlearn.model.regression import RegressionModel

READERS: dict[str, Callable[..., Data]] = {
    "labels": check_data,
    "numbers": validate_regression,
    "none": validate_unlabelled,
    "some labels": validate_partly_labelled,
    "indicators": validate_multi_label,
}
"""Functions that check X and y, by what y is to a task."""


@dataclass(frozen=True)
class Task:
    """Task of an objective: how y is read, and the kind of the model that says what decision values mean.

    Classification and regression are the two that mdlearn has. An objective of a plugin names one of them by
    ``task = "classification"`` or ``"regression"``, or has one of its own: ``task = Task("labels", RankModel)``.

    Attributes
    ----------
    y : str
        "labels": two or more classes (`Data.classes` and `Data.codes`). "numbers": finite numbers (`Data.targets`);
        z in the terms is f(x) - y. "none": rows alone, y is None or holds ones; z is f(x). "some labels": labels, -1
        where unknown (NaN among floats); `Data.codes` are -1 there, and z is f(x). "indicators": a matrix of 0 and 1
        with a column for each of several labels (`Data.indicators`); z is that of each label.
    model : type of Model
        Kind of the models: its `task` is the name of the task, `predictions` makes predictions of decision values, and
        `score` judges them, under the name `measure`.
    by_class : bool
        Whether more than two classes, or each label of a matrix, have decision values of their own. Else there is one
        decision value, whatever y.
    """

    y: str
    model: type[Model]
    by_class: bool = False

    def __post_init__(self) -> None:
        if self.y not in READERS:
            raise ValueError(f"y of a Task needs to be one of {', '.join(READERS)}; got {self.y!r}")
        if not (isinstance(self.model, type) and issubclass(self.model, Model)):
            raise TypeError(f"model of a Task needs to be a subclass of mdlearn.Model; got {self.model!r}")
        if self.by_class and self.y in ("numbers", "none"):
            raise ValueError(f"decision values by class need labels; got by_class=True with y={self.y!r}")

    @property
    def name(self) -> str:
        """Name of the task, which its models and their files have."""
        return self.model.task

    @property
    def built_in(self) -> bool:
        """Whether mdlearn itself brings this task."""
        return TASKS.get(self.name) is self

    def ways(self, offered: tuple[str, ...]) -> tuple[str, ...]:
        """Return the ways of several classes, of those that an objective offers; the first is the default.

        Parameters
        ----------
        offered : tuple of str

        Returns
        -------
        tuple of str
            Unknown labels belong to no pair of classes; each label of a matrix has a problem of its own.
        """
        if not self.by_class:
            return ("none",)
        if self.y == "indicators":
            return (EACH_LABEL,)
        return offered if self.y == "labels" else tuple(way for way in offered if way not in PAIRWISE)

    def read(self, X: Any, y: Any, sample_weight: Any, class_weight: Any, *, square: bool) -> Data:
        """Check rows, y and weights; `square` says that X is a Gram matrix.

        Parameters
        ----------
        X, y, sample_weight, class_weight : object
            As `mdlearn.fit` takes them.
        square : bool

        Returns
        -------
        Data

        Raises
        ------
        ValueError, TypeError
            One sentence: what came, and what is needed.
        """
        return READERS[self.y](X, y, sample_weight, class_weight, square=square)


TASKS = {one.name: one for one in (Task("labels", Model, by_class=True), Task("numbers", RegressionModel))}
"""Tasks of mdlearn by name."""


def task_of(objective: Any) -> Task:
    """Return the task of an objective: one of mdlearn by its name, or one of a plugin.

    TypeError for anything else, and for a task of a plugin whose models have the name of another task.
    """
    given = objective.task
    if isinstance(given, str) and given in TASKS:
        return TASKS[given]
    if not isinstance(given, Task):
        known = ", ".join(TASKS)
        raise TypeError(f"objective {objective.name!r} has the task {given!r}; known tasks: {known}, or a Task")
    if given.name in TASKS and not given.built_in:
        raise TypeError(
            f"objective {objective.name!r} has a task whose model {given.model.__name__} has task = {given.name!r}, "
            "which mdlearn has; give the model another name of its task"
        )
    return given
