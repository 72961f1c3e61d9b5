"""Installed plugins put to the test: the table of ``python -m mdlearn plugins --check``."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mdlearn.api import fit
from mdlearn.datasets import two_gaussians
from mdlearn.plugins.loading import error_line
from mdlearn.plugins.records import PluginRecord
from mdlearn.plugins.registry import list_plugins, registry
from mdlearn.testing.checks import CHECKS

ROWS = 60
MOST_REPORTS = 200
"""Of an engine, until which its answer need not be the optimum but has to be what its certificate says."""
REFUSAL = "cannot take this problem"


@dataclass(frozen=True)
class CheckOutcome:
    """Outcome for one installed name of the clauses of its contract.

    Attributes
    ----------
    distribution : str
        With its version.
    kind, name : str
        Such as "objective" and "odm"; "plugin" and the entry point for one that could not be loaded whole.
    held : int
        Clauses of the contract that hold.
    faults : tuple of str
        One sentence for each that does not.
    """

    distribution: str
    kind: str
    name: str
    held: int
    faults: tuple[str, ...]

    def __str__(self) -> str:
        outcome = "; ".join(self.faults) or f"{self.held} of {self.held} hold"
        return f"{self.distribution}: {self.kind} {self.name}: {outcome}"


def check_installed() -> Iterator[CheckOutcome]:
    """Check everything that installed plugins bring, in the order of `mdlearn.list_plugins`.

    Objectives pass all of `mdlearn.testing.CHECKS`. A solver takes at least one registered objective, and gives the
    same bits twice and no objective above that at w = 0. A kernel gives an SVM that converges. A source leaves plain
    arrays alone. A command declares its arguments.

    Returns
    -------
    iterator of CheckOutcome
        One per name, as soon as it is known.
    """
    for record in list_plugins():
        title = f"{record.distribution} {record.version}"
        if record.state != "ok":
            yield CheckOutcome(title, "plugin", record.entry, 0, (record.error or record.state,))
        for kind, names, clauses in _checks_of_installed(record):
            for name in names:
                faults = tuple(filter(None, (_fault_of_check(clause, name) for clause in clauses)))
                yield CheckOutcome(title, kind, name, len(clauses) - len(faults), faults)


def _checks_of_installed(record: PluginRecord) -> Sequence[tuple[str, Sequence[str], Sequence[Callable[[str], None]]]]:
    """Checks of an installed plugin: (kind, names, clauses) of what it brings."""
    return (
        ("objective", record.objectives, CHECKS),
        ("solver", record.solvers, (check_solver_on_a_problem,)),
        ("kernel", record.kernels, (check_kernel_in_a_fit,)),
        ("source", record.sources, (check_source_and_arrays,)),
        ("command", record.commands, (check_command_arguments,)),
    )


def _fault_of_check(clause: Callable[[str], None], name: str) -> str | None:
    """Fault of an installed part in one clause: text of the error; None where it holds. Warnings of fits are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clause(name)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        return f"{clause.__name__}: {error_line(error)}"
    return None


def check_solver_on_a_problem(name: str) -> None:
    """Check that an installed solver takes some objective, repeats its answer, and is not above w = 0."""
    X, two = two_gaussians(ROWS, random_state=0)
    for objective in registry().objectives:
        for y in (two, np.arange(ROWS) % 3):
            try:
                model = fit(objective, X, y, solver=name, max_iter=MOST_REPORTS)
            except ValueError as error:
                if REFUSAL not in str(error):
                    raise
                continue
            again = fit(objective, X, y, solver=name, max_iter=MOST_REPORTS)
            assert np.array_equal(model.coef_, again.coef_), f"{objective}: two fits of the same give other bits"
            value, zero = (
                one.certificate.objective for one in (model, fit(objective, X, y, solver=name, time_limit=0.0))
            )
            assert value <= zero + 1e-9 * abs(zero), f"{objective}: {value:.10g} is above {zero:.10g}, that at w = 0"
            return
    raise AssertionError("no registered objective, at its defaults, is a problem that it takes")


def check_kernel_in_a_fit(name: str) -> None:
    """Check that an SVM with an installed kernel converges, and predicts as many values as there are rows."""
    X, y = two_gaussians(ROWS, random_state=0)
    model = fit("svm", X, y, kernel=name)
    assert model.certificate.converged, f"an SVM with this kernel ends at gap {model.certificate.gap:.2g}"
    assert model.decision_function(X).shape == y.shape


def check_source_and_arrays(name: str) -> None:
    """Check that an installed source of blocks does not take arrays for its own."""
    X, y = two_gaussians(ROWS, random_state=0)
    found = registry().sources[name].given(X, y, None)
    assert found is None, "given(X, y, weight) takes NumPy arrays, which are not its own; return None for them"


def check_command_arguments(name: str) -> None:
    """Check that the arguments of an installed command are declared and can be shown."""
    parser: Any = argparse.ArgumentParser(prog=name, exit_on_error=False)
    registry().commands[name]().add_arguments(parser)
    assert parser.format_help()
