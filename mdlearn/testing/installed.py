"""Installed plugins put to the test: the table of ``python -m mdlearn plugins --check``."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mdlearn.data.validation import check_number
from mdlearn.errors import PluginWarning
from mdlearn.plugins.discovery import normalized_distribution_name
from mdlearn.plugins.loading import plugin_error_line
from mdlearn.plugins.records import PluginRecord
from mdlearn.plugins.registry import list_plugins, registry
from mdlearn.testing.checks import CHECKS
from mdlearn.testing.kernels import KERNEL_CLAUSES, check_kernel
from mdlearn.testing.solvers import SOLVER_CLAUSES, check_solver, solver_claims_what_it_takes, solver_declares_options
from mdlearn.testing.sources import check_source, source_leaves_arrays_alone

SECONDS_PER_NAME = 600.0
"""Wall seconds that the checks of one installed name may take by default."""
SECONDS_TO_EXIT_BY_ITSELF = 5.0
"""Wall seconds beyond the limit after which a process of checks that has not ended itself is ended."""
CLAUSE_AT_LIMIT = re.compile(
    r"^Timeout .*? in (\w+)\n  File [^\n]* in (?:require_clauses|_installed_fault)$", re.DOTALL | re.MULTILINE
)
"""Clause in the traceback of a process of checks that ended itself at the limit: the last one that was called."""


MOST_CHARACTERS = 2000
"""Characters of a sentence in the table; each is for the author, who needs its end as well."""
NO_NAME = r"[^A-Za-z0-9._-]"
"""What ends the name in a requirement of a distribution."""


@dataclass(frozen=True)
class CheckOutcome:
    """Outcome for one installed name of the clauses of its contract.

    Attributes
    ----------
    distribution : str
        With its version.
    kind, name : str
        Such as "objective" and "mcodm"; "plugin" and the entry point for one that could not be loaded whole.
    clauses : tuple of str
        Names of the clauses of the contract that hold; none for a plugin that is disabled.
    faults : tuple of str
        One sentence for each that does not.
    """

    distribution: str
    kind: str
    name: str
    clauses: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    def __str__(self) -> str:
        # The first word of a clause's name is its kind, or "check".
        told = ", ".join(clause.partition("_")[2].replace("_", " ") for clause in self.clauses)
        number = len(self.clauses)
        held = f"{number} clauses hold: {told}" if number > 1 else f"1 clause holds: {told}"
        outcome = "; ".join(self.faults) or (held if self.clauses else "disabled")
        return f"{self.distribution}: {self.kind} {self.name}: {outcome}"


def check_installed(time_limit: float = SECONDS_PER_NAME, distribution: str | None = None) -> Iterator[CheckOutcome]:
    """Check everything that installed plugins bring, in the order of `mdlearn.list_plugins`.

    Objectives pass all of `mdlearn.testing.CHECKS`, a solver `check_solver`, a kernel `check_kernel`, both with their
    defaults. Of a source only the class is there: it leaves plain arrays alone. A command declares its arguments. Each
    name has a process of its own: one that hangs, crashes or ends Python is a fault of that name alone. A plugin that
    is disabled is told, and no fault.

    Parameters
    ----------
    time_limit : float, default 600
        Wall seconds that one name may take, > 0.
    distribution : str, optional
        Name of the plugin to check, as for `mdlearn.list_plugins`. Default: all.

    Returns
    -------
    iterator of CheckOutcome
        One per name, as soon as it is known.

    Raises
    ------
    ValueError, TypeError
        For another time limit, or a plugin that is not installed.
    """
    time_limit = check_number(time_limit, "time_limit", low=0.0, strict=True)
    return _installed_outcomes(time_limit, list_plugins(distribution))


def _installed_outcomes(time_limit: float, records: Sequence[PluginRecord]) -> Iterator[CheckOutcome]:
    """Outcomes of the checks of what installed plugins bring."""
    for record in records:
        title = f"{record.distribution} {record.version}"
        if record.state != "ok":
            yield CheckOutcome(title, "plugin", record.entry, faults=(record.error,) if record.error else ())
        for kind in CHECKS_BY_KIND:
            for name in getattr(record, kind + "s"):
                yield CheckOutcome(title, kind, name, *_installed_outcome_by_process(kind, name, time_limit))


def _installed_outcome_by_process(kind: str, name: str, time_limit: float) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Clauses that hold for an installed name, and its faults, found out by another process."""
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        call = (
            f"import faulthandler, sys; faulthandler.dump_traceback_later({time_limit!r}, exit=True); "
            "from mdlearn.testing.installed import check_installed_name; check_installed_name(*sys.argv[1:])"
        )
        slow = f"its checks took more than {time_limit:g} s and were ended"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            done = subprocess.run(
                [sys.executable, "-c", call, kind, name, str(answer)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                timeout=time_limit + SECONDS_TO_EXIT_BY_ITSELF,
            )
        except subprocess.TimeoutExpired:
            return (), (slow,)
        if answer.is_file():
            held, faults = json.loads(answer.read_text(encoding="utf-8"))
            return tuple(held), tuple(faults)
    if done.stderr.startswith("Timeout (") or "\nTimeout (" in done.stderr:
        at = CLAUSE_AT_LIMIT.search(done.stderr)
        return (), (slow + (f" in {at[1]}" if at else ""),)
    last = (done.stderr.strip().splitlines() or ["without a word"])[-1]
    return (), (f"the process of its checks ended with status {done.returncode} ({last})",)


def check_installed_name(kind: str, name: str, answer: str) -> None:
    """Check one installed name, and write to the file `answer` which clauses hold and what is wrong."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        _leave_out_other_engines(kind, name)
        found = [(check, _installed_fault(check, name)) for check in CHECKS_BY_KIND[kind]]
    held = [one.__name__ for check, fault in found if fault is None for one in CLAUSES.get(check, (check,))]
    faults = [fault for _, fault in found if fault is not None]
    Path(answer).write_text(json.dumps([held, faults]), encoding="utf-8")


def _leave_out_other_engines(kind: str, name: str) -> None:
    """Take engines of plugins out of this process of checks that the one which brings a name does not ask for.

    solver="auto" asks all of them: a faulty one would be a fault of every name.
    """
    brings = {record.distribution: name in getattr(record, kind + "s") for record in registry().records}
    asked = {title for title, own in brings.items() if own}
    for title in tuple(asked):
        needs = importlib.metadata.requires(title) or ()
        needed = {normalized_distribution_name(re.split(NO_NAME, one, maxsplit=1)[0]) for one in needs}
        asked |= {other for other in brings if normalized_distribution_name(other) in needed}
    for record in registry().records:
        for solver in record.solvers if record.distribution not in asked else ():
            del registry().solvers[solver]


def _installed_fault(check: Callable[[str], None], name: str) -> str | None:
    """Fault of an installed part in one check: text of the error and its notes; None where it holds.

    Warnings of fits are no faults.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            check(name)
    except KeyboardInterrupt:
        raise
    except Exception as error:
        told = plugin_error_line(error, MOST_CHARACTERS)
        return " ".join([f"{check.__name__}: {told}", *getattr(error, "__notes__", ())])
    return None


def command_declares_arguments(name: str) -> None:
    """Check that the arguments of an installed command are declared and can be shown."""
    parser: Any = argparse.ArgumentParser(prog=name, exit_on_error=False)
    registry().commands[name]().add_arguments(parser)
    assert parser.format_help()


CHECKS_BY_KIND: dict[str, Sequence[Callable[[str], None]]] = {
    "objective": CHECKS,
    "solver": (check_solver,),
    "kernel": (check_kernel,),
    "source": (check_source,),
    "command": (command_declares_arguments,),
}
"""Checks of what an installed plugin brings, by kind."""
CLAUSES: dict[Callable[..., None], Sequence[Callable[..., None]]] = {
    check_solver: (solver_declares_options, solver_claims_what_it_takes, *SOLVER_CLAUSES),
    check_kernel: KERNEL_CLAUSES,
    check_source: (source_leaves_arrays_alone,),  # all that it asks of a class
}
"""Clauses that a check of an installed name goes through, where these are several; else it is one itself."""
