"""Listings: the commands that list what there is, and `new-plugin`."""

from __future__ import annotations

import argparse
import inspect
import sys
import warnings
from typing import Any

from mdlearn.data.features.kernels import DEFAULTS, FORMULAS, PARAMETERS
from mdlearn.errors import PluginWarning
from mdlearn.model.task import task_of
from mdlearn.plugins.command import Command
from mdlearn.plugins.registry import list_plugins, registry
from mdlearn.solvers.base import Solver


class ObjectivesListing(Command):
    """Command of the listings: list objectives."""

    name = "objectives"
    summary = "list objectives with their formulas and parameters"

    def run(self, given: argparse.Namespace) -> int:
        for name, cls in registry().objectives.items():
            note = "" if task_of(cls).name == "classification" else f" ({task_of(cls).name})"
            print(f"{name}: {cls.summary}{note}\n    minimise {cls.formula}")
            _print_listed_parameters(cls)
        return 0


class KernelsListing(Command):
    """Command of the listings: list kernels."""

    name = "kernels"
    summary = "list kernels with their formulas and parameters"

    def run(self, given: argparse.Namespace) -> int:
        for name, found in registry().kernels.items():
            if name in FORMULAS:
                told = ", ".join(f"{parameter} (default {DEFAULTS[parameter]})" for parameter in PARAMETERS[name])
                print(f"{name}: {FORMULAS[name]}" + (f"\n    {told}" if told else ""))
            else:
                print(f"{name}: {found.summary}")
                _print_listed_parameters(found)
        return 0


class SolversListing(Command):
    """Command of the listings: list engines."""

    name = "solvers"
    summary = "list engines, their options and what they claim for solver='auto'"

    def run(self, given: argparse.Namespace) -> int:
        for name, cls in registry().solvers.items():
            options = ", ".join(f"{key}={value!r}" for key, value in cls.options.items())
            print(f"{name}: {cls.purpose}" + (f"\n    options: {options}" if options else ""))
            if cls.claims is not Solver.claims:
                print(
                    f"    claims for 'auto': {inspect.cleandoc(cls.claims.__doc__ or 'undocumented').splitlines()[0]}"
                )
        print("solver='auto' takes the engine with the cheapest claim; a model has all of them as solver_claims")
        return 0


class PluginsListing(Command):
    """Command of the listings: list installed plugins."""

    name = "plugins"
    summary = "list installed plugins: version, what they provide, what is wrong"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("plugin", nargs="?", metavar="NAME", help="name of one distribution (default: all)")
        one = parser.add_mutually_exclusive_group()
        one.add_argument("--json", action="store_true", help="one JSON list, an object per entry point")
        one.add_argument("--check", action="store_true", help="put everything that they bring to the test (minutes)")
        parser.add_argument(
            "--time-limit", type=float, default=600.0, metavar="SECONDS", help="of one name with --check (default: 600)"
        )

    def run(self, given: argparse.Namespace) -> int:
        from mdlearn.plugins.records import plugin_records_as_json, plugin_records_as_lines

        if given.check:
            return _check_listed_plugins(given.time_limit, given.plugin)
        with warnings.catch_warnings():  # the list says what they would
            warnings.simplefilter("ignore", PluginWarning)
            records = list_plugins(given.plugin)
        lines = [plugin_records_as_json(records)] if given.json else plugin_records_as_lines(records)
        print(*lines, sep="\n", end="\n" if lines else "")
        if not records:
            print("no plugins are installed", file=sys.stderr)
        return 0


class NewPluginCommand(Command):
    """Command beside the listings: write the package of a new plugin."""

    name = "new-plugin"
    summary = "write a package with an objective, or anything else, of your own"
    description = "Write a small package: what it brings, its entry point, tests and a README, ready for pip."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the package and of its folder")
        parser.add_argument(
            "--dir", default=".", metavar="DIR", help="where that folder goes (default: the current one)"
        )
        parser.add_argument(
            "--native", action="store_true", help="with a compiled loss (needs Cython and a C compiler)"
        )
        parser.add_argument(
            "--kind",
            default="objective",
            help="what it brings: objective, composite, estimator, solver, kernel, source or command, "
            "several with commas (default: objective)",
        )

    def run(self, given: argparse.Namespace) -> int:
        from mdlearn.plugins.scaffold import new_plugin

        target = new_plugin(given.name, given.dir, given.native, given.kind)
        how = "'.[test]'" if given.native else "-e '.[test]'"
        print(f"{target} written; in that folder run: pip install {how} && pytest")
        return 0


LISTINGS: tuple[type[Command], ...] = (
    ObjectivesListing,
    KernelsListing,
    SolversListing,
    PluginsListing,
    NewPluginCommand,
)
"""Commands of this module, in the order of ``--help``."""


def _print_listed_parameters(cls: Any) -> None:
    """Print the parameters of a listed class, with their documentation and defaults."""
    for parameter, declared in cls.parameters.items():
        told = declared.default
        told = f"{told:g}" if isinstance(told, (int, float)) else str(told)
        default = "" if callable(declared.default) else f" (default {told})"
        print(f"    {parameter}: {declared.doc}{default}")


def _check_listed_plugins(time_limit: float, plugin: str | None) -> int:
    """Print a line per name that listed plugins bring; return 1 where a clause of a contract does not hold."""
    from mdlearn.testing import check_installed

    faults = clauses = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PluginWarning)
        for outcome in check_installed(time_limit, plugin):
            print(outcome, flush=True)
            faults, clauses = faults + len(outcome.faults), clauses + len(outcome.clauses)
    well = "everything holds" if clauses else "nothing was checked"
    print(f"{faults} fault{'s' * (faults > 1)}" if faults else well, file=sys.stderr)
    return min(faults, 1)
