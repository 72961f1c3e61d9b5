"""Conformance checks of objectives, solvers, kernels and sources of row blocks, built-in ones and those of plugins.

`check_objective`, `check_solver`, `check_kernel`, `check_source` and `check_estimator` go through all clauses of a
contract; what does not hold is an AssertionError of one sentence, with the clause and the smallest example that was
tried.

In the tests of a plugin::

    from mdlearn.testing import parametrize_with_checks

    @parametrize_with_checks(["my_objective"])
    def test_conformance(objective, check):
        check(objective)

Each check is one promise and a plain function: it returns None, or raises AssertionError with a message that says what
has to change. An objective is a registered name, a class or an instance; it is tried on small overlapping classes with
the parameters of the instance and the defaults for the rest. Values are recomputed from `Objective.terms` in plain
NumPy, without the code of engines and certificate.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mdlearn.plugins.registry import registry
from mdlearn.testing.checks import CHECKS
from mdlearn.testing.estimators import check_estimator
from mdlearn.testing.installed import CheckOutcome, check_installed
from mdlearn.testing.kernels import check_kernel
from mdlearn.testing.reference import reference_title
from mdlearn.testing.require import require_clauses
from mdlearn.testing.solvers import check_solver
from mdlearn.testing.sources import check_source

__all__ = [
    "CHECKS",
    "CheckOutcome",
    "check_estimator",
    "check_installed",
    "check_kernel",
    "check_objective",
    "check_solver",
    "check_source",
    "parametrize_with_checks",
]


def check_objective(objective: Any) -> None:
    """Check an objective, by all of `mdlearn.testing.CHECKS` in their order.

    Parameters
    ----------
    objective : name, class or instance of Objective

    Raises
    ------
    AssertionError
        One sentence: the check that does not hold, and why.
    """
    require_clauses(f"objective {reference_title(objective)!r}", CHECKS, objective)


def parametrize_with_checks(objectives: Any = None) -> Any:
    """Decorate, by `mdlearn.testing`, a function of (objective, check) so that all checks run on all objectives.

    Parameters
    ----------
    objectives : name, class or instance of Objective, or an iterable of these, optional
        Default: every registered objective, plugins' included.

    Returns
    -------
    pytest.MarkDecorator
        One case per objective and check, with an id that names both.

    Raises
    ------
    ImportError
        If pytest is missing.
    ValueError, TypeError
        For an unknown name, something that is no objective, or an empty list.
    """
    try:
        import pytest
    except ImportError as error:
        raise ImportError("mdlearn.testing needs pytest, which is missing; run: pip install pytest") from error
    if objectives is None:
        objectives = list(registry().objectives)
    elif isinstance(objectives, str) or not isinstance(objectives, Iterable):
        objectives = [objectives]
    cases = [
        pytest.param(objective, check, id=f"{reference_title(objective)}-{check.__name__}")
        for objective in objectives
        for check in CHECKS
    ]
    if not cases:
        raise ValueError("objectives is empty; name at least one, or leave it out to check all registered ones")
    return pytest.mark.parametrize(("objective", "check"), cases)
