"""The command line: demo, objectives, solvers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mdlearn.plugins.manager import registry


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m mdlearn", description="Margin-distribution classifiers.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    demo = commands.add_parser("demo", help="fit SVM and LDM on real data, print a table and draw the margins")
    demo.add_argument("--output", default=None, metavar="DIR", help="folder of the plot (default: the current one)")
    commands.add_parser("objectives", help="list objectives with their formulas and parameters")
    commands.add_parser("solvers", help="list engines and the table behind solver='auto'")
    given = parser.parse_args(arguments)
    if given.command == "demo":
        from mdlearn.experiments.demo import main as run_demo

        return run_demo(given.output)
    if given.command == "objectives":
        return _objectives()
    return _solvers()


def _objectives() -> int:
    for name, cls in registry().objectives.items():
        print(f"{name}: {cls.summary}\n    minimise {cls.formula}")
        for parameter, declared in cls.parameters.items():
            default = "" if callable(declared.default) else f" (default {declared.default:g})"
            print(f"    {parameter}: {declared.doc}{default}")
    return 0


def _solvers() -> int:
    from mdlearn.solvers.choice import RULES

    for name, cls in registry().solvers.items():
        options = ", ".join(f"{key}={value!r}" for key, value in cls.options.items())
        print(f"{name}: {cls.purpose}" + (f"\n    options: {options}" if options else ""))
    print("solver='auto' takes the first line that fits:")
    for rule in RULES:
        print(f"    {rule.solver:<10}{rule.reason}")
    return 0
