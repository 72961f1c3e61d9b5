"""Callbacks of scikit-learn (from 1.9 on) while an estimator fits: the reports of its engine as a tree of tasks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mdlearn.forms.proof import State

__all__ = ["CallbackSupportMixin", "CallbackTasks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9: no callbacks, no set_callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for what scikit-learn does not have yet."""

    def with_callbacks(method: Any) -> Any:
        """Return the method as it is."""
        return method


class CallbackTasks:
    """Tree of tasks of one fit, for its reports to scikit-learn's callbacks.

    The root is the fit. Each report of the engine is a leaf; where there are several problems (classes, or pairs of
    classes), reports are leaves of their problem, and the root knows how many problems there are: so progress bars show
    a share. A callback that returns True at the end of a report stops the fit, with the best model so far.

    Parameters
    ----------
    estimator : estimator
    given : mapping
        X, y and metadata as callbacks get them.
    n_problems : int
    in_turn : bool
        Whether problems come one after the other.
    also : callable, optional
        A callback of `mdlearn.fit`, which sees the same reports.
    """

    def __init__(
        self,
        estimator: Any,
        given: Mapping[str, Any],
        n_problems: int,
        in_turn: bool,
        also: Callable[[State], Any] | None,
    ) -> None:
        self.estimator, self.given, self.in_turn, self.also = estimator, given, in_turn, also
        self.several = n_problems > 1
        self.root: Any = None
        self.problems: dict[int, Any] = {}
        if hasattr(estimator, "set_callbacks"):
            most = n_problems if self.several else None
            self.root = estimator._init_callback_context(max_subtasks=most, sequential_subtasks=not self.several)
            self.root.call_on_fit_task_begin(estimator=estimator, **given)

    @property
    def callback(self) -> Callable[[State], Any] | None:
        """Callback for `mdlearn.fit`; None: nobody listens."""
        listens = self.root is not None and bool(getattr(self.estimator, "_skl_callbacks", []))
        return self._report if listens else self.also

    def _report(self, state: State) -> bool:
        parent = self._problem(state.problem) if self.several else self.root
        leaf = parent.subcontext(task_name="report")
        leaf.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        stop = leaf.call_on_fit_task_end(estimator=self.estimator, **self.given)
        return bool(self.also is not None and self.also(state)) or bool(stop)

    def _problem(self, j: int) -> Any:
        if j not in self.problems:
            if self.in_turn:
                self._end_problems()
            task = self.root.subcontext(task_name="problem", task_id=j, max_subtasks=None)
            self.problems[j] = task.call_on_fit_task_begin(estimator=self.estimator, **self.given)
        return self.problems[j]

    def _end_problems(self) -> None:
        for j, task in self.problems.items():
            if task is not None:
                self.problems[j] = None
                task.call_on_fit_task_end(estimator=self.estimator, **self.given)

    def end(self, fitted: Mapping[str, Any]) -> None:
        """The fit is over; `fitted` are the attributes that make an estimator ready to predict."""
        if self.root is not None:
            self._end_problems()
            self.root.call_on_fit_task_end(estimator=self.estimator, reconstruction_attributes=fitted, **self.given)
