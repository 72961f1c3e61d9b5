"""Estimators of one objective by its declaration: subclasses that have its hyper-parameters as params of their own."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar

from mdlearn.objectives.base import Objective, Parameter
from mdlearn.sklearn.base import CertifiedEstimator
from mdlearn.sklearn.documents import DOCSTRING_SECTIONS, documented_estimator
from mdlearn.sklearn.params import param_entries


class DeclaredParams:
    """Base class of estimators of any objective whose subclasses can fix it: ``class Mine(..., objective=Objective)``.

    Such a subclass has no `objective` and `params`: the declared hyper-parameters are its own, with their defaults or
    those that its body gives them.
    """

    params: Mapping[str, Any] | None

    def __init_subclass__(cls, objective: type[Objective] | None = None, **others: Any) -> None:
        super().__init_subclass__(**others)
        if objective is not None:
            _declare_params_of_objective(cls, objective)

    def _own(self) -> dict[str, Any]:
        """Hyper-parameters as given."""
        return param_entries(self.params, "params")


def _declare_params_of_objective(cls: Any, objective: Any) -> None:
    """Give an estimator's class the declared params of an objective: fields, and their entries in the docstring."""
    if not (isinstance(objective, type) and issubclass(objective, Objective)):
        raise TypeError(f"objective of {cls.__name__} needs to be a subclass of mdlearn.Objective; got {objective!r}")
    names = (*objective.parameters, *objective.aliases)
    taken = sorted({one.name for one in fields(cls)}.intersection(names))
    if taken:
        raise TypeError(f"objective {objective.name!r} declares {taken}, which {cls.__name__} has for itself")
    documents = {name: one.doc for name, one in objective.parameters.items()}
    documents |= {name: f"Another name of `{of}`." for name, of in objective.aliases.items()}
    own = ""
    for name in names:
        # Two names of one number: None is the one that is not given.
        shown = None if name in objective.aliases.values() else _shown_default_of_param(objective, name)
        default = cls.__dict__.get(name, shown)  # of the class's own body, if it has one
        setattr(cls, name, default)
        told = f"{type(default).__name__}, default {default:g}" if isinstance(default, (int, float)) else "optional"
        own += f"{name} : {told}\n    {documents[name]}\n"
    cls.objective, cls.params, cls._own = objective, None, CertifiedEstimator._own
    fixed = {"objective": ClassVar[Any], "params": ClassVar[Any]}  # no longer fields
    cls.__annotations__ = {**dict.fromkeys(names, Any), **inspect.get_annotations(cls), **fixed}
    title, entries = (text.replace("%", "%%") for text in (inspect.cleandoc(cls.__doc__ or objective.summary), own))
    cls.__doc__ = f"{title}\n\n{DOCSTRING_SECTIONS.replace('%(own)s', entries.rstrip())}"
    documented_estimator(cls)


def _shown_default_of_param(objective: type[Objective], name: str) -> float | None:
    """Default of a declared param where it is a number; None stands for what the objective makes of other values."""
    declared = objective.parameters.get(name)
    if isinstance(declared, Parameter) and not callable(declared.default):
        return declared.fill({}, 0.0)
    return None
