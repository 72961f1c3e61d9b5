"""Installed plugins put to the test: the table of ``python -m mdlearn plugins --check``."""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mdlearn.plugins.loading import error_line
from mdlearn.plugins.records import PluginRecord
from mdlearn.plugins.registry import list_plugins, registry
from mdlearn.testing.checks import CHECKS
from mdlearn.testing.kernels import check_kernel
from mdlearn.testing.solvers import check_solver
from mdlearn.testing.sources import check_source


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

    Objectives pass all of `mdlearn.testing.CHECKS`, a solver `check_solver`, a kernel `check_kernel`, both with their
    defaults. Of a source only the class is there: it leaves plain arrays alone. A command declares its arguments.

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
        ("solver", record.solvers, (check_solver,)),
        ("kernel", record.kernels, (check_kernel,)),
        ("source", record.sources, (check_source,)),
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


def check_command_arguments(name: str) -> None:
    """Check that the arguments of an installed command are declared and can be shown."""
    parser: Any = argparse.ArgumentParser(prog=name, exit_on_error=False)
    registry().commands[name]().add_arguments(parser)
    assert parser.format_help()
